"""`lmgauge pairs` and `lmgauge multiple-choice`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.api.choice_fields import PairFields, QuestionFields
from lmgauge.choices import BOUNDARIES
from lmgauge.cli.command import Command, settings, under
from lmgauge.cli.options import html_option, json_option, reserved_option, scoring_settings, threads_option
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.models.network.options import ScoringOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.choices.results import Choices


@dataclass(frozen=True)
class _Run:
    """With what, and where the rows go."""

    models: tuple[str, ...]
    output: str | None
    threads: int | None


_run = settings(
    "chosen",
    _Run,
    "Options",
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        required=True,
        type=click.Path(),
        help="Model folder, ARPA or GGUF file, hub name, or address of a server; several are tested against each other.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Write a row an item and model: .parquet, .csv, .tsv or .jsonl.",
    ),
    threads_option,
)


@click.command(cls=Command)
@click.argument("texts", type=click.Path())
@click.argument("bad_texts", required=False, type=click.Path())
@_run
@settings(
    "fields",
    PairFields,
    "Text",
    click.option("--good", metavar="FIELD", help="Field or column of the good text; sentence_good, or column 1."),
    click.option("--bad", metavar="FIELD", help="Field or column of the bad text; sentence_bad, or column 2."),
    click.option("--by", metavar="FIELD", help="The phenomenon; linguistics_term, or column 3; none for no groups."),
)
@under("Output", html_option, json_option)
@scoring_settings(reserved_option)
def pairs(
    texts: str,
    bad_texts: str | None,
    chosen: _Run,
    fields: PairFields,
    scoring: ScoringOptions,
    html: str | None,
    as_json: bool,
) -> None:
    """Say how often models prefer the good text of minimal pairs.

    TEXTS is a JSONL, Parquet or TSV file with a pair a row, as BLiMP's; or a text file with the good texts, and BAD_TEXTS
    one with the bad ones.

    \b
    lmgauge pairs -m kn5/ -m model/ blimp.jsonl --by UID
    lmgauge pairs -m kn5/ good.txt bad.txt
    """
    from lmgauge.api.choices import pairs as run

    with showing_progress():
        result = run(
            chosen.models,
            texts,
            bad_texts,
            fields=fields if fields != PairFields() else None,
            output=chosen.output,
            threads=chosen.threads,
            scoring=scoring,
        )
    _answer(result, chosen, html, as_json)


@click.command("multiple-choice", cls=Command)
@click.argument("text", type=click.Path())
@_run
@settings(
    "fields",
    QuestionFields,
    "Text",
    click.option(
        "--given", "question", default="question", metavar="FIELD", help="What is shown before each answer; none: nothing."
    ),
    click.option("--choices", default="choices", metavar="FIELD", help="The answers to choose from, a list."),
    click.option("--answer", default="answer", metavar="FIELD", help="The right one: number from 0, letter, or the text."),
    click.option("--by", metavar="FIELD", help="What groups questions; no groups if not given."),
    click.option(
        "--boundary",
        type=click.Choice(BOUNDARIES),
        default="joint",
        help="Cut question and answer into tokens as one text, or each alone.",
    ),
)
@under("Output", html_option, json_option)
@scoring_settings(reserved_option)
def multiple_choice(
    text: str, chosen: _Run, fields: QuestionFields, scoring: ScoringOptions, html: str | None, as_json: bool
) -> None:
    """Say how often models prefer the right answer of questions.

    TEXT is a JSONL file with a question a line; each answer is scored after its question, which is shown and not scored.

    \b
    lmgauge multiple-choice -m model/ arc.jsonl --given question --choices choices --answer answer
    """
    from lmgauge.api.choices import multiple_choice as run

    with showing_progress():
        result = run(chosen.models, text, fields=fields, output=chosen.output, threads=chosen.threads, scoring=scoring)
    _answer(result, chosen, html, as_json)


def _answer(result: Choices, chosen: _Run, html: str | None, as_json: bool) -> None:
    """Print the figures, unless the rows take their place."""
    from lmgauge.report import choices as report

    if chosen.output == "-":
        return
    blocks = report.blocks(result)
    answer(result, lambda: blocks, as_json=as_json, html=html, page=None if html is None else Page("Preferences", blocks))
