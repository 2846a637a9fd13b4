"""A run in two parts: the segments that its training text does not have, and those that it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.evaluation.evaluate import Evaluator, sum_block
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import Run, about, lockstep
from lmgauge.result_list import Result
from lmgauge.text.documents import Corpus

CLEAN, CONTAMINATED = "clean", "contaminated"


@dataclass(frozen=True, repr=False)
class SplitEvaluation(Result):
    """One run in parts."""

    # Their log-probabilities add up to the whole's, exactly.

    whole: Evaluation
    clean: Evaluation | None  # the segments that are not contaminated; None if there are none
    contaminated: Evaluation | None  # the others; None if there are none

    def _in_brief(self) -> str:
        return self.whole._in_brief()


def split_by_segments(run: Run, contaminated: NDArray[np.bool_], corpus: Corpus) -> SplitEvaluation:
    """Evaluate the segments of a run in two parts."""
    # contaminated: bool [segments of the text], e.g. `Overlap.segment_excluded`; corpus: the text that was scored; it must
    # be possible to read it again.
    run = about(run, corpus)
    evaluator = Evaluator(run.origin)
    for block, (batch,) in lockstep([run.batches()], corpus, [run.name]):
        if block is None:  # there is a text
            continue
        codes = contaminated[block.first : block.first + len(block)].astype(np.int32)
        if len(codes) < len(block):
            break
        evaluator.add(sum_block(batch, replace(block, groups=codes), by_group=True))
    if corpus.report.segments != len(contaminated):
        raise InputError(
            f"the run's text has {corpus.report.segments:,} segments, not {len(contaminated):,}: read it in the same way"
        )
    sums, sha256 = evaluator.tallies, run.text_sha256
    clean, others = (
        evaluator.finish(part, name, text_sha256=sha256) if part in sums and sums[part].total_events else None
        for part, name in enumerate((CLEAN, CONTAMINATED))
    )
    return SplitEvaluation(evaluator.finish(text_sha256=sha256), clean, others)
