"""Blocks as HTML: a page of one file that opens without a network, and fragments of it for notebooks."""

# Nothing is computed here. Templates read the blocks themselves. Whatever string they put out gets an end and signs for its
# control characters (`_shown`), and Jinja2 escapes it; the page's policy allows no other script or style than its own and no
# request to anywhere.

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import UsageError, needing
from lmgauge.base.escaping import visible_on_page
from lmgauge.base.files import digest
from lmgauge.base.version import __version__
from lmgauge.report import blocks as doc
from lmgauge.report.chart_values import PAGE_WIDTH, WIDTH, link
from lmgauge.report.formats import in_column, in_words
from lmgauge.report.page_payload import BITS_STEP, KL_STEP, packed, shown_text
from lmgauge.report.tsv_renderer import LATEX, MARKDOWN

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Html = Any
"""What a macro of a template returns: text that is escaped already."""
_LEVEL_SIGNS: dict[doc.Level, tuple[str, str]] = {
    "good": ("✓", "yes"),
    "bad": ("✗", "no"),
    "unknown": ("?", "uncertain"),
    "fact": ("", ""),
}


def render(document: Iterable[doc.Block], title: str, about: Sequence[tuple[str, str]] = ()) -> str:
    """Return a page: one HTML file with everything in it."""
    # document: blocks, in the order of reading; about: names and values that stand under the title.
    content = list(document)
    if content and content[0] == doc.Heading(title):
        content = content[1:]
    style, script = asset("page.css"), asset("page.js")
    return _template("page.html").render(
        title=title,
        about=about,
        body=_Renderer(content).body(),
        contents=[block.text for block in content if isinstance(block, doc.Heading)],
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
    text = (files(package) / "templates" / name).read_text("utf-8").strip()
    return text.replace("ESCAPES_OF_TABLES", json.dumps([MARKDOWN, LATEX]))


def check_installed(path: object = "") -> None:
    """Check that pages can be made, and that a path is not that of something else."""
    if str(path).lower().endswith((".pdf", ".png", ".json", ".csv", ".tsv", ".md", ".txt")):
        raise UsageError(f"{path}: a page is HTML: name it .html, and print it as PDF from a browser")
    environment()
    with needing("vl-convert-python", extra="report"):
        import vl_convert  # noqa: F401


@cache
def environment(package: str = "lmgauge.report") -> Environment:
    """Return what renders our templates: escaping is on, and what a template does not know is an error."""
    with needing("jinja2", extra="report"):
        import jinja2
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"short": _short, "cell": _cell, "figure": _figure, "unbroken": _unbroken, "with_lines": shown_text}
    made.globals["signs"] = _LEVEL_SIGNS
    return made


def _template(name: str) -> Template:
    return environment().get_template(name)


_LONGEST_TEXT, _LONGEST_CELL = 4000, 400
_MOST_ROWS, _MOST_CELLS, _LARGEST_DRAWING = 200, 4000, 150_000
"""A page stays small whatever its names and tables are: what goes on beyond these is said to."""


def _clean(text: str, most: int = _LONGEST_TEXT) -> str:
    return visible_on_page(text if len(text) <= most else f"{text[:most]}…")


def _shown(value: Any) -> Any:
    # What a template puts out; HTML of its own macros stays, and what the filter `e` has escaped.
    return _clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _short(text: str) -> str:
    return _clean(text, _LONGEST_CELL)


def _figure(value: float | None, digits: int) -> str:
    return in_words(doc.Number(value, digits))


def _unbroken(text: str) -> str:
    # Text, escaped, in which a number and its per cent, and the parts of an option, stand on one line.
    shown = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", escape(_clean(text)))
    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<span class="option">\g<0></span>', shown)


def _cell(cell: doc.Cell) -> dict[str, Any]:
    # Cell's kind, text, and the value it is sorted by.
    value: str | float
    match cell:
        case str():
            kind, text, value = "text", _short(cell), _short(cell)
        case doc.Mark(text):
            kind, text, value = "mark", text, text
        case doc.Bar(share):
            kind, text, value = "bar", f"{100 * share:.0f} %", share
        case doc.Tokens(parts):
            kind, text, value = "tokens", "".join(parts).strip()[:1], _short("".join(parts))
        case doc.Range():
            kind, text, value = "range", in_column(cell), cell.low
        case _:
            kind, text, value = "number", in_column(cell), "" if cell.value is None else cell.value
    return {"kind": kind, "text": text, "value": value, "own": cell}


class _Renderer:
    """Turns blocks into HTML."""

    def __init__(self, content: Sequence[doc.Block], *, linked: bool = True) -> None:
        self._content, self._linked = content, linked
        shown = [block for block in content if isinstance(block, doc.Passages)] if linked else []
        self._segments = {passage.segment for block in shown for passage in block.items}
        self._slices = {_clean(cut): _present(block, cut) for block in shown for cut in block.cuts}
        self._macros: Any = _template("blocks.html").module
        self._heading = 0

    def body(self) -> Iterator[Html]:
        # All blocks: charts stand below the table they are of, or beside each other; folded parts are closed.
        is_open = False
        runs: list[list[doc.Block]] = []
        for block in self._content:
            if runs and isinstance(block, doc.ChartData) and isinstance(runs[-1][0], doc.Table | doc.ChartData):
                runs[-1].append(block)
            else:
                runs.append([block])
        for run in runs:
            if isinstance(run[0], doc.Heading) and is_open:
                is_open = False
                yield self._macros.fold_end()
            is_open |= isinstance(run[0], doc.Heading) and run[0].folded
            written = [self._block(block, alone=len(run) == 1) for block in run]
            if not isinstance(run[0], doc.ChartData):
                yield written.pop(0)
            if written:
                yield self._macros.row(written)
        if is_open:
            yield self._macros.fold_end()

    def _block(self, block: doc.Block, *, alone: bool = False) -> Html:
        # A block by the macro of its name, which has the block and what is worked out here.
        worked_out: tuple[Any, ...] | None = ()
        match block:
            case doc.Heading():
                self._heading += 1
                worked_out = (self._heading,)
            case doc.Verdict(_, text):
                lead, *rest = re.split(r"(?<=[^.]\.) (?=[A-Z])", _clean(text), maxsplit=1)
                worked_out = (lead, "".join(rest))
            case doc.Aligned(alignment):
                from lmgauge.report.output_articles import OPERATIONS, direction

                pairs = [(OPERATIONS[operation], ours or "", theirs or "") for operation, ours, theirs in alignment.pairs()]
                return self._macros.aligned_pairs(alignment.unit, direction(" ".join(alignment.reference)), pairs)
            case doc.Table():
                worked_out = self._table(block)
            case doc.ChartData():
                worked_out = self._chart(block, alone=alone)
            case doc.Outputs():
                worked_out = self._outputs(block)
            case doc.Passages():
                worked_out = self._passages(block)
        return "" if worked_out is None else getattr(self._macros, type(block).__name__.lower())(block, *worked_out)

    def _table(self, table: doc.Table) -> tuple[Any, ...] | None:
        if not table.rows:
            return None
        notes = [f"{column.title}: {column.note}" for column in table.columns if column.note]
        most = max(20, min(_MOST_ROWS, _MOST_CELLS // len(table.columns)))
        rows = [
            (i in table.bold, self._row_link(table, i), row)
            for i, row in enumerate(table.rows)
            if i < most or i in table.bold
        ]
        if len(rows) < len(table.rows):
            notes.append(f"{len(rows):,} of {len(table.rows):,} rows are shown; --json has all")
        return rows, (*notes, *table.footnotes)

    def _row_link(self, table: doc.Table, row: int) -> str:
        # Where a row leads to: to the slice or segment it is of, as far as the page shows it; empty if nowhere.
        if table.anchors and table.anchors[row] in self._segments:
            return f"#s{table.anchors[row] + 1}"
        label = table.columns[0].cells[row]
        if table.cut and isinstance(label, str) and _clean(label) in self._slices.get(_clean(table.cut), ()):
            return link(table.cut, label)
        return ""

    def _chart(self, chart: doc.ChartData, *, alone: bool) -> tuple[Any, ...]:
        # A chart that stands alone has a second drawing, for where there is room for a wide one.
        from lmgauge.report.charts import specification
        from lmgauge.report.drawing import svg

        labels = self._slices.get(_clean(chart.cut), set())
        leading = {link(chart.cut, label) for label in labels}
        drawings = []
        for width in (PAGE_WIDTH, WIDTH) if alone and self._linked else (PAGE_WIDTH,):
            spec = specification(chart, width=width, links=bool(labels))
            for row in spec["data"]["values"]:
                if row.get("href") not in leading:  # the page shows no example of it
                    row.pop("href", None)
            subtitle = " ".join(spec.pop("title").get("subtitle", []))  # the caption has both, as text that can be searched
            drawings.append(svg(spec))
        is_too_large = len(drawings[0]) > _LARGEST_DRAWING
        return re.sub(r"[^a-z0-9]+", "-", chart.name.lower()).strip("-"), subtitle, drawings, is_too_large

    def _outputs(self, block: doc.Outputs) -> tuple[Any, ...]:
        from lmgauge.report.output_articles import articles

        items = articles(block)
        reasons = dict.fromkeys(reason for item in items for reason in item["why"])
        return items, list(reasons), list(dict.fromkeys(item["group"] for item in items if item["group"]))

    def _passages(self, block: doc.Passages) -> tuple[Any, ...]:
        cuts = {_clean(cut): [_clean(label) for label in labels] for cut, labels in block.cuts.items()}
        data = {
            "step": BITS_STEP,
            "fine": KL_STEP,
            "names": [_clean(name) for name in block.names],
            "cuts": cuts,
            "passages": {str(passage.segment): packed(passage.text, passage.spans) for passage in block.items},
        }
        shown = {cut: [label for label in labels if label in self._slices.get(cut, ())] for cut, labels in cuts.items()}
        reasons = dict.fromkeys(reason for passage in block.items for reason in passage.why)
        groups = dict.fromkeys(passage.group for passage in block.items if passage.group)
        far = sorted({i for passage in block.items for i, spans in enumerate(passage.spans) if "kl" in spans.columns})
        return far, list(reasons), list(groups), shown, _script_json(data)


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
