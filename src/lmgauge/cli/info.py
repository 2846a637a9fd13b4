"""`lmgauge info`."""

from __future__ import annotations

import click

from lmgauge.cli.command import Command, under
from lmgauge.cli.options import json_option, scoring_settings
from lmgauge.models.network.options import ScoringOptions


@click.command(cls=Command)
@click.argument("what", type=click.Path(), metavar="MODEL | RUN")
@under("Output", json_option)
@scoring_settings()
def info(what: str, scoring: ScoringOptions, as_json: bool) -> None:
    """Show what is in a model, or in a run.

    MODEL is a folder, an ARPA or GGUF file, a hub name, or the address of a server; RUN is a folder that `lmgauge eval -o`
    wrote.

    \b
    lmgauge info kn5/
    lmgauge info run-kn5/ --json | jq .perplexity
    """
    from lmgauge.api.info import info as run
    from lmgauge.json_text import to_json
    from lmgauge.report.info import blocks
    from lmgauge.report.terminal import show

    content = run(what, scoring=scoring).to_dict()
    if as_json:
        click.echo(to_json(content))
    else:
        show(blocks(content))
