"""Which document shows a result, by one table from kinds of results to builders; and documents in notebooks and as pages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.base.display import Displayable
from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.base.files import making_parents, writing
from lmgauge.report.blocks import Block, ChartData, Document, Verdict, named
from lmgauge.report.formats import names_in_brief

if TYPE_CHECKING:
    from lmgauge.evaluation.overview import Overview

_WIDTH = 120
_Builder = Callable[[Any], Document]


def _by(module: str, function: str = "blocks", *, alone: bool = False) -> _Builder:
    def build(result: Any) -> Document:
        builder = getattr(import_module(f"lmgauge.report.{module}"), function)
        return tuple(builder([result] if alone else result))

    return build


_BUILDERS: Mapping[str, _Builder] = {
    "Evaluation": _by("evaluations", alone=True),
    "Evaluations": _by("evaluations"),
    "SplitEvaluation": _by("overlap", "split_blocks"),
    "Comparison": _by("comparison", "blocks_of_one"),
    "Comparisons": _by("comparison"),
    "RecipeComparison": _by("comparison", "recipe_blocks", alone=True),
    "RecipeComparisons": _by("comparison", "recipe_blocks"),
    "Decision": _by("comparison", "decision_blocks", alone=True),
    "EngineAgreement": _by("agreement"),
    "AgreementSeries": _by("agreement", "series_blocks"),
    "ContextCurve": _by("context_curve"),
    "Estimate": _by("estimate"),
    "Diagnosis": _by("diagnosis"),
    "Ladder": _by("diagnosis", "ladder_blocks"),
    "Divergence": _by("divergence"),
    "CandidateDivergences": _by("divergence", "candidate_blocks"),
    "SavedBase": _by("divergence", "base_blocks"),
    "Audit": _by("audit"),
    "Overlap": _by("overlap"),
    "Membership": _by("membership"),
    "Choices": _by("choices"),
    "Systems": _by("tasks"),
    "BleuScore": _by("tasks", "score_blocks"),
    "ChrfScore": _by("tasks", "score_blocks"),
    "TerScore": _by("tasks", "score_blocks"),
    "ErrorRates": _by("tasks", "score_blocks"),
    "F1Score": _by("tasks", "score_blocks"),
    "LabelScores": _by("tasks", "label_blocks"),
    "Alignment": _by("tasks", "alignment_blocks"),
    "AlignedSegment": _by("tasks", "aligned_blocks", alone=True),
    "ErrorCounts": _by("tasks", "error_blocks_of_one"),
    "Rescored": _by("tasks", "rescored_blocks"),
    "Correlation": _by("tasks", "correlation_blocks"),
    "ItemComparisons": _by("items"),
    "CalcResult": _by("calc"),
    "Info": _by("info"),
    "ItemScores": _by("info", "item_blocks"),
    "Checkup": _by("info", "checkup_blocks"),
    "Selection": _by("filtering", "selection_blocks"),
    "SplitText": _by("info", "split_blocks"),
    "ScoredText": _by("surprisal", "text_blocks"),
    "ScoredTexts": _by("surprisal", "several_texts"),
    "WordSurprisals": _by("surprisal", "word_blocks"),
    "MixtureModel": _by("models", "mixture_blocks"),
    "SpelledModel": _by("models", "model_blocks"),
    "MixtureFit": _by("models", "fit_blocks"),
    "NgramCounts": _by("models", "count_blocks"),
    "PrunedModel": _by("models", "pruned_blocks"),
    "StaticMixture": _by("models", "static_blocks"),
    "Percentiles": _by("filtering", "percentile_blocks"),
    "NeuralTraining": _by("models", "training_blocks"),
    "FinishedShard": _by("info", "shard_blocks"),
    "FilteredDocuments": _by("filtering"),
}
"""The builder of each kind of result, by the name of its class, so that no result is loaded to show another."""

KINDS = tuple(_BUILDERS)
"""Names of the classes of results that can be shown."""


def document_of(result: object) -> Document:
    """Return what is shown of a result, in the terminal, in a notebook and on a page."""
    for kind in type(result).__mro__:
        if kind.__name__ in _BUILDERS and kind.__module__.startswith("lmgauge."):
            return _BUILDERS[kind.__name__](result)
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return tuple(block for item in result for block in document_of(item))
    raise TypeError(f"{type(result).__name__} is not a result that can be shown")


# -- notebooks and pages ------------------------------------------------------------------------------------------------
def charts(document: Iterable[Block]) -> dict[str, ChartData]:
    """Return the charts of a document by their names; of several with one name those after the first have a number."""
    return dict(named(block for block in document if isinstance(block, ChartData)))


def chart(document: Iterable[Block], name: str | None = None) -> ChartData:
    """Return one chart of a document, which needs no name where it is the only one."""
    known = charts(document)
    name = next(iter(known)) if name is None and len(known) == 1 else name
    if name not in known:
        names = f"there are {', '.join(known)}" if known else "this result has none"
        wrong = "no chart was named" if name is None else f"no chart is called {name!r}"
        raise UsageError(f"{wrong}; {names}")
    return known[name]


def fragment(document: Document) -> str:
    """Return blocks as HTML for a notebook; without the extra `report` as what the terminal shows, escaped."""
    from lmgauge.report import page, terminal

    for count in (1, 0):
        try:
            return page.fragment(document, charts=count)
        except MissingExtraError:
            continue
    return f'<pre style="white-space: pre; overflow-x: auto">{escape(terminal.as_text(document, _WIDTH))}</pre>'


def write_page(document: Document, path: str | os.PathLike[str], title: str, about: Sequence[tuple[str, str]] = ()) -> Path:
    """Write a document as a page."""
    from lmgauge.report import page

    content = page.render(document, title, about).encode()
    with making_parents(Path(path)), writing(path) as file:
        file.write(content)
    return Path(path)


@dataclass(frozen=True, repr=False)
class Report(Displayable):
    """A page, before it is written.

    Attributes:
        title: of the page.
        document: what is on it: blocks, in the order of reading.
        numbers: behind it, as plain values.
        about: names and values that stand under the title: the texts, and the command that makes the page.

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
    about: tuple[tuple[str, str], ...] = ()

    @property
    def verdicts(self) -> Document:
        """The answers on the page, in order."""
        return tuple(block for block in self.document if isinstance(block, Verdict))

    def html(self) -> str:
        """Return the page: one HTML file that opens without a network.

        Raises:
            MissingExtraError: what draws it is not installed; the extra `report` brings it.
        """
        from lmgauge.report import page

        return page.render(self.document, self.title, self.about)

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
        return write_page(self.document, path, self.title, self.about)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, full precision; infinities stay floats."""
        return dict(self.numbers)

    def _in_brief(self) -> str:
        return self.title

    def _document(self) -> Document:
        return self.document


def page_of(overview: Overview, title: str | None = None, runs: Sequence[Any] = (), **options: Any) -> Report:
    """Return the page of what was worked out of runs; its title are their names if there is no other."""
    # runs, options: what it was made of, for the command under the title; what a shell cannot name is left out.
    from lmgauge.report.overview import blocks, order_on_page

    named = {name: _paths(value) for name, value in options.items()}
    words = [word for name, values in named.items() for value in values for word in (f"--{name}", value)]
    command = ["lmgauge", "report", *_paths(runs), *words] if runs else []
    train = names_in_brief([Path(path).name for path in named.get("train", ())])
    pairs = (("test text", overview.text_name), ("training text", train), ("command", shlex.join(command)))
    about = tuple((name, value) for name, value in pairs if value)
    title = title or names_in_brief([overview.runs[i] for i in order_on_page(overview.runs)])
    return Report(title, blocks(overview), overview.to_dict(), about)


def _paths(named: Any) -> list[str]:
    each = named if isinstance(named, Sequence) and not isinstance(named, str) else [named]
    return [os.fspath(one) for one in each if isinstance(one, str | os.PathLike)]


def page_of_results(results: Sequence[Displayable], title: str | None = None) -> Report:
    """Return the page of results; its title are their kinds if there is no other."""
    numbers = [one.to_dict() for one in results if hasattr(one, "to_dict")]
    return Report(
        title or names_in_brief([type(one).__name__ for one in results]), document_of(results), {"results": numbers}
    )
