"""Perplexity and its relatives, by their definitions, from probabilities or log-probabilities of events.

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
Processing", chapter 3.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.checks import as_vector, refuse
from lmgauge.numerics.exact import Floats, exact_sum
from lmgauge.numerics.units import bits_to_nats, log10_to_nats, nats_to_bits, perplexity_from_nats

ProbabilityUnit = Literal["probability", "nats", "bits", "log10"]

# A log-probability below this is a sentinel, not a measurement, and sums of such values would leave float64.
LOWEST_LOG = -1e290
# Enough to find the cause; a text full of unseen words has thousands.
ZEROS_SHOWN = 10


def as_nats(values: ArrayLike, unit: ProbabilityUnit) -> Floats:
    """Return probabilities or log-probabilities of events as natural logs."""
    # values: shape [n], one value for each event; unit: of the values: "probability", or log-probabilities in "nats",
    # "bits" or "log10".
    # -> float64 [n], nats, 0 or less, `-inf` for probability zero; may share memory with `values`.
    # as_nats([1.0, 0.0], "probability") -> [0.0, -inf]
    if unit not in get_args(ProbabilityUnit):
        raise UsageError(f"unit {unit!r} is unknown: it is one of {', '.join(get_args(ProbabilityUnit))}")
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
    reason = "below 0: if these are log-probabilities, name their unit (--log-unit; in Python log_unit): nats, bits or log10"
    refuse(values < 0.0, values, name, reason)
    reason = "above 1: divide percentages by 100 and counts by their total"
    refuse(values > 1.0, values, name, reason)
    with np.errstate(divide="ignore"):
        return np.log(values)


@dataclass(frozen=True, slots=True)
class SequenceScore:
    """The numbers of one sequence of events, with the parts they are made of."""

    events: int  # N, the number of predicted events
    joint_probability: float  # the product of the probabilities; 0.0 also where it is too small for float64
    log_probability: float  # the sum over all events, nats
    cross_entropy: float  # nats per event
    bits_per_event: float  # the same in bits
    perplexity: float  # exp(cross_entropy)
    zero_probability_events: int  # how many events have probability zero
    perplexity_without_zeros: float | None  # over the other events; None if there are none
    first_zero_events: tuple[int, ...]  # positions, counted from 1, of at most the first ten

    def to_dict(self) -> dict[str, Any]:
        """Return field names and plain Python values, in full precision; may hold `inf`, never NaN."""
        return asdict(self)


def score_sequence(values: ArrayLike, *, unit: ProbabilityUnit) -> SequenceScore:
    """Compute every number of a sequence of events."""
    # values: shape [n], probabilities or log-probabilities of the events.
    # score_sequence([0.5, 0.0, 0.5], unit="probability").perplexity_without_zeros -> 2.0
    nats = as_nats(values, unit)
    log_probability = exact_sum(nats)
    cross_entropy = 0.0 - log_probability / nats.size
    zeros = np.flatnonzero(np.isneginf(nats))
    finite = nats[np.isfinite(nats)] if zeros.size else nats
    return SequenceScore(
        events=nats.size,
        joint_probability=math.exp(log_probability),
        log_probability=log_probability,
        cross_entropy=cross_entropy,
        bits_per_event=nats_to_bits(cross_entropy),
        perplexity=perplexity_from_nats(cross_entropy),
        zero_probability_events=zeros.size,
        perplexity_without_zeros=perplexity_from_nats(0.0 - exact_sum(finite) / finite.size) if finite.size else None,
        first_zero_events=tuple((zeros[:ZEROS_SHOWN] + 1).tolist()),
    )


def mean_segment_perplexity(segment_nats: ArrayLike, segment_events: ArrayLike) -> float:
    """Return the mean of the segments' own perplexities, which some tools print as the perplexity of the corpus."""
    # It is another number: a segment of one event weighs as much here as one of a thousand. The perplexity of the corpus is
    # exp(all nats / all events). One event of probability zero makes the mean `inf`.
    # segment_nats: shape [segments], minus the log-probability of each segment, nats, 0 or more, may be `inf`;
    # segment_events: shape [segments], the number of events in each segment, whole numbers, 1 or more.
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
        raise InputError(f"{nats.size} nats values, {events.size} event counts: give one of each per segment")
    whole = (events >= 1.0) & (events == np.floor(events)) & np.isfinite(events)
    reason = "not a whole number of 1 or more: leave out segments without events"
    refuse(~whole, events, "segment event count", reason)
    return nats, events
