"""What every result can do besides being data: print as its table, show in a notebook, draw its charts, write its page."""

# A result knows no renderer, as the rooms of results lie below `report`: what shows it is loaded when something is to be
# shown, from the package that the door (`lmgauge/__init__.py`) names in `RENDERERS`.

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import lmgauge
from lmgauge.base.errors import MissingExtraError
from lmgauge.base.escaping import visible

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_LINE = 160
VEGA_LITE = "application/vnd.vegalite.v5+json"


def _renderer(module: str) -> Any:
    return import_module(f"{lmgauge.RENDERERS}.{module}")


class Displayable:
    """A result that people look at: in a terminal, in a notebook, on a page."""

    # A subclass says in `_in_brief` what it is in a line, and has its builder in `report.documents`. As a dataclass it is
    # made with `repr=False`.

    __slots__ = ()

    def _in_brief(self) -> str:
        return ""

    def __repr__(self) -> str:
        line = visible(self._in_brief())
        line = line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 2]} …"
        return f"<{type(self).__name__}{': ' * bool(line)}{line}>"

    def __str__(self) -> str:
        return cast("str", _renderer("terminal").as_text(self._document()))

    def _repr_html_(self) -> str:
        # What a notebook shows: verdict, tables, and a chart where the extra `report` is installed.
        return cast("str", _renderer("documents").fragment(self._document()))

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that `chart` gives."""
        return tuple(_renderer("documents").charts(self._document()))

    def chart(self, name: str | None = None) -> Chart:
        """Return one of the charts: it shows itself in a notebook, and saves itself as SVG, PDF, PNG or JSON.

        Args:
            name: one of `charts`; needed where there are several.

        Raises:
            UsageError: there is no such chart; the message lists those there are.
        """
        return Chart(_renderer("documents").chart(self._document(), name))

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Write all of the result as one page, which opens by double click and asks nothing of the network.

        Args:
            path: of the page; one that is there is replaced.

        Returns:
            The path.

        Raises:
            MissingExtraError: the extra `report` is not installed.
            OutputError: the page cannot be written; nothing is left behind.
        """
        return cast("Path", _renderer("documents").write_page(self._document(), path, visible(self._in_brief())))

    def _document(self) -> tuple[Any, ...]:
        return cast("tuple[Any, ...]", _renderer("documents").document_of(self))


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart of a result, with its data: shows itself in a notebook, saves itself, and is a Vega-Lite specification."""

    data: Any

    @property
    def name(self) -> str:
        """Return its name among the charts of the result."""
        return cast("str", self.data.name)

    @property
    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, with its data."""
        return cast("dict[str, Any]", _renderer("charts").specification(self.data))

    def to_dict(self) -> dict[str, Any]:
        """Return the specification."""
        return self.specification

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart."""
        return cast("Path", _renderer("drawing").write_chart(self.data, path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        # Chart for a notebook, which shows the form that it prefers: Vega-Lite, a drawing, or its name.
        bundle: dict[str, Any] = {VEGA_LITE: self.specification, "text/plain": repr(self)}
        with suppress(MissingExtraError):
            bundle["image/svg+xml"] = _renderer("drawing").figure_svg(self.specification).decode()
        return bundle

    def __repr__(self) -> str:
        return f"<Chart {visible(self.data.name)}: {visible(self.data.title)}>"
