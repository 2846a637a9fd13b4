"""The optional columns of the score table that need whole distributions: entropy and rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.contexts import EventContexts
from lmgauge.errors import UsageError
from lmgauge.models.protocol import LanguageModel
from lmgauge.scores import ScoreBatch
from lmgauge.text.vocabulary import BOS

COLUMNS = ("entropy", "rank")


class DistributionColumns:
    """Adds columns that look at the whole predictive distribution of each event; as slow as that sounds.

    Args:
        model: what makes the batches, which come in order.
        columns: `entropy` (nats, of the distribution) and `rank` (of the true token among all: 1 + those more probable).

    Raises:
        UsageError: a column is not known.
    """

    def __init__(self, model: LanguageModel, columns: Sequence[str]) -> None:
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise UsageError(f"column {unknown[0]!r} is not known; choose from {', '.join(COLUMNS)}")
        self._model, self._columns = model, list(columns)
        policy = policy_of(model)
        if not policy.scores_first_tokens:
            raise UsageError(f"{', '.join(columns)}: contexts must be whole, but first tokens are unscored (--first-token)")
        self._runs_on, self._before = policy.runs_on, np.array([BOS], np.uint32)

    def __call__(self, batch: ScoreBatch) -> ScoreBatch:
        """Return the batch with the columns."""
        entropy, rank = np.empty(len(batch), np.float64), np.empty(len(batch), np.int64)
        contexts = EventContexts(batch.token_ids, batch.segment_events, bos=BOS, runs_on=self._runs_on, before=self._before)
        self._before = contexts.ids
        for row, (context, token) in enumerate(zip(contexts, batch.token_ids.tolist(), strict=True)):
            logprob = self._model.log_distribution(context)
            possible = logprob[np.isfinite(logprob)]
            entropy[row] = -float(np.sum(np.exp(possible) * possible))
            rank[row] = 1 + int(np.count_nonzero(logprob > logprob[token]))
        values: dict[str, NDArray[Any]] = {"entropy": entropy, "rank": rank}
        return replace(batch, extra={**batch.extra, **{name: values[name] for name in self._columns}})
