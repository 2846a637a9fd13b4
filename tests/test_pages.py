"""The pages of docs/: their options exist, their links lead somewhere, the examples of docs/python.md run as written."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from lmgauge.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
OTHER_PROGRAMS = {"--index-url", "--inplace", "--nproc-per-node", "--paired-ar", "--paired-bs", "--tasks"}
OF_BENCHMARKS = {"--copies", "--line-words", "--train-words"}


def options_of_all_commands() -> set[str]:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in cli.list_commands(context)]
    parameters = [parameter for command in commands if command for parameter in command.params]
    return {"--help", "--version"} | {word for one in parameters for word in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_on_the_pages_exist(page: Path) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", page.read_text(encoding="utf-8")))
    assert named - options_of_all_commands() - OTHER_PROGRAMS - OF_BENCHMARKS == set()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([\w./-]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
        if not anchor:
            continue
        text = (page.parent / (target or page.name)).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        assert anchor in slugs, f"{page.name}: {target}#{anchor}"


def test_the_examples_from_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in a folder with the texts that the page names."""
    for library in ("pandas", "jinja2", "vl_convert"):
        pytest.importorskip(library)
    lines = (ROOT / "tests" / "data" / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("train", lines[:2000]), ("valid", lines[2000:2200]), ("test", lines[2200:2500])):
        (tmp_path / f"{name}.txt").write_text("".join(part), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.M | re.S
    ):
        exec(block, names)
    assert round(names["coin"].score_text("a b a").perplexity, 2) == 1.89  # type: ignore[attr-defined]
    assert {path.name for path in tmp_path.iterdir()} >= {"run-kn3", "run-wb3", "tokens.tsv", "segments.jsonl", "both.html"}
