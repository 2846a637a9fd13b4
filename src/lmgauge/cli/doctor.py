"""`lmgauge doctor`."""

from __future__ import annotations

import sys

import click

from lmgauge.cli.command import Command, under
from lmgauge.cli.options import json_option
from lmgauge.cli.say import answer, say


@click.command(cls=Command)
@click.option(
    "--quick", is_flag=True, help="Import what lmgauge always needs, and only read the versions of other libraries."
)
@under("Output", json_option)
def doctor(quick: bool, as_json: bool) -> None:
    """Look whether this install works, and what is missing for what.

    Shows versions, machine, compiler, graphics cards, and each extra with its libraries and what it is for. Exits with 1
    where something that is installed is broken or too old. Put what it prints into a report of a fault.

    \b
    lmgauge doctor
    lmgauge doctor --json | jq '.extras[] | select(.state == "missing") | .install'
    """
    from lmgauge.api.doctor import doctor as run
    from lmgauge.report.doctor import blocks
    from lmgauge.report.pipe import as_rows

    if sys.stderr.isatty() and not quick:  # no more than a line: what shows progress may be what is broken
        say("importing the libraries that are installed; with torch this takes seconds", err=True)
    checkup = run(quick=quick)
    if as_json or "rich" not in checkup.unusable:
        answer(checkup, lambda: blocks(checkup), as_json=as_json)
    else:  # what prints tables is what is broken
        click.echo(as_rows(blocks(checkup)), nl=False)
    if not checkup.passed:
        click.get_current_context().exit(1)
