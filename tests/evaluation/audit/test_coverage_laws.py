"""Whatever is done to the rows of a sound table, level 1 sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.evaluation.audit.auditing import audit
from tests.evaluation.audit.gallery import Sound, without

from lmgauge.evaluation.audit.checks import FAIL, PASS
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

WORDS = ["a", "bb", "ä", "漢字", "dd"]
lines = st.lists(st.lists(st.sampled_from([*WORDS, "new"]), max_size=5).map(" ".join), min_size=2, max_size=6)
WAYS = (
    "drop a row", "drop a row and its bytes", "double a row", "move an end", "other token", "other kind",
    "drop a segment", "swap segments", "logprob", "number a segment anew",
)  # fmt: skip


def changed(batch: ScoreBatch, way: str, row: int, by: int) -> ScoreBatch:
    """The batch with one thing done to it, at a row."""
    n, segments = len(batch), len(batch.segments)
    row, segment = row % n, row % segments
    at = np.arange(n) == row
    if way.startswith("drop a row"):
        return without(batch, at, spans=way.endswith("bytes"))
    if way == "double a row":
        rows = np.sort(np.append(np.arange(n), row))
        columns = {name: getattr(batch, name)[rows] for name in ("token_ids", "logprob", "kind", "ends")}
        counts = batch.segment_events + (batch.segments == batch.row_segments()[row])
        return replace(batch, segment_events=counts, **columns)
    if way == "move an end":
        return replace(batch, ends=np.where(at, batch.ends + by, batch.ends))
    if way == "other token":
        others = (batch.token_ids.astype(np.int64) + by) % len(batch.strings.tokens)
        return replace(batch, token_ids=np.where(at, others, batch.token_ids).astype(np.uint32))
    if way == "other kind":
        return replace(batch, kind=np.where(at, (batch.kind.astype(int) + by) % 3, batch.kind).astype(np.uint8))
    if way == "drop a segment":
        return without(batch, batch.row_segments() == batch.segments[segment])
    if way == "logprob":
        return replace(batch, logprob=np.where(at, [np.nan, 0.1, np.inf][by % 3], batch.logprob))
    if way == "number a segment anew":
        return replace(batch, segments=batch.segments + by * (np.arange(segments) == segment))
    order = np.arange(segments)
    other = (segment + by) % segments
    order[[segment, other]] = order[[other, segment]]
    parts = [batch.of_segments(int(i), int(i) + 1) for i in order]
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("token_ids", "logprob", "kind", "ends")}
    return replace(batch, segment_events=batch.segment_events[order], **columns)


def content(batch: ScoreBatch) -> list[Any]:
    """What level 1 can see of a batch: all but the values of log-probabilities that are some."""
    allowed = batch.logprob <= 0
    names = ("segments", "segment_events", "token_ids", "kind", "ends")
    return [getattr(batch, name).tolist() for name in names] + [allowed.tolist()]


class Changed(Sound):
    """A sound model until something is done to its rows."""

    way, row, by = "", 0, 0

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            after = changed(batch, self.way, self.row, self.by) if self.way else batch
            assume(not self.way or content(after) != content(batch))
            yield after


@settings(max_examples=300)
@given(lines, st.sampled_from(WAYS), st.integers(0, 40), st.sampled_from([1, 2, 4, -1]))
def test_any_change_of_the_rows_is_seen(text: list[str], way: str, row: int, by: int) -> None:
    assume(any(text))  # a table of ends alone, without these, is one of a model that predicts none
    model = Changed([" ".join(WORDS)])
    assert audit(model, Corpus.from_strings(text), levels=["coverage"]).verdict("coverage") == PASS
    model.way, model.row, model.by = way, row, by
    found = audit(model, Corpus.from_strings(text), levels=["coverage"])
    assert found.verdict("coverage") == FAIL, str(found)
