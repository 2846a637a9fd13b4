"""Tables and charts of the pages on benchmarks, both from `benchmarks/measured.json`, so that they cannot differ.

The tables of the page on reliability come from the files that the programs of the tests and benchmarks write.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

from lmgauge.base.display import Chart
from lmgauge.report.blocks import ChartData, Series

_ROOM = "padding: 0.25rem 0.5rem"  # as other tables have it; those of notebooks are narrower
FILE = Path(__file__).parent / "benchmarks" / "measured.json"
RELIABILITY = Path(__file__).parent / "reliability"


@dataclass(frozen=True, repr=False)
class Table:
    """A table of measurements, as a notebook shows it.

    Attributes:
        columns: their heads; text between backticks is code.
        rows: text, numbers (with the digits that were measured), lists of numbers (measured several times), None.
        bold: columns to set off.
    """

    columns: list[str]
    rows: list[list[Any]]
    bold: list[str]

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th class="head text-{self._side(i)}" style="{_ROOM}">{_marked(head)}</th>'
            for i, head in enumerate(self.columns)
        )
        rows = "".join(f"<tr>{''.join(self._cell(i, cell) for i, cell in enumerate(row))}</tr>\n" for row in self.rows)
        table = f'<table class="docutils align-default"><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table>'
        return f'<div class="table-wrapper docutils container">{table}</div>'

    def __repr__(self) -> str:
        return f"<Table: {', '.join(self.columns)}>"

    def _cell(self, column: int, value: Any) -> str:
        text = _marked(_written(value))
        if text and self.columns[column] in self.bold:
            text = f"<strong>{text}</strong>"
        return f'<td class="text-{self._side(column)}" style="{_ROOM}">{text}</td>'

    def _side(self, column: int) -> str:
        return "left" if any(isinstance(row[column], str) for row in self.rows) else "right"


def _written(value: Any) -> str:
    """Return a cell as text.

    >>> _written([Decimal("1.50"), 2000])
    '1.50,\\xa02,000'
    """
    if isinstance(value, list):
        return ",\N{NO-BREAK SPACE}".join(map(_written, value))
    return "" if value is None else value if isinstance(value, str) else f"{value:,}"


def _marked(text: str) -> str:
    return re.sub(r"`([^`]*)`", r'<code class="docutils literal notranslate">\1</code>', escape(text.strip()))


def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"), parse_float=Decimal)
    return stored


def table(name: str) -> Table:
    """Return a table of the file.

    Args:
        name: one of `tables`.
    """
    stored = _stored()["tables"][name]
    return Table(stored["columns"], stored["rows"], stored["bold"])


def _recorded(name: str) -> Any:
    return json.loads((RELIABILITY / f"{name}.json").read_text(encoding="utf-8"), parse_float=Decimal)


def recorded(name: str) -> Table:
    """Return a table of the folder `reliability`.

    Args:
        name: of its file, which has `columns` and `rows`.
    """
    stored = _recorded(name)
    return Table(stored["columns"], stored["rows"], stored.get("bold", []))


def fuzz_counts() -> Table:
    """Return how many damaged inputs each parser was given, as `python -m tests.fuzz --record` writes it.

    Those under sanitizers are a column of their own, where `sanitized.json` was recorded.
    """
    watched = _recorded("sanitized") if (RELIABILITY / "sanitized.json").exists() else {}
    rows = [
        [
            parser["reads"],
            parser["inputs"],
            ", ".join(f"{end} {count:,}" for end, count in sorted(parser["ends"].items(), key=lambda item: -item[1])),
            parser["faults"],
            watched.get(name, {}).get("inputs"),
        ]
        for name, parser in sorted(_recorded("fuzz").items())
    ]
    total = ["all", sum(row[1] for row in rows), "", sum(row[3] for row in rows), sum(row[4] or 0 for row in rows)]
    columns = ["what was damaged", "inputs", "what came out", "faults met", "inputs under sanitizers"]
    wide = len(columns) if watched else -1
    return Table(columns[:wide], [row[:wide] for row in [*rows, total]], ["inputs"])


def load_figures() -> Table:
    """Return what `python -m tests.load --json` measured."""
    columns = [
        "under load",
        "requests",
        "minutes",
        "wrong answers",
        "memory before, MB",
        "halfway",
        "after",
        "open files",
        "threads",
    ]
    rows = []
    for load in _recorded("load"):
        before, after = load["before"], load["after"]
        memory = [round(held["memory"] / 1_000_000) for held in (before, load["halfway"], after)]
        pairs = [f"{before[name]} and {after[name]}" for name in ("files", "threads")]
        rows.append([load["name"], load["requests"], round(load["seconds"] / 60), len(load["wrong"]), *memory, *pairs])
    return Table(columns, rows, ["requests"])


def bad_inputs(kind: str) -> Table:
    """Return what lmgauge and another program made of bad inputs.

    Args:
        kind: of the inputs, as the first column of `bad-inputs.json` has it.
    """
    rows = [[wrong, ours, theirs] for of, wrong, ours, theirs in _recorded("bad-inputs")["rows"] if of == kind]
    return Table([kind, "lmgauge", "others"], rows, [])


def machines() -> Table:
    """Return the machines that measured."""
    rows = [[name, *machine.values()] for name, machine in _stored()["machines"].items()]
    return Table(["machine", "processor", "vector instructions", "caches", "other"], rows, ["machine"])


def bars(
    *names: str, title: str, label: str, value: str, peer: str, by: str = "", only: str = "", log: bool = False
) -> Chart:
    """Return ratios as bars, with a line where the peer is.

    Args:
        names: of tables; a second one makes other series, named by its machine.
        title: of the chart.
        label: of each bar, with columns in braces: `order {order}`.
        value: the column of the ratios; if a cell has two, the second was measured again.
        peer: what has the ratio 1.
        by: the column that tells the series apart, such as `threads`.
        only: rows in which some text cell contains this.
        log: a logarithmic axis.
    """
    stored = _stored()["tables"]
    series: dict[str, dict[str, float]] = {}
    for name in names:
        columns, machine = stored[name]["columns"], stored[name]["machine"]
        for row in stored[name]["rows"]:
            cells = dict(zip(columns, row, strict=True))
            if cells[value] is None or (only and not any(only in cell for cell in row if isinstance(cell, str))):
                continue
            ratios = cells[value] if isinstance(cells[value], list) else [cells[value]]
            words = {column.strip(): _written(cell).replace("`", "") for column, cell in cells.items()}
            for again, ratio in enumerate(ratios):
                parts = [f"machine {machine}"] if len(names) > 1 else []
                if by:
                    parts.append(f"{words[by]} {by.removesuffix('s') if words[by] == '1' else by}")
                elif again:
                    parts.append("measured again")
                bar = series.setdefault(", ".join(parts) or "measured", {})
                bar[label.format_map(words)] = float(ratio)
    drawn = tuple(Series(name, tuple(values), tuple(values.values())) for name, values in series.items())
    data = ChartData(
        names[0], title, "", "times the rate", "", drawn,
        kind="bars", better="higher", rule=1.0, rule_name=peer, log_y=log,
    )  # fmt: skip
    return Chart(data)
