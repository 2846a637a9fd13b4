"""`lmgauge.calc`: perplexity and its relatives of a few numbers, without a model or a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmgauge.api import calc_steps as steps
from lmgauge.errors import InputError, UsageError
from lmgauge.information import cross_entropy, entropy, jensen_shannon_divergence, kl_divergence
from lmgauge.numerics.checks import as_distribution
from lmgauge.numerics.perplexity import ProbabilityUnit, SequenceScore, as_nats, score_sequence
from lmgauge.numerics.units import (
    bits_from_perplexity,
    bits_to_nats,
    nats_from_perplexity,
    nats_to_bits,
    perplexity_from_bits,
    perplexity_from_nats,
)

__all__ = ["CalcResult", "DistributionFigures", "TokenFigures", "calc", "read_number"]

Numbers = Sequence[float | str]


@dataclass(frozen=True, slots=True)
class TokenFigures:
    """A token and what the model gave it.

    Attributes:
        token: as it was written.
        probability: 0 to 1.
        log_probability: nats.
        bits: the surprisal, -log2 of the probability.
    """

    token: str
    probability: float
    log_probability: float
    bits: float


@dataclass(frozen=True, slots=True)
class DistributionFigures:
    """The figures of one or two distributions over the same outcomes, in bits.

    Attributes:
        p: probabilities of the outcomes, [outcomes]: what is true.
        q: what a model says; None if there is one distribution only.
        entropy_p: H(p).
        entropy_q: H(q); this and the following are None without q.
        cross_entropy: H(p, q) = H(p) + KL(p || q).
        kl_divergence: KL(p || q), what predicting with q costs on top of the entropy.
        jensen_shannon_divergence: of p and q.
        branching_factor: 2^H(p), the perplexity of who knows p.
    """

    p: tuple[float, ...]
    q: tuple[float, ...] | None
    entropy_p: float
    entropy_q: float | None
    cross_entropy: float | None
    kl_divergence: float | None
    jensen_shannon_divergence: float | None
    branching_factor: float


@dataclass(frozen=True, slots=True)
class CalcResult:
    """What `calc` computed.

    Attributes:
        perplexity: 1 or more.
        cross_entropy: nats per event.
        bits_per_event: the same in bits.
        steps: the working, line by line, as a textbook writes it; figures in it are rounded to six digits, the others not.
        score: of events: their number, joint probability, events of probability zero.
        tokens: of events with tokens.
        distributions: of distributions; perplexity and cross-entropy are then those of q under p (of p without q).
    """

    perplexity: float
    cross_entropy: float
    bits_per_event: float
    steps: tuple[str, ...]
    score: SequenceScore | None = None
    tokens: tuple[TokenFigures, ...] = ()
    distributions: DistributionFigures | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values in full precision, without the steps; may hold `inf`, never NaN."""
        figures = {
            "perplexity": self.perplexity,
            "cross_entropy": self.cross_entropy,
            "bits_per_event": self.bits_per_event,
        }
        if self.distributions is not None:
            bits = asdict(self.distributions)
            known = {f"{name}_bits" if name in steps.IN_BITS else name: x for name, x in bits.items() if x is not None}
            return known | {"perplexity": self.perplexity}
        if self.score is not None:
            figures = self.score.to_dict()
        return figures | ({"tokens": [asdict(token) for token in self.tokens]} if self.tokens else {})

    def __str__(self) -> str:
        """Return the figures as the command line prints them."""
        from lmgauge.report.calc import blocks
        from lmgauge.report.terminal import as_text

        return as_text(blocks(self))


def calc(
    numbers: Numbers | None = None,
    *,
    unit: ProbabilityUnit = "probability",
    tokens: str | Sequence[str] | None = None,
    perplexity: float | str | None = None,
    cross_entropy: float | str | None = None,
    bits_per_event: float | str | None = None,
    p: Numbers | None = None,
    q: Numbers | None = None,
) -> CalcResult:
    """Compute perplexity, cross-entropy and bits of a few events, of one figure, or of one or two distributions.

    Every number may be a string: "0.25", "1/4"; probabilities also "25%".

    Args:
        numbers: [events], the probabilities a model gave to the events that happened, or their logarithms.
        unit: of `numbers`: "probability", or log-probabilities in "nats", "bits" or "log10".
        tokens: what the events were, [events]; a string is split at white space.
        perplexity: convert this perplexity.
        cross_entropy: convert this cross-entropy or loss, nats per event.
        bits_per_event: convert this cross-entropy, bits per event.
        p: [outcomes], a distribution, sums to one: its entropy and branching factor.
        q: [outcomes], what a model says of the same outcomes: its cross-entropy under p.

    Raises:
        InputError: a number is not one, or not possible; a distribution does not sum to one; numbers do not match.
        UsageError: nothing to compute, or two things at once.

    Example:
        >>> round(calc([0.5, 0.8, 0.9]).perplexity, 4)
        1.4057
        >>> round(calc(cross_entropy=2.783).perplexity, 3)
        16.167
        >>> result = calc(p=["1/2", "1/4", "1/4"], q=["1/4", "1/4", "50%"]).distributions
        >>> result.entropy_p, result.kl_divergence, result.cross_entropy
        (1.5, 0.25, 1.75)
    """
    figures = {"perplexity": perplexity, "cross_entropy": cross_entropy, "bits_per_event": bits_per_event}
    wanted = {name: value for name, value in figures.items() if value is not None}
    if (numbers is not None) + len(wanted) + (p is not None) != 1:
        raise UsageError(
            "calc needs one thing to compute from: probabilities of events, a perplexity, a cross-entropy, bits per event, "
            "or the distribution p"
        )
    if q is not None and p is None:
        raise UsageError("q is compared with the distribution p: give both")
    if numbers is None and (tokens is not None or unit != "probability"):
        raise UsageError("tokens and units belong to the numbers of events: give these")
    if p is not None:
        return _of_distributions(p, q)
    if numbers is not None:
        return _of_events(numbers, unit, tokens)
    ((name, value),) = wanted.items()
    return _converted(name, read_number(value, name))


def _of_events(numbers: Numbers, unit: ProbabilityUnit, tokens: str | Sequence[str] | None) -> CalcResult:
    values = _read_all(numbers, "", percent=unit == "probability")
    score = score_sequence(values, unit=unit)
    nats = as_nats(values, unit).tolist()
    words = tokens.split() if isinstance(tokens, str) else list(tokens or ())
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
            TokenFigures(word, probability, x, 0.0 - nats_to_bits(x))
            for word, probability, x in zip(words, probabilities, nats, strict=False)
        ),
    )


def _converted(name: str, value: float) -> CalcResult:
    if name == "perplexity":
        nats, bits, figure = nats_from_perplexity(value), bits_from_perplexity(value), value
    elif name == "cross_entropy":
        nats, bits, figure = value, nats_to_bits(value), perplexity_from_nats(value)
    else:
        nats, bits, figure = bits_to_nats(value), value, perplexity_from_bits(value)
    return CalcResult(figure, nats, bits, steps.of_conversion(name, figure, nats, bits))


def _of_distributions(p: Numbers, q: Numbers | None) -> CalcResult:
    true = as_distribution(_read_all(p, "p", percent=True), "p").tolist()
    h = entropy(true)
    if q is None:
        figures = DistributionFigures(tuple(true), None, h, None, None, None, None, perplexity_from_bits(h))
        bits = h
    else:
        model = as_distribution(_read_all(q, "q", percent=True), "q").tolist()
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


def _read_all(values: Numbers, name: str, *, percent: bool) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name or 'numbers'} must be a list of numbers, such as [0.5, 0.25], not {values!r}")
    where = f"value {{}} of {name}" if name else "value {}"
    return [read_number(value, where.format(i), percent=percent) for i, value in enumerate(values, start=1)]


def read_number(written: float | str, where: str, *, percent: bool = False) -> float:
    """Return a number as a person writes it: 0.25, 1/4, 25 %.

    Args:
        written: the number, or a string.
        where: what it is called in messages, e.g. "value 2".
        percent: a percentage may stand for a probability.

    Returns:
        The number; `inf` and `nan` only where these words were written.

    Raises:
        InputError: it is not a number, or none that float64 can hold.

    Example:
        >>> read_number("1/4", "value 1"), read_number("25%", "value 1", percent=True)
        (0.25, 0.25)
    """
    if not isinstance(written, str):
        try:
            return float(written)
        except (TypeError, ValueError):
            raise InputError(f"{where}: {written!r} is not a number") from None
    word = written.strip()
    part = word.removesuffix("%")
    above, slash, below = part.partition("/")
    try:
        # Python reads 1_0 as ten; in a list of numbers it is a slip.
        if "_" in word or (part != word and not percent):
            raise ValueError
        value = _float(above) / _float(below) if slash else _float(above)
    except ZeroDivisionError:
        raise InputError(f"{where}: {written!r} divides by zero") from None
    except OverflowError:
        raise InputError(f"{where}: {written!r} is beyond the range of float64, 5e-324 to 1.8e308") from None
    except ValueError:
        forms = "0.5, 1/2 or 50%" if percent else "2.5 or 5/2"
        raise InputError(f"{where}: {written!r} is not a number: write {forms}") from None
    return value / 100 if part != word else value


def _float(word: str) -> float:
    """Return a word as a float; an error where its digits come out as infinity or zero that they are not."""
    value = float(word)
    digits = any(character in "123456789" for character in word.lower().partition("e")[0])
    if digits and (math.isinf(value) or value == 0.0):
        raise OverflowError
    return value
