"""Denominators over scored spans, beside a twin that marks each byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.evaluation.audit.coverage import recount_scored
from lmgauge.evaluation.denominators import Denominators, count_denominators
from lmgauge.evaluation.reference_protocols import ScoredSpans
from lmgauge.scores import ScoreBatch, Strings, join_batches
from lmgauge.text.documents import Corpus

texts = st.text("aé 日\n.", max_size=12)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[tuple[int, int]]], list[ScoreBatch]]:
    """Texts, spans in each that do not overlap, in order, and a table of them in batches that may cut a segment."""
    own = draw(st.lists(texts, min_size=1, max_size=4))
    spans = []
    for text in own:
        cuts = sorted(draw(st.lists(st.integers(0, len(text.encode())), max_size=8)))
        spans.append(list(zip(cuts[::2], cuts[1::2], strict=False)))
    rows = [(segment, start, end) for segment, own_spans in enumerate(spans) for start, end in own_spans]
    cut = draw(st.integers(0, len(rows)))
    return own, spans, [batch_of(part) for part in (rows[:cut], rows[cut:]) if part] or [batch_of([])]


def batch_of(rows: list[tuple[int, int, int]]) -> ScoreBatch:
    segments, counts = np.unique(np.array([row[0] for row in rows], np.int64), return_counts=True)
    starts, ends = (np.array([row[k] for row in rows], np.int64) for k in (1, 2))
    zeros = np.zeros(len(rows))
    return ScoreBatch(
        segments, counts, zeros.astype(np.uint32), Strings(["x"]), zeros, zeros.astype(np.uint8), ends, begins=starts
    )


@given(tables())
def test_counts_are_those_of_marking_each_byte(
    table: tuple[list[str], list[list[tuple[int, int]]], list[ScoreBatch]],
) -> None:
    own, spans, batches = table
    scored = ScoredSpans()
    for batch in batches:
        scored.add(batch)
    counted = sum((scored.count(block) for block in Corpus.from_strings(own, block_bytes=1)), Denominators())
    pairs = [([start for start, _ in each], [end for _, end in each]) for each in spans]
    expected = [recount_scored(text.encode(), *ends) for text, ends in zip(own, pairs, strict=True)]
    assert counted == sum(expected, Denominators())


@given(texts)
def test_a_text_that_is_scored_whole_counts_as_ever(text: str) -> None:
    block = next(iter(Corpus.from_strings([text])))
    scored = ScoredSpans()
    scored.add(batch_of([(0, 0, len(text.encode()))]))
    assert scored.count(block) == count_denominators(block)


@given(tables())
def test_batches_join_and_part_with_their_gaps(
    table: tuple[list[str], list[list[tuple[int, int]]], list[ScoreBatch]],
) -> None:
    _, spans, batches = table
    whole = join_batches(batches)
    assert whole.starts().tolist() == [start for each in spans for start, _ in each]
    for i, segment in enumerate(whole.segments.tolist()):
        assert whole.of_segments(i, i + 1).starts().tolist() == [start for start, _ in spans[segment]]
