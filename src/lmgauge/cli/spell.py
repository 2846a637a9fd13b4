"""`lmgauge spell`."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmgauge.cli.command import Command, settings, under, whole_number
from lmgauge.cli.options import json_option, read_texts, reading_settings, threads_option
from lmgauge.cli.say import say, showing_progress
from lmgauge.text.reading_options import ReadingOptions

_ORDER = 8  # as `lmgauge.models.spelling.learn` has it, which is slow to import; a test holds them together


@dataclass(frozen=True)
class _Choices:
    """How the spelling is learned, and of what model: arguments of `lmgauge.spell`."""

    order: int
    max_count: int | None
    tokenizer: str | None
    replace: bool


@click.command(cls=Command)
@click.argument("model", type=click.Path())
@click.option(
    "--train",
    "texts",
    multiple=True,
    required=True,
    type=click.Path(allow_dash=True),
    help="Text to learn from, best that of the model; - is standard input; may be given several times.",
)
@click.option(
    "-o", "--output", type=click.Path(), help="Folder to write.  [default: the speller is put into the model's own folder]"
)
@settings(
    "choices",
    _Choices,
    "Speller",
    whole_number("--order", default=_ORDER, help="Characters of its longest n-grams."),
    whole_number("--max-count", help="Learn only from the words that occur at most this often.  [default: all words]"),
    click.option("--tokenizer", help="ARPA and KenLM files: how text is cut into their words.  [default: whitespace]"),
    click.option("--replace", is_flag=True, help="Replace the speller that the model has already."),
)
@threads_option
@under("Output", json_option)
@reading_settings()
def spell(
    model: str,
    texts: tuple[str, ...],
    output: str | None,
    choices: _Choices,
    threads: int | None,
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """Give a model a speller for unseen words, so that bits are exact.

    What a model of words calls <unk> keeps its probability, and the word is then spelled, character by character; the white
    space between words is predicted too. MODEL is the folder of an n-gram model, of one of classes, of a network of words or
    characters or of a mixture of such; an ARPA or KenLM file needs -o. The model itself stays as it is.

    \b
    lmgauge spell kn5/ --train train.txt
    lmgauge spell theirs.arpa --train train.txt -o theirs/
    lmgauge eval -m kn5/ -m bytes/ test.txt
    """
    from lmgauge.api.spell import spell as run
    from lmgauge.json_text import to_json
    from lmgauge.report.spelling import learned

    corpus = read_texts(texts, reading)
    written = model if output is None else output
    with showing_progress():
        spelled = run(model, corpus, output=written, threads=threads, **vars(choices))
    if as_json:
        click.echo(to_json(spelled.to_dict() | {"path": written}))
        return
    say(f"{written}: {spelled.label}: every text has a probability", err=True)
    for line in learned(spelled.learned()):
        say(line, err=True)
