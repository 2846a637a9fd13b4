"""The page: all blocks of all results, escaped, in one file that asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.report.conftest import BUILDERS, HOSTILE, passage

from lmgauge.report import blocks as doc
from lmgauge.report.chart_values import link
from lmgauge.report.page import fragment, render

INJECTIONS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; alert(1); '",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "]]></style><svg onload=alert(1)>",
    "\u202ereversed\u0000\x1b[31m",
    "&lt;b&gt;&#x3c;i&#x3e;",
)
"""Names and texts that a page may show, and never follow."""

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Reader(HTMLParser):
    """What a page is made of, and where it does not close what it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def read(page: str) -> Reader:
    """Parse a page; it closes what it opens."""
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def assert_harmless(reader: Reader) -> None:
    """No element or attribute that runs a script, and nothing that asks another place for something."""
    scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert all(not attributes or attributes.get("type") == "application/json" for attributes in scripts)
    assert sum(not attributes for attributes in scripts) <= 1
    for tag, attributes in reader.tags:
        assert tag not in {"iframe", "object", "embed", "link", "img", "base", "form"}
        assert not any(name.startswith("on") or name in ("style", "src", "srcdoc") for name in attributes)
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")


@pytest.fixture(scope="module")
def pages(documents: dict[str, doc.Document]) -> Callable[[str], Reader]:
    """The page of each result, rendered and parsed once."""
    return cache(lambda kind: read(render(documents[kind], HOSTILE)))


@pytest.mark.parametrize("kind", list(BUILDERS))
def test_every_result_is_a_page(pages: Callable[[str], Reader], kind: str) -> None:
    reader = pages(kind)
    assert_harmless(reader)
    assert "\x1b" not in reader.text
    assert "\u202e" not in reader.text


@pytest.mark.parametrize("kind", list(BUILDERS))
def test_every_result_is_a_fragment_without_script(documents: dict[str, doc.Document], kind: str) -> None:
    reader = read(fragment(documents[kind]))
    assert_harmless(reader)
    assert "script" not in {tag for tag, _ in reader.tags}


@pytest.mark.parametrize("text", INJECTIONS)
def test_what_comes_from_elsewhere_is_text(text: str) -> None:
    cells: tuple[doc.Cell, ...] = (text, doc.Mark(text, "bad"), doc.Tokens((text, text, text), 1))
    table = doc.Table(
        tuple(doc.Column(text, (cell,), unit=text, note=text) for cell in cells), text, footnotes=(text,), cut=text
    )
    chart = doc.ChartData(
        "x", text, text, text, text, (doc.Series(text, (text, "b"), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)),), cut=text
    )
    document = (
        *(doc.Heading(text), doc.Verdict("good", text), doc.Text(text), doc.Text(text, indent=2), doc.Text(text, note=True)),
        *(doc.Signature(text), doc.Lines(((text, (text, text)),)), table, chart, doc.Tokens((text,))),
        doc.Ladder((doc.Rung(text, doc.Mark(text, "unknown"), text),)),
        doc.Passages((passage(text),), (text, text), {text: (text, "number")}),
    )
    page = render(document, text)
    reader = read(page)
    assert_harmless(reader)
    assert "alert(1)" not in "".join(re.findall(r"<script>(.*?)</script>", page, re.DOTALL))
    if text.isprintable():
        assert reader.text.count(text) >= 12


def test_the_policy_allows_the_page_s_own_style_and_script_only() -> None:
    page = render((doc.Text("x"),), "x")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].replace("&#39;", "'").split(";"))
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    for element in ("style", "script"):
        (own,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/", "")


def test_rows_and_marks_lead_only_to_what_the_page_shows() -> None:
    shown = passage("a")
    labels = doc.labels("", ["number", "word"])
    table = doc.Table((labels,), cut="class")
    examples = doc.Table((labels,), anchors=(3, 4))
    text = doc.Passages((shown,), ("kn5",), {"class": ("word", "number", "URL")})
    document: doc.Document = (table, examples, text)
    links = [attributes["href"] for tag, attributes in read(render(document, "x")).tags if tag == "a"]
    assert "#cut=class&is=number" in links
    assert "#cut=class&is=word" in links
    assert "#cut=class&is=URL" not in links
    assert "#s4" in links
    assert "#s5" not in links
    series = doc.Series("kn5", ("number", "word", "URL"), (1.0, 2.0, 3.0))
    chart = doc.ChartData("class", "t", "bars", "class", "bits", (series,), cut="class")
    links = [attributes["href"] for tag, attributes in read(render((chart, text), "x")).tags if tag == "a"]
    assert "#cut=class&is=word" in links
    assert "#cut=class&is=URL" not in links
    assert link("a b", "c&d=é") == "#cut=a%20b&is=c%26d%3D%C3%A9"


def test_the_data_of_passages_is_json() -> None:
    (text,) = re.findall(r'<script type="application/json" class="data">(.*?)</script>', page_of_passage(), re.DOTALL)
    data: dict[str, Any] = json.loads(text)
    assert data["names"] == ["kn5"]
    assert set(data["passages"]) == {"3"}


def page_of_passage() -> str:
    """A page with one passage."""
    return render((doc.Passages((passage("a"),), ("kn5",), {"class": ("word", "number")}),), "x")


def test_numbers_are_written_as_in_the_terminal(documents: dict[str, doc.Document], pages: Callable[[str], Reader]) -> None:
    from lmgauge.report.formats import in_column

    for kind, document in documents.items():
        text = pages(kind).text
        for table in (block for block in document if isinstance(block, doc.Table)):
            numbers = [cell for row in table.rows for cell in row if isinstance(cell, doc.Number | doc.Range)]
            assert [in_column(cell) for cell in numbers if in_column(cell) not in text] == []


def test_a_page_stays_small_whatever_a_text_is() -> None:
    """Groups, tokens and names without number or end: the page holds some of them, and says so."""
    many = [f"group {i} " + "x" * 1000 for i in range(20_000)]
    columns = [doc.labels("", many), *(doc.numbers(f"model {k}", range(20_000), 3) for k in range(30))]
    chart = doc.ChartData(
        "x", "x", "x", "y", "bits", (doc.Series("s", tuple(map(float, range(20_000))), tuple(map(float, range(20_000)))),)
    )
    long = "y" * 5_000_000
    table = doc.Table((doc.labels(long, [long]), doc.Column("", [doc.Tokens((long, long, long), 1)])))
    page = render((doc.Table(tuple(columns)), chart, table, doc.Text(long), doc.Signature(long)), long)
    assert len(page) < 2_000_000
    assert "of 20,000 rows are shown" in page
