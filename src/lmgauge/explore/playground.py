"""What is typed, scored while one types: bits of each token, entropy, rank, and what was most probable in its place."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import UsageError
from lmgauge.evaluation.passages import MOST_TOPS
from lmgauge.explore.passages import spans_of
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.report.page_payload import packed, shown_text
from lmgauge.scores import OOV, ScoreBatch, join_batches
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Entropy, Rank, TopK
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LONGEST_TEXT = 4_000
"""Characters."""


class Playground:
    """Scores texts with one model, one at a time."""

    def __init__(self, model: LanguageModel, name: str) -> None:
        # Typed as words: `<unk>` is then an unseen one, and there is no option that one could be sent to.
        self._model, self.name = model.with_reserved("escape") if model.reserved == "refuse" else model, name
        # Without first tokens contexts are not whole; a server tells nothing of other tokens.
        self._has_distributions = model.context_policy.scores_first_tokens
        self._lock = threading.Lock()

    def score(self, text: str) -> dict[str, Any]:
        """Return the lines of a text as segments of a run of it, and the figures of all of it."""
        lines = text.split("\n")
        lines = lines[:-1] if len(lines) > 1 and not lines[-1] else lines
        with self._lock:
            batch = self._scored(Corpus.from_strings(lines))
        items = [_item(line, batch.of_segments(i, i + 1), i) for i, line in enumerate(lines)]
        nats, size = -math.fsum(batch.logprob.tolist()), len(text.encode())
        return {
            "bits": nats_to_bits(nats),
            "events": len(batch),
            "bits_per_byte": nats_to_bits(nats) / size if size else None,
            "bits_per_byte_is_bound": bool((batch.kind == OOV).any() or batch.lossy.any()),
            "perplexity": perplexity_from_nats(nats / len(batch)) if len(batch) else None,
            "items": items,
        }

    def _scored(self, corpus: Corpus) -> ScoreBatch:
        try:
            if self._has_distributions:
                batch = join_batches(list(reduce(self._model, corpus, (Entropy(), Rank(), TopK(MOST_TOPS)))))
                tokens = np.array(self._model.vocabulary.tokens, object)[batch.extra["top_ids"]]
                return replace(batch, extra={**batch.extra, "top_tokens": tokens})
        except UsageError:
            self._has_distributions = False
        return join_batches(list(self._model.score(corpus, spans=True)))


def _item(line: str, batch: ScoreBatch, number: int) -> dict[str, Any]:
    size = len(line.encode())
    spans = spans_of(batch, np.minimum(batch.ends, size), 0, size, size)
    return {"segment": number, "text": shown_text(line), "runs": packed(line, [spans])}
