"""Charts drawn by vl-convert: for a page without anything from elsewhere, and as files."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.conftest import HOSTILE, LONG
from tests.report.test_charts import CODE, KINDS, chart

from lmgauge.base.errors import MissingExtraError
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import ChartData, ChartKind, Document, Series
from lmgauge.report.charts import FAINT_INK, GRID_INK, INK, SERIES_COLORS, specification
from lmgauge.report.drawing import svg, write_charts

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(one: ChartData, *, links: bool = True) -> ET.Element:
    """The root of the SVG of a chart."""
    return ET.fromstring(svg(specification(one, links=links)))


def aloud(root: ET.Element) -> list[str]:
    """What marks say."""
    return [mark.attrib["aria-label"] for mark in root.iter() if mark.get("aria-roledescription") in ("point", "bar")]


@pytest.mark.parametrize("kind", KINDS)
def test_marks_say_the_numbers_of_the_chart(kind: ChartKind) -> None:
    spec = specification(chart(kind))
    expected = [row["what"] for row in spec["data"]["values"] if row["y"] is not None]
    root = ET.fromstring(svg(spec))
    assert aloud(root) == expected
    assert [title.text for title in root.iter(f"{NAMESPACE}title")] == expected  # shown where a mark is pointed at


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawing_fits_every_page(kind: ChartKind) -> None:
    text = svg(specification(chart(kind, rule=3.0, rule_name="all", diagonal=True), links=True))
    root = ET.fromstring(text)
    assert (root.get("width"), root.get("height"), root.get("class")) == ("100%", None, "chart")
    assert re.fullmatch(r"0 0 680 \d+", root.get("viewBox", ""))
    assert root.get("aria-label", "").startswith("Bits by words.")
    assert "style=" not in text
    assert text.count("http") == 1  # the name of the format
    assert len(text.encode()) < 26_000


@pytest.mark.parametrize("kind", KINDS)
def test_only_colors_of_the_style_are_drawn(kind: ChartKind) -> None:
    colors = set(re.findall(r'(?:fill|stroke)="([^"]*)"', svg(specification(chart(kind, rule=3.0, diagonal=True)))))
    assert colors <= {INK, FAINT_INK, GRID_INK, *SERIES_COLORS, "none", "transparent"}


def test_a_chart_with_links_is_a_group_of_links_another_an_image() -> None:
    root = drawn(chart())
    links = list(root.iter(f"{NAMESPACE}a"))
    assert [element.attrib for element in links][:2] == [{"href": "#cut=words&is=never"}, {"href": "#cut=words&is=once"}]
    assert root.get("role") == "group"
    assert drawn(chart(), links=False).get("role") == "img"
    assert drawn(replace(chart(), cut="")).get("role") == "img"


def test_a_lower_bound_that_is_a_link_is_seen() -> None:
    one = Series("kn3", ("word", "number"), (LowerBound(1.5), 2.0))
    made = drawn(ChartData("a", "A chart", "class", "bits per byte", "bits", (one,), kind="intervals", cut="class"))
    bound, exact = (next(e for e in made.iter() if e.get("aria-label", "").startswith(f"{n}: ")) for n in ("word", "number"))
    assert (bound.get("stroke"), bound.get("fill")) == (SERIES_COLORS[0], None)
    assert (exact.get("stroke"), exact.get("fill")) == ("transparent", SERIES_COLORS[0])


def test_two_charts_share_no_id() -> None:
    first, second = (svg(specification(chart("line", title=title))) for title in ("one", "two"))
    ids = [set(re.findall(r' id="([^"]*)"', text)) for text in (first, second)]
    assert ids[0]
    assert ids[1]
    assert not ids[0] & ids[1]
    for text, own in zip((first, second), ids, strict=True):
        assert set(re.findall(r"url\(#([^)]*)\)", text)) == own


def test_the_same_chart_is_drawn_the_same() -> None:
    assert svg(specification(chart("line"))) == svg(specification(chart("line")))


def test_numbers_of_a_drawing_are_short() -> None:
    attributes = re.findall(r' (?:d|transform|x2?|y2?)="([^"]*)"', svg(specification(chart("line"))))
    assert attributes
    assert not any(re.search(r"\.\d{3}", text) for text in attributes)


@pytest.mark.parametrize("text", [*CODE, HOSTILE, LONG, '<a href="https://x.invalid">', "]]>", "<!--", "\ud800\ufffe"])
def test_strings_of_the_data_draw_as_they_are(text: str) -> None:
    series = (Series(text, (text, "b"), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)), Series("other", (text, "b"), (1.5, 1.0)))
    for kind in ("line", "intervals", "bars"):
        one = ChartData(text, text, text, text, text, series, kind=kind, rule=1.5, rule_name=text, cut=text, note=text)
        root = drawn(one)
        assert root.get("aria-label") == specification(one)["description"]
        tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
        assert tags <= {"svg", "g", "path", "line", "text", "tspan", "a", "defs", "clipPath", "rect", "title"}
        assert len(aloud(root)) == 4
        for element in root.iter():
            assert all(name == "href" or not name.endswith("href") for name in element.attrib)
            assert element.get("href", "#").startswith("#")
            assert not any(name.startswith("on") for name in element.attrib)


def test_gaps_are_gaps() -> None:
    y = (3.0, 2.0, None, float("nan"), 2.5, 2.0)
    (line,) = [
        element.get("d", "")
        for element in drawn(chart("line", series=(Series("s", tuple("abcdef"), y),))).iter(f"{NAMESPACE}path")
        if element.get("stroke-width") == "2" and element.get("stroke") == SERIES_COLORS[0]
    ]
    assert line.count("M") == 2


def test_charts_of_all_results_are_drawn(documents: dict[str, Document]) -> None:
    for document in documents.values():
        for block in document:
            if isinstance(block, ChartData):
                assert aloud(drawn(block))


def test_a_chart_without_numbers_is_drawn_empty() -> None:
    for kind in KINDS:
        x = (1.0,) if kind in ("histogram", "scatter") else ("a",)
        root = drawn(chart(kind, series=(Series("s", x, (None,)),)))
        assert aloud(root) == []
        assert [element for element in root.iter(f"{NAMESPACE}g") if not len(element)] == []


def test_figures_are_written_in_each_format(tmp_path: Path) -> None:
    paths = write_charts([chart(), chart("line")], tmp_path / "new" / "figures")
    assert [path.name for path in paths] == [
        *("by-words.svg", "by-words.pdf", "by-words.png"),
        *("by-words-2.svg", "by-words-2.pdf", "by-words-2.png"),
    ]
    assert paths[0].read_text(encoding="utf-8").startswith("<svg ")
    assert paths[1].read_bytes().startswith(b"%PDF")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    root = ET.parse(paths[0]).getroot()
    assert root.get("width") == "680"
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(path.name for path in paths)


def test_specifications_are_written_under_safe_names(tmp_path: Path) -> None:
    charts = [chart(name="../../etc/passwd"), chart(name=HOSTILE), chart(name="..")]
    paths = write_charts(charts, tmp_path, [".vl.json"])
    assert [path.name for path in paths] == ["etc-passwd.vl.json", "x-31m-1m-bold-y-bold-z.vl.json", "chart.vl.json"]
    assert json.loads(paths[0].read_text(encoding="utf-8")) == json.loads(json.dumps(specification(charts[0])))


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lmgauge\[report\]'"):
        svg(specification(chart()))
    with pytest.raises(MissingExtraError, match="vl-convert-python"):
        write_charts([chart()], tmp_path, [".png"])
    assert write_charts([chart()], tmp_path, [".vl.json"])  # needs nothing
