"""The figures of `lmgauge calc` as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmgauge.report.blocks import ChartData, Column, Document, Heading, Lines, Table, Text, labels, notes, series

if TYPE_CHECKING:
    from lmgauge.numerics.information.calculation import CalcResult

_MOST_BARS = 60
_EVENTS = ("cross-entropy = -(log-probability) / events",)
_FIGURES = ("bits per event = cross-entropy / ln 2", "perplexity = exp(cross-entropy) = 2^(bits per event)")
_DISTRIBUTIONS = ("H(p, q) = H(p) + KL(p || q)", "perplexity = 2^H(p, q)")
_ENTROPY = ("H(p) = -sum p log2 p", "branching factor = 2^H(p)")
_ROUNDED = "figures in the steps are rounded to 6 digits; the calculation is not"


def blocks(result: CalcResult, *, steps: bool = False) -> Document:
    """Return tables of tokens and figures, and the definitions or the steps.

    Args:
        steps: show the working, line by line.
    """
    chart = surprisal_chart([token.token for token in result.tokens] or [""] * len(result.bits), result.bits)
    first = (*_tokens(result), *chart, Lines(result.lines()))
    if not steps:
        return (*first, *map(Text, _definitions(result)))
    return (*first, Heading("Steps"), *map(Text, result.steps), *notes([_ROUNDED]))


def surprisal_chart(tokens: Sequence[str], bits: Sequence[float]) -> Document:
    """Return a bar for each event, named by its number and its token; nothing for one event, or for too many."""
    if not 1 < len(tokens) <= _MOST_BARS:
        return ()
    names = [f"{number}. {token}" if token else str(number) for number, token in enumerate(tokens, 1)]
    bars = (series("surprisal", names, bits),)
    return (ChartData("surprisal", "Surprisal of each token", "token", "surprisal", "bits", bars, kind="bars"),)


def _tokens(result: CalcResult) -> Document:
    if not result.tokens:
        return ()
    columns = (
        labels("token", [token.token for token in result.tokens]),
        Column("probability", [f"{token.probability:.6g}" for token in result.tokens]),
        Column("log-probability", [f"{token.log_probability:.6g}" for token in result.tokens], unit="nats"),
        Column("surprisal", [f"{token.bits:.6g}" for token in result.tokens], unit="bits"),
    )
    return (Table(columns),)


def _definitions(result: CalcResult) -> tuple[str, ...]:
    if result.distributions is not None:
        return _ENTROPY if result.distributions.q is None else _DISTRIBUTIONS
    return (*_EVENTS, *_FIGURES) if result.score is not None else _FIGURES
