"""What commands that make and use models do besides calling their verbs."""

from __future__ import annotations

import click

from lmgauge.cli.derive import Call


def convert(call: Call) -> None:
    """Convert, and print nothing."""
    call()


def sample(call: Call) -> None:
    """Print each text as it is drawn."""
    from lmgauge.json_text import to_json
    from lmgauge.readable import for_output

    texts = call()
    if call.as_json:
        click.echo(to_json(list(texts)))
    else:
        for text in texts:
            click.echo(for_output(text))
