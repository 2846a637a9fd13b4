"""The ids of a text in chunks: written as they come, in pieces of one size, with what stands around each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.vocabulary import BOS
from lmgauge.work.stage import Engine

Ids = NDArray[np.uint32]


class ChunkWriter:
    """Write `ids/{c}`, uint32 [1 + tokens + order]."""

    # The token before a chunk, its tokens, and as many as the order behind.
    # `<s>` stands before the text and behind it, beside the one that the first context of the text begins with.
    # order 2, chunks of 3 tokens, text [1, 3, 4, 5] -> ids/0 [1, 1, 3, 4, 5, 1] and ids/1 [4, 5, 1, 1]:
    # chunk 0 has the tokens 1, 3, 4, with `<s>` (1) before and 5, 1 behind; an n-gram that begins in it is whole in it.

    def __init__(self, engine: Engine, order: int, size: int, name: str = "ids") -> None:
        self._engine, self._order, self._size, self._name = engine, order, size, name
        self._waiting: list[Ids] = [np.array([BOS], np.uint32)]
        self._held, self.written = 1, 0

    def add(self, ids: Ids) -> None:
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

    def _write(self, chunk: Ids) -> None:
        self._engine.write(f"{self._name}/{self.written}", chunk)
        self.written += 1
