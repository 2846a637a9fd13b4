"""Is one candidate worse than another? Both are paired segment by segment, as `compare` pairs runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.divergence.events import PairEvents
from lmgauge.evaluation.divergence.results import CandidateTest
from lmgauge.evaluation.tally import Paired
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.significance import holm_adjusted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KL, LOG_LOSS = "kl", "log_loss"


@dataclass(frozen=True)
class CandidateSums:
    """What a candidate adds up to in each segment."""

    name: str
    sums: dict[str, Floats]  # by measure float64 [segments], nats, finite events only
    unusable: dict[str, Ints]  # by measure int64 [segments], events whose value is infinite or undefined
    sizes: Ints  # int64 [segments], events
    documents: Ints | None  # int64 [segments], the document of each; None where documents are not known

    @classmethod
    def of(cls, name: str, events: PairEvents) -> CandidateSums:
        """Return the sums of a candidate's events."""
        sums: dict[str, Floats] = {}
        unusable: dict[str, Ints] = {}
        for measure, values in ((KL, events.kl), (LOG_LOSS, -events.logprob[1])):
            finite = np.isfinite(values)
            sums[measure] = np.bincount(events.owner, np.where(finite, values, 0.0), len(events.sizes)).astype(np.float64)
            unusable[measure] = np.bincount(events.owner[~finite], minlength=len(events.sizes))
        return cls(name, sums, unusable, events.sizes, events.documents)


def candidate_tests(candidates: Sequence[CandidateSums]) -> list[CandidateTest]:
    """Return a test of each pair of candidates, of their divergence and of their log loss; p-values adjusted by Holm."""
    # candidates: on the same events, in the order of their names on the command line.
    # -> all tests of the divergence, then all of the log loss; the second of a pair is the later candidate.
    tests: list[CandidateTest] = []
    for measure in (KL, LOG_LOSS):
        tests += holm_adjusted(_tested(one, other, measure) for one, other in combinations(candidates, 2))
    return tests


def _tested(first: CandidateSums, second: CandidateSums, measure: str) -> CandidateTest:
    unusable = first.unusable[measure] + second.unusable[measure]
    sizes = np.repeat(first.sizes[:, None].astype(np.float64), 4, axis=1)  # all there is here are events
    paired = Paired((second.sums[measure], first.sums[measure]), unusable, sizes, first.documents)
    used = paired.used
    events = int(first.sizes[used].sum())
    values = [float(one.sums[measure][used].sum()) / events if events else None for one in (first, second)]
    apart = exact_sum((paired.nats[0] - paired.nats[1])[used])
    spread = paired.spreads(apart)[0]
    return CandidateTest(
        first=first.name,
        second=second.name,
        measure=measure,
        first_value=values[0],
        second_value=values[1],
        difference=apart / events if events else None,
        interval=None if spread is None else spread.interval(),
        p_value=None if spread is None else spread.p_value,
        p_value_holm=None,
        segments=int(np.count_nonzero(used)),
        left_out=int(np.count_nonzero(unusable)),
    )
