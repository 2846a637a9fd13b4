"""What `lmgauge calc` computes: figures of a few events, a perplexity or loss, one or two distributions; and its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError
from lmgauge.numerics.checks import as_distribution
from lmgauge.numerics.information.distributions import cross_entropy, entropy, jensen_shannon_divergence, kl_divergence
from lmgauge.numerics.perplexity import ProbabilityUnit, SequenceScore, as_nats, score_sequence
from lmgauge.numerics.units import (
    LN_2,
    bits_from_perplexity,
    bits_to_nats,
    nats_from_perplexity,
    nats_to_bits,
    perplexity_from_bits,
    perplexity_from_nats,
    scientific_from_nats,
)


@dataclass(frozen=True, slots=True)
class TokenFigures:
    """A token and what the model gave it."""

    token: str  # as it was written
    probability: float  # 0 to 1
    log_probability: float  # nats
    bits: float  # the surprisal, -log2 of the probability


@dataclass(frozen=True, slots=True)
class DistributionFigures:
    """The figures of one or two distributions over the same outcomes, in bits."""

    p: tuple[float, ...]  # probabilities of the outcomes, [outcomes]: what is true
    q: tuple[float, ...] | None  # what a model says; None if there is one distribution only
    entropy_p: float
    entropy_q: float | None  # H(q); this and the following are None without q
    cross_entropy: float | None  # H(p, q) = H(p) + KL(p || q)
    kl_divergence: float | None  # KL(p || q), what predicting with q costs on top of the entropy
    jensen_shannon_divergence: float | None
    branching_factor: float  # 2^H(p), the perplexity of who knows p


@dataclass(frozen=True, slots=True, repr=False)
class CalcResult(Displayable):
    """What `calc` computed."""

    perplexity: float
    cross_entropy: float  # nats per event
    bits_per_event: float  # the same in bits
    # the working, line by line, as a textbook writes it; figures in it are rounded to six digits, the others not
    steps: tuple[str, ...]
    score: SequenceScore | None = None  # of events: their number, joint probability, events of probability zero
    tokens: tuple[TokenFigures, ...] = ()
    distributions: DistributionFigures | None = None
    bits: tuple[float, ...] = ()  # surprisal of each event

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values in full precision, without the steps; may hold `inf`, never NaN."""
        if self.distributions is not None:
            bits = asdict(self.distributions)
            known = {f"{name}_bits" if name in IN_BITS else name: x for name, x in bits.items() if x is not None}
            return known | {"perplexity": self.perplexity}
        names = ("perplexity", "cross_entropy", "bits_per_event")
        figures = {name: getattr(self, name) for name in names} if self.score is None else self.score.to_dict()
        return figures | ({"tokens": [asdict(token) for token in self.tokens]} if self.tokens else {})

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return the names of the figures, and the figures with their units, 12 digits."""
        if self.distributions is not None:
            bits = {
                "H(p)": self.distributions.entropy_p,
                "H(q)": self.distributions.entropy_q,
                "H(p, q)": self.distributions.cross_entropy,
                "KL(p || q)": self.distributions.kl_divergence,
                "Jensen-Shannon": self.distributions.jensen_shannon_divergence,
            }
            name = "branching factor" if self.distributions.q is None else "perplexity"
            known = tuple((label, f"{value:.12g} bits") for label, value in bits.items() if value is not None)
            return (*known, (name, f"{self.perplexity:.12g}"))
        figures = (
            ("cross-entropy", f"{self.cross_entropy:.12g} nats per event"),
            ("bits per event", f"{self.bits_per_event:.12g} bits"),
        )
        perplexity = ("perplexity", f"{self.perplexity:.12g}")
        if self.score is None:
            return (perplexity, *figures)
        return (
            ("events", str(self.score.events)),
            ("joint probability", scientific_from_nats(self.score.log_probability)),
            ("log-probability", f"{self.score.log_probability:.12g} nats"),
            *figures,
            perplexity,
            *_zeros(self.score),
        )

    def _in_brief(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.lines())


def of_events(values: Sequence[float], unit: ProbabilityUnit, tokens: Sequence[str] | None = None) -> CalcResult:
    """Return the figures of events."""
    # values: [events], probabilities or log-probabilities; tokens: [events], what the events were.
    # of_events([0.5, 0.25], "probability", ["the", "cat"]).tokens[1].bits -> 2.0
    score = score_sequence(values, unit=unit)
    nats = as_nats(values, unit).tolist()
    words = list(tokens or ())
    if tokens is not None and len(words) != len(nats):
        raise InputError(f"tokens: {len(words)}, numbers: {len(nats)}; give one number for each token")
    probabilities = values if unit == "probability" else [math.exp(x) for x in nats]
    return CalcResult(
        score.perplexity,
        score.cross_entropy,
        score.bits_per_event,
        event_steps(score, nats, probabilities if unit == "probability" else None),
        score,
        tuple(
            TokenFigures(word, probability, x, nats_to_bits(-x))
            for word, probability, x in zip(words, probabilities, nats, strict=False)
        ),
        bits=tuple(nats_to_bits(-x) for x in nats),
    )


def convert(name: str, value: float) -> CalcResult:
    """Return all three figures from one of them."""
    # name: "perplexity", "cross_entropy" (nats per event) or "bits_per_event".
    if name == "perplexity":
        nats, bits, figure = nats_from_perplexity(value), bits_from_perplexity(value), value
    elif name == "cross_entropy":
        nats, bits, figure = value, nats_to_bits(value), perplexity_from_nats(value)
    else:
        nats, bits, figure = bits_to_nats(value), value, perplexity_from_bits(value)
    return CalcResult(figure, nats, bits, conversion_steps(name, figure, nats, bits))


def of_distributions(p: Sequence[float], q: Sequence[float] | None = None) -> CalcResult:
    """Return the figures of one distribution, or of two.

    >>> of_distributions([0.5, 0.5], [1.0, 0.0]).perplexity
    inf
    """
    # p: [outcomes], what is true, sums to one; q: [outcomes], what a model says of the same outcomes.
    true = as_distribution(p, "p").tolist()
    h = entropy(true)
    if q is None:
        figures = DistributionFigures(tuple(true), None, h, None, None, None, None, perplexity_from_bits(h))
        bits = h
    else:
        model = as_distribution(q, "q").tolist()
        bits = cross_entropy(true, model)
        figures = DistributionFigures(
            p=tuple(true),
            q=tuple(model),
            entropy_p=h,
            entropy_q=entropy(model),
            cross_entropy=bits,
            kl_divergence=kl_divergence(true, model),
            jensen_shannon_divergence=jensen_shannon_divergence(true, model),
            branching_factor=perplexity_from_bits(h),
        )
    figure = perplexity_from_bits(bits)
    return CalcResult(figure, bits_to_nats(bits), bits, distribution_steps(figures, figure), distributions=figures)


def _zeros(score: SequenceScore) -> tuple[tuple[str, str], ...]:
    zeros, finite = score.zero_probability_events, score.perplexity_without_zeros
    if not zeros:
        return ()
    where = ", ".join(map(str, score.first_zero_events)) + (", ..." if zeros > len(score.first_zero_events) else "")
    return (
        ("zero-probability events", f"{zeros} at {where}"),
        ("perplexity without zeros", "none left" if finite is None else f"{finite:.12g}"),
    )


IN_BITS = ("entropy_p", "entropy_q", "cross_entropy", "kl_divergence", "jensen_shannon_divergence")
"""Figures of distributions that are bits."""

Term = TypeVar("Term")
_MOST_TERMS = 8
_SHOWN_TERMS = 4


def event_steps(score: SequenceScore, nats: Sequence[float], probabilities: Sequence[float] | None) -> tuple[str, ...]:
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


def conversion_steps(name: str, perplexity: float, nats: float, bits: float) -> tuple[str, ...]:
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


def distribution_steps(figures: DistributionFigures, perplexity: float) -> tuple[str, ...]:
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
