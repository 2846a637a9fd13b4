"""What notebooks show, the charts of a result one by one, its page, and the pages of runs and of several results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.errors import MissingExtraError, UsageError
from lmgauge.files import making_parents, writing
from lmgauge.json_text import to_json
from lmgauge.readable import visible
from lmgauge.report.blocks import Block, ChartData, Document, Verdict
from lmgauge.report.charts import specification
from lmgauge.report.drawing import FigureFormat, figure, named
from lmgauge.report.formats import names_in_brief
from lmgauge.report.terminal import as_text
from lmgauge.shown import Shown

if TYPE_CHECKING:
    from lmgauge.evaluation.overview import Overview

VEGA_LITE = "application/vnd.vegalite.v5+json"
_WIDTH = 120
_FORMATS: dict[str, FigureFormat] = {".svg": "svg", ".pdf": "pdf", ".png": "png"}


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart of a result, with its data: shows itself in a notebook, saves itself, and is a Vega-Lite specification."""

    data: ChartData

    @property
    def name(self) -> str:
        """Return its name among the charts of the result."""
        return self.data.name

    @property
    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, with its data."""
        return specification(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the specification."""
        return self.specification

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (*_FORMATS, ".json"):
            raise UsageError(f"{path}: charts are written as {', '.join(_FORMATS)} or .json")
        if kind == ".json":
            content = f"{to_json(self.specification)}\n".encode()
        else:
            content = figure(self.specification, _FORMATS[kind])
        with writing(path) as file:
            file.write(content)
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        # Chart for a notebook, which shows the form that it prefers: Vega-Lite, a drawing, or its name.
        bundle: dict[str, Any] = {VEGA_LITE: self.specification, "text/plain": repr(self)}
        with suppress(MissingExtraError):
            bundle["image/svg+xml"] = figure(self.specification, "svg").decode()
        return bundle

    def __repr__(self) -> str:
        return f"<Chart {visible(self.data.name)}: {visible(self.data.title)}>"


def charts(document: Iterable[Block]) -> Mapping[str, Chart]:
    """Return the charts of a document by their names; of several with one name those after the first have a number."""
    return {name: Chart(data) for name, data in named(block for block in document if isinstance(block, ChartData))}


def chart(document: Iterable[Block], name: str) -> Chart:
    """Return one chart of a document."""
    known = charts(document)
    if name not in known:
        names = f"there are {', '.join(known)}" if known else "this result has none"
        raise UsageError(f"no chart is called {name!r}; {names}")
    return known[name]


def fragment(document: Document) -> str:
    """Return blocks as HTML for a notebook; without the extra `report` as what the terminal shows, escaped."""
    from lmgauge.report import page

    for count in (1, 0):
        try:
            return page.fragment(document, charts=count)
        except MissingExtraError:
            continue
    return f'<pre style="white-space: pre; overflow-x: auto">{escape(as_text(document, _WIDTH))}</pre>'


def write_page(document: Document, path: str | os.PathLike[str], title: str) -> Path:
    """Write a document as a page."""
    from lmgauge.report import page

    content = page.render(document, title).encode()
    with making_parents(Path(path)), writing(path) as file:
        file.write(content)
    return Path(path)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A page, before it is written.

    Attributes:
        title: of the page.
        document: what is on it: blocks, in the order of reading.
        numbers: behind it, as plain values.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> page = lmgauge.report(lmgauge.evaluate(lmgauge.train("witten-bell", text), text), title="Cats")
        >>> page.title, page.html()[:15]
        ('Cats', '<!doctype html>')
    """

    title: str
    document: Document
    numbers: Mapping[str, Any]

    @property
    def verdicts(self) -> Document:
        """The answers on the page, in order."""
        return tuple(block for block in self.document if isinstance(block, Verdict))

    def html(self) -> str:
        """Return the page: one HTML file that opens without a network.

        Raises:
            MissingExtraError: what draws it is not installed; the extra `report` brings it.
        """
        from lmgauge.report.page import render

        return render(self.document, self.title)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; the file appears whole, or not at all.

        Args:
            path: of the file; one that is there is replaced.

        Returns:
            Where it lies.

        Raises:
            MissingExtraError: what draws the page is not installed; the extra `report` brings it.
            OutputError: the file cannot be written.
        """
        return write_page(self.document, path, self.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, full precision; infinities stay floats."""
        return dict(self.numbers)

    def _in_brief(self) -> str:
        return self.title

    def _document(self) -> Document:
        return self.document


def page_of(overview: Overview, title: str | None = None) -> Report:
    """Return the page of what was worked out of runs; its title are their names if there is no other."""
    from lmgauge.report.overview import blocks

    return Report(title or names_in_brief(overview.runs), blocks(overview), overview.to_dict())


def page_of_results(results: Sequence[Shown], title: str | None = None) -> Report:
    """Return the page of results; its title are their kinds if there is no other."""
    from lmgauge.report.documents import document_of

    numbers = [one.to_dict() for one in results if hasattr(one, "to_dict")]
    return Report(
        title or names_in_brief([type(one).__name__ for one in results]), document_of(results), {"results": numbers}
    )
