"""Blocks in a pipe or a file: rows that other programs read, with a tab between cells; tables alone in other forms.

* A table is its titles, then a line for each row, with all columns, nothing cut and no bars: `lmgauge eval ... | cut -f2`.
* Names and values are a line for each value: name, tab, value.
* What people read beside the numbers (headings, verdicts, notes, signatures) begins with "# ": `grep -v '^#'` drops it, and
  `pandas.read_csv(file, sep="\\t", comment="#")` reads a document with one table.
* Alignments are as in a terminal, their lines unbroken.

Numbers are written as in a terminal; `--json` has full precision. A tab in a name or a text is shown by a sign.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import assert_never

from lmgauge.base.escaping import readable, visible_on_page
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_column

_REMARK = "# "
_INDENT = "    "
_MARKS = ("»", "«"), ("⟦", "⟧"), ("[", "]"), ("{", "}"), ("<<", ">>"), ("[[", "]]")

MARKDOWN = {sign: f"\\{sign}" for sign in "\\|*_`[]~#"} | {"<": "&lt;", "&": "&amp;"}
LATEX = (
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"⏎": " ", "␍": " ", "⇥": " ", "\N{REPLACEMENT CHARACTER}": "?"}
    | {"<": "$<$", ">": "$>$", "|": "$|$", "≥": r"$\geq$", "∞": r"$\infty$", "×": r"$\times$", "σ": r"$\sigma$"}
)
"""What stands for a sign in a table; a page has both tables for what is copied."""
_MARKDOWN, _LATEX = str.maketrans(MARKDOWN), str.maketrans(LATEX)


def as_tables(document: Iterable[doc.Block], form: str) -> str:
    """Return the tables of a document alone as csv, latex or markdown; names and values are a table without titles.

    >>> print(as_tables([doc.Table((doc.labels("a_b", ["x"]), doc.numbers("n", [1200.0], 1)))], "markdown"))
    | a\\_b | n |
    | :-- | --: |
    | x | 1,200.0 |
    """
    write = {"csv": _as_csv, "latex": _as_latex, "markdown": _as_markdown}[form]
    tables = [_paired(block) if isinstance(block, doc.Lines) else block for block in document]
    parts = ["\n".join(write(table)) for table in tables if isinstance(table, doc.Table) and table.rows]
    # A sign in the table goes with the words that explain it.
    notes = [block.text for block in tables if isinstance(block, doc.Text) and re.match(r"(?:.*: )?\* ", block.text)]
    parts += ["\n".join(f"% {readable(text)}" for text in notes)] if notes and form == "latex" else []
    return "\n\n".join(parts)


def _paired(lines: doc.Lines) -> doc.Table:
    values = [value if isinstance(value, str) else "; ".join(value) for _, value in lines.pairs]
    return doc.Table((doc.labels("", [name for name, _ in lines.pairs]), doc.labels("", values)))


def _as_csv(table: doc.Table) -> list[str]:
    # Numbers have no commas between thousands.
    heads, *rows = _texts(table, bare=True)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([heads] * any(heads) + rows)
    return out.getvalue().splitlines()


def _as_markdown(table: doc.Table) -> Iterator[str]:
    heads, *rows = _texts(table)
    if table.title:
        yield from (readable(table.title).translate(_MARKDOWN), "")
    sides = [":--" if column.align == "left" else "--:" for column in _shown(table)]
    for row in (heads, sides, *rows):
        yield f"| {' | '.join(row if row is sides else [cell.translate(_MARKDOWN) for cell in row])} |"


def _as_latex(table: doc.Table) -> Iterator[str]:
    if table.title:
        yield f"% {readable(table.title)}"
    yield from latex_lines(table)


def latex_lines(table: doc.Table, bold: Container[tuple[int, int]] = ()) -> Iterator[str]:
    """Yield the lines of a table for LaTeX's package booktabs, with some cells, by row and column, in bold."""
    # What stands in a file does not depend on what standard output can show.
    columns, (heads, *rows) = _shown(table), _texts(table, shown=visible_on_page)
    yield f"\\begin{{tabular}}{{{''.join(column.align[0] for column in columns)}}}\n\\toprule"
    if any(heads):
        yield f"{' & '.join(head.translate(_LATEX) for head in heads)} \\\\\n\\midrule"
    for place, row in enumerate(rows):
        cells = [re.sub(r"(?<!\S)-(?=[\d$])", "$-$", cell.translate(_LATEX)) for cell in row]
        cells = [f"\\textbf{{{cell}}}" if (place, column) in bold else cell for column, cell in enumerate(cells)]
        # The empty group keeps a row that begins with [ or * from being an option of the line above it.
        yield "{}" * cells[0].startswith(("[", "*")) + " & ".join(cells) + r" \\"
    yield "\\bottomrule\n\\end{tabular}"


def as_rows(document: Iterable[doc.Block]) -> str:
    """Return a document as lines for programs, with a line end at its end."""
    # document: blocks, in the order of reading.
    parts = ["".join(f"{line}\n" for line in _lines(block)) for block in document]
    return "\n".join(_joined(part for part in parts if part))


def _joined(parts: Iterable[str]) -> Iterator[str]:
    # What stands between blank lines: remarks that follow each other stand together.
    together = ""
    for part in parts:
        if together and not (_is_remark(together) and _is_remark(part)):
            yield together
            together = ""
        together += part
    if together:
        yield together


def _is_remark(part: str) -> bool:
    return all(line.startswith(_REMARK) for line in part.splitlines())


def _lines(block: doc.Block) -> Iterator[str]:
    match block:
        case doc.Heading(text) | doc.Verdict(_, text) | doc.Text(text) | doc.Signature(text):
            yield _REMARK + readable(text)
        case doc.Lines(pairs):
            for name, value in pairs:
                for part in (value,) if isinstance(value, str) else value:
                    yield f"{readable(name)}\t{readable(part)}"
        case doc.Tokens():
            yield _REMARK + marked(block, marks([block]))
        case doc.Aligned(alignment):
            for row in alignment.lines():
                yield from map(readable, row)
        case doc.Table():
            if block.rows:
                yield from _table(block)
        case doc.Gallery(parts):
            for quotes in parts:
                yield _REMARK + readable(quotes.title)
                for about, text in quotes.items:
                    yield f"{_REMARK}{readable(about)}"
                    yield f"{_REMARK}{_INDENT}{readable(text)}"
        case doc.ChartData() | doc.Ladder() | doc.Passages() | doc.Outputs():
            pass
        case _:
            assert_never(block)


def _table(table: doc.Table) -> Iterator[str]:
    if table.title:
        yield _REMARK + readable(table.title)
    yield from map("\t".join, _texts(table))
    for column in _shown(table):
        if column.note:
            yield f"{_REMARK}{readable(f'{column.title}: {column.note}')}"
    for note in table.footnotes:
        yield _REMARK + readable(note)


def _shown(table: doc.Table) -> list[doc.Column]:
    return [column for column in table.columns if not isinstance(column.cells[0], doc.Bar)]


def _texts(table: doc.Table, *, bare: bool = False, shown: Callable[[str], str] = readable) -> Iterator[list[str]]:
    # Titles and rows as text; bare numbers have no commas between thousands.
    columns = _shown(table)
    yield [title(column, shown) for column in columns]
    signs = marks([cell for column in columns for cell in column.cells])
    for row in zip(*(column.cells for column in columns), strict=True):
        numbers = [bare and isinstance(cell, doc.Number | doc.Range) for cell in row]
        texts = [_cell(cell, signs, shown) for cell in row]
        yield [text.replace(",", "") if number else text for text, number in zip(texts, numbers, strict=True)]


def _cell(cell: doc.Cell, signs: tuple[str, str], shown: Callable[[str], str]) -> str:
    match cell:
        case str():
            return shown(cell)
        case doc.Mark(text):
            return shown(text)
        case doc.Bar():
            return ""
        case doc.Tokens():
            return marked(cell, signs)
    return shown(in_column(cell))


def title(column: doc.Column, shown: Callable[[str], str] = readable) -> str:
    """Return the head of a column, with its unit."""
    return shown(column.title) + (f", {shown(column.unit)}" if column.unit else "")


def marks(cells: Sequence[doc.Cell]) -> tuple[str, str]:
    """Return signs to set off a token, such as do not occur in the texts themselves and can be shown."""
    text = "".join(part for cell in cells if isinstance(cell, doc.Tokens) for part in cell.parts)
    free = (pair for pair in _MARKS if not set("".join(pair)) & set(text) and readable("".join(pair)) == "".join(pair))
    return next(free, _MARKS[-1])


def marked(cell: doc.Tokens, signs: tuple[str, str]) -> str:
    """Return a piece of text with its token between signs; nothing is cut."""
    if cell.meant is None:
        return readable("".join(cell.parts))
    meant = cell.parts[cell.meant]
    text = meant.lstrip(" ") or meant  # the span of a word takes the white space before it
    before = readable("".join(cell.parts[: cell.meant]) + meant[: len(meant) - len(text)])
    return before + signs[0] + readable(text) + signs[1] + readable("".join(cell.parts[cell.meant + 1 :]))
