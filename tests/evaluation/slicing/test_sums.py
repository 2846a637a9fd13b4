"""Intervals of slices of one model: that of one slice is the evaluation's own, and they hold the true value."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.runs import open_run
from lmgauge.evaluation.slicing import sums as slicing_sums
from lmgauge.evaluation.slicing.cuts import POSITION_STARTS, band_labels
from lmgauge.evaluation.slicing.sums import CutSums, Slice
from lmgauge.numerics.exact import ExactSums
from lmgauge.numerics.intervals import ratio_interval
from lmgauge.numerics.units import nats_to_bits
from lmgauge.text.documents import Corpus

LINES = [f"{'the cat ' * (i % 7)}sat on a mat {i % 3}" for i in range(60)]


def exact(nats: list[float]) -> ExactSums:
    """Sums of one event each."""
    values = np.array(nats)
    scaled = [0 if math.isinf(x) else round(x * 2**40) << 40 for x in nats]
    high = np.array([x >> 64 for x in scaled], np.int64)
    low = np.array([x & (2**64 - 1) for x in scaled], np.uint64)
    return ExactSums(high, low, np.isinf(values).astype(np.int64))


def rows(
    nats: list[float], codes: list[int], segments: list[int], documents: list[int] | None, name: str
) -> tuple[Slice, ...]:
    """The slices of events of a byte each."""
    sums = CutSums()
    known = None if documents is None else np.array(documents)
    cut = (name, [str(code) for code in range(max(codes) + 1)], np.array(codes))
    sums.add([cut], np.array(segments), [exact(nats)], np.ones(len(nats), np.int64), documents=known)
    return sums.finish("byte")[0].rows


@pytest.mark.parametrize("document", [None, "segment", "file"])
def test_the_interval_of_a_cut_with_one_slice_is_that_of_the_evaluation(tmp_path: Path, document: str | None) -> None:
    files = []
    for i in range(6):
        files.append(tmp_path / f"{i}.txt")
        files[-1].write_text("".join(f"{line}\n" for line in LINES[i * 10 : i * 10 + 10]), encoding="utf-8")
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES[::2]), order=2)
    corpus = Corpus.from_files(files, document=document)
    evaluation = lmgauge.evaluate(model, corpus, output=tmp_path / "run")
    assert evaluation.interval is not None
    found = lmgauge.diagnose(tmp_path / "run", only="slices")
    tally = EventSums()
    for batch in open_run(tmp_path / "run").batches():
        tally.add(batch)
    segments = tally.per_segment()
    sizes = np.array([len(line) + 1.0 for line in LINES])
    numbers = None if evaluation.interval.unit == "unknown" else segments.documents
    expected = ratio_interval(-segments.nats, sizes, numbers)
    assert expected is not None
    assert expected.unit == evaluation.interval.unit
    ends = (nats_to_bits(expected.low), nats_to_bits(expected.high))
    assert found.interval == pytest.approx(ends, rel=1e-13)
    # Each file is a group: of one document each, what is said is about text like it.
    groups = next(slices for slices in found.slices if slices.name == "group")
    for i, row in enumerate(groups.rows):
        own = slice(i * 10, i * 10 + 10)
        of_group = ratio_interval(-segments.nats[own], sizes[own], None if numbers is None else numbers[own])
        assert of_group is not None
        assert row.interval == pytest.approx((nats_to_bits(of_group.low), nats_to_bits(of_group.high)), rel=1e-13)


def test_a_slice_of_one_document_has_no_interval_but_a_group_has() -> None:
    nats, segments = [-1.0, -2.0, -3.0, -1.5, -0.5, -0.7], list(range(6))
    (within,) = rows(nats, [0] * 6, segments, [5] * 6, "class")
    assert within.interval is None
    (group,) = rows(nats, [0] * 6, segments, [5] * 6, "group")
    assert group.interval is not None


def test_slices_say_how_many_units_their_intervals_rest_on() -> None:
    nats, codes, segments = [-1.0, -2.0, -3.0, -1.5, -2.5, -1.2, -0.5, -2.0], [0] * 7 + [1], list(range(8))
    first, second = rows(nats, codes, segments, [0, 0, 1, 2, 3, 4, 5, 6], "position")
    assert (first.unit, first.units) == ("documents", 6)  # of seven segments two are of one document
    assert (second.unit, second.units, second.interval) == ("", 0, None)
    unknown, _ = rows(nats, codes, segments, None, "position")
    assert (unknown.unit, unknown.units) == ("unknown", 7)
    zero, alone = rows([-math.inf, -1.0], [0, 1], [0, 1], [0, 1], "position")
    assert (zero.unit, zero.units, zero.interval) == (alone.unit, alone.units, alone.interval) == ("", 0, None)


def test_bands_of_positions_double() -> None:
    assert band_labels(POSITION_STARTS)[:4] == ("1", "2", "3 to 4", "5 to 8")
    assert band_labels(POSITION_STARTS)[-2:] == ("65,537 to 131,072", "131,073 and on")


@pytest.mark.parametrize("name", ["class", "group"])
def test_events_of_probability_zero_leave_no_interval(name: str) -> None:
    nats = [-1.0, -math.inf, -2.0, -1.0, -2.5, -0.5, -3.0, -1.5, -3.5, -0.5, -1.0, -0.7]
    zero, finite = rows(nats, [0] * 6 + [1] * 6, list(range(12)), None, name)
    assert zero.interval is None
    assert finite.interval is not None
    assert (finite.difference, finite.p_value) == (None, None)


def test_a_cost_is_not_below_zero() -> None:
    (row,) = rows([-0.001] * 5 + [-9.0], [0] * 6, list(range(6)), None, "class")
    assert row.interval is not None
    assert row.interval[0] == 0.0


def test_intervals_hold_the_true_value_of_documents_that_differ() -> None:
    """19 of 20 intervals, where segments of a document are alike and slices lie across documents."""
    random = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        of_document = random.normal(2.0, 0.5, 40)
        documents = np.repeat(np.arange(40), 5).tolist()
        costs = np.repeat(of_document, 5)[:, None] + random.normal(0.0, 0.3, (200, 2))
        nats = (-np.abs(costs)).ravel().tolist()
        segments, codes = np.repeat(np.arange(200), 2).tolist(), [0, 1] * 200
        first, _ = rows(nats, codes, segments, documents, "class")
        assert first.interval is not None
        held += first.interval[0] <= nats_to_bits(2.0) <= first.interval[1]
    assert 0.92 <= held / 300 <= 0.98


def test_pooled_cells_keep_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    nats = (-random.exponential(1.0, 400)).tolist()
    segments, codes = np.repeat(np.arange(200), 2).tolist(), [0, 1] * 200
    whole = rows(nats, codes, segments, None, "class")
    monkeypatch.setattr(slicing_sums, "_MOST_CELLS", 100)
    pooled = rows(nats, codes, segments, None, "class")
    for one, other in zip(whole, pooled, strict=True):
        assert one.bits == other.bits
        assert one.interval is not None
        assert other.interval is not None
        assert sum(other.interval) == pytest.approx(sum(one.interval))
        assert other.interval[1] - other.interval[0] == pytest.approx(one.interval[1] - one.interval[0], rel=0.5)
