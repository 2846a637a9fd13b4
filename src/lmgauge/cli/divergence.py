"""`lmgauge divergence`."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmgauge.cli.command import CommaList, Command, settings, under, whole_number
from lmgauge.cli.options import (
    document_option,
    html_option,
    json_option,
    model_among,
    read_texts,
    reading_settings,
    reserved_option,
    scoring_settings,
    seed_option,
    threads_option,
)
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions


@dataclass(frozen=True)
class _Choices:
    """What is compared."""

    events: int
    exhaustive: bool
    top_k: tuple[int, ...]
    seed: int
    threads: int | None


@click.command(cls=Command)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@settings(
    "choices",
    _Choices,
    "Statistics",
    whole_number("--events", default=10_000, help="About how many events to look at, in whole segments drawn at random."),
    click.option("--exhaustive", is_flag=True, help="Look at every event of the text."),
    click.option(
        "--top-k",
        default="1,5,10",
        metavar="K[,K...]",
        type=CommaList(int, "1,5,10"),
        help="Which share of A's K most probable tokens is among B's.",
    ),
    seed_option,
    threads_option,
)
@under("Output", html_option, json_option)
@reading_settings(document_option)
@scoring_settings(reserved_option)
def divergence(
    a: str,
    b: str,
    texts: tuple[str, ...],
    choices: _Choices,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    html: str | None,
    as_json: bool,
) -> None:
    """Measure how far two models' predictions are apart.

    A and B are model folders or ARPA files over the same words, e.g. before and after pruning or quantizing. TEXTS are
    files, globs or - (standard input, also if none is named): at each of their events the two distributions over the whole
    vocabulary are compared.

    \b
    lmgauge divergence kn5/ kn5-pruned/ test.txt
    lmgauge divergence kn5/ kn5-pruned/ test.txt --exhaustive --json | jq .kl_ab_nats
    """
    from lmgauge.api.divergence import divergence as run
    from lmgauge.report import divergence as report

    model = model_among(texts)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: the two models come first, then the texts: A B TEXTS...")
    corpus = read_texts(texts, reading)
    with showing_progress():
        result = run(
            a,
            b,
            corpus,
            events=None if choices.exhaustive else choices.events,
            top_k=choices.top_k,
            seed=choices.seed,
            threads=choices.threads,
            scoring=scoring,
        )
    page = None if html is None else Page(f"Divergence of {result.b} from {result.a}", report.blocks(result))
    answer(result, lambda: report.blocks(result), as_json=as_json, html=html, page=page)
