"""Segments as the page's script takes them: their text, what each event cost, where they are; and what is typed, scored
while one types: bits of each token, entropy, rank, and what was most probable in its place.
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import visible_on_page
from lmgauge.evaluation.passages import MOST_TOPS, Spans, TopTokens, lead_of, spelled_parts
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.report.page_payload import packed, shown_text
from lmgauge.scores import OOV, SEPARATOR, SPELLING, ScoreBatch, join_batches
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Entropy, Rank, TopK
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.explore.index import Index
    from lmgauge.models.protocol import LanguageModel


LONGEST = 6_000
"""Bytes of a segment that are shown; it can be asked for from any byte on."""
_MOST_EVENTS = 1 << 20
_OF_EVENTS = ("rank", "entropy", "context", "kl")
_COLUMNS = ("segment", "end", "logprob", "kind", *_OF_EVENTS, SPELLING, SEPARATOR, "top_tokens", "top_logprobs")


def item_at(index: Index, place: int, begin: int = 0) -> dict[str, Any]:
    """Return a segment, or a part of it where it is long, as plain values whose strings are safe to show."""
    # place: of the segment in reading order; begin: the byte from which on it is shown.
    names = () if index.corpus is not None else ("token",)
    batches = [index.rows(k, place, _MOST_EVENTS, (*_COLUMNS, *names)) for k in range(len(index.runs))]
    whole, ends = _text_and_ends(index, place, batches)
    first = _event_end(whole, ends[0], begin) if begin else 0
    last = _event_end(whole, ends[0], first + LONGEST)
    text, group = whole[first:last].decode("utf-8", "replace"), index.number("group", place)
    spans = [spans_of(batch, own, first, last, len(whole)) for batch, own in zip(batches, ends, strict=True)]
    return {
        "segment": index.number("segment", place),
        "where": visible_on_page(index.where(place)),
        "group": visible_on_page(index.groups[group]) if len(index.groups) > 1 else "",
        "lead": "" if first else shown_text(lead_of(index.text_between("given", "start", place))),
        "text": shown_text(text),
        "is_cut": first > 0 or last < len(whole),
        "begin": first,
        "shown": last - first,
        "bits": [float(index.bits(k, place + 1, slice(place, None))[0]) for k in range(len(index.runs))],
        "size": index.number("bytes", place),
        "runs": packed(text, spans),
    }


def _text_and_ends(index: Index, place: int, batches: list[ScoreBatch]) -> tuple[bytes, list[NDArray[np.int64]]]:
    # Text, and where each event of each run ends in it, all at its end for a table without byte spans; tokens stand for a
    # text that is not at hand.
    if index.corpus is not None:
        whole = index.text_between("start", "end", place)
        known = [np.minimum(batch.ends, len(whole)) for batch in batches]
    else:
        tokens = batches[0].strings.tokens
        written = [f"{tokens[token]} ".encode("utf-8", "replace") for token in batches[0].token_ids.tolist()]
        whole, own = b"".join(written), np.cumsum([len(word) for word in written], dtype=np.int64)
        known = [own] * len(batches)
    return whole, [
        ends if len(ends) == len(batch) else np.full(len(batch), len(whole))
        for ends, batch in zip(known, batches, strict=True)
    ]


def _event_end(text: bytes, ends: NDArray[np.int64], begin: int) -> int:
    place = int(np.searchsorted(ends, begin))
    at = min(int(ends[place]) if place < len(ends) else len(text), len(text))
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at


def spans_of(batch: ScoreBatch, ends: NDArray[np.int64], first: int, last: int, size: int) -> Spans:
    """Return the events of a segment of `size` bytes that are shown with its bytes from `first` to `last`."""
    # ends: int64 [rows], the byte where each event ends.
    shown = (ends > first) & ((ends <= last) | (last >= size)) | ((ends == 0) & (first == 0))
    columns: dict[str, NDArray[Any]] = {name: batch.extra[name][shown] for name in _OF_EVENTS if name in batch.extra}
    columns |= {name: nats_to_bits(np.maximum(columns[name], 0.0)) for name in ("entropy", "kl") if name in columns}
    columns |= {name: values[shown] for name, values in spelled_parts(batch).items()}
    bits = nats_to_bits(-batch.logprob[shown])
    return Spans(ends[shown] - first, bits, batch.kind[shown], columns, {}, TopTokens.of(batch, shown))


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
