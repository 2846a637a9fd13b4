"""The measurements of the pages on benchmarks: all are shown, and their ratios are those of their times."""

from __future__ import annotations

import json
import re

import pytest
from docs import measurements
from docs.examples import BOOK

STORED = json.loads(measurements.FILE.read_text(encoding="utf-8"))
PAGES = {path: path.read_text(encoding="utf-8") for path in [BOOK / "benchmarks.md", *(BOOK / "benchmarks").glob("*.md")]}


def test_every_table_is_shown_once() -> None:
    shown = [name for text in PAGES.values() for name in re.findall(r'^table\("([^"]*)"\)$', text, re.MULTILINE)]
    assert sorted(shown) == sorted(STORED["tables"])


def test_the_index_names_the_days() -> None:
    days = {table["machine"]: table["date"] for table in STORED["tables"].values()}
    text = PAGES[BOOK / "benchmarks.md"].replace("\n", " ")
    assert f"machine A on {days['A']}, machines B and C on {days['B']}" in text
    assert days["B"] == days["C"]


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("training-38", "`lmgauge train`, s", "both, s"),
        ("training-10", "`lmgauge train`, s", "both, s"),
        ("tasks-a", "lmgauge, s", "peer, s"),
        ("tasks-b", "lmgauge, s", "peer, s"),
    ],
)
def test_ratios_are_those_of_the_times(name: str, ours: str, theirs: str) -> None:
    for row in STORED["tables"][name]["rows"]:
        cells = dict(zip(STORED["tables"][name]["columns"], row, strict=True))
        assert cells["times faster"] == pytest.approx(cells[theirs] / cells[ours], rel=0.06), row


def test_ratios_within_a_memory_are_those_of_the_measurements() -> None:
    stored = STORED["tables"]["within-memory-d"]
    for row in stored["rows"]:
        cells = dict(zip(stored["columns"], row, strict=True))
        assert cells["times less CPU"] == pytest.approx(cells["CPU s "] / cells["CPU s"], rel=0.02), row
        asked = cells["memory asked, GiB"] * 2**30 / 1e6
        assert cells["over what was asked"] == pytest.approx(cells["peak, MB"] / asked, rel=0.02), row


def test_a_table_keeps_the_digits_and_marks_code() -> None:
    html = measurements.Table(["`eval`, s", "ratio"], [[2000, [1.5, 2.25]], [None, 3]], ["ratio"])._repr_html_()
    assert '<code class="docutils literal notranslate">eval</code>, s</th>' in html
    assert ">2,000</td>" in html
    assert "<strong>1.5,\xa02.25</strong>" in html
    assert ">4.0</td>" in measurements.table("tasks-b")._repr_html_()


def test_bars_have_a_series_for_each_machine_and_each_number_of_threads() -> None:
    chart = measurements.bars(
        "scoring-a",
        "scoring-b",
        title="t",
        label="order {order}",
        value="over `query`",
        peer="query",
        by="threads",
        only="eval",
    )
    series = {one.name: one.x for one in chart.data.series}
    assert series == {
        "machine A, 1 thread": ("order 3", "order 5"),
        "machine A, 2 threads": ("order 3", "order 5"),
        "machine B, 1 thread": ("order 3",),
        "machine B, 2 threads": ("order 3",),
    }
    again = measurements.bars(
        "lines", title="t", label="{words a line}, {vocabulary}", value="ratio, 1 thread", peer="query"
    )
    assert [one.name for one in again.data.series] == ["measured", "measured again"]


def test_the_page_on_reliability_shows_what_was_recorded() -> None:
    text = (BOOK / "reliability.md").read_text(encoding="utf-8")
    kinds = re.findall(r'^bad_inputs\("([^"]*)"\)$', text, re.MULTILINE)
    stored = json.loads((measurements.RELIABILITY / "bad-inputs.json").read_text(encoding="utf-8"))
    assert sorted(kinds) == sorted({row[0] for row in stored["rows"]})
    assert sum(len(measurements.bad_inputs(kind).rows) for kind in kinds) == len(stored["rows"])
    assert len(measurements.recorded("fuzzed-peers").rows) > 2
    assert all(row[-1] == 0 for row in measurements.recorded("faults").rows)
    counts = measurements.fuzz_counts()
    assert counts.rows[-1][1] == sum(row[1] for row in counts.rows[:-1]) > 0
    assert all(row[3] == 0 for row in measurements.load_figures().rows)  # wrong answers
