"""The book as a site: built without a warning, with nothing loaded from elsewhere, links that lead somewhere, a search."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from docs.examples import BOOK
from docs.pictures import FOLDER, PICTURES, Picture, take
from tests.browser import Opened

TUTORIALS = sorted(path.stem for path in (BOOK / "tutorials").glob("*.md") if path.stem != "index")
_FOR_ALL = ("sphinx", "myst_nb", "furo", "sphinx_click", "sphinx_copybutton", "latex2mathml")
_FOR_ALL += ("vl_convert", "pandas", "constriction", "transformers", "accelerate", "kenlm")
OF_OTHERS = {"landmark-unique", "region", "scrollable-region-focusable", "empty-table-header"}
"""What axe-core has against furo, Sphinx and the tables of pandas, whatever is on the page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built book; a warning is an error, and all are shown."""
    for name in _FOR_ALL:
        pytest.importorskip(name, reason=f"the book needs {name}: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("book")
    home = {name: str(folder / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", "-d", folder / "trees", BOOK]
    done = subprocess.run(
        [*command, folder / "site"], capture_output=True, text=True, env=os.environ | home, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "site"


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if path.parent.name not in ("_static", "quickstart"))


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]*|<link\b[^>]*\bhref=\"(?:https?:)?//[^\"]*"
    )
    in_styles = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']*")
    elsewhere = [
        f"{page.name}: {match}" for page in pages(site) for match in loaded.findall(page.read_text(encoding="utf-8"))
    ]
    elsewhere += [
        f"{path.name}: {match}"
        for path in site.rglob("*.css")
        for match in in_styles.findall(path.read_text(encoding="utf-8"))
    ]
    assert elsewhere == []


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The files of the site that a page links to, and their anchors."""
    for target in re.findall(r"<a\b[^>]*\bhref=\"([^\"]*)\"", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = unescape(target).partition("#")
            yield unquote(path), unquote(anchor)


def test_docstrings_are_read_as_they_are_meant(site: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "reference" / "api").glob("*.html"))
    assert "Vartype" not in text  # a type apart from its attribute
    assert ">Return the natural log of the probability of the whole string: the sum of" in text  # not a type, and what it is


def test_links_lead_somewhere(site: Path) -> None:
    ids: dict[Path, set[str]] = {}
    broken = []
    for page in pages(site):
        for path, anchor in links(page):
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                broken.append(f"{page.name}: {path}")
            elif anchor and target.suffix == ".html":
                if target not in ids:
                    ids[target] = set(re.findall(r"\bid=\"([^\"]*)\"", target.read_text(encoding="utf-8")))
                if anchor not in {*map(unescape, ids[target])}:
                    broken.append(f"{page.name}: {path}#{anchor}")
    assert broken == []


def test_formulas_are_elements(site: Path) -> None:
    formula = re.compile(r"<math\b.*?</math>", re.DOTALL)
    formulas = [text for page in pages(site) for text in formula.findall(page.read_text(encoding="utf-8"))]
    names = {element.tag.rpartition("}")[2] for text in formulas for element in ElementTree.fromstring(text).iter()}
    assert {"math", "mtext", "mfrac"} <= names
    assert "unk" not in names


def test_an_example_is_at_most_two_clicks_away(site: Path) -> None:
    """From each page: it has one, or a page that it links to, or a page that one links to."""
    example = re.compile(r'class="[^"]*(?:highlight-console|highlight-pycon|cell_input)')
    near = {page for page in pages(site) if example.search(page.read_text(encoding="utf-8"))}
    for _ in range(2):
        near |= {
            page for page in pages(site) if any((page.parent / path).resolve() in near for path, _ in links(page) if path)
        }
    assert set(pages(site)) - near == set()


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_shows_a_chart_and_is_a_notebook(name: str, site: Path) -> None:
    page = (site / "tutorials" / f"{name}.html").read_text(encoding="utf-8")
    assert '<figure class="lmgauge chart"><svg' in page
    assert "<style>" not in page.split("<article", 1)[1]
    assert f'href="{name}.ipynb"' in page
    assert 'href="../texts.zip"' in page
    notebook = json.loads((site / "tutorials" / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert not any("stage()" in cell for cell in code)


SAYS = {
    "audit-a-claim": [
        "1,618 unknown tokens",
        "927.4498",
        "1,030.4998",
        "20.82702479",
        "100.00 %",
    ],
    "compare-checkpoints": ["p &lt; 0.0001", "end=newline"],
    "compare-models": ["-35.31 %", "Not comparable as a whole"],
    "first-hour": [
        *("1.40572", "trained on 46,938 events", "1,030.50   958.88 – 1,107.47", "not significant", "1,031.28"),
        *("bits per byte 1.8984 for bytes6", "All 8,597 events came back", "the bytes of 84 of 89 segments"),
    ],
    "kenlm-and-srilm": ["3,884 in both", "412.98", "1,618 events have probability zero", "Comparable: perplexity 1,084.01"],
    "look-into-a-corpus": ["en.txt", "5 of 65"],
    "spelled-words": ["1.6035", "1.8870", "1.7331", "1.7318", "p = 0.5435", "events came back from model and code alone"],
    "task-campaign": ["106.62", "* 0.0127", "* 0.0350", "forwardlooking -&gt; looking", "4.76", "5.83"],
    "teach-perplexity": [
        *("3.0855e-05", "2.32538", "16.16722", "5.77350", "(6.0, ", ">1.89<", ">2.75<", "0.8869, H(p, q) 0.8869", "2/21"),
        *("50.00", "2/7, BP 1.0000", "0.5)", "(1.405, 1.406)", "5.6250; of the text: 1.8946", "117.765", "6.393"),
    ],
}
"""What the text of a tutorial says that its cells print."""


@pytest.mark.parametrize("name", TUTORIALS)
def test_cells_print_what_the_text_of_a_tutorial_says(name: str, site: Path) -> None:
    page = (site / "tutorials" / f"{name}.html").read_text(encoding="utf-8")
    printed = re.sub(r"</?(?:span|strong)\b[^>]*>", "", "".join(page.split('<div class="cell_output')[1:]))
    assert [what for what in SAYS.get(name, []) if what not in printed] == []


def test_losses_of_the_trainer_are_those_of_the_callback(site: Path) -> None:
    page = (site / "tutorials" / "compare-checkpoints.html").read_text(encoding="utf-8")
    rows = [
        [float(cell) for cell in re.findall(r"<td>([\d.]+)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    ]
    logs = [row for row in rows if len(row) == 3]
    assert len(logs) == 8
    assert all(abs(loss - words) < 0.0011 for loss, _, words in logs[:4])  # trained without newlines
    assert logs[3][0] < logs[2][0]  # the trap: one falls, the other rises
    assert logs[3][1] > logs[2][1]
    assert all(abs(loss - lines) < 0.0011 for loss, lines, _ in logs[4:])  # trained with them


@pytest.mark.parametrize("address", ["index.html", "tutorials/first-hour.html", "reference/errors.html", "glossary.html"])
def test_pages_in_a_browser(address: str, site: Path, browses: Callable[..., Opened]) -> None:
    for width, dark in ((1280, False), (390, True)):
        opened = browses(site / address, width=width, dark=dark)
        assert not opened.is_wider_than_its_window()
        assert opened.complaints == []
        assert {rule.split(":")[0] for rule in opened.violations()} - OF_OTHERS == set()


def test_search_works_without_a_server(site: Path, browses: Callable[..., Opened]) -> None:
    opened = browses(site / "search.html", query="?q=perplexity")
    results = opened.page.locator("ul.search li a")
    results.nth(5).wait_for()  # they come one after another
    assert results.count() > 5


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_show_what_the_pages_say(picture: Picture, site: Path, browser: Any) -> None:
    _, text = take(browser, site, picture)
    assert text == (FOLDER / f"{picture.name}.txt").read_text(encoding="utf-8"), f"python docs/pictures.py {site}"


@pytest.fixture
def browses(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Open a file of the site."""
    contexts = []

    def browses(path: Path, *, width: int = 1280, dark: bool = False, query: str = "") -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
        contexts.append(context)
        opened = Opened(context.new_page(), "file:")
        opened.page.goto(path.as_uri() + query)
        return opened

    yield browses
    for context in contexts:
        context.close()
