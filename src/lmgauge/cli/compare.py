"""`lmgauge compare`."""

from __future__ import annotations

import click

from lmgauge.choices import COMPARED_METRICS
from lmgauge.cli.options import document_option, json_option, refuse_given, scored_text_option, seed_option, threads_option


@click.command(name="compare")
@click.argument("runs", nargs=-1, type=click.Path())
@click.option(
    "--recipe",
    "recipes",
    multiple=True,
    metavar="NAME=RUN,RUN[,...]",
    help="Instead of RUNS: several runs (seeds) of a recipe; twice or more, each is compared with the first.",
)
@scored_text_option
@document_option
@click.option(
    "--train", "train", multiple=True, type=click.Path(), help="Training text: adds slices by how often words occur in it."
)
@click.option(
    "--metric",
    type=click.Choice(COMPARED_METRICS),
    default="perplexity",
    show_default=True,
    help="What --strict asks about.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 where the metric may not be compared.")
@click.option(
    "--resamples",
    type=click.IntRange(min=1000),
    default=10_000,
    show_default=True,
    help="Of the permutation test over documents or segments.",
)
@click.option("--examples", type=click.IntRange(min=0), default=5, show_default=True, help="Tokens and segments to show.")
@click.option(
    "--details/--no-details",
    default=None,
    help="Slices of the text and examples; shown if not given where there is one comparison.",
)
@seed_option
@threads_option
@json_option
def compare(
    runs: tuple[str, ...],
    recipes: tuple[str, ...],
    texts: tuple[str, ...],
    document: str | None,
    train: tuple[str, ...],
    metric: str,
    strict: bool,
    resamples: int,
    examples: int,
    details: bool | None,
    seed: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Say whether results may be compared, and whether their difference is real.

    RUNS are folders that `lmgauge eval -o` wrote, or score tables (Parquet, JSONL); each is held against the first.

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge eval -m wb5/ test.txt -o run-wb5/
    lmgauge compare run-kn5/ run-wb5/
    lmgauge compare --recipe small=s1/,s2/,s3/ --recipe large=l1/,l2/,l3/

    A verdict is about these two models, on texts like this one, and not about the recipes that made them: --recipe is.
    """
    from lmgauge.api.verdicts import compare as run
    from lmgauge.errors import CheckFailedError, InputError
    from lmgauge.json_text import to_json
    from lmgauge.report import comparison
    from lmgauge.report.terminal import progress, show

    if recipes:
        if runs:
            raise click.UsageError("name either RUNS or --recipe, not both")
        refuse_given(("train", "metric", "strict", "resamples", "examples", "details", "seed"), "does not go with --recipe")
        _compare_recipes(recipes, texts, document, as_json=as_json)
        return
    if len(runs) < 2:
        raise click.UsageError("name two runs or more; each is held against the first")
    with progress() as status:
        status.update("comparing")
        found = run(
            list(runs),
            text=list(texts) or None,
            document=document,
            train=list(train) or None,
            resamples=resamples,
            seed=seed,
            threads=threads,
            examples=examples,
        )
    if as_json:
        click.echo(to_json(found.to_dict()))
    else:
        show(comparison.blocks(found, details=len(found) == 1 if details is None else details))
    apart = [item for item in found if not item.differences]
    failed = [item for item in found if not item.verdict(metric).comparable]
    if strict and failed:
        reason = "; ".join(failed[0].verdict(metric).reasons)
        raise CheckFailedError(f"{metric} of {failed[0].second} and {failed[0].first} may not be compared: {reason}")
    if apart:
        reasons = apart[0].verdict("bits_per_byte").reasons  # what the least demanding figure needs
        if found.text_unknown and not texts:
            remedy = "name the text with --text"
        elif found.agreements[0].agrees:
            remedy = "no part of the text is exact in both"
        else:
            remedy = "evaluate both on one text"
        raise InputError(
            f"nothing of {apart[0].second} and {apart[0].first} can be compared ({'; '.join(reasons)}); {remedy}"
        )


def _compare_recipes(recipes: tuple[str, ...], texts: tuple[str, ...], document: str | None, *, as_json: bool) -> None:
    from lmgauge.api.verdicts import compare_recipes
    from lmgauge.json_text import to_json
    from lmgauge.report import recipes as report
    from lmgauge.report.terminal import progress, show

    of_recipe: dict[str, list[str]] = {}
    for recipe in recipes:
        name, equals, runs = recipe.partition("=")
        if not (name and equals and runs):
            raise click.UsageError(f"--recipe {recipe}: write a name, =, and the runs with commas between: A=run1,run2,run3")
        if name in of_recipe:
            raise click.UsageError(f"--recipe {name}: named twice; put all its runs into one --recipe")
        of_recipe[name] = [run for run in runs.split(",") if run]
    with progress() as status:
        status.update("comparing")
        found = compare_recipes(of_recipe, text=list(texts) or None, document=document)
    if as_json:
        click.echo(to_json([item.to_dict() for item in found]))
    else:
        show(report.blocks(found))
