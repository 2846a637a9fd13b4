"""What pages say that lmgauge does not do is looked for: a sentence that denies an ability does not outlive its coming.

A section "What lmgauge does not do" begins with a comment for each of its entries, which names what would do it:

    % absent: bleu --latex, command lattice, choice natural, lmgauge.tasks.rouge
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import click
import pytest
from docs.examples import BOOK

import lmgauge
from lmgauge.cli.commands import COMMANDS
from lmgauge.cli.main import cli

HEADING = "## What lmgauge does not do\n"
PAGES = [path for path in sorted(BOOK.rglob("*.md")) if HEADING in path.read_text(encoding="utf-8")]
NOTHING = "nothing that an option would do"


def options(name: str) -> Iterator[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"no command {name}"
    for parameter in command.params:
        yield from parameter.opts
        yield from parameter.secondary_opts
        yield from getattr(parameter.type, "choices", ())


def exists(what: str) -> bool:
    """Return True if a command, an option, a choice of any option, or a public name is there.

    >>> exists("train --memory"), exists("command multiple-choice"), exists("lmgauge.tasks.bleu"), exists("choice mle")
    (True, True, True, True)
    >>> exists("train --soup"), exists("--given"), exists("lmgauge.Corpus.from_strings"), exists("lmgauge.soup")
    (False, True, True, False)
    """
    first, _, rest = what.rpartition(" ")
    if first == "command":
        return rest in COMMANDS
    if first == "choice" or (not first and rest.startswith("--")):
        return any(rest in options(name) for name in COMMANDS)
    if rest.startswith("--"):
        return rest in options(first)
    assert rest.startswith("lmgauge."), f"{what}: name a command, an option, a choice or a public name"
    try:
        reduce(getattr, rest.split(".")[1:], lmgauge)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("what", ["train --memory", "command pairs", "lmgauge.tasks.bleu", "choice mle", "--given"])
def test_what_is_there_is_found(what: str) -> None:
    assert exists(what)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_denies_is_not_there(path: Path) -> None:
    section = path.read_text(encoding="utf-8").partition(HEADING)[2]
    named = re.findall(r"^% absent: (.+)$", section, re.MULTILINE)
    entries = re.findall(r"^\* ", section, re.MULTILINE)
    assert len(named) == len(entries), "give a comment for each entry"
    for what in (one for line in named if line != NOTHING for one in line.split(", ")):
        assert not exists(what), f"{path.name} says that lmgauge does not do this, and it does: {what}"


def test_every_page_for_users_of_another_tool_says_what_is_not_there() -> None:
    assert {path.name for path in (BOOK / "coming-from").glob("*.md")} == {path.name for path in PAGES} | {"index.md"}
