"""Whose documents count where runs are compared: those asked for, else those that the tables name, else the text's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.runs import Run
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Documents:
    """Where documents come from."""

    by: str = UNKNOWN  # what tells them apart; "unknown" if nothing does
    table: int | None = None  # number of the run whose table names them; None if the text does, or nothing
    notes: tuple[str, ...] = ()

    def of(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> Ints | None:
        """Return int64 [segments of a block], the document of each; None where documents are not known."""
        # Documents().of(None, []) is None -> True
        if self.table is not None:
            return tables[self.table].documents()
        return None if block is None or self.by == UNKNOWN else block.documents


def choose_documents(runs: Sequence[Run], named: Sequence[Ints | None], corpus: Corpus | None, *, asked: bool) -> Documents:
    """Return where the documents of runs come from; the order of the runs does not matter."""
    # choose_documents([], [], None, asked=False).by -> 'unknown'
    # named: of each, int64 [segments], the documents that its table names, or None; corpus: the text, read once.
    of_text = UNKNOWN if corpus is None else corpus.report.documents_by
    if asked:
        return Documents(of_text)
    known = [(len(np.unique(numbers)), k) for k, numbers in enumerate(named) if numbers is not None]
    if not known:
        return Documents(of_text)
    _, chosen = min(known)
    same = all(np.array_equal(_by_appearance(named[k]), _by_appearance(named[chosen])) for _, k in known)
    notes = () if same else (f"the runs name different documents: those of {runs[chosen].name} count, the fewest",)
    return Documents(runs[chosen].origin.documents_of_table, chosen, notes)


def _by_appearance(numbers: Ints | None) -> Ints:
    # Numbers made anew in the order in which they come first.
    # _by_appearance([7, 7, 3, 7]) -> [0, 0, 1, 0]
    if numbers is None:
        return np.zeros(0, np.int64)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Ints = rank[inverse]
    return renumbered
