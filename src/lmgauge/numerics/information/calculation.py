"""What `lmgauge calc` computes: the figures of a few events, of a perplexity or loss, of one or two distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError
from lmgauge.numerics.checks import as_distribution
from lmgauge.numerics.information import steps
from lmgauge.numerics.information.distributions import cross_entropy, entropy, jensen_shannon_divergence, kl_divergence
from lmgauge.numerics.perplexity import ProbabilityUnit, SequenceScore, as_nats, score_sequence
from lmgauge.numerics.units import (
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
            known = {f"{name}_bits" if name in steps.IN_BITS else name: x for name, x in bits.items() if x is not None}
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
        steps.of_events(score, nats, probabilities if unit == "probability" else None),
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
    return CalcResult(figure, nats, bits, steps.of_conversion(name, figure, nats, bits))


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
    return CalcResult(figure, bits_to_nats(bits), bits, steps.of_distributions(figures, figure), distributions=figures)


def _zeros(score: SequenceScore) -> tuple[tuple[str, str], ...]:
    zeros, finite = score.zero_probability_events, score.perplexity_without_zeros
    if not zeros:
        return ()
    where = ", ".join(map(str, score.first_zero_events)) + (", ..." if zeros > len(score.first_zero_events) else "")
    return (
        ("zero-probability events", f"{zeros} at {where}"),
        ("perplexity without zeros", "none left" if finite is None else f"{finite:.12g}"),
    )
