"""The tables of a KenLM binary file, used where they lie: the questions of `tables`, answered by kernels that know the file.

Values are log10 in single precision, added as KenLM adds them; a natural logarithm is that sum times ln 10, in double
precision. Whole distributions are looked up word by word, as a file cannot say which words were seen after a context.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.tables import Events, LoadedTables, Refusal
from lmgauge.text.vocabulary import BOS, Vocabulary

if TYPE_CHECKING:
    from lmgauge.models.segment_scores import SumArrays

KINDS = {0: "probing", 2: "trie", 3: "quantized trie", 4: "array trie", 5: "quantized array trie"}
"""Of files, by the number in the header."""

_NONE = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class KenlmTables(LoadedTables):
    """A KenLM binary file, mapped into memory."""

    closed_forms: ClassVar[bool] = False

    data: NDArray[np.uint8]  # uint8, the whole file
    kind: str
    counts: tuple[int, ...]  # n-grams of order 1, 2, ... by its header.
    words: int
    source: str = ""
    mapped: mmap.mmap | None = None  # the file behind `data`; None if it was not mapped

    @property
    def order(self) -> int:
        """Return the length of the longest n-grams."""
        return len(self.counts)

    def types(self) -> list[int]:
        """Return the number of n-grams of each order, as the file has them: with those that stand for left-out ones."""
        return [self.words, *self.counts[1:]]

    def score(self, ids: NDArray[np.uint32], *, skip: int = 0, contexts: bool = False) -> Events:
        """Score all ids except `<s>`, each given the ids before it, back to the last `<s>`."""
        # ids: uint32 [n].
        size = len(ids)
        logprob, matched = np.empty(size, np.float64), np.empty(size, np.uint8)
        events, kind = np.empty(size, np.uint32), np.empty(size, np.uint8)
        before = np.empty((size if contexts else 0, self.order - 1), np.uint32)
        rows = logprob, matched, events, kind, before.reshape(-1)
        written = _native.score_kenlm(self.data, ids, skip, rows)
        logprob = logprob[:written]
        self.check_logprob(logprob)
        return Events(logprob, matched[:written], events[:written], kind[:written], before[:written])

    def sum(self, ids: NDArray[np.uint32], out: SumArrays) -> None:
        """Sum the rows that `score` has by segment; see `NgramTables.sum`."""
        self.check_sums(_native.sum_kenlm(self.data, ids, out))

    def reader(self, vocabulary: Vocabulary, cut: tuple[int, int, bool, Refusal]) -> _native.Reader:
        """Return what steps through the file word by word; see `NgramTables.reader`."""
        return _native.read_kenlm(self.data, vocabulary.arrays, cut)

    def whole(self, *, eos: bool) -> KenlmDistributions:
        """Return what answers questions about whole distributions."""
        return KenlmDistributions(self)


class KenlmDistributions:
    """Whole distributions of a KenLM file; the words before an event, the last first, stand for its context."""

    def __init__(self, tables: KenlmTables) -> None:
        self._tables = tables

    @property
    def words(self) -> int:
        """Return the size of the vocabulary."""
        return self._tables.words

    def after(self, context: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return probabilities of all tokens after a context, float64 [vocabulary]; that of `<s>` is 0."""
        # context: uint32 [n], ids before the event.
        starts = np.flatnonzero(context == BOS)
        seen = context[starts[-1] if len(starts) else 0 :][::-1][: self._tables.order - 1]
        row = np.full((1, self._tables.order - 1), _NONE)
        row[0, : len(seen)] = seen
        probability: NDArray[np.float64] = self.rows(row, logarithms=False)[0]
        return probability

    def rows(self, contexts: NDArray[np.uint32], *, logarithms: bool) -> NDArray[np.float64]:
        """Return the distributions after contexts: probabilities, or natural logarithms, `LOWEST` for what cannot come."""
        # contexts: uint32 [n, order - 1], ids of the words before, the last first.
        # -> float64 [n, vocabulary].
        from lmgauge.scores.distributions.tile import LOWEST

        tables = self._tables
        tables.check_file()
        rows = np.empty((len(contexts), self.words), np.float64)
        _native.fill_kenlm(tables.data, np.ascontiguousarray(contexts).reshape(-1), LOWEST, rows.reshape(-1))
        tables.check_logprob(rows)
        np.maximum(rows, LOWEST, out=rows)
        return rows if logarithms else np.exp(rows, out=rows)
