"""`lmgauge eval`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from lmgauge.api.outputs import Outputs
from lmgauge.choices import DISTRIBUTION_COLUMNS, WORD_UNITS
from lmgauge.cli.command import CommaList, Command, names_of, refuse_given, settings
from lmgauge.cli.options import (
    document_option,
    given_options,
    html_option,
    id_option,
    json_option,
    keep_option,
    model_among,
    processes_options,
    protocol_option,
    read_texts,
    reading_settings,
    reserved_option,
    run_shard,
    scoring_settings,
    shard_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import answer, say, showing_progress
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.shard import Shard
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.report.blocks import Document
    from lmgauge.text.documents import Corpus


@dataclass(frozen=True)
class _Choices:
    """What is computed."""

    by: str | None
    threads: int | None
    contexts: tuple[int, ...] | None
    per_context: str | None
    shard: Shard | None
    ray: str | None
    every_protocol: bool = False


@dataclass(frozen=True)
class _Shown:
    """How the answer is printed."""

    as_json: bool
    html: str | None


def _lengths(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    from lmgauge.models.network.options import parse_lengths

    return None if value is None else parse_lengths(value)


@click.command("eval", cls=Command)
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(),
    help="Model folder, ARPA or GGUF file, hub name, or address of a server; may be given several times.",
)
@click.option(
    "--scores",
    type=click.Path(),
    help="A score table (Parquet or JSONL) or a run folder instead of models; TEXTS, if named, are what it scored.",
)
@settings(
    "choices",
    _Choices,
    "Options",
    click.option(
        "--by",
        type=click.Choice(["group"]),
        help="Also a row for each group of segments: each file, or each value of --group.",
    ),
    threads_option,
    click.option(
        "--contexts",
        metavar="N,N...",
        callback=_lengths,
        help="Score the same tokens under contexts of these lengths (512,1k,2k; k is 1,024): what a longer one is worth.",
    ),
    click.option(
        "--per-context",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="With --contexts, also write one row per length: .tsv, .csv, .jsonl, .parquet, or - .",
    ),
    shard_option,
    click.option("--ray", metavar="ADDRESS", help="Let a Ray cluster do the work; local: one started on this machine."),
)
@settings(
    "outputs",
    Outputs,
    "Output",
    click.option(
        "-o",
        "--output",
        "folder",
        type=click.Path(),
        help="Folder for evaluation.json and scores.parquet (one folder in it for each model, if several).",
    ),
    click.option(
        "--per-segment",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Also write one row per segment: .tsv, .jsonl, or - .",
    ),
    click.option(
        "--per-token",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Also write one row per token: .tsv, .jsonl, or - .",
    ),
    click.option(
        "--columns",
        default="",
        show_default=False,
        metavar="NAMES",
        type=CommaList(str, "entropy,top10"),
        help=f"Also keep of each whole distribution, in scores.parquet and --per-token: {', '.join(DISTRIBUTION_COLUMNS)}.",
    ),
    click.option(
        "--per-word",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Also write the surprisal of each word, one row per word: .tsv, .csv, .jsonl, .parquet, or - .",
    ),
    click.option(
        "--words",
        default=WORD_UNITS[0],
        metavar="KIND",
        help="Words of --per-word: whitespace, treebank, icu, or icu:LOCALE (such as icu:ja).",
    ),
    click.option(
        "--regions",
        type=click.Path(),
        metavar="FILE",
        help="Regions in place of words in --per-word: .tsv, .csv or .jsonl with text_id, start and end or text, region.",
    ),
    training_text("to count words in, for the columns log_frequency and unseen of --per-word"),
)
@settings("shown", _Shown, "Output", json_option, html_option)
@reading_settings(document_option, id_option, keep_option, *given_options)
@scoring_settings(reserved_option, protocol_option, *processes_options)
def evaluate(
    texts: tuple[str, ...],
    models: tuple[str, ...],
    scores: str | None,
    choices: _Choices,
    outputs: Outputs,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    shown: _Shown,
) -> None:
    """Measure how well models predict a text.

    TEXTS are files, globs or - (standard input, also if none is named). One table holds all models.

    \b
    lmgauge eval -m kn5/ -m laplace2/ test.txt
    lmgauge eval -m kn5/ test.txt --json | jq '.[0].perplexity'
    """
    to_stdout = (outputs.per_segment, outputs.per_token, outputs.per_word).count("-")
    if to_stdout + shown.as_json > 1:
        raise click.UsageError("standard output takes one of --json, --per-segment -, --per-token - and --per-word -")
    if reading.keep and not outputs.wanted:
        raise click.UsageError("--keep is for rows: name where they go (--per-word, --per-segment, --per-token or -o)")
    if bool(models) == bool(scores):
        folder = model_among(texts)
        hint = f"; {folder} is a model: write -m {folder}" if folder and not models else ""
        raise click.UsageError(f"name models with -m, or a score table with --scores{hint}")
    if choices.shard is not None or choices.ray is not None:
        _in_shards(models, read_texts(texts, reading), choices, outputs, scoring, shown)
        return
    if choices.contexts is not None:
        _curve(models, read_texts(texts, reading), choices, scoring, shown)
        return
    refuse_given(("per_context",), "goes with --contexts")
    if choices.every_protocol:
        _protocols(models, read_texts(texts, reading), choices, scoring, shown)
        return
    refuse_given(("html",), "goes with --contexts and --protocol all; of an evaluation, lmgauge report makes the page")
    if scores:
        results = _evaluate_table(scores, texts, reading)
    else:
        from lmgauge.api.evaluate import evaluate as run

        corpus = read_texts(texts, reading)
        with showing_progress():
            results = run(
                models, corpus, by_group=choices.by == "group", threads=choices.threads, output=outputs, scoring=scoring
            )
    if shown.as_json or not to_stdout:
        answer(results, lambda: _document(results), as_json=shown.as_json)
    else:  # rows say nothing of what was changed or left out
        for note in dict.fromkeys(note for result in results for note in result.notes):
            say(f"note: {note}", err=True)


def _in_shards(
    models: tuple[str, ...],
    corpus: Corpus,
    choices: _Choices,
    outputs: Outputs,
    scoring: ScoringOptions,
    shown: _Shown,
) -> None:
    """Compute one shard, or all of them on Ray."""
    from lmgauge.cluster.evaluation import EvaluationJob

    option = "--shard" if choices.ray is None else "--ray"
    refuse_given(("scores", "contexts", "per_context", "html"), f"does not go with {option}")
    refuse_given(("per_segment", "per_token", "per_word"), f"does not go with {option}: it writes a run folder")
    if len(models) != 1 or choices.every_protocol:
        raise click.UsageError(f"{option} takes one model, and one protocol, at a time")
    job = EvaluationJob(
        models[0],
        corpus,
        by_group=choices.by == "group",
        columns=outputs.columns,
        scoring=scoring,
        threads=choices.threads,
    )
    if choices.shard is not None:
        refuse_given(("ray",), "does not go with --shard: it computes all shards")
        run_shard(job, choices.shard, outputs.folder, as_json=shown.as_json)
        return
    from lmgauge.cluster.on_engine import run_on_ray
    from lmgauge.evaluation.results import Evaluation, Evaluations

    with showing_progress():
        result = run_on_ray(job, choices.ray or "", outputs.folder)
    results = Evaluations((result,)) if isinstance(result, Evaluation) else result  # a table, as without --ray
    answer(results, lambda: _document(results), as_json=shown.as_json)


def _document(result: object) -> Document:
    from lmgauge.report.documents import document_of  # --json does without

    return document_of(result)


def _curve(models: tuple[str, ...], corpus: Corpus, choices: _Choices, scoring: ScoringOptions, shown: _Shown) -> None:
    from lmgauge.api.context_curve import context_curve

    refuse_given(("by", "scores", *names_of(Outputs)), "does not go with --contexts; --per-context writes rows")
    if len(models) != 1:
        raise click.UsageError("--contexts takes one model at a time")
    if choices.per_context == "-" and shown.as_json:
        raise click.UsageError("standard output takes one of --json and --per-context -")
    with showing_progress():
        curve = context_curve(
            models[0],
            corpus,
            choices.contexts or (),
            stride=scoring.stride,
            threads=choices.threads,
            output=choices.per_context,
            scoring=replace(scoring, stride=None),
        )
    if choices.per_context != "-":
        answer(curve, lambda: _document(curve), as_json=shown.as_json, html=shown.html)


def _evaluate_table(scores: str, texts: tuple[str, ...], reading: ReadingOptions) -> Evaluations:
    from lmgauge.api.evaluate import evaluate_scores
    from lmgauge.evaluation.results import Evaluations

    refuse_given(("folder",), f"needs models; lmgauge import {scores} -o RUN makes a run folder of a score table")
    refuse_given(("by", "id", *names_of(Outputs)), "needs models; a score table already is per token")
    refuse_given(names_of(ScoringOptions), "is for models; a score table already has their log-probabilities")
    if texts:
        refuse_given(("group",), "is for models; a score table gives a row for the whole text only")
    else:
        refuse_given(names_of(ReadingOptions), "is about the text that was scored; name it after the options")
    return Evaluations((evaluate_scores(scores, read_texts(texts, reading) if texts else None),))


def _protocols(models: tuple[str, ...], corpus: Corpus, choices: _Choices, scoring: ScoringOptions, shown: _Shown) -> None:
    from lmgauge.api.protocols import evaluate_protocols

    refuse_given(("by", "scores", *names_of(Outputs)), "does not go with --protocol all; name one protocol")
    if len(models) != 1:
        raise click.UsageError("--protocol all takes one model at a time")
    with showing_progress():
        table = evaluate_protocols(models[0], corpus, threads=choices.threads, scoring=scoring)
    answer(table, lambda: _document(table), as_json=shown.as_json, html=shown.html)
