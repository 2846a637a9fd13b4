"""The explorer in a browser: it searches, sorts, pages and scores; without a complaint, or a request to elsewhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Opened
from tests.explore.conftest import TOKEN, corpus, models, texts

import lmgauge
from lmgauge.explore.launch import address_of, open_explorer
from lmgauge.explore.server import application, bound_socket

uvicorn = pytest.importorskip("uvicorn", reason="the extra explore is not installed")
Opens = Callable[..., Opened]


@contextlib.contextmanager
def address(*paths: Path, **options: Any) -> Iterator[str]:
    """A server in a thread; the address of its page."""
    explorer, own = open_explorer(list(paths), **options), bound_socket("127.0.0.1", 0)
    config = uvicorn.Config(application(explorer, TOKEN), http="h11", ws="none", lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]})
    thread.start()
    try:
        yield address_of(own, TOKEN)
    finally:
        server.should_exit = True
        thread.join(10)
        explorer.close()
        own.close()


@pytest.fixture(scope="module")
def two_runs(folder: Path) -> Iterator[str]:
    with address(folder / "a", folder / "b", model=models()["a"]) as where:
        yield where


def shown(opened: Opened) -> list[int]:
    """The numbers of the segments on the page."""
    numbers: list[int] = opened.page.eval_on_selector_all(
        "#passages .passage", "all => all.map(one => Number(one.dataset.segment))"
    )
    return numbers


def press(opened: Opened, selector: str) -> None:
    """Click what may move while answers come: a pointer could miss it."""
    opened.page.locator(selector).evaluate("element => element.click()")


def until(opened: Opened, text: str, selector: str = "#found") -> None:
    opened.page.wait_for_function(
        "([selector, text]) => document.querySelector(selector).textContent.includes(text)", arg=[selector, text]
    )


def test_a_walk(opens: Opens, two_runs: str) -> None:
    opened = opens(two_runs)
    page = opened.page
    until(opened, "300 segments")
    assert "token" not in page.url
    assert shown(opened) == list(range(20))
    assert page.locator("#s8 .text span").count() > 0  # painted
    press(opened, "nav >> text=Next >> nth=0")
    page.wait_for_selector("#s40")
    page.fill("[name=q]", "dog .*zebra")
    press(opened, "[name=regex]")
    expected = [i for i, text in enumerate(texts()) if "zebra" in text.partition("dog ")[2]]
    until(opened, f"{len(expected)} segments found")
    assert shown(opened) == expected[:20]
    until(opened, "a", "#numbers")
    page.select_option("[name=sort]", "difference")
    page.wait_for_function("() => document.querySelector('[name=falling]').checked")
    press(opened, "#clear")
    until(opened, "300 segments")
    page.fill("[name=segment]", "n123")
    press(opened, "#jump button")
    page.wait_for_selector("#s124.here")
    page.reload()  # the token is in a cookie now
    until(opened, "300 segments")
    page.fill("[name=q]", "((")
    press(opened, "[name=regex]")
    page.wait_for_selector("#problem:not([hidden])")
    assert "regular expression cannot be used" in page.inner_text("#problem")
    assert [complaint for complaint in opened.complaints if "400" not in complaint] == []


def test_a_candidate_is_colored_by_its_divergence(opens: Opens, folder: Path, tmp_path: Path) -> None:
    base, candidate = models().values()
    lmgauge.divergence(base, {"q": candidate}, corpus(folder / "text.jsonl"), events=None, output=tmp_path / "q")
    with address(tmp_path / "q") as where:
        opened = opens(where)
        until(opened, "300 segments")
        opened.page.wait_for_selector("#s8 .text span")
        shades = "[...document.querySelectorAll('#s8 .text > span')].map((e) => e.className)"
        by_cost = opened.page.evaluate(shades)
        press(opened, "#colors input[value=kl0]")
        until(opened, "KL divergence from the base", "#passages .legend")
        assert opened.page.evaluate(shades) != by_cost
        assert "KL from the base" in opened.page.evaluate("document.querySelector('#s8 .text > span').about().join(' ')")
        assert opened.complaints == []


def test_a_segment_names_its_file_without_the_folder(opens: Opens, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("the cat\na dog\n", encoding="utf-8")
    lmgauge.evaluate(models()["a"], tmp_path / "lines.txt", output=tmp_path / "run")
    with address(tmp_path / "run") as where:
        opened = opens(where)
        place = opened.page.wait_for_selector("#s2 .where")
        assert place is not None
        assert place.inner_text() == "lines.txt:2"
        assert place.get_attribute("title") == f"{tmp_path / 'lines.txt'}:2"


def test_typing(opens: Opens, two_runs: str) -> None:
    opened = opens(two_runs)
    opened.page.fill("#typing", "the cat <b>sees</b>\nit")
    until(opened, "bits in 6 events", "#typed-state")
    assert opened.page.locator("#typed-passages .passage").count() == 2
    opened.page.hover("#typed-passages .text span >> nth=1")
    opened.page.wait_for_selector("#tip:not([hidden])")
    told = opened.page.inner_text("#tip")
    assert "most probable" in told
    assert "entropy: " in told
    assert "rank: " in told
    assert opened.complaints == []


def test_anchors_lead_to_segments(opens: Opens, two_runs: str) -> None:
    opened = opens(two_runs, fragment="#s251")
    opened.page.wait_for_selector("#s251.here")
    assert opened.complaints == []


@pytest.mark.parametrize("width", [320, 768, 1920])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_is_accessible(opens: Opens, two_runs: str, width: int, dark: bool) -> None:
    opened = opens(two_runs, width=width, dark=dark)
    until(opened, "300 segments")
    opened.page.fill("[name=q]", "dog")
    opened.page.press("[name=q]", "Enter")
    until(opened, "found")
    until(opened, "perplexity", "#numbers")
    assert not opened.is_wider_than_its_window()
    assert opened.violations() == []
    assert opened.complaints == []


def test_the_report_is_a_link_away(opens: Opens, two_runs: str) -> None:
    opened = opens(two_runs)
    press(opened, "#report a")
    opened.page.wait_for_selector("footer")
    assert "position" in opened.page.content()
    assert opened.complaints == []
