"""`lmgauge eval`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmgauge.cli.options import (
    NEURAL_OPTIONS,
    TEXT_OPTIONS,
    corpus_of,
    document_option,
    json_option,
    neural_options,
    refuse_given,
    refuse_unused,
    reserved_option,
    scoring_options,
    show_speed,
    text_options,
    threads_option,
)
from lmgauge.context_policy import policy_of
from lmgauge.files import refuse_replacing

if TYPE_CHECKING:
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments


@click.command(name="eval")
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
    help="A score table (Parquet or JSONL) instead of models; TEXTS, if named, are what it scored.",
)
@click.option(
    "--by",
    type=click.Choice(["group"]),
    help="Also a row for each group of segments: each file, or each value of --group.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Folder for evaluation.json and scores.parquet (a folder a model, if several).",
)
@click.option(
    "--per-segment",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Also write a row a segment: .tsv, .jsonl, or - .",
)
@click.option(
    "--per-token",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Also write a row an event: .tsv, .jsonl, or - .",
)
@neural_options
@reserved_option
@click.option(
    "--columns",
    default="",
    metavar="NAMES",
    help="Also fill entropy, rank or both (entropy,rank) in scores.parquet and --per-token; slow.",
)
@text_options
@document_option
@click.option(
    "--id",
    metavar="NAME",
    help="Field or column with the id of a record, for --per-segment, --per-token and scores.parquet; its file and line, "
    "if not given.",
)
@threads_option
@json_option
def evaluate(texts: tuple[str, ...], models: tuple[str, ...], scores: str | None, as_json: bool, **options: Any) -> None:
    """Measure how well models predict a text.

    TEXTS are files, globs or - (standard input, also if none is named). One table holds all models.

    \b
    lmgauge eval -m kn5/ -m laplace2/ test.txt
    lmgauge eval -m kn5/ test.txt --json | jq '.[0].perplexity'
    """
    from lmgauge.json_text import to_json
    from lmgauge.report.terminal import print_evaluations

    if len(set(models)) < len(models):
        raise click.UsageError("the same model is named twice")
    if [options["per_segment"], options["per_token"], "-" if as_json else None].count("-") > 1:
        raise click.UsageError("standard output takes one of --json, --per-segment - and --per-token -")
    if bool(models) == bool(scores):
        raise click.UsageError("name models with -m, or a score table with --scores")
    results = _evaluate_table(scores, texts, options) if scores else _evaluate_models(texts, models, options)
    if as_json:
        click.echo(to_json(results.to_dict()))
    elif "-" not in (options["per_segment"], options["per_token"]):
        print_evaluations(results)
    else:  # rows say nothing of what was changed or left out
        for note in dict.fromkeys(note for result in results for note in result.notes):
            click.echo(f"note: {note}", err=True)


def _evaluate_table(scores: str, texts: tuple[str, ...], options: dict[str, Any]) -> Evaluations:
    from lmgauge.evaluation.origin import Origin
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.evaluation.tables import evaluate_scores
    from lmgauge.scores import read_metadata, read_scores

    for name in ("by", "output", "per_segment", "per_token", "columns", "id"):
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs models; a score table already is per token")
    refuse_given((*NEURAL_OPTIONS, "reserved"), "is for models; a score table already has their log-probabilities")
    if texts:
        refuse_given(("group",), "is for models; a score table gives a row for the whole text only")
    else:
        refuse_given((*TEXT_OPTIONS, "document"), "is about the text that was scored; name it after the options")
    corpus = corpus_of(texts, options) if texts else None
    name = Path(scores).name
    origin = Origin.of_metadata(read_metadata(scores), name)
    return Evaluations((evaluate_scores(read_scores(scores), origin=origin, corpus=corpus),))


def _evaluate_models(texts: tuple[str, ...], paths: tuple[str, ...], options: dict[str, Any]) -> Evaluations:
    from lmgauge.evaluation.evaluate import evaluate as run
    from lmgauge.models.registry import load_model, model_names
    from lmgauge.report.terminal import progress

    corpus = corpus_of(texts, options)
    outputs = {"--per-segment": options["per_segment"], "--per-token": options["per_token"]}
    if len(paths) == 1:  # several models have folders of their own in it
        outputs["-o"] = options["output"]
    refuse_replacing(outputs, [*paths, *(source.path for source in corpus.sources)])
    scoring = scoring_options(options)
    with ExitStack() as stack:
        status = stack.enter_context(progress())
        status.update("loading")
        models = [load_model(path, scoring) for path in paths]
        refuse_unused(options, models)
        if options["reserved"]:
            from lmgauge.models.mixture.model import with_reserved

            models = with_reserved(models, options["reserved"])
        show_speed(models, status)
        names = model_names(paths, models)
        sinks = _Sinks(stack, models, names, options, corpus)
        try:
            return sinks.finish(
                run(
                    models,
                    corpus,
                    names=names,
                    by_group=options["by"] == "group",
                    threads=options["threads"],
                    spans=sinks.wanted,
                    watch=sinks.write if sinks.wanted else None,
                    progress=lambda done: status.update(f"scored {done / 1e6:,.0f} MB"),
                )
            )
        except (KeyboardInterrupt, SystemExit):
            sinks.tell_what_is_kept()
            raise


class _Sinks:
    """Where rows go while a text is scored: run folders, rows a segment, rows a token."""

    def __init__(
        self,
        stack: ExitStack,
        models: list[LanguageModel],
        names: list[str],
        options: dict[str, Any],
        corpus: Corpus,
    ) -> None:
        from lmgauge.evaluation.row_files import ID_COLUMN, SEGMENT_COLUMNS, TOKEN_COLUMNS, RowWriter
        from lmgauge.evaluation.run_folder import RunFolders
        from lmgauge.models.distribution_columns import DistributionColumns

        self.names, self.options, self.corpus = names, options | {"text": corpus.settings}, corpus
        self.policies = [policy_of(model) for model in models]
        self.models = models
        self.segments = self.tokens = None
        self.added = [name for name in options["columns"].split(",") if name]
        self.runs: RunFolders | None = None
        if options["per_segment"]:
            self.segments = stack.enter_context(RowWriter(options["per_segment"], SEGMENT_COLUMNS))
        if options["per_token"]:
            self.tokens = stack.enter_context(RowWriter(options["per_token"], (*TOKEN_COLUMNS, *self.added, ID_COLUMN)))
        if options["output"]:
            self.runs = stack.enter_context(RunFolders(options["output"], names))
            self.runs.keep_journal(models)
        if self.added and not (self.tokens or self.runs):
            raise click.UsageError("--columns fills rows: name where they go with -o or --per-token")
        self.columns = [DistributionColumns(model, self.added) for model in models] if self.added else []
        self.wanted = bool(self.segments or self.tokens or self.runs)

    def write(self, index: int, block: Segments, batch: ScoreBatch) -> None:
        from lmgauge.evaluation.row_files import segment_rows, token_rows

        if self.columns:
            batch = self.columns[index](batch)
        if self.segments is not None:
            names = self.corpus.group_names  # a list of its own each pass
            self.segments.write(segment_rows(self.names[index], batch, block, names, self.policies[index]))
        if self.tokens is not None:
            self.tokens.write(token_rows(self.names[index], batch, block))
        if self.runs is not None:
            self.runs.write(index, batch, block.ids)

    def tell_what_is_kept(self) -> None:
        """Says, when a run is interrupted, that it need not begin anew."""
        if self.runs is not None and self.runs.kept:
            click.echo(f"\nlmgauge: {self.runs.kept:,} events are scored; the same command goes on from there", err=True)

    def finish(self, results: Evaluations) -> Evaluations:
        if self.runs is not None:
            from lmgauge.evaluation.run_folder import run_settings

            chosen = {"reserved": self.options["reserved"], "by_group": self.options["by"] == "group", "columns": self.added}
            chosen["scoring"] = scoring_options(self.options)
            self.runs.finish(results, [run_settings(model, self.options["text"], **chosen) for model in self.models])
            if self.runs.resumed:
                click.echo(f"{self.runs.resumed:,} events had been scored before the last run was interrupted", err=True)
        return results
