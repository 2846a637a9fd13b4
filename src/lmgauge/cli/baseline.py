"""`lmgauge baseline`."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmgauge.choices import LADDER_CHARACTER_ORDER, LADDER_WORD_ORDER
from lmgauge.cli.command import Command, settings, under
from lmgauge.cli.options import (
    document_option,
    html_option,
    json_option,
    read_texts,
    reading_settings,
    refuse_field,
    threads_option,
)
from lmgauge.cli.say import answer, showing_progress
from lmgauge.text.reading_options import ReadingOptions


@dataclass(frozen=True)
class _Choices:
    """What is on the ladder: arguments of `lmgauge.baseline`."""

    models: tuple[str, ...]
    order: int
    character_order: int
    memory: str | None


@dataclass(frozen=True)
class _Files:
    """What is kept: arguments of `lmgauge.baseline`."""

    output: str | None


@click.command("baseline", cls=Command)
@click.argument("train", type=click.Path(allow_dash=True))
@click.argument("test", type=click.Path(allow_dash=True))
@settings(
    "choices",
    _Choices,
    "Options",
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="RUN|MODEL",
        type=click.Path(),
        help="A model of yours, or its run on TEST (of `lmgauge eval -o`), set among the rungs; may be given several times.",
    ),
    click.option(
        "--order",
        type=click.IntRange(1, 64),
        default=LADDER_WORD_ORDER,
        help="Words of the longest n-grams of the model of words.",
    ),
    click.option(
        "--character-order",
        type=click.IntRange(1, 64),
        default=LADDER_CHARACTER_ORDER,
        help="Characters, or bytes, of the longest n-grams of the models of these.",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="Train within this much, such as 500M or 2G; as in lmgauge train.  [default: in memory where it fits, else "
        "within 80 % of what is free]",
    ),
)
@settings(
    "files",
    _Files,
    "Output",
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        metavar="DIR",
        help="Folder for ladder.json and a run of each model, which compare, diagnose and report read.",
    ),
)
@under("Output", html_option, json_option)
@threads_option
@reading_settings(document_option)
def baseline(
    train: str,
    test: str,
    choices: _Choices,
    files: _Files,
    reading: ReadingOptions,
    html: str | None,
    as_json: bool,
    threads: int | None,
) -> None:
    """Say what a network must beat: compressors and n-grams.

    TRAIN and TEST are files or globs in quotes. An n-gram model of words (unseen ones spelled), one of characters and one of
    bytes learn from TRAIN; xz and zstd compress TEST alone and after TRAIN; gzip, bzip2 and adaptive codes see TEST alone.
    All are exact, so that their bits per byte stand in one column, with yours.

    \b
    lmgauge baseline train.txt test.txt
    lmgauge baseline train.txt test.txt -m run-lstm/ --html ladder.html
    lmgauge baseline 'corpus/*.jsonl.zst' test.txt --memory 4G -o ladder/
    """
    from lmgauge.api.baseline import baseline as run
    from lmgauge.report import ladder as report

    training, scored = (read_texts([text], reading, alone=False) for text in (train, test))
    refuse_field(training, scored)
    with showing_progress("reading the training text"):
        result = run(training, scored, **vars(choices), **vars(files), threads=threads)
    answer(result, lambda: report.blocks(result), as_json=as_json, html=html)
