"""N-best lists made of what several real recognizers wrote of the same calls, without any score that was drawn.

Earnings-21 (`open/asr-earnings21`): 22 calls, a reference and the outputs of recognizers, in words without case and
punctuation. The words of each recognizer are aligned with those of the first, its backbone; each place then has the words
that recognizers wrote there, and each word the log of its share of the recognizers as its score. A list has the N paths
through these places with the greatest sums, the first of them the vote. Calls are cut where all recognizers and the
reference agree on two words in a row, after `SEGMENT` words or more; the reference decides nothing else.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmgauge.tasks import align

RECOGNIZERS = ("rev_kaldi", "rev_espnet", "kaldi_librispeech")
SEGMENT = 12
_TAGS = re.compile(r"<[^>]*>|\[[^\]]*\]")
_EDGES = re.compile(r"^[^\w']+|[^\w']+$")

Slot = list[tuple[str, float]]
"""What may stand at a place (words, or nothing), and its score; the likeliest first."""


@dataclass(frozen=True)
class Piece:
    """A piece of a call: its id, its call, its reference, and its hypotheses with their scores."""

    id: str
    call: str
    reference: str
    hypotheses: list[tuple[str, float]]


def words_of(text: str) -> list[str]:
    """Return the words without case, tags and punctuation at their ends."""
    words = (_EDGES.sub("", word) for word in _TAGS.sub(" ", text).lower().replace("-", " ").split())
    return [word for word in words if word]


def read_calls(folder: Path, name: str) -> dict[str, str]:
    """Return the transcript of each call by one recognizer, or the reference (`ref`)."""
    with gzip.open(folder / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t", 1) for line in file)


def pieces(folder: Path, most: int, recognizers: Sequence[str] = RECOGNIZERS) -> Iterator[Piece]:
    """Yield the pieces of all calls with lists of up to `most` hypotheses."""
    references = read_calls(folder, "ref")
    outputs = [read_calls(folder, name) for name in recognizers]
    for call, reference in references.items():
        said = [words_of(own[call]) for own in outputs]
        right = words_of(reference)
        laid = [_laid(said[0], words) for words in (right, *said)]
        for number, (begin, end) in enumerate(_cuts(laid)):
            slots = [slot for at in range(begin, end) for slot in _slots([own[at] for own in laid[1:]])]
            text = " ".join(word for before, word in laid[0][begin:end] for word in (*before, word) if word)
            yield Piece(f"{call}-{number:04}", call, text, _paths(slots, most))


def _laid(backbone: list[str], words: list[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return for each word of the backbone what is inserted before it, and what stands in its place ("" for nothing)."""
    laid: list[tuple[tuple[str, ...], str]] = []
    inserted: list[str] = []
    for operation, _, word in align(" ".join(backbone), " ".join(words)).pairs():
        if operation == "insert":
            inserted.append(word or "")
        else:
            laid.append((tuple(inserted), word or ""))
            inserted = []
    return laid


def _cuts(laid: list[list[tuple[tuple[str, ...], str]]]) -> Iterator[tuple[int, int]]:
    """Yield where pieces begin and end, at words on which all agree."""
    agreed = [all(one == column[0] and not one[0] and one[1] for one in column) for column in zip(*laid, strict=True)]
    begin = 0
    for at in range(1, len(agreed)):
        if at - begin >= SEGMENT and agreed[at - 1] and agreed[at]:
            yield begin, at
            begin = at
    if len(agreed) - begin:
        yield begin, len(agreed)


def _slots(column: list[tuple[tuple[str, ...], str]]) -> Iterator[Slot]:
    """Yield what may be inserted before a word, and what may stand in its place."""
    for options in ([" ".join(before) for before, _ in column], [word for _, word in column]):
        counts = Counter(options)
        if len(counts) > 1 or options[0]:
            yield [(option, math.log(count / len(options))) for option, count in counts.most_common()]


def _paths(slots: Sequence[Slot], most: int) -> list[tuple[str, float]]:
    """Return the best paths, each text once."""
    best: list[tuple[tuple[str, ...], float]] = [((), 0.0)]
    for slot in slots:
        further = [((*words, option) if option else words, score + own) for words, score in best for option, own in slot]
        further.sort(key=lambda path: -path[1])
        best = list({words: (words, score) for words, score in reversed(further)}.values())[::-1][:most]
    return [(" ".join(words), score) for words, score in best]
