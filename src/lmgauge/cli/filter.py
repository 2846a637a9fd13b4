"""`lmgauge filter` and `lmgauge score`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lmgauge.choices import BAD_RECORD_POLICIES, FORMATS
from lmgauge.cli.command import Command, settings, under, whole_number
from lmgauge.cli.options import Decorator, html_option, json_option, reserved_option, scoring_settings, threads_option
from lmgauge.cli.say import Page, answer, showing_progress, write_page
from lmgauge.filtering.options import FilterWork, RecordOptions, RuleKeywords
from lmgauge.models.network.options import ScoringOptions

if TYPE_CHECKING:
    from lmgauge.filtering.results import FilteredDocuments


@dataclass(frozen=True)
class _Output:
    """What is written, and how the answer is given."""

    output: str
    rejects: str | None
    html: str | None
    as_json: bool


models_option = click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="[NAME=]MODEL",
    help="Model that scores, and how its columns begin; several give columns each. With --by: VALUE=MODEL, '*=MODEL' for "
    "all other values.",
)


def reading_records(*more: Callable[[Any], Any]) -> Decorator:
    """Return the decorator for how records are read; the command gets `reading`, a `RecordOptions`.

    Args:
        more: further options under the same heading.
    """
    return settings(
        "reading",
        RecordOptions,
        "Documents",
        click.option("--field", default="text", metavar="NAME", help="Field or column that holds the text."),
        click.option(
            "--lines",
            is_flag=True,
            help="Each line of a document is a sentence of its own; else a document is one segment, as in CCNet.",
        ),
        click.option("--by", metavar="NAME", help="Field whose value chooses the model, such as the language."),
        click.option("--group", metavar="NAME", help="Field that parts documents into groups; that of --by if not given."),
        click.option("--id", metavar="NAME", help="Field that names a record, in --rejects."),
        click.option("--format", type=click.Choice(FORMATS), help="Format of all files; by their names if not given."),
        click.option(
            "--errors",
            type=click.Choice(BAD_RECORD_POLICIES),
            default="reject",
            help="A record without text, with bad JSON or invalid text: count it and put it aside, or stop.",
        ),
        *more,
    )


_RULES = (
    click.option("--max-perplexity", type=click.FloatRange(min=1), metavar="X", help="Drop documents above it."),
    click.option("--min-perplexity", type=click.FloatRange(min=1), metavar="X", help="Drop documents below it."),
    click.option(
        "--keep",
        metavar="pA..pB",
        help="Drop documents outside these percentiles of their group, such as p10..p70, ..p70; see --percentiles.",
    ),
    click.option(
        "--buckets",
        metavar="pA,pB",
        help="Part what stays at two percentiles into folders head, middle and tail, such as p33,p67.",
    ),
    whole_number("--min-bytes", help="Drop shorter documents."),
    whole_number("--max-bytes", help="Drop longer documents."),
    whole_number("--min-tokens", help="Drop documents with fewer tokens."),
    click.option(
        "--max-unseen", type=click.FloatRange(0, 1), metavar="X", help="Drop documents with more unseen words (a share)."
    ),
    click.option(
        "--judged-by", metavar="NAME", help="The model that rules are about; without it, documents have to pass with each."
    ),
)


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    from lmgauge.cluster.shard import Shard

    shard = None if value is None else Shard.parse(value)
    return None if shard is None else (shard.number - 1, shard.of)


workers_option = whole_number(
    "--workers", help="Processes, each with a file at a time and a share of the memory map of the models."
)
ray_option = click.option("--ray", metavar="ADDRESS", help="Run on a cluster of Ray, or on one started here: local.")
_WORK = (
    workers_option,
    ray_option,
    click.option(
        "--shard",
        metavar="I/N|slurm",
        callback=_shard,
        help="Process only share I of N of the files; slurm: by SLURM's variables. All shares write into one folder.",
    ),
)
_OUTPUT = (
    click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(allow_dash=True),
        help="File for one, folder for several (with a slash at its end), - for standard output.",
    ),
    click.option("--rejects", metavar="FILE", help="Write bad records there, with what is wrong with each, as JSONL."),
    html_option,
    json_option,
)


def named_models(models: Sequence[str], by: str | None) -> dict[str, str] | str:
    """Return models by their names, or the one model that has none.

    Args:
        models: as the user wrote them, PATH or NAME=PATH.
        by: the field whose values are the names.

    Raises:
        click.UsageError: a name is missing, or there twice.
    """
    pairs = [_named(model) for model in models]
    if by is None and len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    if by is not None and not all(name for name, _ in pairs):
        raise click.UsageError("--by chooses a model by a value: write -m VALUE=MODEL, as in -m en=en/ -m '*=other/'")
    names = [name or os.path.basename(path.rstrip("/")) for name, path in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"two models are called {twice!r}: give them names, as in -m NAME=MODEL")
    return dict(zip(names, (path for _, path in pairs), strict=True))


def _named(model: str) -> tuple[str, str]:
    name, equals, path = model.partition("=")
    return ("", model) if not equals or os.path.exists(model) else (name, path)


def _answer(result: FilteredDocuments, output: _Output) -> None:
    """Print what became of the documents: on standard error where they are on standard output themselves."""
    from lmgauge.json_text import to_json
    from lmgauge.report.documents import document_of

    page = None if output.html is None else Page("What became of the documents", document_of(result))
    if output.output != "-":
        answer(result, lambda: document_of(result), as_json=output.as_json, html=output.html, page=page)
        return
    click.echo(to_json(result.to_dict()) if output.as_json else str(result), err=True)
    if output.html is not None and page is not None:
        write_page(output.html, page)


@click.command("filter", cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="IN...", type=click.Path(allow_dash=True))
@models_option
@settings("output", _Output, "Output", *_OUTPUT)
@settings("rules", RuleKeywords, "Rules", *_RULES)
@under(
    "Rules",
    click.option(
        "--percentiles",
        metavar="FILE",
        help="Percentiles that lmgauge percentiles froze; learned on a sample of IN and written there, if there is no file.",
    ),
)
@reading_records()
@settings("work", FilterWork, "Work", *_WORK, threads_option)
@scoring_settings(reserved_option)
def filter_(
    inputs: tuple[str, ...],
    models: tuple[str, ...],
    output: _Output,
    rules: RuleKeywords,
    percentiles: str | None,
    reading: RecordOptions,
    work: FilterWork,
    scoring: ScoringOptions,
) -> None:
    """Keep the documents that models find likely, with a column for each figure.

    IN are files, globs or addresses of JSONL, TSV, Parquet or lines of text, packed or not, or - (standard input). Documents
    are streamed to the form they have, with all their fields; a bad record is counted and ends nothing. Run again,
    the same command continues with the files that are not complete.

    \b
    lmgauge filter -m kn5/ in.jsonl.zst -o out.jsonl.zst --max-perplexity 1000 --min-bytes 200
    lmgauge filter -m kn5/ 'in/*.parquet' -o out/ --keep p10..p70 --percentiles percentiles.json
    lmgauge filter -m en=en/ -m de=de/ --by lang 'in/*.jsonl' -o out/ --buckets p33,p67 --percentiles percentiles.json
    """
    from lmgauge.api.filter import filter_documents

    with showing_progress():
        result = filter_documents(
            named_models(models, reading.by),
            inputs,
            output.output,
            percentiles=percentiles,
            rejects=output.rejects,
            scoring=scoring,
            work=work,
            **vars(reading),
            **rules,
        )
    _answer(result, output)


@click.command("score", cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="IN...", type=click.Path(allow_dash=True))
@models_option
@settings("output", _Output, "Output", *_OUTPUT)
@reading_records()
@settings("work", FilterWork, "Work", *_WORK, threads_option)
@scoring_settings(reserved_option)
def score(
    inputs: tuple[str, ...],
    models: tuple[str, ...],
    output: _Output,
    reading: RecordOptions,
    work: FilterWork,
    scoring: ScoringOptions,
) -> None:
    """Give each document columns with what models make of it.

    As `lmgauge filter`, which has more to say of it, but nothing is dropped. Lines of text become JSONL.

    \b
    lmgauge score -m kn5/ in.parquet -o scored.parquet
    lmgauge score -m words=kn5/ -m bytes=byte12/ 'in/*.jsonl.gz' -o scored/ --workers 8
    """
    from lmgauge.api.filter import score_documents

    with showing_progress():
        result = score_documents(
            named_models(models, reading.by),
            inputs,
            output.output,
            rejects=output.rejects,
            scoring=scoring,
            work=work,
            **vars(reading),
        )
    _answer(result, output)
