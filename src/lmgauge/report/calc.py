"""The figures of `lmgauge calc` as blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.numerics.units import scientific_from_nats
from lmgauge.report.blocks import Column, Document, Heading, Lines, Table, Text, labels, notes

if TYPE_CHECKING:
    from lmgauge.api.calc import CalcResult
    from lmgauge.numerics.perplexity import SequenceScore

_EVENTS = ("cross-entropy = -(log-probability) / events",)
_FIGURES = ("bits per event = cross-entropy / ln 2", "perplexity = exp(cross-entropy) = 2^(bits per event)")
_DISTRIBUTIONS = ("H(p, q) = H(p) + KL(p || q)", "perplexity = 2^H(p, q)")
_ENTROPY = ("H(p) = -sum p log2 p", "branching factor = 2^H(p)")
_ROUNDED = "figures in the steps are rounded to 6 digits; the calculation is not"


def blocks(result: CalcResult, *, steps: bool = False) -> Document:
    """Return tables of tokens and figures, and the definitions or the steps.

    Args:
        result: of `lmgauge.calc`.
        steps: show the working in place of the definitions.
    """
    figures = Lines(_pairs(result))
    if not steps:
        return (*_tokens(result), figures, *notes(_definitions(result)))
    return (*_tokens(result), figures, Heading("Steps"), *map(Text, result.steps), *notes([_ROUNDED]))


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


def _pairs(result: CalcResult) -> tuple[tuple[str, str], ...]:
    if result.distributions is not None:
        bits = {
            "H(p)": result.distributions.entropy_p,
            "H(q)": result.distributions.entropy_q,
            "H(p, q)": result.distributions.cross_entropy,
            "KL(p || q)": result.distributions.kl_divergence,
            "Jensen-Shannon": result.distributions.jensen_shannon_divergence,
        }
        name = "branching factor" if result.distributions.q is None else "perplexity"
        known = tuple((label, f"{value:.12g} bits") for label, value in bits.items() if value is not None)
        return (*known, (name, f"{result.perplexity:.12g}"))
    figures = (
        ("cross-entropy", f"{result.cross_entropy:.12g} nats per event"),
        ("bits per event", f"{result.bits_per_event:.12g} bits"),
    )
    perplexity = ("perplexity", f"{result.perplexity:.12g}")
    if result.score is None:
        return (perplexity, *figures)
    return (
        ("events", str(result.score.events)),
        ("joint probability", scientific_from_nats(result.score.log_probability)),
        ("log-probability", f"{result.score.log_probability:.12g} nats"),
        *figures,
        perplexity,
        *_zeros(result.score),
    )


def _zeros(score: SequenceScore) -> tuple[tuple[str, str], ...]:
    zeros, finite = score.zero_probability_events, score.perplexity_without_zeros
    if not zeros:
        return ()
    where = ", ".join(map(str, score.first_zero_events)) + (", ..." if zeros > len(score.first_zero_events) else "")
    return (
        ("zero-probability events", f"{zeros} at {where}"),
        ("perplexity without zeros", "none left" if finite is None else f"{finite:.12g}"),
    )
