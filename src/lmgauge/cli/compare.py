"""`lmgauge compare`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.choices import COMPARED_METRICS
from lmgauge.cli.command import Command, names_of, refuse_given, settings, whole_number
from lmgauge.cli.options import (
    document_option,
    html_option,
    json_option,
    scored_text_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import Page, answer, showing_progress

if TYPE_CHECKING:
    from lmgauge.evaluation.comparison.results import Comparisons


@dataclass(frozen=True)
class _Choices:
    """How runs are compared: arguments of `lmgauge.compare`."""

    document: str | None
    threads: int | None
    examples: int


@dataclass(frozen=True)
class _Shown:
    """What is printed, and when the command fails."""

    metric: str
    strict: bool
    details: bool | None
    html: str | None
    as_json: bool


@click.command("compare", cls=Command)
@click.argument("runs", nargs=-1, type=click.Path())
@click.option(
    "--recipe",
    "recipes",
    multiple=True,
    metavar="NAME=RUN,RUN[,...]",
    help="Instead of RUNS: several runs (seeds) of a recipe; twice or more, each is compared with the first.",
)
@scored_text_option
@training_text("for slices by how often words occur in it")
@settings(
    "choices",
    _Choices,
    "Statistics",
    document_option,
    threads_option,
    whole_number("--examples", least=0, default=5, help="Tokens and segments to show."),
)
@settings(
    "shown",
    _Shown,
    "Output",
    click.option(
        "--metric",
        type=click.Choice(COMPARED_METRICS),
        default="perplexity",
        help="What --strict asks about.",
    ),
    click.option("--strict", is_flag=True, help="Exit with 1 where the metric may not be compared."),
    click.option(
        "--details/--no-details",
        default=None,
        help="Slices of the text and examples; shown if not given where there is one comparison.",
    ),
    html_option,
    json_option,
)
def compare(
    runs: tuple[str, ...],
    recipes: tuple[str, ...],
    texts: tuple[str, ...],
    train: tuple[str, ...],
    choices: _Choices,
    shown: _Shown,
) -> None:
    """Say whether results may be compared, and whether their difference is real.

    RUNS are folders that `lmgauge eval -o` wrote, or score tables (Parquet, JSONL); each is compared with the first.

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge eval -m wb5/ test.txt -o run-wb5/
    lmgauge compare run-kn5/ run-wb5/
    lmgauge compare --recipe small=s1/,s2/,s3/ --recipe large=l1/,l2/,l3/

    A verdict is about these two models, on texts like this one, and not about the recipes that made them: --recipe is.
    """
    from lmgauge.api.compare import compare as run
    from lmgauge.report import comparison

    if recipes:
        if runs:
            raise click.UsageError("name either RUNS or --recipe, not both")
        refused = {"train", *names_of(_Choices), *names_of(_Shown)} - {"document", "as_json", "html", "threads"}
        refuse_given(refused, "does not go with --recipe")
        _compare_recipes(recipes, texts, choices.document, shown)
        return
    if len(runs) < 2:
        raise click.UsageError("name two runs or more; each is compared with the first")
    text, training = list(texts) or None, list(train) or None
    page = None
    with showing_progress("comparing"):
        if shown.html is None:
            comparisons = run(list(runs), text=text, train=training, **asdict(choices))
        else:
            comparisons, page = _with_page(runs, text, training, choices)
    details = len(comparisons) == 1 if shown.details is None else shown.details
    answer(
        comparisons,
        lambda: comparison.blocks(comparisons, details=details),
        as_json=shown.as_json,
        html=shown.html,
        page=page,
    )
    _fail_where_not_comparable(comparisons, shown, text_named=bool(texts))


def _fail_where_not_comparable(comparisons: Comparisons, shown: _Shown, *, text_named: bool) -> None:
    from lmgauge.errors import CheckFailedError, InputError

    failed = [item for item in comparisons if not item.verdict(shown.metric).comparable]
    if shown.strict and failed:
        reason = "; ".join(failed[0].verdict(shown.metric).reasons)
        raise CheckFailedError(f"{shown.metric} of {failed[0].second} and {failed[0].first} may not be compared: {reason}")
    apart = [item for item in comparisons if not item.differences]
    if not apart:
        return
    reasons = apart[0].verdict("bits_per_byte").reasons  # what the least demanding figure needs
    if comparisons.text_unknown and not text_named:
        remedy = "name the text with --text"
    elif comparisons.agreements[0].agrees:
        remedy = "no part of the text is exact in both"
    else:
        remedy = "evaluate both on one text"
    raise InputError(f"nothing of {apart[0].second} and {apart[0].first} can be compared ({'; '.join(reasons)}); {remedy}")


def _with_page(
    runs: tuple[str, ...], text: list[str] | None, train: list[str] | None, choices: _Choices
) -> tuple[Comparisons, Page]:
    """Return runs compared as the options say, and the page that `lmgauge report` makes of them."""
    from lmgauge.api.report import overview_of, page_of
    from lmgauge.evaluation.overview import OverviewSettings
    from lmgauge.evaluation.passages import PassageSettings

    settings = OverviewSettings(passages=PassageSettings(), examples=choices.examples, threads=choices.threads)
    overview = overview_of(runs, settings, text=text, document=choices.document, train=train)
    assert overview.comparisons is not None
    page = page_of(overview)
    return overview.comparisons.with_examples(choices.examples), Page(page.title, page.document)


def _compare_recipes(recipes: tuple[str, ...], texts: tuple[str, ...], document: str | None, shown: _Shown) -> None:
    from lmgauge.api.compare import compare_recipes
    from lmgauge.report import recipes as report

    of_recipe: dict[str, list[str]] = {}
    for recipe in recipes:
        name, equals, runs = recipe.partition("=")
        if not (name and equals and runs):
            raise click.UsageError(f"--recipe {recipe}: write a name, =, and the runs with commas between: A=run1,run2,run3")
        if name in of_recipe:
            raise click.UsageError(f"--recipe {name}: named twice; put all its runs into one --recipe")
        of_recipe[name] = [run for run in runs.split(",") if run]
    with showing_progress("comparing"):
        comparisons = compare_recipes(of_recipe, text=list(texts) or None, document=document)
    answer(
        [item.to_dict() for item in comparisons], lambda: report.blocks(comparisons), as_json=shown.as_json, html=shown.html
    )
