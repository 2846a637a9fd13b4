"""The pages of the book: their commands and statements run, and print what the pages say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from docs import examples
from docs.examples import BOOK, ROOT, Page, agrees, refresh, stage

PAGES = [page for path in sorted(BOOK.rglob("*.md")) if (page := Page.read(path)).examples]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(BOOK)))
def test_examples_print_what_the_page_says(page: Page, tmp_path: Path) -> None:
    if missing := page.missing():
        pytest.skip(f"needs {', '.join(missing)}")
    if "torch" in page.needs and not draws_the_weights_of_the_pages():
        pytest.skip("needs a processor with AVX2: on others torch draws other random weights")
    stage(tmp_path)
    for example, printed in page.run(tmp_path):
        place = f"{page.path.name}:{example.line}: {example.source}\n"
        assert example.hidden or agrees(example.expected, printed), f"{place}prints\n{printed}\n{HOW}"


def draws_the_weights_of_the_pages() -> bool:
    """Return True where torch fills tensors with random numbers in the order of AVX2, as it did for the pages."""
    import torch

    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


HOW = "if that is right: python docs/examples.py PAGE"


def test_what_an_example_prints_is_written_into_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "% $ echo one > hidden.txt\n\n```console\n$ cat hidden.txt\n$ echo two; \\\n    echo three\nold\\\nmore\n```\n\n"
        "```pycon\n>>> for x in (1, 2):\n...     x\n>>> 1 / 0\n\n>>> print('a\\n\\nb')\nold\n\nlines\n```\n",
        encoding="utf-8",
    )
    assert refresh(page)
    assert page.read_text(encoding="utf-8") == (
        "% $ echo one > hidden.txt\n\n```console\n$ cat hidden.txt\none\n$ echo two; \\\n    echo three\ntwo\nthree\n```\n\n"
        "```pycon\n>>> for x in (1, 2):\n...     x\n1\n2\n>>> 1 / 0\n"
        "Traceback (most recent call last):\n    ...\nZeroDivisionError: division by zero\n\n"
        ">>> print('a\\n\\nb')\na\n\nb\n```\n"
    )
    assert not refresh(page)


@pytest.mark.parametrize(
    ("expected", "printed", "agree"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one\n...\n", "one\ntwo\nthree\n", True),
        ("...\nthree\n", "three\n", True),
        ("took ... s\n", "took 0.25 s\n", True),
        ("one\n", "one\ntwo\n", False),
        ("1.50\n", "1x50\n", False),
        ("", "one\n", False),
    ],
)
def test_dots_stand_for_what_differs(expected: str, printed: str, agree: bool) -> None:
    assert agrees(expected, printed) is agree


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report")
    stage(tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    exec(block, {"__name__": "readme"})
    assert (tmp_path / "both.html").stat().st_size > 100_000


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 105


def test_examples_of_the_runner_itself() -> None:
    results = doctest.testmod(examples)
    assert results.attempted > 1
    assert results.failed == 0
