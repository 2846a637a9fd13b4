"""`lmgauge correlate`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lmgauge.cli.command import Command, settings, under
from lmgauge.cli.options import html_option, json_option, seed_option, threads_option
from lmgauge.cli.say import Page, answer, write_page
from lmgauge.files import refuse_replacing
from lmgauge.tasks.settings import CorrelationSettings


@click.command(name="correlate", cls=Command)
@click.argument("scores", type=click.Path())
@click.argument("perplexities", required=False, type=click.Path())
@click.option(
    "-m",
    "--model",
    type=click.Path(),
    help="A language model instead of PERPLEXITIES: that of each output under it; name the outputs with --output.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(),
    help="With -m: the output of a system, as it was scored; may be given several times, a glob stands for several.",
)
@settings(
    "columns",
    CorrelationSettings,
    "Statistics",
    click.option(
        "-x",
        "x",
        default="perplexity",
        show_default=True,
        metavar="NAME",
        help="Column of PERPLEXITIES (or of SCORES, if that is the only table).",
    ),
    click.option("-y", "y", default="score", show_default=True, metavar="NAME", help="Column of SCORES."),
    click.option("--system", default="system", show_default=True, metavar="NAME", help="Column with the names of systems."),
    click.option(
        "--log/--no-log", "log_x", default=None, help="Pearson's r against the logarithm; by default of perplexities."
    ),
    seed_option,
)
@under(
    "Output",
    click.option(
        "--rows", type=click.Path(allow_dash=True), metavar="FILE", help="Also write the points: .tsv, .jsonl, or - ."
    ),
    threads_option,
    html_option,
    json_option,
)
def correlate(
    scores: str,
    perplexities: str | None,
    model: str | None,
    outputs: tuple[str, ...],
    columns: CorrelationSettings,
    rows: str | None,
    threads: int | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Say whether better language models go with better task scores.

    SCORES and PERPLEXITIES are tables of systems: TSV or CSV with a header, JSONL, or what `bleu --json`, `wer --json`
    and `eval --json` print. A system has the same name in both.

    \b
    lmgauge bleu ref.txt a.txt b.txt c.txt d.txt --json > bleu.json
    lmgauge eval -m a/ -m b/ -m c/ -m d/ test.txt --json > perplexity.json
    lmgauge correlate bleu.json perplexity.json
    lmgauge correlate bleu.json -m kn5/ --output '?.txt'
    lmgauge correlate systems.tsv -x perplexity -y bleu
    """
    from lmgauge.evaluation.row_files import RowWriter
    from lmgauge.report import correlation as report
    from lmgauge.tasks import correlate_tables

    if bool(model) != bool(outputs):
        raise click.UsageError("-m and --output belong together: a model, and the outputs to measure under it")
    if model and perplexities is not None:
        raise click.UsageError("name PERPLEXITIES or a model with -m, not both")
    if as_json and rows == "-":
        raise click.UsageError("standard output takes one of --json and --rows -")
    read = [scores, perplexities, model, *_files(outputs)]
    refuse_replacing({"--rows": rows}, [path for path in read if path])
    result = correlate_tables(scores, perplexities, model=model, outputs=outputs, settings=columns, threads=threads)
    if rows:
        points = result.rows()
        with RowWriter(rows, report.CORRELATION_COLUMNS) as writer:
            writer.write({name: [point[name] for point in points] for name in report.CORRELATION_COLUMNS})
    if as_json or rows != "-":
        answer(result, lambda: report.blocks(result), as_json=as_json, html=html)
    elif html is not None:
        write_page(html, Page("", report.blocks(result)))


def _files(outputs: Sequence[str]) -> list[str]:
    """Return the files that paths and globs stand for."""
    from lmgauge.text.streams import find_sources

    return [source.path for source in find_sources(outputs)] if outputs else []
