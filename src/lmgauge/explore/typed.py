"""What is typed, scored while one types: bits of each token, and what the model held most probable in its place."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.contexts import EventContexts
from lmgauge.errors import UsageError
from lmgauge.evaluation.passages import Passage, Spans
from lmgauge.models.mixture.model import reserved_policy, with_reserved
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.readable import visible_on_page
from lmgauge.report.packing import packed, shown_text
from lmgauge.scores import ScoreBatch, join_batches
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LONGEST_TEXT = 20_000
"""Characters."""
TOP = 5
TOP_SECONDS = 0.4
"""For how long the most probable tokens are looked up, the last event first; others are asked for one by one."""
_NEWLINE = "\n"


class Typed:
    """Scores texts with one model, one at a time.

    Args:
        model: any.
        name: to call it.

    Attributes:
        no_tops: why the most probable tokens cannot be had; empty if they can.
    """

    def __init__(self, model: LanguageModel, name: str) -> None:
        # Typed as words: `<unk>` is then an unseen one, and there is no option that one could be sent to.
        refuses = reserved_policy(model) == "refuse"
        self._model, self.name = with_reserved([model], "escape")[0] if refuses else model, name
        whole = policy_of(model).scores_first_tokens
        self.no_tops = "" if whole else "first tokens are unscored, so that contexts are not whole (--first-token)"
        self._lock = threading.Lock()

    def score(self, text: str) -> dict[str, Any]:
        """Return each line of a text with the bits of its tokens: lines are segments, as they are in a file.

        Args:
            text: at most `LONGEST_TEXT` characters.

        Returns:
            Bits, events, bytes and perplexity in all; for each line a passage, its events with the most probable tokens as
            far as there was time, each as [token, probability].

        Raises:
            InputError: the text holds what the model refuses.
            UsageError: it is too long.
        """
        with self._lock:
            lines = _lines(text)
            batch = self._scored(lines)
            tops = self._tops(batch)
        bits = nats_to_bits(-batch.logprob) + 0.0
        passages, begin = [], 0
        for i, line in enumerate(lines):
            events = int(batch.segment_events[i])
            rows = slice(begin, begin + events)
            spans = Spans(np.minimum(batch.ends[rows], len(line.encode())), bits[rows], batch.kind[rows], {}, {})
            passage = _passage(i, line, spans)
            runs = [packed(passage)[0] | {"tops": tops[rows]}]
            passages.append({"segment": i, "text": shown_text(passage), "first": begin, "runs": runs})
            begin += events
        total = math.fsum(bits.tolist())
        size = len(text.encode("utf-8", "surrogatepass"))
        return {
            "bits": total,
            "events": len(batch),
            "bytes": size,
            "bits_per_byte": total / size if size else None,
            "perplexity": perplexity_from_nats(-math.fsum(batch.logprob.tolist()) / len(batch)) if len(batch) else None,
            "passages": passages,
        }

    def top(self, text: str, event: int) -> dict[str, Any]:
        """Return the most probable tokens in the place of one event, as [token, probability].

        Args:
            text: as it was scored.
            event: its number in all of the text.

        Raises:
            InputError: the text holds what the model refuses.
            UsageError: there is no such event.
        """
        with self._lock:
            batch = self._scored(_lines(text))
            if self.no_tops:
                raise UsageError(self.no_tops)
            if not 0 <= event < len(batch):
                raise UsageError(f"the text has {len(batch):,} events, counted from 0: there is no event {event}")
            return {"top": self._top(self._contexts(batch)[event])}

    def _scored(self, lines: list[str]) -> ScoreBatch:
        return join_batches(list(self._model.score(Corpus.from_strings(lines), spans=True)))

    def _contexts(self, batch: ScoreBatch) -> EventContexts:
        policy = policy_of(self._model)
        ids = batch.token_ids.astype(np.uint32)
        return EventContexts(ids, batch.segment_events, bos=BOS, runs_on=policy.runs_on)

    def _tops(self, batch: ScoreBatch) -> list[list[tuple[str, float]]]:
        """Return the most probable tokens at each event, those of the last events where there is no time for all."""
        tops: list[list[tuple[str, float]]] = [[] for _ in range(len(batch))]
        if self.no_tops:
            return tops
        until = time.monotonic() + TOP_SECONDS
        contexts = self._contexts(batch)
        for event in reversed(range(len(batch))):
            if time.monotonic() > until:
                break
            try:
                tops[event] = self._top(contexts[event])
            except UsageError as error:  # a server, which tells nothing of other tokens
                self.no_tops = str(error)
                break
        return tops

    def _top(self, context: NDArray[np.uint32]) -> list[tuple[str, float]]:
        logprob = self._model.log_distribution(context)
        few = min(TOP, len(logprob))
        best = np.argpartition(-logprob, few - 1)[:few]
        best = best[np.argsort(-logprob[best], kind="stable")]
        tokens = self._model.vocabulary.tokens
        return [(visible_on_page(tokens[token]), float(np.exp(logprob[token]))) for token in best.tolist()]


def _lines(text: str) -> list[str]:
    if len(text) > LONGEST_TEXT:
        raise UsageError(
            f"the text is {len(text):,} characters long, more than {LONGEST_TEXT:,}: score it with `lmgauge eval`"
        )
    lines = text.split(_NEWLINE)
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def _passage(number: int, line: str, spans: Spans) -> Passage:
    cost = float(spans.bits.sum())
    return Passage(number, "", "", (), line, (cost,), (len(spans.bits),), len(line.encode()), (spans,))
