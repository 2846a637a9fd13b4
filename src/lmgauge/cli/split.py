"""`lmgauge split`: a text into training, validation and test part."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.choices import ERROR_POLICIES, FORMATS, UNITS
from lmgauge.cli.command import Command
from lmgauge.cli.say import say


@click.command("split", cls=Command)
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Directory to write the parts to.")
@click.option(
    "--fractions",
    default="0.8,0.1,0.1",
    show_default=True,
    metavar="A,B,C",
    help="Shares of train, validation and test; their sum is 1. A part with share 0 is not written.",
)
@click.option("-s", "--seed", type=int, default=12345, show_default=True, help="The same seed gives the same split.")
@click.option("--by-group", is_flag=True, help="Keep the segments of a group together: whole files, or see --group.")
@click.option("--group", metavar="FIELD", help="Group by this JSONL field or Parquet column; implies --by-group.")
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="line",
    show_default=True,
    help="What to deal out of text files: lines, or whole files as one record each.",
)
@click.option("--field", default="text", show_default=True, help="JSONL field or Parquet column that holds the text.")
@click.option("--format", type=click.Choice(FORMATS), help="Read all files so; default: by suffix.")
@click.option(
    "--errors",
    type=click.Choice(ERROR_POLICIES),
    default="fail",
    show_default=True,
    help="What to do with invalid UTF-8 and NUL bytes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def split(
    texts: tuple[str, ...],
    output: str,
    fractions: str,
    seed: int,
    by_group: bool,
    group: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Split text into train, validation and test, the same for the same seed on every machine.

    TEXT are files or globs: plain text, .gz, .bz2, .xz, .zst, .jsonl, .tsv or .parquet. Lines are written to
    train.txt, validation.txt and test.txt in their order; records and documents to train.jsonl and so on.

    \b
    Examples:
      lmgauge split corpus.txt -o parts/
      lmgauge split corpus.txt --fractions 0.9,0.05,0.05 --seed 1 -o parts/
      lmgauge split 'books/*.txt' --by-group -o parts/
    """
    from lmgauge.text.documents import Corpus
    from lmgauge.text.split import write_split

    shares = _shares(fractions)
    corpus = Corpus.from_files(texts, group=group or "file", **reading)
    parts = write_split(corpus, output, shares, seed=seed, by_group=by_group or group is not None)
    for note in corpus.report.notes():
        say(f"note: {note}", err=True)
    total = sum(part.segments for part in parts)
    if as_json:
        import json

        result = {
            "seed": seed,
            "fractions": shares,
            "segments": total,
            "text_sha256": corpus.report.sha256,
            "parts": [
                {"name": part.name, "path": str(part.path), "segments": part.segments, "bytes": part.bytes} for part in parts
            ],
        }
        click.echo(json.dumps(result, indent=2))
        return
    for part in parts:
        share = part.segments / total
        say(f"{part.name:<10}  {part.segments:>12,} segments ({share:6.2%})  {part.bytes:>15,} bytes  {part.path}")
    click.echo(f"seed {seed}, text {corpus.report.fingerprint}")


def _shares(fractions: str) -> list[float]:
    try:
        return [float(share) for share in fractions.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{fractions!r} is not three numbers such as 0.8,0.1,0.1") from error
