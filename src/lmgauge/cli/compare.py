"""What `lmgauge compare` does besides calling its verbs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lmgauge.choices import ComparedMetric
from lmgauge.cli.derive import Call

if TYPE_CHECKING:
    from lmgauge.evaluation.comparison.results import Comparisons
    from lmgauge.report.blocks import Document


def compare(call: Call) -> None:
    """Print the comparisons of runs or of recipes, and fail where they may not be made."""
    from lmgauge.api.compare import compare_recipes
    from lmgauge.cli.report import with_page

    if call["recipes"]:
        call.refuse(call.values.keys() - {"recipes", "text", "document", "threads"}, "does not go with --recipe")
        call.answer(call(compare_recipes, recipes=_by_name(call["recipes"])))
        return
    page = None
    if call.html is None or len(call["runs"]) < 2:
        comparisons = call()
    else:
        overview, page = with_page(call, call["runs"])
        assert overview.comparisons is not None
        comparisons = overview.comparisons.with_examples(call["examples"])
    call.answer(comparisons, lambda: call(shown, comparisons=comparisons), page)
    call(check, comparisons=comparisons)


def shown(*, comparisons: Comparisons, details: bool | None = None) -> Document:
    """Return what is printed.

    Args:
        details: slices of the text and examples; if not given, where there is one comparison.
    """
    from lmgauge.report.comparison import blocks

    return blocks(comparisons, details=len(comparisons) == 1 if details is None else details)


def check(*, comparisons: Comparisons, strict: bool = False, metric: ComparedMetric = "perplexity") -> None:
    """Fail where runs may not be compared.

    Args:
        strict: exit with 1 where the metric may not be compared.
        metric: what --strict asks about.
    """
    if strict:
        comparisons.require(metric)
    comparisons.require()


def _by_name(recipes: Iterable[str]) -> dict[str, list[str]]:
    """Return the runs of each recipe, of NAME=RUN,RUN.

    Raises:
        click.UsageError: it is not so written, or a name is there twice.
    """
    runs: dict[str, list[str]] = {}
    for recipe in recipes:
        name, equals, listed = recipe.partition("=")
        if not (name and equals and listed):
            raise click.UsageError(f"--recipe {recipe}: write a name, =, and the runs with commas between: A=run1,run2,run3")
        if name in runs:
            raise click.UsageError(f"--recipe {name}: named twice; put all its runs into one --recipe")
        runs[name] = [run for run in listed.split(",") if run]
    return runs
