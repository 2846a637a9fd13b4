"""The working behind the figures of `lmgauge.calc`, line by line, as a textbook writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from lmgauge.numerics.perplexity import SequenceScore
from lmgauge.numerics.units import LN_2, scientific_from_nats

if TYPE_CHECKING:
    from lmgauge.numerics.information.calculation import DistributionFigures

IN_BITS = ("entropy_p", "entropy_q", "cross_entropy", "kl_divergence", "jensen_shannon_divergence")
"""Figures of distributions that are bits."""

Term = TypeVar("Term")
_MOST_TERMS = 8
_SHOWN_TERMS = 4


def of_events(score: SequenceScore, nats: Sequence[float], probabilities: Sequence[float] | None) -> tuple[str, ...]:
    """Return the steps from the events to their perplexity."""
    # nats: [events], log-probabilities; probabilities: [events]; None where logarithms are what was given.
    total = _short(score.log_probability)
    surprisals = f"-({_joined(nats, lambda x: _short(0.0 - x))}) = {total} nats"
    lines = [f"log-probability = {surprisals}"]
    if probabilities is not None:
        joint = _short(score.joint_probability) if score.joint_probability else scientific_from_nats(score.log_probability)
        lines = [
            f"joint probability = {_joined(probabilities, _short, ' * ')} = {joint}",
            f"log-probability = {_joined(probabilities, lambda x: f'ln {_short(x)}')} = {surprisals}",
        ]
    lines.append(f"cross-entropy = -({total}) / {score.events} = {_short(score.cross_entropy)} nats per event")
    lines += _from_nats(score.cross_entropy, score.bits_per_event, score.perplexity)
    if score.perplexity_without_zeros is not None and score.zero_probability_events:
        lines.append(f"perplexity without events of probability 0 = {_short(score.perplexity_without_zeros)}")
    return tuple(lines)


def of_conversion(name: str, perplexity: float, nats: float, bits: float) -> tuple[str, ...]:
    """Return the steps from one of the three figures to the other two."""
    if name == "perplexity":
        return (
            f"cross-entropy = ln {_short(perplexity)} = {_short(nats)} nats per event",
            f"bits per event = log2 {_short(perplexity)} = {_short(bits)} bits",
            f"check: 2^{_short(bits)} = {_short(perplexity)}",
        )
    if name == "cross_entropy":
        return _from_nats(nats, bits, perplexity)
    return (
        f"cross-entropy = {_short(bits)} * ln 2 = {_short(bits)} * {_short(LN_2)} = {_short(nats)} nats per event",
        f"perplexity = 2^{_short(bits)} = {_short(perplexity)}",
    )


def of_distributions(figures: DistributionFigures, perplexity: float) -> tuple[str, ...]:
    """Return the steps from distributions to entropies, and the identity H(p, q) = H(p) + KL(p || q)."""
    # figures: of the distributions, bits.
    p, q = figures.p, figures.q
    h = _short(figures.entropy_p)
    entropy_of_p = f"H(p) = -sum p log2 p = {_weighted(p, p)} = {h} bits"
    if q is None or figures.cross_entropy is None or figures.entropy_q is None or figures.kl_divergence is None:
        return entropy_of_p, f"branching factor = 2^H(p) = 2^{h} = {_short(perplexity)}"
    cross, kl = _short(figures.cross_entropy), _short(figures.kl_divergence)
    pairs = [pair for pair in zip(p, q, strict=True) if pair[0]]
    ratios = _joined(pairs, lambda pair: f"{_short(pair[0])} * log2({_short(pair[0])} / {_short(pair[1])})")
    return (
        entropy_of_p,
        f"H(q) = -sum q log2 q = {_weighted(q, q)} = {_short(figures.entropy_q)} bits",
        f"H(p, q) = -sum p log2 q = {_weighted(p, q)} = {cross} bits",
        f"KL(p || q) = sum p log2(p / q) = {ratios} = {kl} bits",
        f"H(p) + KL(p || q) = {h} + {kl} = {cross} = H(p, q)",
        f"perplexity = 2^H(p, q) = 2^{cross} = {_short(perplexity)}",
    )


def _from_nats(nats: float, bits: float, perplexity: float) -> tuple[str, ...]:
    return (
        f"bits per event = {_short(nats)} / ln 2 = {_short(nats)} / {_short(LN_2)} = {_short(bits)} bits",
        f"perplexity = exp({_short(nats)}) = {_short(perplexity)}",
        f"check: 2^{_short(bits)} = {_short(perplexity)}",
    )


def _weighted(weights: Sequence[float], of: Sequence[float]) -> str:
    # Sum of weights times bits of probabilities; an outcome of weight 0 costs nothing.
    pairs = [pair for pair in zip(weights, of, strict=True) if pair[0]]
    return _joined(pairs, lambda pair: f"{_short(pair[0])} * {_short(-math.log2(pair[1]) + 0.0 if pair[1] else math.inf)}")


def _joined(terms: Sequence[Term], write: Callable[[Term], str], sign: str = " + ") -> str:
    # Terms with a sign between them; of many the first ones and the last.
    if len(terms) <= _MOST_TERMS:
        return sign.join(map(write, terms))
    return sign.join([*map(write, terms[:_SHOWN_TERMS]), "...", write(terms[-1])])


def _short(value: float) -> str:
    return f"{value:.6g}"
