"""`lmgauge divergence`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.cli.command import CommaList, Command, settings, whole_number
from lmgauge.cli.options import (
    document_option,
    html_option,
    json_option,
    model_among,
    models_and_texts,
    read_texts,
    reading_settings,
    reserved_option,
    scoring_settings,
    seed_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import Page, answer, showing_progress, write_page
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.results import CandidateDivergences, Divergence


@dataclass(frozen=True)
class _Choices:
    """How models are compared: arguments of `lmgauge.divergence`."""

    events: int
    exhaustive: bool
    top_k: tuple[int, ...]
    examples: int
    seed: int
    threads: int | None


@dataclass(frozen=True)
class _Shown:
    """What is printed."""

    details: bool | None
    llama_cpp: bool
    html: str | None
    as_json: bool


@click.command(cls=Command)
@click.argument("base", type=click.Path())
@click.argument("candidate", type=click.Path())
@click.argument("paths", nargs=-1, type=click.Path(allow_dash=True), metavar="[CANDIDATE]... [TEXT]...")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="With --exhaustive: a folder for the candidate's run (several: one each in it), with KL from the base in its rows.",
)
@training_text("for slices by how often words occur in it")
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
        help="Which share of the base's K most probable tokens is among the candidate's.",
    ),
    whole_number("--examples", least=0, default=5, help="Tokens to show of each kind."),
    seed_option,
    threads_option,
)
@settings(
    "shown",
    _Shown,
    "Output",
    click.option(
        "--details/--no-details",
        default=None,
        help="Slices of the text and worst tokens; shown if not given where there is one candidate.",
    ),
    click.option(
        "--llama-cpp", is_flag=True, help="Print the figures as llama-perplexity --kl-divergence does, under its names."
    ),
    html_option,
    json_option,
)
@reading_settings(document_option)
@scoring_settings(reserved_option)
def divergence(
    base: str,
    candidate: str,
    paths: tuple[str, ...],
    output: str | None,
    train: tuple[str, ...],
    choices: _Choices,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    shown: _Shown,
) -> None:
    """Measure how far models' predictions are from those of a base.

    BASE and CANDIDATE are model folders, GGUF or ARPA files over the same tokens, e.g. before and after quantizing. There
    may be several candidates. TEXT are files, globs or - (standard input, also if none is named): at each of their events
    the distributions over the whole vocabulary are compared.

    \b
    lmgauge divergence base.gguf q8.gguf q4.gguf test.txt
    lmgauge divergence kn5/ kn5-pruned/ test.txt --exhaustive --json | jq .[0].kl_ab_nats
    """
    from lmgauge.api.divergence import divergence as run
    from lmgauge.report import candidates as report

    more, texts = models_and_texts(paths)
    model = model_among(texts)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: models come first, then texts: BASE CANDIDATE... TEXT...")
    corpus = read_texts(texts, reading)
    with showing_progress():
        result = run(
            base,
            [candidate, *more],
            corpus,
            events=None if choices.exhaustive else choices.events,
            top_k=choices.top_k,
            train=list(train) or None,
            examples=choices.examples,
            seed=choices.seed,
            threads=choices.threads,
            output=output,
            scoring=scoring,
        )
    if shown.llama_cpp and not shown.as_json:
        click.echo("\n\n".join(_as_llama_cpp(item) for item in result))
        if shown.html is not None:
            write_page(shown.html, _page(result))
        return
    answer(
        result,
        lambda: report.blocks(result, details=shown.details),
        as_json=shown.as_json,
        html=shown.html,
        page=None if shown.html is None else _page(result),
    )


def _as_llama_cpp(item: Divergence) -> str:
    from lmgauge.readable import visible

    return f"{visible(item.b)} (Q) compared with {visible(item.a)} (base), {item.events:,} tokens\n{item.to_llama_cpp()}"


def _page(result: CandidateDivergences) -> Page:
    from lmgauge.report import candidates as report

    names = ", ".join(item.b for item in result)
    return Page(f"Divergence of {names} from {result[0].a}", report.blocks(result, details=True))
