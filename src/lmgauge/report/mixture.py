"""A mixture's weights, as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from lmgauge.report.terminal import console, number, readable


def print_mixture(name: str, components: Sequence[tuple[str, float, float | None]], perplexity: float | None) -> None:
    """A row a component, then the mixture.

    Args:
        name: of the mixture.
        components: name, weight, and perplexity on the held-out text (None: there was none).
        perplexity: of the mixture on it.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    measured = perplexity is not None
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=measured)
    table.add_column("model", Text(readable(name)), style="bold", overflow="fold")
    table.add_column("weight", "1.0000", justify="right", no_wrap=True)
    if measured:
        table.add_column("held-out perplexity", number(perplexity, 3), justify="right", no_wrap=True)
    for component, weight, own in components:
        table.add_row(Text(readable(component)), f"{weight:.4f}", *([number(own, 3)] if measured else []))
    console().print(table)
