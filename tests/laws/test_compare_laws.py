"""Laws of comparisons over random texts and tables: sums of parts, symmetry, and no verdict without its evidence."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge import Corpus
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.comparison.results import Comparison
from lmgauge.evaluation.runs import open_run
from lmgauge.numerics.units import nats_to_bits

Rows = list[dict[str, Any]]
texts = st.lists(st.text(alphabet="ab1 .é東🙂\t", max_size=10), min_size=1, max_size=6)
logprobs = st.one_of(st.floats(-30, 0), st.sampled_from([-0.0, -math.inf]))


@st.composite
def tables(draw: st.DrawFn, lines: Sequence[str], eos: bool, kinds: Sequence[str] = ("token",)) -> Rows:
    """Rows that tile the lines, cut at any bytes."""
    rows: Rows = []
    for segment, line in enumerate(lines):
        size = len(line.encode())
        cuts = sorted({*draw(st.lists(st.integers(0, size), max_size=5)), *([size] if size else [])} - {0})
        ends = [(end, draw(st.sampled_from(kinds))) for end in cuts] + [(size, "eos")] * eos
        start = 0
        for end, kind in ends:
            logprob = draw(logprobs)
            written = "-inf" if math.isinf(logprob) else logprob
            rows.append({"segment": segment, "start": start, "end": end, "logprob": written, "kind": kind, "token": "t"})
            start = end
    return rows


@st.composite
def pairs(draw: st.DrawFn, kinds: Sequence[str] = ("token",)) -> tuple[list[str], Rows, Rows]:
    lines = draw(texts.filter(lambda found: any(found)))
    return lines, draw(tables(lines, draw(st.booleans()), kinds)), draw(tables(lines, draw(st.booleans()), kinds))


def compared(lines: Sequence[str], *tables: Rows, text: bool = True) -> Comparison:
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for i, rows in enumerate(tables):
            path = Path(folder) / f"{i}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            runs.append(open_run(path))
        corpus = Corpus.from_strings(lines, block_bytes=7) if text else None
        return compare(runs, corpus=corpus)[0]


def total_bits(rows: Rows) -> float:
    values = [row["logprob"] for row in rows]
    return math.inf if "-inf" in values else nats_to_bits(float(-sum(map(Fraction, values))))


@settings(max_examples=80)
@given(pairs())
def test_bits_of_the_whole_and_of_its_slices(given: tuple[list[str], Rows, Rows]) -> None:
    """Law 5, and the figures are the sums of the tables over what the source text counts, to the last place or two."""
    lines, first, second = given
    found = compared(lines, first, second)
    size = sum(len(line.encode()) for line in lines)
    assert found.bytes_in_all == size
    for slices in found.slices:
        assert sum(row.size for row in slices.rows) == found.bytes
        if found.part == "whole":
            for k, rows in enumerate((first, second)):
                whole = sum(row.bits[k] for row in slices.rows)
                assert whole == pytest.approx(total_bits(rows), rel=1e-12, abs=1e-12)
    if found.part == "whole":
        (bits,) = (d for d in found.differences if d.metric == "bits_per_byte")
        for figure, rows in zip((bits.first, bits.second), (first, second), strict=True):
            assert figure == pytest.approx(total_bits(rows) / size, rel=1e-15, abs=1e-18)
    else:
        # One has line ends, the other not: what is in front of the last token is exact, and there may be nothing.
        assert found.part == ("exact part" if found.differences else "nothing")
        assert found.verdict("bits_per_byte").reasons


@settings(max_examples=60)
@given(pairs(("token", "oov")))
def test_the_exact_part_has_no_unseen_word(given: tuple[list[str], Rows, Rows]) -> None:
    """Every byte of it is scored by tokens of both; its bits are no more than those of either table in all."""
    lines, first, second = given
    found = compared(lines, first, second)
    unseen = any(row["kind"] == "oov" for rows in (first, second) for row in rows)
    ends = [any(row["kind"] == "eos" for row in rows) for rows in (first, second)]
    whole = not unseen and ends[0] == ends[1]
    assert found.part == ("whole" if whole else "exact part" if found.differences else "nothing")
    known = [sum(row["end"] - row["start"] for row in rows if row["kind"] == "token") for rows in (first, second)]
    assert (found.bytes or 0) <= min(known)
    for difference in (d for d in found.differences if d.metric == "bits_per_byte"):
        for figure, rows in zip((difference.first, difference.second), (first, second), strict=True):
            most = total_bits([r for r in rows if r["kind"] != "oov"])
            assert figure * (found.bytes or 0) <= most * (1 + 1e-12) + 1e-15  # a sum is exact to 2e-21


@settings(max_examples=60)
@given(pairs(("token", "oov")))
def test_who_comes_first_changes_signs_only(given: tuple[list[str], Rows, Rows]) -> None:
    lines, first, second = given
    there, back = compared(lines, first, second), compared(lines, second, first)
    assert (there.part, there.bytes, there.p_value, there.segments) == (back.part, back.bytes, back.p_value, back.segments)
    assert there.segments_with_zeros == back.segments_with_zeros
    for a, b in zip(there.differences, back.differences, strict=True):
        assert (a.first, a.second) == (b.second, b.first)
        assert a.difference == -b.difference
    for ours, theirs in zip(there.slices, back.slices, strict=True):
        assert [row.bits for row in ours.rows] == [row.bits[::-1] for row in theirs.rows]


@settings(max_examples=60)
@given(texts.filter(any).flatmap(lambda lines: st.tuples(st.just(lines), tables(lines, True))))
def test_a_table_beside_itself_is_no_different(given: tuple[list[str], Rows]) -> None:
    lines, rows = given
    found = compared(lines, rows, rows)
    infinite = any(row["logprob"] == "-inf" for row in rows)
    assert all(d.difference == 0 for d in (*found.differences, *found.without_zeros))
    assert found.p_value == (None if infinite or len(lines) < 6 else 1.0)
    assert found.segments_lost == found.segments_won == found.tokens_lost == found.tokens_won == ()


@settings(max_examples=60)
@given(pairs(), st.integers(0, 5), st.integers(0, 30))
def test_a_byte_scored_twice_or_not_at_all_leaves_no_bits_to_compare(
    given: tuple[list[str], Rows, Rows], row: int, shift: int
) -> None:
    """Law 1: whichever span is moved, the verdict names the table that does not tile the text."""
    lines, first, second = given
    spoiled = [dict(r) for r in second]
    chosen = spoiled[row % len(spoiled)]
    chosen["start"] += 1 + shift
    found = compared(lines, first, spoiled)
    verdict = found.verdict("bits_per_byte")
    assert not verdict.comparable
    assert any(reason.startswith("1.jsonl: not exact (") and "do not tile" in reason for reason in verdict.reasons)
    assert found.differences == ()
