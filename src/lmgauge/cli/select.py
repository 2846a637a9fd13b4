"""`lmgauge select`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from lmgauge.choices import SMOOTHING_KINDS
from lmgauge.cli.command import CommaList, Command, Number, options_given, settings, under, whole_number
from lmgauge.cli.options import (
    document_option,
    html_option,
    json_option,
    read_texts,
    reading_settings,
    refuse_field,
    seed_option,
    threads_option,
)
from lmgauge.cli.say import answer, showing_progress
from lmgauge.filtering.selection_settings import CUTS, SelectionSettings
from lmgauge.text.reading_options import ReadingOptions

_KINDS = tuple(kind for kind in SMOOTHING_KINDS if kind not in ("mle", "lidstone"))
_SEARCH = (
    click.option(
        "--cuts",
        type=CommaList(float, "1/4,1/2,1"),
        metavar="SHARE[,SHARE...]",
        default=CUTS,
        show_default="1/64,1/32,1/16,1/8,1/4,1/2,1",
        help="Shares of the pool, by bytes, that are tried.",
    ),
    click.option(
        "--tolerance",
        type=Number(),
        metavar="SHARE",
        default=0.0,
        show_default=True,
        help="Take the smallest share that is, with 95 % confidence, at most this much worse than the best, such as 1%; 0 "
        "takes the best.",
    ),
    click.option(
        "--held-out-share",
        type=Number(),
        metavar="SHARE",
        default=0.25,
        show_default="25%",
        help="How much of the target is held out, where --held-out names no text.",
    ),
    click.option(
        "--share", type=Number(), metavar="SHARE", help="Select this share of the pool, such as 10%; none is tried."
    ),
    click.option(
        "--max-difference", type=Number(), metavar="BITS", help="Select what differs by at most this, in bits per token."
    ),
)
_MODELS = (
    whole_number("--order", default=3, help="Order of all models."),
    click.option("--smoothing", type=click.Choice(_KINDS), default="modified-kneser-ney", help="Smoothing of all models."),
    click.option(
        "--tokenizer",
        default="whitespace",
        help="whitespace, treebank, character, byte, icu, or the path of a tokenizer.json.",
    ),
    whole_number("--min-count", default=2, help="Words that occur less often in the target are <unk> to all models."),
)


_OUTCOME = (
    click.option("-o", "--output", type=click.Path(), help="Folder, or for one file a file, for the selected documents."),
    click.option("--temp", type=click.Path(), metavar="DIR", help="Existing folder for models that do not fit into memory."),
    html_option,
    json_option,
)


@dataclass(frozen=True)
class _Outcome:
    """What is written, and how the answer is given."""

    output: str | None
    temp: str | None
    html: str | None
    as_json: bool


@click.command(cls=Command)
@click.argument("pool", nargs=-1, required=True, type=click.Path(), metavar="POOL...")
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    type=click.Path(),
    help="Text to be like; may be given several times.",
)
@click.option(
    "--held-out", "held_out", multiple=True, type=click.Path(), help="Text like the target, to try shares of the pool on."
)
@settings("outcome", _Outcome, "Output", *_OUTCOME)
@settings("choices", SelectionSettings, "How much", *_SEARCH, *_MODELS, seed_option)
@under("Options", threads_option)
@reading_settings(document_option)
def select(
    pool: tuple[str, ...],
    targets: tuple[str, ...],
    held_out: tuple[str, ...],
    outcome: _Outcome,
    choices: SelectionSettings,
    threads: int | None,
    reading: ReadingOptions,
) -> None:
    """Select the documents of a pool that are most like a target.

    POOL are files or globs of documents: lines of text, or records of JSONL, TSV and Parquet, whose bad ones are left out
    and counted. Documents are ordered by the difference of their cross-entropies under a model of the target and one of the
    pool (Moore & Lewis 2010). How many are selected is found by held-out perplexity, beside that of as much text at random.

    \b
    lmgauge select pool/*.jsonl --target dev.txt -o selected/
    lmgauge select pool.txt --target train.txt --held-out dev.txt --tolerance 1% -o selected.txt
    lmgauge select pool.txt --target dev.txt --share 10% -o selected.txt
    """
    from lmgauge.api.select import select_documents as run
    from lmgauge.report.selection import blocks

    goal = read_texts(targets, reading, alone=False)
    dev = read_texts(held_out, reading, alone=False) if held_out else None
    bad = reading.errors if "errors" in options_given() else "skip"
    documents = read_texts(pool, replace(reading, errors=bad, document=None), alone=False)
    refuse_field(documents, goal, dev)
    with showing_progress():
        selection = run(documents, goal, outcome.output, held_out=dev, settings=choices, temp=outcome.temp, threads=threads)
    answer(selection, lambda: blocks(selection), as_json=outcome.as_json, html=outcome.html)
