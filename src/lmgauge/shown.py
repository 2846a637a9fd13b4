"""What every result can do besides being data: print as its table, show in a notebook, draw its charts, write its page."""

# A result knows no renderer, as the rooms of results may not import `report`: `_report` is the one place where it is loaded,
# by name, when something is to be shown. What is shown is `report.documents.document_of(result)`, for the terminal, the
# notebook and the page alike.

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from lmgauge.readable import visible

if TYPE_CHECKING:
    from pathlib import Path

    from lmgauge.report.blocks import Document
    from lmgauge.report.notebook import Chart

_LONGEST_LINE = 160


def _report(module: str) -> Any:
    # Load a module of the room `report`, which must not be imported from here: it imports the results.
    return import_module(f"lmgauge.report.{module}")


class Shown:
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
        return cast("str", _report("terminal").as_text(self._document()))

    def _repr_html_(self) -> str:
        # What a notebook shows: verdict, tables, and a chart where the extra `report` is installed.
        return cast("str", _report("notebook").fragment(self._document()))

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that `chart` gives."""
        return tuple(_report("notebook").charts(self._document()))

    def chart(self, name: str) -> Chart:
        """Return one of the charts: it shows itself in a notebook, and saves itself as SVG, PDF, PNG or JSON.

        Args:
            name: one of `charts`.

        Raises:
            UsageError: there is no such chart; the message lists those there are.
        """
        return cast("Chart", _report("notebook").chart(self._document(), name))

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
        return cast("Path", _report("notebook").write_page(self._document(), path, visible(self._in_brief())))

    def _document(self) -> Document:
        return cast("Document", _report("documents").document_of(self))
