"""What `lmgauge doctor` does besides looking."""

from __future__ import annotations

import sys

import click

from lmgauge.cli.derive import Call
from lmgauge.cli.say import say


def doctor(call: Call) -> None:
    """Show what was seen, also where what shows tables is broken, and exit with 1 if anything is."""
    from lmgauge.api.doctor import doctor as look

    if sys.stderr.isatty() and not call["quick"]:  # no more than a line: what shows progress may be what is broken
        say("importing the libraries that are installed; with torch this takes seconds", err=True)
    checkup = look(quick=call["quick"])
    if call.as_json or "rich" not in checkup.unusable:
        call.answer(checkup)
    else:  # what prints tables is what is broken
        from lmgauge.report.doctor import blocks
        from lmgauge.report.pipe import as_rows

        click.echo(as_rows(blocks(checkup)), nl=False)
    if not checkup.passed:
        call.context.exit(1)
