"""What a pipe gets: rows for programs, all columns, nothing cut, and remarks that begin with a sign."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Literal

import pytest
from tests.cli.commands import TERMINAL, ok, run
from tests.report.conftest import BUILDERS, HOSTILE

import lmgauge
from lmgauge.report.blocks import (
    Bar,
    Column,
    Document,
    Heading,
    Lines,
    Mark,
    Signature,
    Table,
    Tokens,
    labels,
    notes,
    numbers,
)
from lmgauge.report.terminal import as_text
from lmgauge.report.tsv_renderer import as_rows, as_tables


@pytest.mark.parametrize("kind", tuple(BUILDERS))
def test_every_table_has_all_its_columns_in_every_row(documents: dict[str, Document], kind: str) -> None:
    for block in documents[kind]:
        if isinstance(block, Table) and block.rows:
            lines = [line for line in as_rows([block]).splitlines() if not line.startswith("# ")]
            shown = [column for column in block.columns if not isinstance(column.cells[0], Bar)]
            assert [line.count("\t") for line in lines] == [len(shown) - 1] * (len(block.rows) + 1)


@pytest.mark.parametrize("kind", tuple(BUILDERS))
def test_a_pipe_gets_no_control_characters(documents: dict[str, Document], kind: str) -> None:
    shown = as_rows(documents[kind])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", shown)
    assert shown == "" or shown.endswith("\n")


def test_what_is_not_a_row_begins_with_a_sign() -> None:
    bars, marks = Column("", (Bar(0.5),)), Column("v", (Mark("PASS", "good"),))
    columns = (labels("model", ["a\tb"]), numbers("bits", [1234.5], 1), bars, marks)
    table = Table(columns, "title", footnotes=("below",))
    assert as_rows([Heading("what"), table, *notes(["note"]), Signature("sig")]).splitlines() == [
        "# what", "", "# title", "model\tbits\tv", "a⇥b\t1,234.5\tPASS", "# below", "", "# note", "# sig",
    ]  # fmt: skip


def test_names_and_values_have_a_tab_between_them() -> None:
    assert as_rows([Lines((("one", "1"), ("two", ("a", "b"))))]) == "one\t1\ntwo\ta\ntwo\tb\n"


def test_texts_are_not_cut() -> None:
    tokens = Tokens(("before " * 90, " meant", " after" * 90), 1)
    assert as_rows([Table((Column("text", (tokens,), align="left"),))]).splitlines()[1] == (
        "before " * 90 + " »meant«" + " after" * 90
    )


def test_numbers_are_those_of_a_terminal(documents: dict[str, Document]) -> None:
    for table in (block for block in documents["evaluations"] if isinstance(block, Table)):
        first = as_rows([table]).splitlines()[2].split("\t")
        assert " ".join(first[1:]) in re.sub(r" +", " ", as_text([table], 1000))
    assert HOSTILE not in as_rows(documents["evaluations"])


def test_cut_takes_a_column(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c\nb c a\n" * 20)
    lmgauge.train("laplace", text, order=2).save(tmp_path / "lp")
    lines = [line for line in ok("eval", "-m", tmp_path / "lp", text).stdout.splitlines() if line[:1] not in ("#", "")]
    assert [line.split("\t")[1] for line in lines] == [
        "perplexity",
        f"{lmgauge.evaluate(tmp_path / 'lp', text).perplexity:.2f}",
    ]
    shown = run("eval", "-m", tmp_path / "lp", text, env=TERMINAL).stdout
    assert "\t" not in shown
    assert "───" in shown


TABLE = Table((labels("na_me", ["a|b & 5 %", 'say "x", y']), numbers("n", [-1234.5, None], 1, "signed")), "by $x$")


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("csv", ["na_me,n", "a|b & 5 %,-1234.5", '"say ""x"", y",–']),
        (
            "markdown",
            ["by $x$", "", "| na\\_me | n |", "| :-- | --: |", "| a\\|b &amp; 5 % | -1,234.5 |", '| say "x", y | – |'],
        ),
        (
            "latex",
            [
                "% by $x$",
                r"\begin{tabular}{lr}",
                r"\toprule",
                r"na\_me & n \\",
                r"\midrule",
                r"a$|$b \& 5 \% & $-$1,234.5 \\",
                r'say "x", y & -- \\',
                r"\bottomrule",
                r"\end{tabular}",
            ],
        ),
    ],
)
def test_tables_alone_in_other_forms(form: Literal["csv", "latex", "markdown"], lines: list[str]) -> None:
    remarks = (Heading("x"), *notes(["below"]), Signature("ppl|v:1"))
    assert as_tables([TABLE, *remarks], form).split("\n") == lines
    starred = as_tables([TABLE, *notes(["BLEU: * differs from a at 5 % (paired)."])], form)
    assert starred.split("\n") == lines + ["", "% BLEU: * differs from a at 5 % (paired)."] * (form == "latex")
    both = as_tables([TABLE, Lines((("name", ("a", "b")),)), Table((labels("none", []),))], form)
    pairs = {"csv": "name,a; b", "markdown": "|  |  |\n| :-- | :-- |\n| name | a; b |"}
    pairs["latex"] = "\\begin{tabular}{ll}\n\\toprule\nname & a; b \\\\\n\\bottomrule\n\\end{tabular}"
    assert both == "\n".join(lines) + "\n\n" + pairs[form]


@pytest.mark.parametrize("kind", tuple(BUILDERS))
@pytest.mark.parametrize("form", ["csv", "latex", "markdown"])
def test_other_forms_hold_no_markup_of_names(
    documents: dict[str, Document], kind: str, form: Literal["csv", "latex", "markdown"]
) -> None:
    shown = as_tables(documents[kind], form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", shown)
    if form == "csv":
        assert list(csv.reader(io.StringIO(shown), strict=True)) is not None
    if form == "markdown":
        assert not re.search(r"(?<!\\)<", shown)
    if form == "latex":
        rows = [line for line in shown.splitlines() if line.endswith("\\\\")]
        assert not any(re.search(r"(?<!\\)[%#_]", row) for row in rows)
