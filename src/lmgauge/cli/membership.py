"""What `lmgauge membership` does besides calling its verb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lmgauge.cli.derive import Call
from lmgauge.cli.named_paths import model_among
from lmgauge.option_numbers import Natural

if TYPE_CHECKING:
    from lmgauge.evaluation.membership.results import Membership
    from lmgauge.report.blocks import Document


def shown(result: Membership, *, examples: Natural = 5) -> Document:
    """Return what is printed of a result.

    Args:
        examples: texts to show that look most like seen ones.
    """
    from lmgauge.report.membership import blocks

    return blocks(result, examples=examples)


def membership(call: Call) -> None:
    """Print the result, unless its rows are on standard output."""
    model = model_among(call["texts"])
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: one model comes first, then the texts: MODEL TEXTS...")
    result = call()
    if call["output"] != "-":
        call.answer(result, lambda: shown(result, examples=call["examples"]))
