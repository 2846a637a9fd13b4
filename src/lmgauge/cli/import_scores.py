"""`lmgauge import`."""

from __future__ import annotations

import click

from lmgauge.choices import LOG_UNITS, PROGRAMS, LogUnit, Program
from lmgauge.cli.command import Command, names_of, refuse_given, under
from lmgauge.cli.options import document_option, given_options, json_option, read_texts, reading_settings
from lmgauge.cli.say import answer
from lmgauge.text.reading_options import ReadingOptions


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="Run folder to write.")
@click.option(
    "--program", type=click.Choice(PROGRAMS), help="The program that wrote FILES; by what is in them if not given."
)
@click.option(
    "--log-unit",
    type=click.Choice(LOG_UNITS),
    help="Unit of the scores, where neither the program nor the file says it.",
)
@click.option("--logprob", metavar="COLUMN", help="The column of a table (CSV, TSV) with the log-probabilities of tokens.")
@click.option("--name", default="", show_default=False, help="What to call the model; as the log does if not given.")
@click.option(
    "--text",
    "texts",
    multiple=True,
    type=click.Path(),
    help="The text that was scored, which gives tokens their places; may be given several times.",
)
@under("Output", json_option)
@reading_settings(document_option, *given_options)
def import_scores(
    files: tuple[str, ...],
    output: str,
    program: Program | None,
    log_unit: LogUnit | None,
    logprob: str | None,
    name: str,
    texts: tuple[str, ...],
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """Make a run of what another program scored.

    FILES are logs of lm-evaluation-harness (--log_samples), Inspect, vLLM, completions servers, llama.cpp's perplexity,
    SRILM (-debug 2), KenLM (query -v word) or minicons; or a table of tokens, whose column of scores --logprob names.

    \b
    lmgauge import tokens.csv --logprob model_a --log-unit nats -o a/
    lmgauge import query.txt --text test.txt -o run/
    lmgauge compare run/ mine/
    """
    from lmgauge.api.import_scores import import_scores as run
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.report import evaluations

    if not texts:
        refuse_given(names_of(ReadingOptions), "is about the text that was scored: name it with --text")
    corpus = read_texts(texts, reading) if texts else None
    result = run(files, output, program=program, log_unit=log_unit, logprob=logprob, text=corpus, name=name)
    results = Evaluations((result,))
    answer(results, lambda: evaluations.blocks(results), as_json=as_json)
