"""What counted tokens cost under each length, collected block by block, with a row for each stretch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.slicing.ranges import Floats, Ints, exact_sums, ranges_by_event
from lmgauge.evaluation.slicing.slices import range_sizes
from lmgauge.scores import OOV, ScoreBatch
from lmgauge.text.segments import Segments

STRETCH = 64
"""Counted tokens of a segment that are summed up together, at most."""


@dataclass(frozen=True)
class Stretches:
    """The counted tokens of a text, summed up by stretches."""

    exact: tuple[int, ...]  # of each length the sum over all, multiples of 2^-80 nats, without tokens of probability zero
    nats: Floats  # float64 [stretches, lengths], the same of each stretch, rounded
    zeros: Ints  # int64 [stretches, lengths], tokens of probability zero
    sizes: Floats  # float64 [stretches, 2], tokens and bytes
    segments: Ints  # int64 [stretches]
    documents: Ints | None  # int64 [stretches]; None where documents are not known
    oov: int  # counted tokens that are unseen words
    lossy: int  # segments that their tokens do not spell exactly

    @cached_property
    def events(self) -> int:
        """Return counted tokens."""
        return int(self.sizes[:, 0].sum())

    @cached_property
    def bytes(self) -> int:
        """Return their bytes in the text."""
        return int(self.sizes[:, 1].sum())


class StretchSums:
    """Collects the sums of stretches."""

    def __init__(self, lengths: int, longest: int, policy: ContextPolicy) -> None:
        self._longest, self._policy = longest, policy
        # The first event of a segment that has a row has this many tokens before it.
        self._before_first = 0 if policy.first == "uniform" else 1
        self._exact = [0] * lengths
        self._nats, self._zeros = [np.zeros((0, lengths))], [np.zeros((0, lengths), np.int64)]
        self._sizes = [np.zeros((0, 2))]
        self._segments: list[Ints] = [np.zeros(0, np.int64)]
        self._documents: list[Ints] = []
        self._oov = self._lossy = 0

    def add(self, block: Segments, batches: Sequence[ScoreBatch]) -> None:
        """Add a block."""
        table = batches[0]
        if not len(table):
            return
        ranges = ranges_by_event([table])
        before = ranges.position + self._before_first
        counted = before >= self._longest
        # Within a segment: 0 for what is not counted, then the stretches.
        number = np.where(counted, 1 + (before - self._longest) // STRETCH, 0)
        begins = np.flatnonzero(np.diff(ranges.segment, prepend=-1) | np.diff(number, prepend=-1))
        events = np.diff(begins, append=len(table))
        used = counted[begins]
        owners = ranges.segment[begins][used]
        sums = [exact_sums(batch, events) for batch in batches]
        for k, part in enumerate(sums):
            self._exact[k] += part.totals(np.where(used, 0, 1), 2)[0]
        zeros = np.column_stack([part.zeros for part in sums])[used]
        nats = np.column_stack([part.nats() for part in sums])[used]
        self._zeros.append(zeros)
        self._nats.append(np.where(zeros > 0, 0.0, nats))
        sizes = np.add.reduceat(range_sizes(scored_text(block, [self._policy]), ranges)[:, 0], begins)
        self._sizes.append(np.column_stack((events, sizes))[used].astype(np.float64))
        self._segments.append(owners + block.first)
        if block.documents is not None:
            self._documents.append(block.documents[owners])
        self._oov += int(np.count_nonzero(counted & (table.kind == OOV)))
        self._lossy += int(np.count_nonzero(table.lossy[np.unique(owners)])) if len(table.lossy) else 0

    def finish(self) -> Stretches:
        """Return all that was added."""
        return Stretches(
            tuple(self._exact),
            np.concatenate(self._nats),
            np.concatenate(self._zeros),
            np.concatenate(self._sizes),
            np.concatenate(self._segments),
            np.concatenate(self._documents) if self._documents else None,
            self._oov,
            self._lossy,
        )
