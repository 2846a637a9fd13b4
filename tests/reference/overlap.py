"""Overlap of texts in the slow and obvious way: lists of tokens, sets of tuples, and every pair of positions compared."""

from __future__ import annotations

import re
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


def contaminated_bytes(
    segments: Sequence[str],
    streams: Sequence[Stream],
    longest: Sequence[Sequence[int]],
    duplicates: Sequence[bool],
    *,
    terminator: int,
) -> list[int]:
    """Per segment the bytes of whole duplicates, of the words of runs, and of the white space whose neighbours are either's.

    Neighbours are the words before and behind in the same stream, for a blank record those in all; at an end of the text
    there is but one.
    """
    words = [token for stream in streams for token in stream]
    touched = {token for token in words if duplicates[token.segment]}
    for stream, lengths in zip(streams, longest, strict=True):
        for p, length in enumerate(lengths):
            touched |= set(stream[p : p + length])
    counts = []
    for i, segment in enumerate(segments):
        own = streams[0] if terminator else streams[i] or words
        count = 0
        for byte in range(len(segment.encode()) + terminator):
            before = [token for token in own if (token.segment, token.begin) <= (i, byte)][-1:]
            behind = [token for token in own if (token.segment, token.begin) > (i, byte)][:1]
            inside = bool(before) and before[0].segment == i and byte < before[0].end
            around = before if inside else before + behind
            count += duplicates[i] or (bool(around) and touched.issuperset(around))
        counts.append(count)
    return counts


def bytes_in_common(train: bytes, test: bytes, n: int) -> tuple[int, int]:
    """Of a test file the bytes in word n-grams of a training file, and those in n-grams or in whole lines of it.

    Other than above, for whole corpora: n-grams are looked up in a set, and bytes marked one by one.
    """
    places = [match.span() for match in re.finditer(rb"[^ \t\n\v\f\r]+", test)]
    words = [test[begin:end] for begin, end in places]
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    known, wanted, training_words = set(), set(grams), train.split()
    for i in range(len(training_words) - n + 1):
        gram = tuple(training_words[i : i + n])
        if gram in wanted:
            known.add(gram)
    in_gram, in_one = [False] * len(words), [False] * len(words)  # the latter: with the next word
    for i, gram in enumerate(grams):
        if gram in known:
            in_gram[i : i + n] = [True] * n
            in_one[i : i + n - 1] = [True] * (n - 1)

    marked = bytearray(len(test))
    training_lines, begin = set(train.split(b"\n")), 0
    for line in test.splitlines(keepends=True):
        if line.split() and line.rstrip(b"\n") in training_lines:
            marked[begin : begin + len(line)] = b"\1" * len(line)
        begin += len(line)
    touched = [in_gram[i] or marked[first] for i, (first, _) in enumerate(places)]

    def count(flags: Sequence[object], joined: Sequence[object], marked: bytearray) -> int:
        for i, (first, last) in enumerate(places):
            begin = 0 if i == 0 else first
            end = len(test) if i + 1 == len(places) else places[i + 1][0] if joined[i] else last
            if flags[i]:
                marked[begin:end] = b"\1" * (end - begin)
        return sum(marked)

    together = [a and b for a, b in pairwise(touched)]
    return count(in_gram, in_one, bytearray(len(test))), count(touched, [*together, False], marked)


def find_training_coverage(train: Sequence[str], test: Sequence[str], max_order: int) -> tuple[list[int], list[int]]:
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
