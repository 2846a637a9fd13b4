"""`lmgauge merge`."""

from __future__ import annotations

import click

from lmgauge.cli.command import Command
from lmgauge.cli.options import html_option, json_option, scored_text_option
from lmgauge.cli.say import answer, showing_progress


@click.command("merge", cls=Command)
@click.argument("shards", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Of an evaluation: the run folder to write.")
@scored_text_option
@html_option
@json_option
def merge(shards: tuple[str, ...], output: str | None, texts: tuple[str, ...], html: str | None, as_json: bool) -> None:
    """Put the shards of a job together to the result of the whole.

    SHARDS is the folder that --shard wrote to, or the folders of all shards, in any order. The result is that of the
    same command without --shard, to the bit.

    \b
    lmgauge eval -m kn5/ test.txt -o shards/ --shard 1/2
    lmgauge eval -m kn5/ test.txt -o shards/ --shard 2/2
    lmgauge merge shards/ -o run/
    """
    from lmgauge.cluster.merging import merge as put_together
    from lmgauge.report.documents import document_of

    with showing_progress():
        result = put_together(shards, output, text=list(texts) or None)
    answer(result, lambda: document_of(result), as_json=as_json, html=html)
