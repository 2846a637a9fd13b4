"""What holds for every document: nothing drives the terminal, lines fit, and what does not fit is named."""

from __future__ import annotations

import ast
import io
import re
import sys
from pathlib import Path
from typing import get_args

import pytest
from tests.report.conftest import BUILDERS, HOSTILE

from lmgauge.report import terminal
from lmgauge.report.blocks import Block, Column, Document, Lines, Mark, Signature, Table
from lmgauge.report.terminal import as_text, show

KINDS = tuple(BUILDERS)
FOLDER = Path(terminal.__file__).parent
# The narrowest each table becomes: titles and numbers are never cut.
LEAST = 72


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_documents_fit_and_drive_no_terminal(documents: dict[str, Document], kind: str, width: int) -> None:
    shown = as_text(documents[kind], width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", shown)
    signatures = {block.text for block in documents[kind] if isinstance(block, Signature)}
    wide = [line for line in shown.splitlines() if len(line) > max(width, LEAST) and line not in signatures]
    assert wide == []
    assert all(line == line.rstrip() for line in shown.splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_markup_is_text(documents: dict[str, Document], kind: str) -> None:
    assert "[bold]" in as_text(documents[kind], 240)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_letters_where_the_terminal_has_no_others(
    documents: dict[str, Document], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    show(documents[kind])
    out.flush()
    assert out.buffer.getvalue().decode("ascii").count("\n") > 2  # type: ignore[attr-defined]
    assert as_text(documents[kind]).isascii()


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_shown_or_named(documents: dict[str, Document], kind: str) -> None:
    for table in documents[kind]:
        if isinstance(table, Table) and table.rows:
            droppable = [column for column in table.columns if column.drop and column.title.isascii()]
            head, _, note = as_text([table], 60).replace("\n", " ").partition("not shown at this width: ")
            for column in droppable:
                assert all(word in head for word in column.title.split()) or column.title in note


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_data(documents: dict[str, Document], kind: str) -> None:
    for block in documents[kind]:
        assert not isinstance(block, str)
        for column in block.columns if isinstance(block, Table) else ():
            assert len(column.cells) == len(block.rows)


def test_foreign_names_stay_as_they_are_in_blocks(documents: dict[str, Document]) -> None:
    table = documents["tasks"][0]
    assert isinstance(table, Table)
    assert table.columns[0].cells[0] == HOSTILE


def test_every_report_is_rendered_here() -> None:
    """A new module of `report` with a function `blocks` needs a row in `BUILDERS` of conftest.py."""
    modules = [path for path in FOLDER.glob("*.py") if "\ndef blocks(" in path.read_text("utf-8")]
    assert sorted(path.stem for path in modules if path.stem not in BUILDERS) == []


def test_every_kind_of_block_is_rendered_here(documents: dict[str, Document]) -> None:
    shown = {type(block) for document in documents.values() for block in document}
    assert {kind.__name__ for kind in get_args(Block)} - {kind.__name__ for kind in shown} == set()


RENDERERS = {"terminal.py", "pipe.py", "page.py", "documents.py", "progress.py"}


def test_no_builder_knows_a_renderer() -> None:
    for path in FOLDER.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        imported = " ".join(ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
        assert path.name in RENDERERS or not re.search(r"\brich\b|jinja2|report\.(terminal|pipe|page|documents)", imported)


def test_tables_without_rows_and_documents_without_blocks_are_nothing() -> None:
    assert as_text([]) == ""
    assert as_text([Table((Column("a", ()),), "title"), Lines(())]) == ""


def test_verdicts_are_never_cut() -> None:
    table = Table((Column("", ("a" * 90,), align="left"), Column("", (Mark("NOT CHECKED", "unknown"),), align="left")))
    assert "NOT CHECKED" in as_text([table], 20)
