"""`lmgauge split`: a text into training, validation and test part."""

from __future__ import annotations

import click

from lmgauge.choices import SPLIT_BY, SplitBy
from lmgauge.cli.command import CommaList, Command, options_given, under
from lmgauge.cli.options import document_option, json_option, read_texts, reading_settings, seed_option
from lmgauge.cli.say import answer, say
from lmgauge.text.reading_options import ReadingOptions


@click.command("split", cls=Command)
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Directory to write the parts to.")
@click.option(
    "--fractions",
    default="0.8,0.1,0.1",
    metavar="A,B,C",
    type=CommaList(float, "0.8,0.1,0.1"),
    help="Shares of train, validation and test; their sum is 1. A part with share 0 is not written.",
)
@click.option(
    "--by",
    type=click.Choice(SPLIT_BY),
    help="Keep the segments of a group (a file, or see --group) or of a document (see --document) together; --group or "
    "--document without --by does the same.",
)
@seed_option
@under("Output", json_option)
@reading_settings(document_option)
def split(
    texts: tuple[str, ...],
    output: str,
    fractions: tuple[float, ...],
    by: SplitBy | None,
    seed: int,
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """Split text into train, validation and test, the same for the same seed on every machine.

    TEXT are files or globs: plain or compressed text, or records (--format). Lines are written to train.txt,
    validation.txt and test.txt in their order; records and documents to train.jsonl and so on.

    \b
    lmgauge split corpus.txt -o parts/
    lmgauge split corpus.txt --fractions 0.9,0.05,0.05 --seed 1 -o parts/
    lmgauge split 'books/*.txt' --by group -o parts/
    """
    from lmgauge.api.split import split as run
    from lmgauge.report.split import blocks

    by = by or next((name for name in SPLIT_BY if name in options_given()), None)
    done = run(read_texts(texts, reading), output, fractions=fractions, seed=seed, by=by)
    for note in done.notes:
        say(f"note: {note}", err=True)
    answer(done, lambda: blocks(done), as_json=as_json)
