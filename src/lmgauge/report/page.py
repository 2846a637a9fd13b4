"""Blocks as HTML: a page of one file that opens without a network, and fragments of it for notebooks."""

# Nothing is computed here. Jinja2 escapes every string, control characters become signs, and the page's policy allows no
# other script or style than its own and no request to anywhere.

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, assert_never

from lmgauge.digests import digest
from lmgauge.errors import needing
from lmgauge.readable import visible_on_page
from lmgauge.report import blocks as doc
from lmgauge.report.chart_values import link
from lmgauge.report.formats import in_words
from lmgauge.report.packing import BITS_STEP, KL_STEP, packed, shown_text
from lmgauge.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from lmgauge.evaluation.passages import Passage
    from lmgauge.tasks.alignment import Alignment

Html = Any
"""What a macro of a template returns: text that is escaped already."""
_LEVEL_SIGNS: dict[doc.Level, tuple[str, str]] = {
    "good": ("✓", "yes"),
    "bad": ("✗", "no"),
    "unknown": ("?", "uncertain"),
    "fact": ("", ""),
}


def render(document: Iterable[doc.Block], title: str) -> str:
    """Return a page: one HTML file with everything in it."""
    # document: blocks, in the order of reading.
    content = list(document)
    if content and content[0] == doc.Heading(title):
        content = content[1:]
    style, script = asset("page.css"), asset("page.js")
    return _template("page.html").render(
        title=_clean(title),
        body=_Renderer(content).body(),
        contents=[(f"part-{number}", _clean(text)) for number, text in enumerate(_headings(content), 1)],
        style=style,
        script=script,
        policy=policy(style, script),
        version=__version__,
    )


def fragment(document: Iterable[doc.Block], *, charts: int = 1) -> str:
    """Return blocks as HTML to be put into a page of others, such as a notebook: no script, a style for itself only."""
    # document: blocks, in the order of reading; passages are left out.
    shown = [block for block in document if not isinstance(block, doc.Passages | doc.Outputs)]
    drawn = [block for block in shown if isinstance(block, doc.ChartData)][:charts]
    content = [block for block in shown if not isinstance(block, doc.ChartData) or any(block is chart for chart in drawn)]
    return _template("fragment.html").render(body=_Renderer(content, linked=False).body(), style=asset("page.css"))


def policy(style: str, script: str, connect: str = "'none'") -> str:
    """Return a content security policy for a page with one style and one script of its own."""
    rules = {"default-src": "'none'", "style-src": _digest(style), "script-src": _digest(script), "img-src": "data:"}
    rules |= {"connect-src": connect, "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{what} {allowed}" for what, allowed in rules.items())


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(bytes.fromhex(digest(text))).decode('ascii')}'"


def asset(name: str, package: str = "lmgauge.report") -> str:
    """Return the text of a style or a script."""
    return (files(package) / "templates" / name).read_text("utf-8").strip()


def check_installed() -> None:
    """Check that pages can be made."""
    environment()
    with needing("vl-convert-python", extra="report"):
        import vl_convert  # noqa: F401


@cache
def environment(package: str = "lmgauge.report") -> Environment:
    """Return what renders our templates: escaping is on, and what a template does not know is an error."""
    with needing("jinja2", extra="report"):
        import jinja2
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> Template:
    return environment().get_template(name)


_LONGEST_TEXT, _LONGEST_CELL = 4000, 400
_MOST_ROWS, _MOST_CELLS, _LARGEST_DRAWING = 200, 4000, 150_000
"""A page stays small whatever its names and tables are: what goes on beyond these is said to."""


def _clean(text: str, most: int = _LONGEST_TEXT) -> str:
    return visible_on_page(text if len(text) <= most else f"{text[:most]}…")


def _headings(content: Sequence[doc.Block]) -> Iterator[str]:
    return (block.text for block in content if isinstance(block, doc.Heading))


class _Renderer:
    """Turns blocks into HTML."""

    def __init__(self, content: Sequence[doc.Block], *, linked: bool = True) -> None:
        self._content, self._linked = content, linked
        shown = [block for block in content if isinstance(block, doc.Passages)] if linked else []
        self._segments = {passage.segment for block in shown for passage in block.items}
        self._slices = {_clean(cut): _present(block, cut) for block in shown for cut in block.cuts}
        self._macros: Any = _template("blocks.html").module
        self._heading = 0

    def body(self) -> list[Html]:
        # All blocks: what a heading is above of is a section, and charts stand beside the table they are of, or beside each
        # other.
        parts: list[Html] = []
        place = 0
        while place < len(self._content):
            charts = self._charts_after(place)
            if charts and isinstance(self._content[place], doc.ChartData):
                parts.append(self._macros.row([self._block(chart) for chart in (self._content[place], *charts)]))
            elif charts:
                table = self._block(self._content[place])
                drawn = [self._block(chart) for chart in charts]
                parts.append(self._macros.beside(table, drawn))
            else:
                parts.append(self._block(self._content[place]))
            place += 1 + len(charts)
        return parts

    def _charts_after(self, place: int) -> list[doc.ChartData]:
        charts: list[doc.ChartData] = []
        if isinstance(self._content[place], doc.Table | doc.ChartData):
            for block in self._content[place + 1 :]:
                if not isinstance(block, doc.ChartData):
                    break
                charts.append(block)
        return charts

    def _block(self, block: doc.Block) -> Html:
        macros = self._macros
        result: Html
        match block:
            case doc.Heading(text):
                self._heading += 1
                result = macros.heading(f"part-{self._heading}", _clean(text), self._heading > 1)
            case doc.Verdict(level, text):
                whole = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", _clean(text))
                lead, *rest = re.split(r"(?<=[^.]\.) (?=[A-Z])", whole, maxsplit=1)
                result = macros.verdict(level, *_LEVEL_SIGNS[level], lead, "".join(rest))
            case doc.Text(text, note, indent):
                result = macros.paragraph(_clean(text), note, indent > 0)
            case doc.Signature(text):
                result = macros.signature(_clean(text))
            case doc.Lines(pairs):
                values = [(_clean(name), _values(value)) for name, value in pairs]
                result = macros.lines(values)
            case doc.Tokens():
                result = macros.tokens_line(_tokens(block))
            case doc.Aligned(alignment):
                result = self._aligned(alignment)
            case doc.Table():
                result = self._table(block)
            case doc.ChartData():
                result = self._chart(block)
            case doc.Ladder(rungs):
                steps = [
                    (_clean(r.name), r.mark.level, _LEVEL_SIGNS[r.mark.level][0], _clean(r.mark.text), _clean(r.text))
                    for r in rungs
                ]
                result = macros.ladder(steps)
            case doc.Gallery(parts):
                quotes = [
                    (_clean(part.title), [(_clean(about), _clean(text)) for about, text in part.items]) for part in parts
                ]
                result = macros.gallery(quotes)
            case doc.Outputs():
                result = self._outputs(block)
            case doc.Passages():
                result = self._passages(block)
            case _:
                assert_never(block)
        return result

    def _table(self, table: doc.Table) -> Html:
        if not table.rows:
            return ""
        notes = [f"{column.title}: {column.note}" for column in table.columns if column.note]
        titles = [
            {"text": _clean(column.title) + (f", {_clean(column.unit)}" if column.unit else ""), "align": column.align}
            for column in table.columns
        ]
        most = max(20, min(_MOST_ROWS, _MOST_CELLS // len(titles)))
        rows = [
            {"cells": [_cell(cell) for cell in row], "bold": i in table.bold, "href": self._row_link(table, i)}
            for i, row in enumerate(table.rows)
            if i < most or i in table.bold
        ]
        if len(rows) < len(table.rows):
            notes.append(f"{len(rows):,} of {len(table.rows):,} rows are shown; --json has all")
        footnotes = [_clean(note) for note in (*notes, *table.footnotes)]
        return self._macros.table(_clean(table.title), titles, rows, footnotes)

    def _row_link(self, table: doc.Table, row: int) -> str:
        # Where a row leads to: to the slice or segment it is of, as far as the page shows it; empty if nowhere.
        if table.anchors and table.anchors[row] in self._segments:
            return f"#s{table.anchors[row]}"
        label = table.columns[0].cells[row]
        if table.cut and isinstance(label, str) and _clean(label) in self._slices.get(_clean(table.cut), ()):
            return link(table.cut, label)
        return ""

    def _chart(self, chart: doc.ChartData) -> Html:
        from lmgauge.report.charts import specification
        from lmgauge.report.drawing import svg

        labels = self._slices.get(_clean(chart.cut), set())
        spec = specification(chart, links=bool(labels))
        leading = {link(chart.cut, label) for label in labels}
        for row in spec["data"]["values"]:
            if row.get("href") not in leading:  # the page shows no example of it
                row.pop("href", None)
        subtitle = " ".join(spec.pop("title").get("subtitle", []))  # the caption has both, as text that can be searched
        drawn = svg(spec)
        if len(drawn) > _LARGEST_DRAWING:
            return self._macros.paragraph(
                f"{_clean(chart.title)}: too much to be drawn; the table has the numbers", True, False
            )
        drawing = drawn
        result: Html = self._macros.chart(
            f"chart-{_slug(chart.name)}", _clean(chart.title), subtitle, drawing, _clean(chart.note)
        )
        return result

    def _aligned(self, alignment: Alignment) -> Html:
        from lmgauge.report.output_articles import direction

        pairs = [_pair(*pair) for pair in alignment.pairs()]
        result: Html = self._macros.aligned_pairs(alignment.unit, direction(" ".join(alignment.reference)), pairs)
        return result

    def _outputs(self, block: doc.Outputs) -> Html:
        from lmgauge.report.output_articles import articles

        items = articles(block)
        reasons = dict.fromkeys(reason for item in items for reason in item["why"])
        groups = dict.fromkeys(item["group"] for item in items if item["group"])
        result: Html = self._macros.outputs(items, block.aligned, list(reasons), list(groups))
        return result

    def _passages(self, block: doc.Passages) -> Html:
        items = [_article(passage) for passage in block.items]
        cuts = {_clean(cut): [_clean(label) for label in labels] for cut, labels in block.cuts.items()}
        data = {
            "step": BITS_STEP,
            "fine": KL_STEP,
            "names": [_clean(name) for name in block.names],
            "cuts": cuts,
            "passages": {str(passage.segment): packed(passage.text, passage.spans) for passage in block.items},
        }
        shown = {cut: [label for label in labels if label in self._slices.get(cut, ())] for cut, labels in cuts.items()}
        reasons = dict.fromkeys(_clean(reason) for passage in block.items for reason in passage.why)
        groups = dict.fromkeys(_clean(passage.group) for passage in block.items if passage.group)
        json_text = _script_json(data)
        far = sorted({i for passage in block.items for i, spans in enumerate(passage.spans) if "kl" in spans.columns})
        result: Html = self._macros.passages(items, data["names"], far, list(reasons), list(groups), shown, json_text)
        return result


def _article(passage: Passage) -> dict[str, Any]:
    per_byte = [bits / passage.size if passage.size else None for bits in passage.bits]
    return {
        "segment": passage.segment,
        "where": _clean(passage.where),
        "group": _clean(passage.group),
        "why": [_clean(reason) for reason in passage.why],
        "bits": [in_words(doc.Number(bits, 1)) for bits in passage.bits],
        "per_byte": [in_words(doc.Number(bits, 3)) for bits in per_byte],
        "lead": shown_text(passage.lead),
        "text": shown_text(passage.text),
        "is_cut": passage.is_cut,
    }


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _present(block: doc.Passages, cut: str) -> set[str]:
    labels = block.cuts[cut]
    codes = {
        int(code)
        for p in block.items
        for spans in p.spans
        if cut in spans.slices
        for code in set(spans.slices[cut].tolist())
    }
    return {_clean(labels[code]) for code in codes if code < len(labels)}


def _script_json(data: Any) -> str:
    # JSON that is text within a script element: no character in it can end the element.
    plain = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _values(value: str | tuple[str, ...]) -> list[str]:
    return [_clean(part) for part in ((value,) if isinstance(value, str) else value)]


def _tokens(cell: doc.Tokens) -> dict[str, Any]:
    if cell.meant is None:
        return {"before": _clean("".join(cell.parts), _LONGEST_CELL), "meant": "", "after": ""}
    before, after = "".join(cell.parts[: cell.meant]), "".join(cell.parts[cell.meant + 1 :])
    return {
        "before": _clean(before, _LONGEST_CELL),
        "meant": _clean(cell.parts[cell.meant], _LONGEST_CELL),
        "after": _clean(after, _LONGEST_CELL),
    }


def _pair(operation: str, reference: str | None, hypothesis: str | None) -> tuple[str, str, str]:
    from lmgauge.report.output_articles import OPERATIONS

    return OPERATIONS[operation], _clean(reference or ""), _clean(hypothesis or "")


def _cell(cell: doc.Cell) -> dict[str, Any]:
    # Cell's kind, text, and the value it is sorted by.
    match cell:
        case str():
            text = _clean(cell, _LONGEST_CELL)
            return {"kind": "text", "text": text, "value": text}
        case doc.Mark(text, level):
            return {
                "kind": "mark",
                "text": _clean(text),
                "value": _clean(text),
                "level": level,
                "sign": _LEVEL_SIGNS[level][0],
            }
        case doc.Bar(share):
            return {
                "kind": "bar",
                "text": f"{100 * share:.0f} %",
                "value": share,
                "width": round(100 * min(1.0, max(0.0, share))),
            }
        case doc.Tokens():
            return {
                "kind": "tokens",
                "text": "".join(cell.parts).strip()[:1],
                "value": _clean("".join(cell.parts), _LONGEST_CELL),
                **_tokens(cell),
            }
        case doc.Range(low):
            return {"kind": "number", "text": in_words(cell), "value": low}
    return {"kind": "number", "text": in_words(cell), "value": "" if cell.value is None else cell.value}
