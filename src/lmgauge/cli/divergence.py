"""`lmgauge divergence`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.choices import BASE_TYPES, DEFAULT_BASE_SAMPLES, DEFAULT_BASE_TOP, BaseType
from lmgauge.cli.command import CommaList, Command, refuse_given, settings, whole_number
from lmgauge.cli.options import (
    document_option,
    given_options,
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
    from collections.abc import Sequence

    from lmgauge.evaluation.divergence.results import CandidateDivergences, Divergence
    from lmgauge.text.documents import Corpus


@dataclass(frozen=True)
class _Choices:
    """How models are compared: arguments of `lmgauge.divergence`."""

    events: int
    exhaustive: bool
    top_k: tuple[int, ...]
    examples: int
    seed: int
    threads: int | None

    @property
    def asked_events(self) -> int | None:
        """About how many events to look at; None for all."""
        return None if self.exhaustive else self.events


@dataclass(frozen=True)
class _Storing:
    """What is stored of a base, or where it was stored."""

    save_base: str | None
    base_file: str | None
    base_top: int
    base_samples: int
    exact: BaseType | None


@dataclass(frozen=True)
class _Shown:
    """What is printed and written."""

    output: str | None
    details: bool | None
    llama_cpp: bool
    html: str | None
    as_json: bool


@click.command(cls=Command)
@click.argument("base", type=click.Path())
@click.argument("paths", nargs=-1, type=click.Path(allow_dash=True), metavar="CANDIDATE... [TEXT]...")
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
    "storing",
    _Storing,
    "Stored bases",
    click.option(
        "--save-base",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Store what BASE predicts in FILE, and compare nothing: BASE TEXT... --save-base FILE.",
    ),
    click.option(
        "--base",
        "base_file",
        type=click.Path(),
        metavar="FILE",
        help="Compare with a stored base: --base FILE CANDIDATE... TEXT...",
    ),
    whole_number(
        "--base-top", default=DEFAULT_BASE_TOP, help="With --save-base: most probable tokens of each event to store."
    ),
    whole_number(
        "--base-samples",
        default=DEFAULT_BASE_SAMPLES,
        help="With --save-base: tokens to draw from the rest for each unit of its probability; more narrow the bounds.",
    ),
    click.option(
        "--exact",
        type=click.Choice(BASE_TYPES),
        help="With --save-base: store whole distributions, in this type.",
    ),
)
@settings(
    "shown",
    _Shown,
    "Output",
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        help="With --exhaustive: a folder for the candidate's run (several: one each in it), with KL from the base in its "
        "rows.",
    ),
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
@reading_settings(document_option, *given_options)
@scoring_settings(reserved_option)
def divergence(
    base: str,
    paths: tuple[str, ...],
    train: tuple[str, ...],
    choices: _Choices,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    storing: _Storing,
    shown: _Shown,
) -> None:
    """Measure how far models' predictions are from those of a base.

    BASE and CANDIDATE are model folders, GGUF or ARPA files over the same tokens, e.g. before and after quantizing. There
    may be several candidates. TEXT are files, globs or - (standard input, also if none is named): at each of their events
    the distributions over the whole vocabulary are compared.

    \b
    lmgauge divergence base.gguf q8.gguf q4.gguf test.txt
    lmgauge divergence kn5/ kn5-pruned/ test.txt --exhaustive --json | jq .[0].kl_ab_nats
    lmgauge divergence base/ test.txt --save-base base.parquet
    lmgauge divergence --base base.parquet q8.gguf q4.gguf test.txt
    """
    models, texts = _named(base, paths, storing)
    corpus = read_texts(texts, reading)
    if storing.save_base is not None:
        _store(base, corpus, storing, choices, scoring, shown)
        return
    from lmgauge.api.divergence import divergence as run
    from lmgauge.evaluation.divergence.base_file import BaseFile
    from lmgauge.report import candidates as report

    with showing_progress():
        result = run(
            models.pop(0) if storing.base_file is None else BaseFile(storing.base_file),
            models,
            corpus,
            events=choices.asked_events,
            top_k=choices.top_k,
            train=list(train) or None,
            examples=choices.examples,
            seed=choices.seed,
            threads=choices.threads,
            output=shown.output,
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


_OF_COMPARING = ("base_file", "top_k", "train", "examples", "output", "details", "llama_cpp", "html")


def _named(base: str, paths: Sequence[str], storing: _Storing) -> tuple[list[str], list[str]]:
    """Return the models that were named, the base first where it is one of them, and the texts.

    Raises:
        click.UsageError: no candidate is named, a model stands among the texts, or options do not go together.
    """
    saving, stored = storing.save_base is not None, storing.base_file is not None
    if saving:
        refuse_given(_OF_COMPARING, "compares, and --save-base only stores; leave it out")
    else:
        refuse_given(("base_top", "base_samples", "exact"), "says what --save-base stores; leave it out, or add --save-base")
    if stored:
        refuse_given(("events", "exhaustive", "seed"), "is settled by the stored base; leave it out")
    if not (saving or stored or paths):
        raise click.UsageError("Missing argument 'CANDIDATE...'.")
    # A name that is neither a folder nor a known ending can be a model where one must stand.
    least = 0 if saving or stored else 1
    more, texts = models_and_texts(paths[least:])
    models = [base, *paths[:least], *more]
    if saving and more:
        raise click.UsageError(f"--save-base stores one model, and {more[0]} is another: BASE TEXT... --save-base FILE")
    model = model_among(texts)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: models come first, then texts: BASE CANDIDATE... TEXT...")
    return models, texts


def _store(base: str, corpus: Corpus, storing: _Storing, choices: _Choices, scoring: ScoringOptions, shown: _Shown) -> None:
    from lmgauge.api.stored_base import save_base
    from lmgauge.report.stored_base import blocks

    assert storing.save_base is not None
    with showing_progress():
        saved = save_base(
            base,
            corpus,
            storing.save_base,
            events=choices.asked_events,
            top=storing.base_top,
            samples=storing.base_samples,
            exact=storing.exact,
            seed=choices.seed,
            threads=choices.threads,
            scoring=scoring,
        )
    answer(saved, lambda: blocks(saved), as_json=shown.as_json)


def _as_llama_cpp(item: Divergence) -> str:
    from lmgauge.readable import visible

    return f"{visible(item.b)} (Q) compared with {visible(item.a)} (base), {item.events:,} tokens\n{item.to_llama_cpp()}"


def _page(result: CandidateDivergences) -> Page:
    from lmgauge.report import candidates as report

    names = ", ".join(item.b for item in result)
    return Page(f"Divergence of {names} from {result[0].a}", report.blocks(result, details=True))
