"""Pages in a browser: from a file, without a network, at all widths, light and dark, by keyboard, read aloud, printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.browser import Opened

from lmgauge.evaluation.passages import Passage, Spans, TopTokens
from lmgauge.report import blocks as doc
from lmgauge.report.page import render
from lmgauge.report.tsv_renderer import as_tables

Opens = Callable[..., Opened]

TEXTS = (
    "The cat sat on the mat in 1984.",
    "המודל מנבא את הטקסט, 1984.",
    "النموذج يتنبأ بالنص.",
    "模型能多好地预测文本？日本語のテキスト。",
    "<script>alert(1)</script> & \x1b[31m\u202e {{ 7 }}",
)
FOCUSED = "(e => [e.tagName, e.type ?? '', e.className.baseVal ?? e.className].join(' ').trim())(document.activeElement)"
CLASSES = ("word", "number", "other")


def passage(number: int, text: str, runs: int = 1) -> Passage:
    """A segment with an event for each word, and the line end."""
    ends = [i for i, byte in enumerate(text.encode()) if byte == 32] + [len(text.encode())] * 2
    kinds = np.array([0] * (len(ends) - 1) + [2], np.uint8)
    spans = []
    for run in range(runs):
        bits = np.linspace(0.5, 14 + run, len(ends))
        codes = np.array([int(i == 2 and number == 0) for i in range(len(ends))], np.uint8)
        columns = {"rank": np.arange(1, len(ends) + 1), "entropy": np.where(np.arange(len(ends)) == 0, np.nan, 2.5)}
        tops = TopTokens(
            np.array([["dog", "<i>cat</i>", "no"]] * len(ends), object), np.log([[0.5, 0.25, 1e-300]] * len(ends))
        )
        spans.append(Spans(np.array(ends), bits, kinds, columns, {"class": codes}, tops))
    total = tuple(float(run.bits.sum()) for run in spans)
    why = ("worst",) if number % 2 else ("sample",)
    return Passage(number, f"text:{number + 1}", "", why, text, total, (len(ends),) * runs, len(text) + 1, tuple(spans))


def document(runs: int = 1) -> doc.Document:
    """A page with one of everything."""
    names = ("kn5", "lstm")[:runs]
    x = ("1", "2 to 4", "5 and on")
    series = tuple(doc.Series(name, x, (3.0, 2.5, 2.2), (2.9, 2.4, 2.0), (3.1, 2.6, 2.4)) for name in names)
    rows = doc.Series("kn5", CLASSES, (2.5, 3.5, 4.5), (2.0, 3.0, 4.0), (3.0, 4.0, 5.0))
    table = doc.Table((doc.labels("", CLASSES), doc.numbers("bits/byte", (2.5, 3.5, 4.5), 3)), "by class", cut="class")
    return (
        doc.Verdict("good", "Comparable: kn5 is better."),
        doc.Signature("ppl|unit:word|" + "x" * 300),
        doc.Heading("Where the bits go"),
        table,
        doc.ChartData(
            "class", "bits per byte by class", "", "bits per byte", "bits", (rows,), kind="intervals", cut="class"
        ),
        doc.ChartData("position", "bits per byte by position", "position", "bits per byte", "bits", series, better="lower"),
        doc.Heading("Audit"),
        doc.Ladder((doc.Rung("coverage", doc.Mark("PASS", "good"), "every byte is scored once"),)),
        doc.Heading("The text"),
        doc.Passages(tuple(passage(i, text, runs) for i, text in enumerate(TEXTS)), names, {"class": CLASSES}),
    )


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_opens_from_a_file_and_is_accessible(opens: Opens, runs: int, dark: bool) -> None:
    opened = opens(render(document(runs), "kn5 on a text"), dark=dark)
    opened.page.locator(".passage .text > span").first.wait_for()
    assert opened.violations() == []
    assert opened.complaints == []


def test_pages_of_all_results_are_accessible(opens: Opens, documents: dict[str, doc.Document]) -> None:
    """A dozen results on a page: most of the time of a check goes by the page."""
    names = list(documents)
    for kinds in (names[:13], names[13:26], names[26:]):
        opened = opens(render(tuple(block for kind in kinds for block in documents[kind]), " ".join(kinds)))
        assert (kinds, opened.violations(), opened.complaints) == (kinds, [], [])


def test_a_page_fits_its_window(opens: Opens, documents: dict[str, doc.Document]) -> None:
    for content in (
        document(2),
        documents["comparison"],
        documents["diagnosis"],
        documents["audit"],
        documents["alignments"],
    ):
        opened = opens(render(content, "kn5"))
        for width in (320, 480, 768, 1280, 1920):
            opened.page.set_viewport_size({"width": width, "height": 900})
            assert (width, opened.is_wider_than_its_window()) == (width, False)


def test_nothing_of_a_text_is_markup(opens: Opens) -> None:
    opened = opens(render(document(), "x"), fragment="#s5")
    text = opened.page.locator("#s5 .text")
    assert "<script>alert(1)</script> &" in text.inner_text()
    assert "{{ 7 }}" in text.inner_text()
    assert opened.complaints == []


def test_a_run_of_a_candidate_is_colored_by_its_divergence(opens: Opens) -> None:
    one = passage(1, "a b c")
    spans = replace(one.spans[0], columns={"kl": np.array([0.0, 0.006, 0.012, np.inf])})
    opened = opens(render((doc.Passages((replace(one, spans=(spans,)),), ("q4",), {"class": CLASSES}),), "q4"))
    opened.page.locator(".passage .text > span").first.wait_for()
    shades = "[...document.querySelectorAll('.passage .text > span')].map((e) => e.className)"
    by_cost = opened.page.evaluate(shades)
    opened.page.evaluate("document.querySelector('input[value=\"kl0\"]').click()")
    opened.page.locator(".legend", has_text="KL divergence from the base").wait_for()
    opened.page.wait_for_function(f"() => JSON.stringify({shades}) !== '{json.dumps(by_cost, separators=(',', ':'))}'")
    assert [name.split()[0] if name else "" for name in opened.page.evaluate(shades)] == ["", "c6", "c12", "c12"]
    about = "document.querySelectorAll('.passage .text > span')[2].about().join(' ')"
    assert "KL from the base: 0.012 bits" in opened.page.evaluate(about)
    assert opened.complaints == []


def test_texts_stay_whole_when_they_are_colored(opens: Opens) -> None:
    opened = opens(render(document(2), "x"))
    for color in ("difference", "0", "1"):
        opened.page.evaluate(f"document.querySelector('input[value=\"{color}\"]').click()")
        for i, text in enumerate(TEXTS[:4], 1):
            opened.page.locator(f"#s{i}").scroll_into_view_if_needed()
            opened.page.locator(f"#s{i} .text > span").first.wait_for()
            assert opened.page.locator(f"#s{i} .text").text_content() == text


def wait_for_count(page: Any, text: str) -> None:
    """Wait until the page says how many segments it shows: a change of the address is heard of after the click."""
    page.wait_for_function("text => document.querySelector('output').innerText === text", arg=text)


def test_an_address_shows_the_examples_of_a_slice(opens: Opens) -> None:
    opened = opens(render(document(), "x"), fragment="#cut=class&is=number")
    page = opened.page
    wait_for_count(page, "1 of 5 segments")
    assert page.locator("#s1 .is").inner_text() == "sat"
    page.locator("button", has_text="Show all").click()
    wait_for_count(page, "5 segments")


def test_every_mark_and_row_leads_to_its_examples(opens: Opens) -> None:
    page = opens(render(document(), "x")).page
    targets = {link.get_attribute("href") for link in page.locator("table a").all()}
    targets |= {link.get_attribute("href") or link.get_attribute("xlink:href") for link in page.locator("svg a").all()}
    assert {"#cut=class&is=word", "#cut=class&is=number"} <= targets
    page.locator("table a", has_text="number").click()
    wait_for_count(page, "1 of 5 segments")


def test_a_segment_has_an_address(opens: Opens) -> None:
    page = opens(render(document(), "x"), fragment="#s3").page
    assert page.evaluate("document.querySelector('#s3').getBoundingClientRect().top < innerHeight")
    assert page.locator("#s3 .anchor").get_attribute("href") == "#s3"


def test_filters_narrow_what_is_shown(opens: Opens) -> None:
    page = opens(render(document(), "x")).page
    page.locator('[data-control="why"]').select_option("worst")
    wait_for_count(page, "2 of 5 segments")
    page.locator('[data-control="why"]').select_option("")
    page.locator('[data-control="text"]').fill("日本語")
    assert page.locator(".passage:visible").count() == 1


def test_tokens_tell_what_they_cost_by_keyboard(opens: Opens) -> None:
    page = opens(render(document(), "x"), fragment="#s1").page
    page.locator("#s1 .text > span").first.wait_for()
    page.locator("#s1 .text").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    told = page.locator("#tip").inner_text()
    assert '" cat"' in told
    assert "rank: 2" in told
    assert "entropy: 2.50 bits" in told
    assert 'most probable: "dog" 0.5, "<i>cat</i>" 0.25' in told.splitlines()  # what cannot come is left out
    page.keyboard.press("ArrowLeft")
    assert "entropy" not in page.locator("#tip").inner_text()  # it is not known there
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_all_that_can_be_used_is_reached_by_tab(opens: Opens) -> None:
    page = opens(render(document(2), "x")).page
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(FOCUSED))
    kinds = " ".join(reached)
    for kind in ("A  skip", "BUTTON button", "SELECT select-one", "INPUT search", "INPUT radio", "P  text", "A  anchor"):
        assert kind in kinds


def test_a_click_on_a_head_sorts(opens: Opens) -> None:
    page = opens(render(document(), "x")).page
    page.locator("th button", has_text="bits/byte").click()
    assert page.locator("tbody tr th").all_inner_texts() == ["other", "number", "word"]
    page.locator("th button", has_text="bits/byte").click()
    assert page.locator("tbody tr th").all_inner_texts() == ["word", "number", "other"]


def test_a_printed_page_is_light_and_colored(opens: Opens) -> None:
    page = opens(render(document(2), "x"), dark=True).page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".passage .text > span").count() > 20
    assert page.locator("nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf()) > 10_000


def test_without_a_script_the_text_is_there(browser: Any, tmp_path: Any) -> None:
    file = tmp_path / "page.html"
    file.write_text(render(document(), "x"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#s1 .text").inner_text() == TEXTS[0]
    assert page.locator("svg").first.is_visible()
    context.close()


def folded() -> str:
    """A page whose table and text are folded."""
    content = [replace(block, folded=True) if isinstance(block, doc.Heading) else block for block in document()]
    return render(content, "x", (("test text", "test.txt"), ("command", "lmgauge report run --train a.txt")))


def test_folded_parts_open_by_the_button_and_by_what_leads_into_them(opens: Opens) -> None:
    page = opens(folded()).page
    assert page.locator("details.fold").count() == 3
    assert page.locator("table").is_hidden()
    page.locator("#unfold").click()
    assert page.locator("details.fold[open]").count() == 3
    assert page.locator("#unfold").inner_text() == "Close all"
    for address in ("#s3", "#cut=class&is=number"):
        opened = opens(folded(), fragment=address)
        opened.page.locator("details.fold[open] .passages").wait_for()
        assert opened.page.locator("details.fold[open]").count() == 1
        assert (opened.violations(), opened.complaints) == ([], [])
    assert opens(folded(), fragment="#part-1").page.locator("details.fold[open] table").is_visible()


def test_what_is_folded_is_printed_where_it_is_open(opens: Opens) -> None:
    page = opens(folded()).page
    page.emulate_media(media="print")
    assert page.locator("table").is_hidden()
    page.evaluate("document.querySelector('details.fold').open = true")
    assert page.locator("table").is_visible()
    assert page.locator(".copy").first.is_hidden()


def test_a_table_is_copied_for_papers_and_programs(opens: Opens) -> None:
    cells = ("a|b", "50 % & more", r"x_1 \|*_`[]~#<>&%$#{}^–≥∞×σ")
    columns = (
        doc.labels("name", cells),
        doc.numbers("bits", (1234.5678901, None, -2.0), 2),
        doc.Column("interval", [doc.Range(0.5, 1.25, 2)] * 3),
        doc.numbers("share", (0.25, 0.5, 1.0), 1, "percent"),
    )
    opened = opens(render((doc.Table(columns, "t"),), "x"))
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copied = {}
    for name in ("Markdown", "LaTeX", "CSV"):
        button = opened.page.get_by_role("button", name=name)
        button.focus()
        opened.page.keyboard.press("Enter")
        opened.page.get_by_role("button", name="copied").wait_for()
        copied[name] = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
        button.wait_for()
    for name in ("Markdown", "LaTeX"):  # as the command line prints it
        assert copied[name] == as_tables([doc.Table(columns)], name.lower()).splitlines()
    assert r"| a\|b | 1,234.57 | 0.50 – 1.25 | 25.0 % |" in copied["Markdown"]
    assert copied["CSV"][1:3] == ["a|b,1234.5678901,0.50 – 1.25,25.0 %", "50 % & more,,0.50 – 1.25,50.0 %"]
    assert opened.complaints == []


def test_labels_of_charts_can_be_read_on_a_phone(opens: Opens) -> None:
    page = opens(render(document(2), "x"), width=390).page
    drawn = page.locator("svg.chart").first
    scale = drawn.evaluate("e => e.getBoundingClientRect().width / e.viewBox.baseVal.width")
    assert 12 * scale >= 9.9


def test_an_option_and_a_percentage_stay_on_one_line(opens: Opens) -> None:
    page = opens(render((doc.Text("x " * 30 + "--document a 95 % b", note=True),), "x"), width=320).page
    for width in range(320, 480, 16):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator(".option").evaluate("e => e.getClientRects().length") == 1
    assert "95\N{NO-BREAK SPACE}%" in page.content().replace("&nbsp;", "\N{NO-BREAK SPACE}")


def test_a_chart_that_stands_alone_is_wide_where_there_is_room(opens: Opens) -> None:
    series = doc.Series("a", ("x", "y"), (1.0, 2.0))
    content = render((doc.Heading("h"), doc.ChartData("c", "t", "x", "y", "bits", (series,), kind="bars")), "x")
    widths = []
    for width in (1280, 390):
        page = opens(content, width=width).page
        drawn = page.locator("#chart-c svg:visible")
        assert drawn.count() == 1
        title, box = page.locator("figcaption").bounding_box(), drawn.bounding_box()
        assert title["y"] + title["height"] <= box["y"]
        widths.append(box["width"])
    assert widths[0] > 700 > 390 > widths[1]


def test_a_narrow_window_shows_that_tables_go_on_and_no_legend_hides_the_text(opens: Opens) -> None:
    table = doc.Table(tuple(doc.Column(f"column {i}", ("1,234,567",)) for i in range(8)))
    for width, position in ((1280, "sticky"), (390, "static")):
        page = opens(render((table, *document()), "x"), width=width).page
        assert page.locator(".legend").first.evaluate("e => getComputedStyle(e).position") == position
        attached = page.locator(".scroll").first.evaluate("e => getComputedStyle(e).backgroundAttachment")
        assert attached == "local, local, scroll, scroll"
