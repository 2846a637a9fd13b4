"""The pages of docs/: their options exist, the pages of tasks begin with what runs, the extras are all named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from lmgauge.cli.commands import COMMANDS
from lmgauge.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
NOT_OF_USERS = ("data", "contributing")
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name not in NOT_OF_USERS),
]
TASKS = [path for path in PAGES if path.parent.name == "how-to" and path.name != "index.md"]
OTHER_PROGRAMS = {
    "--array",  # of sbatch
    "--dependency",
    "--extra-index-url",
    "--inplace",
    "--gres",
    "--job-name",
    "--kl-divergence",
    "--log",  # of --log_samples
    "--name-only",
    "--nproc-per-node",
    "--output-dir",
    "--paired-ar",
    "--paired-bs",
    "--parsable",
    "--tasks",
    "--time",
    "--upgrade",
    "--wrap",
}
OF_BENCHMARKS = {"--copies", "--line-words", "--train-words"}
OF_FUZZING = {"--index", "--minutes", "--record"}
PYTHON_ONLY = {"filter-in-a-pipeline.md", "read-a-chart.md", "use-a-notebook.md", "write-your-own-metric.md"}
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
_COMMAND = re.compile(rf"\blmgauge ({'|'.join(COMMANDS)})\b((?:[^\n`|;&#]|\\\n)*)")


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command
    return {"--help", "--help-all"} | {word for one in command.params for word in (*one.opts, *one.secondary_opts)}


OPTIONS = {name: options_of(name) for name in COMMANDS}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_the_pages_have_these_options(page: Path) -> None:
    calls = _COMMAND.findall(page.read_text(encoding="utf-8"))
    assert [(name, option) for name, rest in calls for option in _OPTION.findall(rest) if option not in OPTIONS[name]] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "coming-from"], ids=name_of)
def test_options_on_the_pages_exist(page: Path) -> None:
    """Except on pages about other tools, which have options of their own."""
    known = {"--version", *OTHER_PROGRAMS, *OF_BENCHMARKS, *OF_FUZZING}.union(*OPTIONS.values())
    assert set(_OPTION.findall(page.read_text(encoding="utf-8"))) - known == set()


@pytest.mark.parametrize("page", TASKS, ids=name_of)
def test_the_first_screen_of_a_task_has_the_command_and_the_call(page: Path) -> None:
    top = page.read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.search(r"^```(pycon|python|\{code-cell\})$", top, re.MULTILINE)
    assert page.name in PYTHON_ONLY or re.search(r"^```(console|sh)$", top, re.MULTILINE)


def test_all_extras_are_on_the_page_about_installing() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(extras)


def test_links_of_the_readme_lead_somewhere() -> None:
    """Those within the book are checked when it is built."""
    for target in re.findall(r"\]\((?!http)([\w./-]+)(?:#[\w-]+)?\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
