"""The distance between two models, as people read it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.evaluation.divergence.divergence import Divergence, Figure
from lmgauge.report.terminal import console, number, readable

if TYPE_CHECKING:
    from rich.table import Table

_INDENT = "  "


def print_divergence(result: Divergence) -> None:
    """The table, the context where the models are furthest apart, what a reader must know, and the signature."""
    from rich.text import Text

    out = console()
    out.print(Text(readable(f"A = {result.a}, B = {result.b}"), style="bold"))
    out.print(f"{_of(result.events, result.total_events)} events, {_of(result.segments, result.total_segments)} segments")
    out.print(divergence_table(result))
    for line in _worst(result):
        out.print(line)
    if result.independence:
        out.print(f"95 % intervals: {result.independence}.", style="dim")
    for note in result.notes:
        out.print(readable(note), style="dim")
    out.print(readable(result.signature), style="cyan", soft_wrap=True)


def divergence_table(result: Divergence) -> Table:
    """A row a figure, with its interval."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure", style="bold", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for row in _rows(result):
        table.add_row(*row)
    return table


def _rows(result: Divergence) -> Iterator[tuple[str, str, str]]:
    yield _row("KL(A || B), nats", result.kl_ab_nats)
    yield _row("KL(A || B), bits", result.kl_ab_bits)
    if result.infinite_kl_ab:
        yield _INDENT + "where finite, nats", number(result.kl_ab_without_infinite_nats, 6), ""
    names = {"50": "median", "100": "maximum"}
    for percent, value in result.kl_ab_quantiles_nats.items():
        yield f"{_INDENT}{names.get(percent, percent + ' %')}, nats", number(value, 6), ""
    yield _row("KL(B || A), nats", result.kl_ba_nats)
    yield _row("KL(B || A), bits", result.kl_ba_bits)
    yield _row("Jensen-Shannon, bits", result.jensen_shannon_bits)
    yield _row("total variation", result.total_variation)
    yield _row("top-1 agreement, %", result.top_1_agreement, 2, 100)
    for k, figure in result.top_k_overlap.items():
        if k > 1:
            yield _row(f"top-{k} overlap, %", figure, 2, 100)
    yield _row("true token: change of ln p", result.log_probability_change_nats)
    yield _row("true token: RMS change of p, %", result.probability_change_rms, 4, 100)
    yield _row("perplexity of A", result.perplexity_a, 3)
    yield _row("perplexity of B", result.perplexity_b, 3)
    yield _row("perplexity of B / A", result.perplexity_ratio, 5)


def _row(name: str, figure: Figure, digits: int = 6, scale: float = 1.0) -> tuple[str, str, str]:
    scaled = figure.mapped(lambda value: scale * value)
    dash = number(None)
    if scaled.interval is None or not math.isfinite(scaled.interval.low):
        return name, number(scaled.value, digits), dash
    return (
        name,
        number(scaled.value, digits),
        f"{number(scaled.interval.low, digits)} {dash} {number(scaled.interval.high, digits)}",
    )


def _of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole > 1 else f"{part:,} of {whole:,}"


def _worst(result: Divergence) -> Iterator[str]:
    worst = result.worst
    if worst is None or worst.kl_nats == 0:
        return
    where = f"segment {worst.segment + 1:,}, event {worst.position + 1:,}"
    yield f"furthest apart at {where}: KL(A || B) {number(worst.kl_nats)} nats"
    yield f"{_INDENT}after    {worst.context!r}" if worst.context else f"{_INDENT}at the beginning"
    yield f"{_INDENT}came     {worst.token!r}"
    for name, token, probability in (
        ("A", worst.top_a, worst.top_a_probability),
        ("B", worst.top_b, worst.top_b_probability),
    ):
        yield f"{_INDENT}{name} holds  {token!r} for the most probable, p = {number(probability)}"
