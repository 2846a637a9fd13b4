"""Candidates beside one another: is one worse, segment by segment as `compare` pairs runs; and the run folder of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.remote.addresses import PathLike
from lmgauge.evaluation.divergence.divergence_result import CandidateTest
from lmgauge.evaluation.divergence.figures import PairEvents, PairRows
from lmgauge.evaluation.evaluate import Evaluator, sum_block
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import RunFolders, run_settings
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.intervals import spread
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KL, LOG_LOSS = "kl", "log_loss"
COLUMNS = ("kl", "base_logprob")
"""The columns of runs: KL(base || candidate) and the base's log-probability of each event, nats."""


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
    used = (unusable == 0) & (first.sizes > 0)
    sizes = first.sizes[used]
    events = int(sizes.sum())
    values = [float(one.sums[measure][used].sum()) / events if events else None for one in (first, second)]
    differences = (second.sums[measure] - first.sums[measure])[used]
    apart = exact_sum(differences)
    documents = None if first.documents is None else first.documents[used]
    chance = spread(differences, sizes.astype(np.float64), documents, total=apart)
    return CandidateTest(
        first=first.name,
        second=second.name,
        measure=measure,
        first_value=values[0],
        second_value=values[1],
        difference=apart / events if events else None,
        interval=None if chance is None else chance.interval(),
        p_value=None if chance is None else chance.p_value,
        p_value_holm=None,
        segments=int(np.count_nonzero(used)),
        left_out=int(np.count_nonzero(unusable)),
    )


class CandidateRuns(RunFolders):
    """Run folders of candidates, written while they are compared; they appear when the block ends well."""

    # output: the folder; several candidates have folders of their own in it.

    def __init__(self, output: PathLike, candidates: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus) -> None:
        super().__init__(Path(output), names)
        self._candidates, self._corpus = candidates, corpus
        self._evaluators = [Evaluator(Origin.of_model(m, name)) for m, name in zip(candidates, names, strict=True)]

    def add(self, candidate: int, rows: PairRows) -> None:
        """Write the rows of a block."""
        block, batch = rows.block, rows.b
        columns = {"kl": np.asarray(rows.columns["kl_ab"], np.float64), "base_logprob": rows.a.logprob}
        batch = replace(batch, extra={**batch.extra, **columns})
        if block.documents is not None:
            batch = batch.with_documents(block.documents[batch.segments - block.first])
        self._evaluators[candidate].add(sum_block(batch, block))
        self.write(candidate, batch, block.ids)

    def evaluate(self, scoring: object) -> None:
        """Write the numbers beside the rows."""
        # scoring: how models without options of their own were loaded.
        pairs = zip(self._candidates, self._evaluators, strict=True)
        results = [one for model, evaluator in pairs for one in evaluator.of_text(self._corpus, model.notes)]
        chosen: dict[str, Any] = {"by_group": False, "columns": COLUMNS, "scoring": scoring}
        self.finish(results, [run_settings(m, self._corpus.settings, **chosen) for m in self._candidates])
