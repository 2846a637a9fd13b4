"""What is typed, scored while one types: bits of each token, entropy, rank, and what was most probable in its place."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.reduce import reduce
from lmgauge.distributions.reductions import Entropy, Rank, TopK
from lmgauge.errors import UsageError
from lmgauge.evaluation.passages import Passage, Spans
from lmgauge.evaluation.spelled_parts import spelled_parts
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.readable import visible_on_page
from lmgauge.report.packing import packed, shown_text
from lmgauge.scores import OOV, ScoreBatch, join_batches
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

_Top = list[tuple[str, float]]
LONGEST_TEXT = 20_000
"""Characters."""
TOP = 5
TOP_SECONDS = 0.4
"""For how long distributions are looked at, the last events first; the others are asked for one by one."""
_FIRST_LOOK, _MORE = 16, 4  # events at first, and how many times as many each time after
_NEWLINE = "\n"


class Typed:
    """Scores texts with one model, one at a time."""

    def __init__(self, model: LanguageModel, name: str) -> None:
        # Typed as words: `<unk>` is then an unseen one, and there is no option that one could be sent to.
        self._model, self.name = model.with_reserved("escape") if model.reserved == "refuse" else model, name
        whole = model.context_policy.scores_first_tokens
        self.no_tops = "" if whole else "first tokens are unscored, so that contexts are not whole (--first-token)"
        self._lock = threading.Lock()

    def score(self, text: str) -> dict[str, Any]:
        """Return each line of a text with the bits of its tokens: lines are segments, as they are in a file."""
        # -> Bits, events, bytes and perplexity in all; for each line a passage, its events with the most probable tokens as
        # far as there was time, each as [token, probability].
        with self._lock:
            lines = _lines(text)
            batch = self._scored(lines)
            columns, tops = self._looked_at(lines, len(batch))
        parts = spelled_parts(batch)
        bits = nats_to_bits(-batch.logprob)
        passages, begin = [], 0
        for i, line in enumerate(lines):
            events = int(batch.segment_events[i])
            rows = slice(begin, begin + events)
            spans = Spans(
                np.minimum(batch.ends[rows], len(line.encode())),
                bits[rows],
                batch.kind[rows],
                _of(columns, rows) | {name: values[rows] for name, values in parts.items()},
                {},
            )
            passage = _passage(i, line, spans)
            runs = [packed(passage)[0] | {"tops": tops[rows]}]
            passages.append({"segment": i, "text": shown_text(passage.text), "first": begin, "runs": runs})
            begin += events
        total = math.fsum(bits.tolist())
        size = len(text.encode("utf-8", "surrogatepass"))
        return {
            "bits": total,
            "events": len(batch),
            "bytes": size,
            "bits_per_byte": total / size if size else None,
            "bits_per_byte_is_bound": bool((batch.kind == OOV).any() or batch.lossy.any()),
            "perplexity": perplexity_from_nats(-math.fsum(batch.logprob.tolist()) / len(batch)) if len(batch) else None,
            "passages": passages,
        }

    def top(self, text: str, event: int) -> dict[str, Any]:
        """Return the most probable tokens in the place of one event, as [token, probability]."""
        with self._lock:
            batch = self._scored(_lines(text))
            if self.no_tops:
                raise UsageError(self.no_tops)
            if not 0 <= event < len(batch):
                raise UsageError(f"the text has {len(batch):,} events, counted from 0: there is no event {event}")
            _, (top,) = self._distributions(_lines(text), np.array([event]))
            return {"top": top}

    def _scored(self, lines: list[str]) -> ScoreBatch:
        return join_batches(list(self._model.score(Corpus.from_strings(lines), spans=True)))

    def _looked_at(self, lines: list[str], events: int) -> tuple[dict[str, NDArray[Any]], list[_Top]]:
        # Where there is no time for all, those of the last events: NaN, -1 and nothing stand for the others.
        columns = {"entropy": np.full(events, np.nan), "rank": np.full(events, -1)}
        tops: list[_Top] = [[] for _ in range(events)]
        until, end, size = time.monotonic() + TOP_SECONDS, events, _FIRST_LOOK
        while end > 0 and not self.no_tops and time.monotonic() <= until:
            begin = max(0, end - size)
            try:
                some, tops[begin:end] = self._distributions(lines, np.arange(begin, end))
            except UsageError as error:  # a server, which tells nothing of other tokens
                self.no_tops = str(error)
                break
            for name, values in some.items():
                columns[name][begin:end] = values
            end, size = begin, size * _MORE
        return columns, tops

    def _distributions(self, lines: list[str], events: NDArray[np.int64]) -> tuple[dict[str, NDArray[Any]], list[_Top]]:
        reductions = Entropy(), Rank(), TopK(TOP)
        text = Corpus.from_strings(lines)
        blocks = [batch.extra for batch in reduce(self._model, text, reductions, events=events, spans=False)]
        columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        tokens = self._model.vocabulary.tokens
        tops = [
            [(visible_on_page(tokens[i]), p) for i, p in zip(ids, probabilities, strict=True)]
            for ids, probabilities in zip(columns["top_ids"].tolist(), np.exp(columns["top_logprobs"]).tolist(), strict=True)
        ]
        return {"entropy": nats_to_bits(np.maximum(columns["entropy"], 0.0)), "rank": columns["rank"]}, tops


def _of(columns: Mapping[str, NDArray[Any]], rows: slice) -> dict[str, NDArray[Any]]:
    # Columns of a line; none where nothing of it was looked at.
    return {name: values[rows] for name, values in columns.items()} if (columns["rank"][rows] > 0).any() else {}


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
