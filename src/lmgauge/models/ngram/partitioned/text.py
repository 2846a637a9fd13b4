"""Reading for training in partitions: the text as chunks of ids, and what later stages know of it, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.reading import FittedVocabulary, Progress, TextReader
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.types_sketch import TypesSketch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import TextReport
from lmgauge.text.vocabulary import BOS, Vocabulary
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

_OFFSETS, _BYTES, _COUNTS, _NEW_IDS = (Stored(f"words/{name}") for name in ("offsets", "bytes", "counts", "new_ids"))


@dataclass(frozen=True)
class ReadText:
    """What is known of a text whose ids an engine holds."""

    fitted: FittedVocabulary
    report: TextReport  # counts and fingerprint of the text
    types: list[int]  # n-grams of order 2, 3, ..., about
    ids: list[Stored]  # of each chunk, see `ChunkWriter`
    chunk: int  # tokens in each chunk but the last


def read_text(
    engine: Engine,
    settings: NgramTrainingSettings,
    corpus: Corpus,
    chunk: int,
    *,
    threads: int,
    progress: Progress = lambda stage: None,
    check: Callable[[int], None] = lambda tokens: None,
) -> ReadText:
    """Write a text as chunks of ids, unless an earlier run did, and return what is known of it."""
    # check: called with the number of tokens so far, and may raise.

    def read() -> _Known:
        reader, sketch = TextReader(settings), TypesSketch(settings.order)
        chunks = ChunkWriter(engine, settings.order, chunk)
        for ids in reader.blocks(corpus, threads=threads, progress=progress):
            sketch.add(ids)
            chunks.add(ids)
            check(sketch.tokens)
        fitted = reader.fit()
        engine.write(_OFFSETS.name, fitted.vocabulary.offsets)
        engine.write(_BYTES.name, fitted.vocabulary.bytes)
        engine.write(_COUNTS.name, fitted.counts)
        if fitted.new_ids is not None:
            engine.write(_NEW_IDS.name, fitted.new_ids)
        renumbered, closed = fitted.new_ids is not None, fitted.vocabulary.closed
        return _Known(corpus.report, sketch.estimates(), chunks.finish(), chunk, renumbered, closed)

    known = engine.once("read", _Known, read)
    ids = [Stored(f"text/{number}") for number in range(known.chunks)]
    if known.renumbered:  # rare words are left out, which is known at the end of the text
        renumbered = engine.run("renumber", _renumber, [(_NEW_IDS, chunk) for chunk in ids], NEW)
        engine.drop(ids, _NEW_IDS)
        ids = renumbered
    vocabulary = Vocabulary.from_strings(engine.read(_OFFSETS), engine.read(_BYTES), closed=known.closed)
    fitted = FittedVocabulary(vocabulary, engine.read(_COUNTS), None)
    return ReadText(fitted, known.report, known.types, ids, known.chunk)


@dataclass(frozen=True)
class _Known:
    report: TextReport
    types: list[int]
    chunks: int
    chunk: int
    renumbered: bool
    closed: bool


def _renumber(taken: tuple[Stored, Stored], read: Read) -> Iterator[Array]:
    new_ids, ids = map(read, taken)
    yield new_ids[ids]


class ChunkWriter:
    """Write the chunks, uint32 [1 + tokens + order]."""

    # The token before a chunk, its tokens, and as many as the order behind.
    # `<s>` stands before the text and behind it, beside the one that the first context of the text begins with.
    # order 2, chunks of 3 tokens, text [1, 3, 4, 5] -> [1, 1, 3, 4, 5, 1] and [4, 5, 1, 1]:
    # chunk 0 has the tokens 1, 3, 4, with `<s>` (1) before and 5, 1 behind; an n-gram that begins in it is whole in it.

    def __init__(self, engine: Engine, order: int, size: int) -> None:
        self._engine, self._order, self._size = engine, order, size
        self._waiting: list[NDArray[np.uint32]] = [np.array([BOS], np.uint32)]
        self._held, self.written = 1, 0

    def add(self, ids: NDArray[np.uint32]) -> None:
        """Add the next tokens, uint32 [n]."""
        self._waiting.append(ids)
        self._held += len(ids)
        if self._held > self._size + self._order:
            self._cut()

    def finish(self) -> int:
        """Write what is left, and return the number of chunks."""
        self.add(np.full(self._order, BOS, np.uint32))
        if self._held > 1 + self._order or not self.written:
            self._write(np.concatenate(self._waiting))
        return self.written

    def _cut(self) -> None:
        ids = np.concatenate(self._waiting)
        start, step = 0, self._size
        while len(ids) - start > step + self._order:
            self._write(ids[start : start + 1 + step + self._order])
            start += step
        # A copy, as a view would hold the memory of all that was concatenated.
        self._waiting, self._held = [ids[start:].copy()], len(ids) - start

    def _write(self, chunk: NDArray[np.uint32]) -> None:
        self._engine.write(f"text/{self.written}", chunk)
        self.written += 1
