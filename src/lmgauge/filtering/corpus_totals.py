"""What a model makes of all documents together: exact sums, which depend on no order or division of the documents."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Meta, Whole
from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.exact import exact_costs, exact_to_nats
from lmgauge.numerics.units import nats_to_bits


@dataclass(frozen=True)
class CorpusTotals:
    """Sums of a model over documents."""

    documents: Whole = 0
    bytes: Whole = 0
    tokens: Whole = 0
    impossible: Whole = 0  # of them, those of probability zero
    unseen: Whole = 0  # of them, unseen words
    ends: Whole = 0
    # of the possible events, the negative of their log-probabilities in multiples of 2^-80 nats
    cost: Annotated[int, Meta(ge=0)] = 0

    @classmethod
    def of(cls, totals: SegmentTotals, sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> CorpusTotals:
        """Return the sums of some of the documents of a batch."""
        # sizes: int64 [documents], bytes of each text; chosen: bool [documents].
        return cls(
            documents=int(np.count_nonzero(chosen)),
            bytes=int(sizes[chosen].sum()),
            tokens=int(totals.events[chosen].sum()),
            impossible=int(totals.zeros[chosen].sum()),
            unseen=int(totals.unseen[chosen].sum()),
            ends=int(totals.ends[chosen].sum()),
            cost=exact_costs(-totals.nats[chosen]),
        )

    def __add__(self, other: CorpusTotals) -> CorpusTotals:
        return CorpusTotals(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def bits(self) -> float:
        """Return the bits of all events; infinite where one is impossible."""
        return math.inf if self.impossible else nats_to_bits(exact_to_nats(self.cost))

    @property
    def bits_per_byte(self) -> float | None:
        """Return bits for each byte of the texts; None where there is none."""
        return self.bits / self.bytes if self.bytes else None

    @property
    def perplexity(self) -> float | None:
        """Return the perplexity of all tokens together; None where there is none, infinite where an event is impossible."""
        if not self.tokens:
            return None
        nats = exact_to_nats(self.cost) / self.tokens
        return math.inf if self.impossible or nats > _LARGEST else math.exp(nats)

    @property
    def unseen_share(self) -> float | None:
        """Return the share of unseen words among the tokens but `</s>`; None where there is none."""
        words = self.tokens - self.ends
        return self.unseen / words if words > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return sums and figures as plain values."""
        names = ("bits", "bits_per_byte", "perplexity", "unseen_share")
        return dict(vars(self)) | {name: getattr(self, name) for name in names}


_LARGEST = math.log(np.finfo(np.float64).max)
