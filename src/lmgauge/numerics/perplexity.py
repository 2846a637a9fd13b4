"""Perplexity and its relatives, from probabilities or log-probabilities of events.

One event is one prediction. With p_i the probability the model gave to event i and N the number of events:

    log-probability   = sum of ln p_i                   nats, <= 0
    cross-entropy     = -(log-probability) / N          nats per event, >= 0
    bits per event    = cross-entropy / ln 2
    perplexity        = exp(cross-entropy) = 2^(bits per event)

Sums are exact (`math.fsum`), so no figure depends on the order of the events or on how they were cut into
chunks. An event of probability zero makes the perplexity infinite; it is counted, and the finite figure
without it has a name of its own. Positions in messages and results count from 1.

Sources: Shannon (1948), "A Mathematical Theory of Communication"; Jelinek, Mercer, Bahl & Baker (1977),
"Perplexity: a measure of the difficulty of speech recognition tasks"; Jurafsky & Martin, "Speech and Language
Processing", chapter 3 (weighted branching factor).
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.checks import (
    Floats,
    as_distribution,
    as_real_array,
    as_vector,
    entropy_nats,
    exact_sum,
    refuse,
)

__all__ = [
    "SequenceScore",
    "Unit",
    "as_nats",
    "bits_from_perplexity",
    "bits_per_event",
    "bits_to_nats",
    "corpus_perplexity",
    "cross_entropy",
    "exact_sum",
    "joint_log_probability",
    "joint_probability",
    "log10_to_nats",
    "mean_segment_perplexity",
    "nats_from_perplexity",
    "nats_to_bits",
    "nats_to_log10",
    "perplexity",
    "perplexity_from_bits",
    "perplexity_from_nats",
    "scientific_from_nats",
    "score_sequence",
    "weighted_branching_factor",
]

Unit = Literal["probability", "nats", "bits", "log10"]
Number = TypeVar("Number", float, Floats)

LN_2 = math.log(2.0)
LN_10 = math.log(10.0)
# A log-probability below this is a sentinel, not a measurement, and sums of such values would leave float64.
LOWEST_LOG = -1e290
# Enough to find the cause; a text full of unseen words has thousands.
ZEROS_SHOWN = 10
# Significant decimal digits a float64 sum can be trusted for.
FLOAT64_DIGITS = 14


# --- conversions ------------------------------------------------------------------------------------------


def nats_to_bits(nats: Number) -> Number:
    """Convert nats to bits (divide by ln 2). A float or an array of any shape."""
    return nats / LN_2


def bits_to_nats(bits: Number) -> Number:
    """Convert bits to nats (multiply by ln 2). A float or an array of any shape."""
    return bits * LN_2


def nats_to_log10(nats: Number) -> Number:
    """Convert natural logs to decimal logs, as ARPA files hold them. A float or an array of any shape."""
    return nats / LN_10


def log10_to_nats(log10: Number) -> Number:
    """Convert decimal logs, as ARPA files hold them, to natural logs. A float or an array of any shape."""
    return log10 * LN_10


def perplexity_from_nats(nats: Number) -> Number:
    """Perplexity of a cross-entropy: exp(nats).

    :param nats: mean nats per event, >= 0; a float or an array of any shape
    :returns: perplexity, >= 1; `inf` above about 709.8 nats, where float64 ends
    :raises InputError: if a value is NaN or negative

    >>> perplexity_from_nats(0.0)
    1.0
    """
    _check_cross_entropy(nats, "nats")
    with np.errstate(over="ignore"):
        # float(): a scalar in, a Python float out.
        return np.exp(nats) if isinstance(nats, np.ndarray) else float(np.exp(nats))


def perplexity_from_bits(bits: Number) -> Number:
    """Perplexity of a cross-entropy in bits: 2^bits.

    :param bits: mean bits per event, >= 0; a float or an array of any shape
    :returns: perplexity, >= 1; `inf` from 1024 bits, where float64 ends
    :raises InputError: if a value is NaN or negative

    >>> perplexity_from_bits(6.0)
    64.0
    """
    _check_cross_entropy(bits, "bits")
    with np.errstate(over="ignore"):
        return np.exp2(bits) if isinstance(bits, np.ndarray) else float(np.exp2(bits))


def perplexity_ratio_from_nats(difference: float) -> float:
    """Ratio of two perplexities from the difference of their cross-entropies: exp(difference).

    :param difference: nats per event, of any sign, infinities allowed
    :returns: >= 0; `inf` where float64 ends
    """
    try:
        return math.exp(difference)
    except OverflowError:
        return math.inf


def nats_from_perplexity(perplexity: Number) -> Number:
    """Cross-entropy of a perplexity in nats per event: ln(perplexity).

    :param perplexity: >= 1, `inf` allowed; a float or an array of any shape
    :raises InputError: if a value is NaN or below 1
    """
    _check_perplexity(perplexity)
    return np.log(perplexity) if isinstance(perplexity, np.ndarray) else math.log(perplexity)


def bits_from_perplexity(perplexity: Number) -> Number:
    """Cross-entropy of a perplexity in bits per event: log2(perplexity).

    :param perplexity: >= 1, `inf` allowed; a float or an array of any shape
    :raises InputError: if a value is NaN or below 1

    >>> bits_from_perplexity(64.0)
    6.0
    """
    _check_perplexity(perplexity)
    return np.log2(perplexity) if isinstance(perplexity, np.ndarray) else math.log2(perplexity)


def _check_cross_entropy(value: float | Floats, unit: str) -> None:
    flat = np.ravel(as_real_array(value, "cross-entropy value"))
    refuse(np.isnan(flat), flat, "cross-entropy value", "not a number: mend what produced it")
    reason = f"negative: it is minus the mean log-probability in {unit}, so negate it"
    refuse(flat < 0.0, flat, "cross-entropy value", reason)


def _check_perplexity(value: float | Floats) -> None:
    flat = np.ravel(as_real_array(value, "perplexity value"))
    refuse(np.isnan(flat), flat, "perplexity value", "not a number: mend what produced it")
    reason = "below 1, which no probabilities give: is it a cross-entropy?"
    refuse(flat < 1.0, flat, "perplexity value", reason)


def as_nats(values: ArrayLike, unit: Unit) -> Floats:
    """Check probabilities or log-probabilities of events and bring them to natural logs.

    :param values: shape [n], one value for each event
    :param unit: what the values are: "probability", or log-probabilities in "nats", "bits" or "log10"
    :returns: float64 [n], natural logs, <= 0, `-inf` for probability zero; may share memory with `values`
    :raises InputError: if there is no value, or one is NaN, a probability outside 0 to 1, or a positive
        log-probability
    :raises UsageError: if `unit` is none of the four

    >>> as_nats([1.0, 0.0], "probability").tolist()
    [0.0, -inf]
    """
    if unit not in get_args(Unit):
        raise UsageError(f"unit {unit!r} is unknown: it is one of {', '.join(get_args(Unit))}")
    name = "probability value" if unit == "probability" else "log-probability value"
    checked = as_vector(values, name)
    if unit == "probability":
        return _nats_of_probabilities(checked, name)
    reason = "above 0, a probability above 1: negate surprisals and losses; for probabilities name that unit"
    refuse(checked > 0.0, checked, name, reason)
    reason = f"below {LOWEST_LOG:g}, which no model computes: write -inf for probability zero"
    refuse((checked < LOWEST_LOG) & np.isfinite(checked), checked, name, reason)
    if unit == "nats":
        return checked
    return bits_to_nats(checked) if unit == "bits" else log10_to_nats(checked)


def _nats_of_probabilities(values: Floats, name: str) -> Floats:
    reason = "below 0: if these are log-probabilities, name their unit: nats, bits or log10"
    refuse(values < 0.0, values, name, reason)
    reason = "above 1: divide percentages by 100 and counts by their total"
    refuse(values > 1.0, values, name, reason)
    with np.errstate(divide="ignore"):
        return np.log(values)


# --- numbers of a sequence of events ----------------------------------------------------------------------


def joint_log_probability(values: ArrayLike, *, unit: Unit) -> float:
    """Log-probability of all events together, in nats: the exact sum of ln p_i.

    :param values: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`
    :returns: nats, <= 0; `-inf` if an event has probability zero
    :raises InputError: see `as_nats`
    """
    return exact_sum(as_nats(values, unit))


def joint_probability(values: ArrayLike, *, unit: Unit) -> float:
    """Probability of all events together: the product of p_i.

    Below about 5e-324 float64 has only 0.0 left; `joint_log_probability` stays exact there.

    :param values: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`
    :raises InputError: see `as_nats`
    """
    return math.exp(joint_log_probability(values, unit=unit))


def cross_entropy(logprobs: ArrayLike, *, unit: Unit) -> float:
    """Cross-entropy of the model on the events: -(1/N) sum of ln p_i, in nats per event.

    :param logprobs: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`; the result is in nats whatever it is
    :returns: nats per event, >= 0; `inf` if an event has probability zero
    :raises InputError: see `as_nats`
    """
    nats = as_nats(logprobs, unit)
    return 0.0 - exact_sum(nats) / nats.size


def bits_per_event(logprobs: ArrayLike, *, unit: Unit) -> float:
    """Cross-entropy of the model on the events in bits per event: -(1/N) sum of log2 p_i.

    :param logprobs: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`; the result is in bits whatever it is
    :raises InputError: see `as_nats`
    """
    return nats_to_bits(cross_entropy(logprobs, unit=unit))


def perplexity(logprobs: ArrayLike, *, unit: Unit) -> float:
    """Perplexity of the model on the events: exp(cross-entropy), one over the geometric mean probability.

    :param logprobs: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`
    :returns: >= 1; `inf` if an event has probability zero
    :raises InputError: see `as_nats`

    >>> round(perplexity([0.5, 0.8, 0.9], unit="probability"), 6)
    1.405721
    """
    return perplexity_from_nats(cross_entropy(logprobs, unit=unit))


def weighted_branching_factor(probabilities: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """How many equally likely branches would be as hard to guess: 2^(H in bits) = exp(H in nats).

    For several contexts, each with its own distribution, H is the mean of their entropies weighted by how
    often each context occurs: the perplexity of a model that knows these distributions.

    :param probabilities: shape [branches], or [contexts, branches]; each row sums to one
    :param weights: shape [contexts], counts or probabilities of the contexts; only with several contexts
    :returns: between 1 and the number of branches
    :raises InputError: if a row is not a distribution or the weights do not fit
    :raises UsageError: if weights are missing, or given with a single distribution

    >>> weighted_branching_factor([0.25, 0.25, 0.25, 0.25])
    4.0
    """
    array = as_real_array(probabilities, "branch value")
    several = array.ndim == 2
    if several and weights is None:
        raise UsageError("several contexts need weights: how often each of them occurs")
    if not several and weights is not None:
        raise UsageError("weights belong to several contexts: give probabilities as [contexts, branches]")
    if weights is None:
        return perplexity_from_nats(entropy_nats(as_distribution(array, "branch distribution")))
    entropies = [entropy_nats(as_distribution(row, f"context {i}")) for i, row in enumerate(array, start=1)]
    shares = as_vector(weights, "context weight")
    if shares.size != len(entropies):
        raise InputError(f"{shares.size} weights for {len(entropies)} contexts: give one for each")
    bad = (shares < 0.0) | np.isinf(shares)
    refuse(bad, shares, "context weight", "which is not finite and at least 0: give counts or probabilities")
    if not shares.any():
        raise InputError("all context weights are 0: at least one context must occur")
    # By the largest first: sums of huge or tiny weights stay within float64.
    shares = shares / shares.max()
    return perplexity_from_nats(exact_sum(shares * np.array(entropies)) / exact_sum(shares))


# --- numbers over segments --------------------------------------------------------------------------------


def corpus_perplexity(segment_nats: ArrayLike, segment_events: ArrayLike) -> float:
    """Perplexity of all segments as one text: exp(all nats / all events). This is the figure to report.

    :param segment_nats: shape [segments], minus the log-probability of each segment, nats, >= 0, may be `inf`
    :param segment_events: shape [segments], the number of events in each segment, whole numbers, >= 1
    :raises InputError: if a value is out of range or the lengths differ
    """
    nats, events = _as_segments(segment_nats, segment_events)
    return perplexity_from_nats(exact_sum(nats) / exact_sum(events))


def mean_segment_perplexity(segment_nats: ArrayLike, segment_events: ArrayLike) -> float:
    """Mean of the segments' own perplexities: not the corpus perplexity, though some tools print it as that.

    A segment of one event weighs as much here as one of a thousand. One event of probability zero makes it
    `inf`.

    :param segment_nats: shape [segments], minus the log-probability of each segment, nats, >= 0, may be `inf`
    :param segment_events: shape [segments], the number of events in each segment, whole numbers, >= 1
    :raises InputError: if a value is out of range or the lengths differ

    >>> nats, events = [2.0, 300.0], [1, 100]
    >>> round(mean_segment_perplexity(nats, events), 1), round(corpus_perplexity(nats, events), 1)
    (13.7, 19.9)
    """
    nats, events = _as_segments(segment_nats, segment_events)
    each = perplexity_from_nats(nats / events)
    # By the largest first: the mean of finite perplexities is then finite too.
    largest = float(each.max())
    return math.inf if math.isinf(largest) else largest * (exact_sum(each / largest) / each.size)


def _as_segments(segment_nats: ArrayLike, segment_events: ArrayLike) -> tuple[Floats, Floats]:
    nats = as_vector(segment_nats, "segment nats value")
    refuse(nats < 0.0, nats, "segment nats value", "negative: give minus the log-probability of the segment")
    too_large = (nats > -LOWEST_LOG) & np.isfinite(nats)
    refuse(too_large, nats, "segment nats value", "which no model computes: write inf for probability zero")
    events = as_vector(segment_events, "segment event count")
    if nats.size != events.size:
        raise InputError(f"{nats.size} nats values, {events.size} event counts: give one of each a segment")
    whole = (events >= 1.0) & (events == np.floor(events)) & np.isfinite(events)
    reason = "not a whole number from 1: leave out segments without events"
    refuse(~whole, events, "segment event count", reason)
    return nats, events


# --- all at once ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SequenceScore:
    """The numbers of one sequence of events, with the parts they are made of."""

    events: int  # N, the number of predicted events
    joint_probability: float  # 0.0 also when it is too small for float64: the log-probability tells
    log_probability: float  # nats, the sum over all events
    cross_entropy: float  # nats per event
    bits_per_event: float
    perplexity: float
    zero_probability_events: int
    perplexity_without_zeros: float | None  # over the other events; None if there are none
    first_zero_events: tuple[int, ...]  # positions, counted from 1, of at most the first ten

    def to_dict(self) -> dict[str, Any]:
        """Field names and plain Python values, in full precision; may hold `inf`, never NaN."""
        return asdict(self)

    def __str__(self) -> str:
        """One line a number, with its unit, 12 significant digits."""
        lines = [
            f"events: {self.events}",
            f"joint probability: {scientific_from_nats(self.log_probability)}",
            f"log-probability: {self.log_probability:.12g} nats",
            f"cross-entropy: {self.cross_entropy:.12g} nats per event",
            f"bits per event: {self.bits_per_event:.12g} bits",
            f"perplexity: {self.perplexity:.12g}",
        ]
        if self.zero_probability_events:
            finite = self.perplexity_without_zeros
            lines.append(f"zero-probability events: {self.zero_probability_events}")
            lines.append(f"perplexity without zeros: {'none left' if finite is None else f'{finite:.12g}'}")
        return "\n".join(lines)


def score_sequence(values: ArrayLike, *, unit: Unit) -> SequenceScore:
    """Compute every number of a sequence of events at once.

    :param values: shape [n], probabilities or log-probabilities of the events
    :param unit: what the values are, see `as_nats`
    :raises InputError: see `as_nats`

    >>> score_sequence([0.5, 0.0, 0.5], unit="probability").perplexity_without_zeros
    2.0
    """
    nats = as_nats(values, unit)
    log_probability = exact_sum(nats)
    entropy = 0.0 - log_probability / nats.size
    zeros = np.flatnonzero(np.isneginf(nats))
    finite = nats[np.isfinite(nats)] if zeros.size else nats
    return SequenceScore(
        events=nats.size,
        joint_probability=math.exp(log_probability),
        log_probability=log_probability,
        cross_entropy=entropy,
        bits_per_event=nats_to_bits(entropy),
        perplexity=perplexity_from_nats(entropy),
        zero_probability_events=zeros.size,
        perplexity_without_zeros=perplexity(finite, unit="nats") if finite.size else None,
        first_zero_events=tuple((zeros[:ZEROS_SHOWN] + 1).tolist()),
    )


def scientific_from_nats(nats: float) -> str:
    """Write exp(nats) in decimal, 12 digits or as many as `nats` determines, also where float64 underflows.

    :param nats: a log-probability, <= 0 and not NaN; `-inf` gives "0"

    >>> scientific_from_nats(-1e4)
    '1.13548387e-4343'
    """
    value = math.exp(nats)
    # Subnormal numbers have lost digits already, so they too go by their logarithm.
    if value >= sys.float_info.min or nats == -math.inf:
        return f"{value:.12g}"
    log10 = nats_to_log10(nats)
    # Each digit before the point of `nats` is one digit less of exp(nats).
    digits = FLOAT64_DIGITS - len(str(int(-nats)))
    if digits < 1:
        return f"about 10^{log10:.12g}"
    exponent = math.floor(log10)
    mantissa = f"{10.0 ** (log10 - exponent):.{digits}g}"
    return f"1e{exponent + 1}" if mantissa == "10" else f"{mantissa}e{exponent}"
