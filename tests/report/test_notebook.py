"""Every result, whatever its names and texts are, in a notebook, as its page, and chart by chart."""

from __future__ import annotations

import json
import math
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.display import VEGA_LITE
from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.base.files import OutputError
from lmgauge.report import documents, page
from lmgauge.report.blocks import ChartData, Column, Heading, Series, Table, Text, Tokens
from lmgauge.report.documents import KINDS, document_of
from lmgauge.report.terminal import as_text

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
SIDEWAYS = {"\x1b", "\x07", "\x9b", "\u202e"}


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def check_harmless(html: str) -> None:
    seen = Seen(html)
    assert not seen.tags & {"script", "iframe", "object", "embed", "link", "meta", "base", "form"}
    assert not any(name.startswith("on") for name in seen.attributes)
    assert not SIDEWAYS & set(html)


def test_every_kind_of_result_is_shown_here(every: dict[str, Any]) -> None:
    assert set(every) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_as_the_terminal_shows_it(every: dict[str, Any], kind: str) -> None:
    result = every[kind]
    shown = as_text(document_of(result))
    assert shown
    if kind in ("BleuScore", "ChrfScore", "TerScore", "ErrorRates", "F1Score"):
        assert str(result).startswith(f"{result.metric}|{result.signature} = ")  # the line people paste
    else:
        assert str(result) == shown


@pytest.mark.parametrize("kind", KINDS)
def test_its_repr_is_one_short_line(every: dict[str, Any], kind: str) -> None:
    shown = repr(every[kind])
    assert kind in shown
    assert len(shown) <= 200
    assert shown.isprintable()


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_it_without_the_extra(every: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "fragment", missing)
    html = every[kind]._repr_html_()
    assert html.startswith("<pre ")
    assert html.endswith("</pre>")
    check_harmless(html)


def missing(*_: object, **__: object) -> None:
    raise MissingExtraError("jinja2", extra="report")


def test_several_results_are_shown_one_after_the_other(every: dict[str, Any]) -> None:
    one, other = every["Audit"], every["CalcResult"]
    assert document_of([one, other]) == (*document_of(one), *document_of(other))


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(TypeError, match="dict is not a result"):
        document_of({})


def test_the_charts_of_a_result_have_names(every: dict[str, Any]) -> None:
    diagnosis = every["Diagnosis"]
    assert "calibration" in diagnosis.charts
    assert diagnosis.chart("calibration").name == "calibration"
    assert repr(diagnosis.chart("calibration")).startswith("<Chart calibration: ")
    with pytest.raises(UsageError, match=r"no chart is called 'x'; there are .*calibration"):
        diagnosis.chart("x")
    with pytest.raises(UsageError, match="this result has none"):
        every["Info"].chart("x")
    with pytest.raises(UsageError, match=r"no chart was named; there are .*calibration"):
        diagnosis.chart()


def test_a_sentence_is_drawn_as_bars_of_bits() -> None:
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b .", "a ."]), order=2)
    sentence = model.score_text("a .")
    (drawn,) = sentence.chart().data.series
    assert drawn.x == ("1. a", "2. .", "3. </s>")
    assert drawn.y == pytest.approx([-nats / math.log(2) for nats in sentence.logprobs])
    (drawn,) = lmgauge.calc(["1/4", "1/2"]).chart().data.series
    assert (drawn.x, drawn.y) == (("1", "2"), (2.0, 1.0))
    (drawn,) = lmgauge.calc([0.25, 0], tokens="the cat").chart().data.series
    assert (drawn.x, drawn.y) == (("1. the", "2. cat"), (2.0, math.inf))
    for too_many_or_few in (1, 61):
        assert lmgauge.calc([0.5] * too_many_or_few).charts == ()


def test_charts_of_one_name_are_told_apart() -> None:
    data = ChartData("position", "t", "x", "y", "bits", (Series("s", (1, 2), (1.0, 2.0)),))
    assert list(documents.charts([data, Heading("h"), data, data])) == ["position", "position-2", "position-3"]


def test_a_chart_is_written_by_the_ending(every: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    chart = every["Diagnosis"].chart("calibration")
    begins = {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG", ".json": b"{"}
    for ending, first in begins.items():
        path = chart.save(tmp_path / f"chart{ending}")
        assert path.read_bytes().startswith(first)
    assert json.loads((tmp_path / "chart.json").read_text("utf-8")) == chart.to_dict() == chart.specification
    with pytest.raises(UsageError, match=r"written as \.svg, \.pdf, \.png or \.json"):
        chart.save(tmp_path / "chart.gif")


def test_a_notebook_chooses_the_form_of_a_chart(every: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    chart = every["Diagnosis"].chart("calibration")
    bundle = chart._repr_mimebundle_()
    assert set(bundle) == {VEGA_LITE, "image/svg+xml", "text/plain"}
    check_harmless(bundle["image/svg+xml"])
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert set(chart._repr_mimebundle_()) == {VEGA_LITE, "text/plain"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_it(every: dict[str, Any], kind: str) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    html = every[kind]._repr_html_()
    check_harmless(html)
    assert "<table" in html or "<dl" in html or "<ruby" in html or kind in ("Alignment", "AlignedSegment")
    assert html.count("<svg") - html.count('<svg class="bar"') <= 1  # bars in the cells of a table are not charts


def test_hostile_strings_are_text_in_a_notebook() -> None:
    pytest.importorskip("jinja2")
    document = (Heading(SCRIPT), Text(SCRIPT), Table((Column(SCRIPT, (SCRIPT, Tokens((SCRIPT, "b"), 0))),), SCRIPT))
    html = documents.fragment(document)
    check_harmless(html)
    assert html.count("&lt;script&gt;") >= 4


def test_a_page_is_written_whole_or_not_at_all(
    every: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    monkeypatch.chdir(tmp_path)
    written = every["Comparisons"].report()
    assert written == Path("report.html")
    assert written.read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(OutputError):
        every["Audit"].report(written / "page.html")  # a file is no folder
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert every["Audit"].report(tmp_path / "made" / "page.html").is_file()
