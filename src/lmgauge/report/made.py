"""Pages before they are written: of runs, and of results one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.report.blocks import Document, Verdict
from lmgauge.report.formats import names_in_brief
from lmgauge.shown import Shown

if TYPE_CHECKING:
    from lmgauge.evaluation.overview import Overview


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

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page; the file appears whole, or not at all.

        Args:
            path: of the file; one that is there is replaced.

        Returns:
            Where it lies.

        Raises:
            MissingExtraError: what draws the page is not installed; the extra `report` brings it.
            OutputError: the file cannot be written.
        """
        from lmgauge.report.notebook import write_page

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
