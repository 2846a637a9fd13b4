"""What `lmgauge doctor` does besides looking."""

from __future__ import annotations

import sys

import click

from lmgauge.cli.derive import Call
from lmgauge.cli.say import say


def doctor(call: Call) -> None:
    """Show what was seen, also where what shows tables is broken, and exit with 1 if anything is."""
    from lmgauge.api.doctor import doctor as look
    from lmgauge.report.documents import document_of
    from lmgauge.report.tsv_renderer import as_rows

    if sys.stderr.isatty() and not call["quick"]:  # no more than a line: what shows progress may be what is broken
        say("importing the libraries that are installed; with torch this takes seconds", err=True)
    checkup = look(quick=call["quick"])
    if not call.form and "rich" in checkup.unusable:  # what prints tables is what is broken
        click.echo(as_rows(document_of(checkup)), nl=False)
        call.context.exit(1)
    call.answer(checkup)
