"""What notebooks show, the charts of a result one by one, and its page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from lmgauge.errors import MissingExtraError, UsageError
from lmgauge.files import making_parents, writing
from lmgauge.json_text import to_json
from lmgauge.readable import visible
from lmgauge.report.blocks import Block, ChartData, Document
from lmgauge.report.charts import specification
from lmgauge.report.drawing import FigureFormat, figure, named
from lmgauge.report.terminal import as_text

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
