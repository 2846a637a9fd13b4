"""Recipes compared through several runs: the verdict, the figures of each, and where the variance comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmgauge.evaluation.comparison.recipes import RecipeComparison
from lmgauge.figures import TITLES
from lmgauge.report import blocks as doc
from lmgauge.report.comparison import change_cells, difference_chart
from lmgauge.report.formats import in_words, p_equals


def blocks(comparisons: Sequence[RecipeComparison]) -> doc.Document:
    """Return the verdict, figures and notes of each recipe compared with the first."""
    return tuple(block for item in comparisons for block in _one(item, len(comparisons)))


def _one(item: RecipeComparison, recipes: int) -> doc.Document:
    perplexity, name = item.metric == "perplexity", TITLES[item.metric]
    digits = 2 if perplexity else 4
    gap, between = change_cells(item.difference, item.interval, perplexity=perplexity)
    better = item.second if item.figures[1] < item.figures[0] else item.first
    tested = p_equals(item.p_value_holm) + (f", adjusted for {recipes} recipes (Holm)" if recipes > 1 else "")
    level: doc.Level = "good" if item.significant else "unknown"
    verdict = f"is real: recipe {better} is better" if item.significant else "is not significant"
    difference = f"difference {in_words(gap)} (95 % interval {in_words(between)})"
    columns = (
        doc.labels("recipe", [item.first, item.second]),
        doc.numbers("runs", item.runs, form="count"),
        doc.numbers("mean", item.figures, digits),
        doc.numbers("lowest", [min(values) for values in item.values], digits, drop=2),
        doc.numbers("highest", [max(values) for values in item.values], digits, drop=1),
    )
    share = 100 * item.seed_share
    return (
        doc.Heading(f"{item.second} compared with {item.first}"),
        doc.Verdict(level, f"{name}: {difference}. The difference of the recipes {verdict} ({tested})."),
        doc.Table(columns, f"{name} by recipe"),
        *_charts(item),
        *doc.notes(
            (
                f"Of the variance {share:.0f} % comes from the seeds, {100 - share:.0f} % from the text.",
                f"Error from the text: {item.independence}.",
                "The runs of a recipe are taken as independent.",
                *item.notes,
            )
        ),
    )


def _charts(item: RecipeComparison) -> doc.Document:
    recipes = (item.first, item.second)
    runs = [recipe for recipe, values in zip(recipes, item.values, strict=True) for _ in values]
    values = [value for of_recipe in item.values for value in of_recipe]
    series = (doc.series("runs", runs, values), doc.series("mean", recipes, item.figures))
    name, unit = TITLES[item.metric], "" if item.metric == "perplexity" else "bits"
    chart = doc.ChartData("recipes", f"{name.capitalize()} of the runs of each recipe", "recipe", name, unit, series)
    return (
        replace(chart, kind="intervals", better="lower"),
        difference_chart([(item.second, item.difference, item.interval)], item.first, item.metric),
    )
