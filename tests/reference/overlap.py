"""Overlap of texts in the slow and obvious way: lists of tokens, sets of tuples, and every pair of positions compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WHITE = " \t\n\v\f\r"


@dataclass(frozen=True)
class Token:
    """A token: its text, its segment, and the bytes it takes in it."""

    text: str
    segment: int
    begin: int
    end: int


Stream = list[Token]


def tokens_of(segment: str, number: int, unit: str) -> Stream:
    """Words between ASCII white space, or characters but white space."""
    found: Stream = []
    word, begin, byte = "", 0, 0
    for character in segment + " ":
        size = len(character.encode())
        if unit == "character" and not character.isspace():
            found.append(Token(character, number, byte, byte + size))
        elif unit == "word" and character not in WHITE:
            begin, word = (begin if word else byte), word + character
        elif word:
            found.append(Token(word, number, begin, byte))
            word = ""
        byte += size
    return found


def streams_of(segments: Sequence[str], *, lines: bool, unit: str) -> list[Stream]:
    """The lines of a file are one stream of tokens, records are a stream each."""
    each = [tokens_of(segment, i, unit) for i, segment in enumerate(segments)]
    return [[token for part in each for token in part]] if lines else each


def common_length(a: Sequence[Token], b: Sequence[Token]) -> int:
    """How many tokens two streams begin with alike."""
    length = 0
    while length < min(len(a), len(b)) and a[length].text == b[length].text:
        length += 1
    return length


def longest_runs(train: Sequence[Stream], test: Stream, n: int) -> list[int]:
    """For each position of a test stream, the longest run from there (0 if shorter than n) that is in the training text."""
    lengths = [
        max((common_length(test[p:], stream[q:]) for stream in train for q in range(len(stream))), default=0)
        for p in range(len(test))
    ]
    return [length if length >= n else 0 for length in lengths]


def ngrams(stream: Stream, n: int) -> list[tuple[str, ...]]:
    """All n-grams of a stream, in order."""
    return [tuple(token.text for token in stream[i : i + n]) for i in range(len(stream) - n + 1)]


def passages(longest: Sequence[int]) -> list[tuple[int, int]]:
    """Position and length of the runs that are not just the rest of the one before."""
    return [(p, length) for p, length in enumerate(longest) if length and (p == 0 or longest[p - 1] != length + 1)]


def covered_bytes(segments: Sequence[str], stream: Stream, longest: Sequence[int], *, terminator: int) -> list[int]:
    """Per segment the bytes of the words of runs, of the white space between two words that one run holds, and of the white
    space around the first and last word of a stream where that is in a run.

    `stream` is one file's; a segment's bytes are its text's and its newline's.
    """
    starts, begin = [], 0
    for segment in segments:
        starts.append(begin)
        begin += len(segment.encode()) + terminator
    marked = [False] * begin
    for p, length in enumerate(longest):
        if length:
            run = stream[p : p + length]
            first = starts[run[0].segment] + run[0].begin if p else starts[stream[0].segment] if terminator == 0 else 0
            last = starts[run[-1].segment] + run[-1].end
            if p + length == len(stream):
                last = begin if terminator else starts[run[-1].segment] + len(segments[run[-1].segment].encode())
            marked[first:last] = [True] * (last - first)
    bounds = [*starts, begin]
    return [sum(marked[a:b]) for a, b in pairwise(bounds)]


def shingles(segment: str, unit: str, n: int) -> set[tuple[str, ...]]:
    """The set of n-grams of a segment."""
    return set(ngrams(tokens_of(segment, 0, unit), n))


def jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    """Size of what two sets share over the size of what either holds; 0 for two empty ones."""
    return len(a & b) / len(a | b) if a | b else 0.0


def seen_in_training(train: Sequence[str], test: Sequence[str], max_order: int) -> tuple[list[int], list[int]]:
    """For each word of the test its count in the training text, and the length of the longest n-gram that ends there."""
    known = [[token.text for token in tokens_of(segment, 0, "word")] for segment in train]
    grams = {tuple(words[i : i + k]) for words in known for k in range(1, max_order + 1) for i in range(len(words) - k + 1)}
    counts, longest = [], []
    for segment in test:
        words = [token.text for token in tokens_of(segment, 0, "word")]
        for i, word in enumerate(words):
            counts.append(sum(line.count(word) for line in known))
            found = [k for k in range(1, min(i + 1, max_order) + 1) if tuple(words[i - k + 1 : i + 1]) in grams]
            longest.append(max(found, default=0))
    return counts, longest
