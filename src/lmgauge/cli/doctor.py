"""What `lmgauge doctor` does besides calling its verb."""

from __future__ import annotations

import click

from lmgauge.cli.derive import Call


def show(call: Call) -> None:
    """Print what was seen, also where what prints tables is broken, and exit with 1 where something is."""
    from lmgauge.api.doctor import doctor
    from lmgauge.report.doctor import blocks
    from lmgauge.report.pipe import as_rows

    checkup = doctor(quick=call["quick"])
    if call.as_json or "rich" not in checkup.unusable:
        call.answer(checkup)
    else:
        click.echo(as_rows(blocks(checkup)), nl=False)
    if not checkup.passed:
        call.context.exit(1)
