"""`lmgauge divergence`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lmgauge.cli.options import (
    corpus_of,
    document_option,
    json_option,
    neural_options,
    refuse_unused,
    reserved_option,
    scoring_options,
    seed_option,
    text_options,
    threads_option,
)


def _ranks(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        ranks = tuple(int(part) for part in value.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers like 1,5,10") from error
    if min(ranks) < 1:
        raise click.BadParameter(f"{value!r}: give whole numbers from 1")
    return ranks


@click.command()
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--events",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="About how many events to look at, in whole segments drawn at random.",
)
@click.option("--exhaustive", is_flag=True, help="Look at every event of the text.")
@click.option(
    "--top-k",
    default="1,5,10",
    show_default=True,
    metavar="K[,K...]",
    callback=_ranks,
    help="Which share of A's K most probable tokens is among B's.",
)
@neural_options
@reserved_option
@seed_option
@text_options
@document_option
@threads_option
@json_option
def divergence(a: str, b: str, texts: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Measure how far two models' predictions are apart.

    A and B are model folders or ARPA files over the same words, e.g. before and after pruning or quantising. TEXTS are
    files, globs or - (standard input, also if none is named): at each of their events the two distributions over the whole
    vocabulary are compared.

    \b
    lmgauge divergence kn5/ kn5-pruned/ test.txt
    lmgauge divergence kn5/ kn5-pruned/ test.txt --exhaustive --json | jq .kl_ab_nats
    """
    from lmgauge.evaluation.divergence.divergence import DivergenceSettings
    from lmgauge.evaluation.divergence.divergence import divergence as run
    from lmgauge.json_text import to_json
    from lmgauge.models.mixture.model import with_reserved
    from lmgauge.models.mixture.vocabulary_alignment import aligned
    from lmgauge.models.registry import model_names, open_model
    from lmgauge.report.divergence import print_divergence
    from lmgauge.report.terminal import progress

    model = next((text for text in texts if Path(text, "config.json").is_file()), None)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: the two models come first, then the texts: A B TEXTS...")
    corpus = corpus_of(texts, options)
    with progress() as status:
        status.update("loading")
        models = [open_model(path, scoring_options(options)) for path in (a, b)]
        refuse_unused(options, models)
        if options["reserved"]:
            models = with_reserved(models, options["reserved"])
        first, second = models[0], aligned(models[1], models[0], names=(b, a))
        names = model_names((a, b), models)
        status.update("scoring")
        result = run(
            first,
            second,
            corpus,
            DivergenceSettings(
                events=None if options["exhaustive"] else options["events"],
                top_k=options["top_k"],
                seed=options["seed"],
                threads=options["threads"],
            ),
            names=(names[0], names[1]),
            progress=lambda done, total: status.update(f"compared {done:,} of {total:,} events"),
        )
    if as_json:
        click.echo(to_json(result.to_dict()))
    else:
        print_divergence(result)
