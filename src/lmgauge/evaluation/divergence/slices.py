"""KL divergence by group, class, position, training frequency and token: the sums of bits, with divergence as the cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmgauge.evaluation.diagnosis.costs import TokenCost, TokenCosts
from lmgauge.evaluation.divergence.events import PairRows
from lmgauge.evaluation.slicing.cuts import EventCuts, TrainingWords
from lmgauge.evaluation.slicing.ranges import exact_sums, ranges_by_event
from lmgauge.evaluation.slicing.sums import CutSums, Slices
from lmgauge.text.documents import Corpus


class KlSlices:
    """Collects KL(base || candidate) by slices of the text and by token, block by block."""

    def __init__(self, corpus: Corpus, training: TrainingWords | None = None) -> None:
        self._cuts, self._sums, self._tokens = EventCuts(corpus, training), CutSums(), TokenCosts()

    def add(self, rows: PairRows) -> None:
        """Add the events of a block; those where a model gives nothing a probability are left out."""
        kl = rows.columns["kl_ab"]
        defined = np.flatnonzero(~np.isnan(kl))
        # What sums bits takes costs as log-probabilities: an infinite divergence is an event of probability zero.
        table = replace(rows.b.of_rows(defined), logprob=-kl[defined], extra={})
        ranges = ranges_by_event([table])
        block, documents = rows.block, rows.block.documents
        self._sums.add(
            self._cuts.of(block, table, ranges, spans=len(table.ends) == len(table)),
            ranges.segment,
            [exact_sums(table, ranges.events[0])],
            ranges.events[0],
            first=block.first,
            documents=documents,
        )
        self._tokens.add(table)

    def finish(self) -> tuple[Slices, ...]:
        """Return the slices of each way to cut the text, their mean KL in bits per event."""
        return tuple(self._sums.finish("event"))

    def costly(self, most: int) -> tuple[TokenCost, ...]:
        """Return the tokens with most KL in all, bits."""
        return self._tokens.most(most)
