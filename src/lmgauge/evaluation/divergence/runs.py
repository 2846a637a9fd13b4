"""Runs of candidates: their scores with KL(base || candidate) and the base's log-probability beside each event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.evaluation.divergence.events import PairRows
from lmgauge.evaluation.evaluate import Evaluator, sum_block
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import RunFolders, run_settings
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

COLUMNS = ("kl", "base_logprob")


class CandidateRuns(RunFolders):
    """Run folders of candidates, written while they are compared; they appear when the block ends well."""

    # output: the folder; several candidates have folders of their own in it.

    def __init__(
        self, output: str | Path, candidates: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus
    ) -> None:
        super().__init__(output, names)
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
