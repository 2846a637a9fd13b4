"""Segments as the page's script takes them: their text, what each event cost, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.passages import Passage, Spans, TopTokens, lead_of
from lmgauge.evaluation.spelled_parts import spelled_parts
from lmgauge.numerics.units import nats_to_bits
from lmgauge.readable import visible_on_page
from lmgauge.report.packing import packed, shown_text
from lmgauge.scores import SEPARATOR, SPELLING

if TYPE_CHECKING:
    from lmgauge.explore.index import Index
    from lmgauge.scores import ScoreBatch

LONGEST = 6_000
"""Bytes of a segment that are shown; it can be asked for from any byte on."""
_MOST_EVENTS = 1 << 20
_COLUMNS = (
    *("segment", "end", "logprob", "kind", "context", "rank", "entropy", "kl", SPELLING, SEPARATOR),
    *("top_tokens", "top_logprobs"),
)


def passage_of(index: Index, place: int, begin: int = 0) -> tuple[Passage, int]:
    """Return a segment, or a part of it where it is long, and the byte that it begins at."""
    # place: of the segment in reading order.
    names = () if index.has_text else ("token",)
    batches = [index.rows(k, place, _MOST_EVENTS, (*_COLUMNS, *names)) for k in range(len(index.runs))]
    whole, ends = _text_and_ends(index, place, batches)
    first = _event_end(whole, ends[0], begin) if begin else 0
    last = _event_end(whole, ends[0], first + LONGEST)
    spans = tuple(_spans(batch, own, first, last, len(whole)) for batch, own in zip(batches, ends, strict=True))
    size = index.size
    group = int(index.of_text("group", size)[place])
    passage = Passage(
        segment=int(index.of_text("segment", size)[place]),
        where=index.where(place),
        group=index.groups[group] if len(index.groups) > 1 and group < len(index.groups) else "",
        why=(),
        text=whole[first:last].decode("utf-8", "replace"),
        bits=tuple(float(index.bits_at(k, place)) for k in range(len(index.runs))),
        events=tuple(int(index.of_run(k, "events", size)[place]) for k in range(len(index.runs))),
        size=int(index.of_text("bytes", size)[place]),
        spans=spans,
        is_cut=first > 0 or last < len(whole),
        lead="" if first else lead_of(index.given_text(place)),
    )
    return passage, first


def _text_and_ends(index: Index, place: int, batches: list[ScoreBatch]) -> tuple[bytes, list[NDArray[np.int64]]]:
    # Text, and where each event of each run ends in it; tokens stand for a text that is not at hand.
    if index.has_text:
        whole = index.text_of(place)
        return whole, [_spread_ends(batch, len(whole)) for batch in batches]
    tokens = batches[0].strings.tokens
    written = [f"{tokens[token]} ".encode("utf-8", "replace") for token in batches[0].token_ids.tolist()]
    ends = np.cumsum([len(word) for word in written], dtype=np.int64)
    whole = b"".join(written)
    own = [ends]
    for batch in batches[1:]:
        alike = len(batch) == len(batches[0])
        own.append(ends if alike else np.full(len(batch), len(whole), np.int64))
    return whole, own


def _spread_ends(batch: ScoreBatch, size: int) -> NDArray[np.int64]:
    # Where events end; all at the end of the text for a table without byte spans.
    return np.minimum(batch.ends, size) if len(batch.ends) else np.full(len(batch), size, np.int64)


def _event_end(text: bytes, ends: NDArray[np.int64], begin: int) -> int:
    place = int(np.searchsorted(ends, begin))
    at = min(int(ends[place]) if place < len(ends) else len(text), len(text))
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at


def _spans(batch: ScoreBatch, ends: NDArray[np.int64], first: int, last: int, size: int) -> Spans:
    shown = (ends > first) & (ends <= last) if last < size else ends > first
    if not first:
        shown |= ends == 0
    columns: dict[str, NDArray[Any]] = {}
    for name in ("rank", "entropy", "context", "kl"):
        if name in batch.extra:
            values = batch.extra[name][shown]
            columns[name] = nats_to_bits(np.maximum(values, 0.0)) if name in ("entropy", "kl") else values
    columns |= {name: values[shown] for name, values in spelled_parts(batch).items()}
    bits = nats_to_bits(-batch.logprob[shown])
    return Spans(ends[shown] - first, bits, batch.kind[shown], columns, {}, TopTokens.of(batch, shown))


def as_item(index: Index, place: int, begin: int = 0) -> dict[str, Any]:
    """Return a segment, or a part of it, as plain values for the page's script; strings are safe to show."""
    # place: of the segment in reading order.
    passage, first = passage_of(index, place, begin)
    return {
        "segment": passage.segment,
        "where": visible_on_page(passage.where),
        "group": visible_on_page(passage.group),
        "lead": shown_text(passage.lead),
        "text": shown_text(passage.text),
        "is_cut": passage.is_cut,
        "begin": first,
        "shown": len(passage.text.encode("utf-8", "surrogatepass")),
        "bits": list(passage.bits),
        "events": list(passage.events),
        "size": passage.size,
        "runs": packed(passage),
    }


def items(index: Index, places: NDArray[Any]) -> list[dict[str, Any]]:
    """Return segments as plain values, in this order."""
    # places: integers [n], in reading order of the text.
    # Read in the order of the table: neighbors share a group of rows.
    made: Mapping[int, dict[str, Any]] = {place: as_item(index, place) for place in sorted(places.tolist())}
    return [made[place] for place in places.tolist()]
