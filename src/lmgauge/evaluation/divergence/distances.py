"""Two predictive distributions, event by event: divergences, total variation, shared top tokens.

Each distribution is first divided by its sum, so that no divergence is negative by rounding; how far the sums are from one
is kept beside the rest. Sums are NumPy's own over fixed arrays: they depend on nothing but the two distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.contexts import EventContexts
from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.drawn_events import SegmentEvents
from lmgauge.numerics.units import LN_2
from lmgauge.threads import map_in_order

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Floats = NDArray[np.float64]
# Columns of the rows that `ModelPair.compare` gives; an overlap for each k follows.
KL_AB, KL_BA, JS, TV, MASS_A, MASS_B, FIRST_OVERLAP = range(7)
_SHOWN_CONTEXT = 12
_TINY = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True)
class WorstContext:
    """The event at which KL(A || B) is largest, with the token each model holds for the most probable.

    `segment` and `position` count from 0; `context` is what comes before, at most twelve tokens of the segment.
    """

    segment: int
    position: int
    context: str
    token: str
    kl_nats: float
    top_a: str
    top_a_probability: float
    top_b: str
    top_b_probability: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution over the vocabulary: logarithms and probabilities that sum to one, and what they summed to."""

    logprob: Floats
    p: Floats
    mass: float


def normalized(logprob: Floats, name: str) -> Distribution | None:
    """Return a distribution divided by its sum; None where nothing has a probability above zero.

    Args:
        logprob: float64 [vocabulary], nats.
        name: of the model, for the message.

    Raises:
        InputError: a value is NaN, or infinitely probable.

    Example:
        >>> normalized(np.log([1.0, 3.0]), "m").p.round(6).tolist()
        [0.25, 0.75]
    """
    p = np.exp(logprob)
    mass = float(p.sum())
    if not math.isfinite(mass):
        raise InputError(f"{name}: log_distribution returned a value that is not a log-probability; see lmgauge audit")
    return Distribution(logprob - math.log(mass), p / mass, mass) if mass else None


def distances(a: Distribution, b: Distribution) -> tuple[float, float, float, float]:
    """Return how far two distributions are apart (Kullback & Leibler 1951; Lin 1991).

    Args:
        a, b: over the same vocabulary, float64 [vocabulary].

    Returns:
        KL(a || b), KL(b || a) and the Jensen-Shannon divergence in nats, and the total variation. A KL divergence is inf
        where the second distribution rules out what the first holds possible.

    Example:
        >>> a = b = normalized(np.log([0.5, 0.5]), "m")
        >>> distances(a, b)
        (0.0, 0.0, 0.0, 0.0)
    """
    log_a, log_b, p_a, p_b = a.logprob, b.logprob, a.p, b.p
    if np.array_equal(log_a, log_b):
        return 0.0, 0.0, 0.0, 0.0
    in_a, in_b = log_a > -np.inf, log_b > -np.inf
    both = in_a & in_b
    shared = int(np.count_nonzero(both))
    only_a, only_b = np.count_nonzero(in_a) > shared, np.count_nonzero(in_b) > shared
    alone = float(p_a[in_a & ~both].sum()) if only_a else 0.0
    alone += float(p_b[in_b & ~both].sum()) if only_b else 0.0
    if shared < len(both):
        log_a, log_b, p_a, p_b = log_a[both], log_b[both], p_a[both], p_b[both]
    difference = log_a - log_b
    kl_ab = math.inf if only_a else max(0.0, float((p_a * difference).sum()))
    kl_ba = math.inf if only_b else max(0.0, -float((p_b * difference).sum()))
    # As in information/distributions.py: p + q in place of their mean, and ln 2 to make up for it.
    log_sum = np.log(np.maximum(p_a + p_b, _TINY))
    nats = 0.5 * float((p_a * (log_a - log_sum) + p_b * (log_b - log_sum)).sum()) + LN_2
    return kl_ab, kl_ba, min(max(0.0, nats), LN_2), min(1.0, 0.5 * (float(np.abs(p_a - p_b).sum()) + alone))


def most_probable(logprob: Floats, k: int) -> list[int]:
    """Return the ids of the most probable tokens, the most probable first, ties by id.

    Args:
        logprob: float64 [vocabulary], nats.
        k: how many; fewer come where fewer are possible.

    Example:
        >>> most_probable(np.log([0.2, 0.5, 0.3]), 2)
        [1, 2]
    """
    size = len(logprob)
    bound = -np.inf if k >= size else np.partition(logprob, size - k)[size - k]
    candidates = np.flatnonzero((logprob >= bound) & (logprob > -np.inf))
    chosen: list[int] = candidates[np.argsort(-logprob[candidates], kind="stable")[:k]].tolist()
    return chosen


class ModelPair:
    """Two models whose predictions are compared at the events of segments.

    Args:
        a, b: the models; ids must agree.
        text: uint32 [n], the events of the whole text; needed where a model sees more than its segment.
        ranks: for which k to compare the k most probable tokens; ascending.
    """

    def __init__(self, a: LanguageModel, b: LanguageModel, text: NDArray[np.uint32] | None, ranks: Sequence[int]) -> None:
        self._models, self._ranks, self._bos = (a, b), list(ranks), a.vocabulary.id("<s>")
        whole = None if text is None else EventContexts(text, [len(text)], bos=self._bos, runs_on=True)
        self._whole = [whole if policy_of(model).runs_on else None for model in (a, b)]

    def compare(self, segments: Sequence[SegmentEvents], threads: int, progress: Callable[[int, int], None]) -> Floats:
        """Return the divergences of the two models at each event of segments.

        Args:
            segments: drawn from the text.
            threads: how many; no value depends on it.
            progress: called with the events that are done, and all.

        Returns:
            float64 [events, columns]; the divergences of an event are NaN where a model gives nothing a probability.

        Raises:
            InputError: a model returns a value that is not a log-probability.
        """
        total, done = sum(len(segment.ids) for segment in segments), 0
        rows = np.empty((total, FIRST_OVERLAP + len(self._ranks)))
        # Only models that may score blocks at a time are asked from several threads.
        threads = threads if all(model.blocks_are_independent for model in self._models) else 1
        for part in map_in_order(self._segment, segments, threads):
            rows[done : done + len(part)] = part
            done += len(part)
            progress(done, total)
        return rows

    def _segment(self, segment: SegmentEvents) -> Floats:
        return np.array([self._event(*pair) for pair in self._pairs(segment)]).reshape(len(segment.ids), -1)

    def _event(self, a: Distribution | None, b: Distribution | None) -> list[float]:
        masses = [0.0 if d is None else d.mass for d in (a, b)]
        if a is None or b is None:
            return [math.nan] * 4 + masses + [math.nan] * len(self._ranks)
        return [*distances(a, b), *masses, *self._overlaps(a, b)]

    def _overlaps(self, a: Distribution, b: Distribution) -> Iterator[float]:
        ours, theirs = (most_probable(d.logprob, self._ranks[-1]) for d in (a, b))
        for k in self._ranks:
            yield len(set(ours[:k]).intersection(theirs[:k])) / len(ours[:k])

    def _pairs(self, segment: SegmentEvents) -> Iterator[tuple[Distribution | None, Distribution | None]]:
        (of_a, first_a), (of_b, first_b) = self._contexts(0, segment), self._contexts(1, segment)
        for position in range(len(segment.ids)):
            yield self._distribution(0, of_a[first_a + position]), self._distribution(1, of_b[first_b + position])

    def _contexts(self, which: int, segment: SegmentEvents) -> tuple[EventContexts, int]:
        """Return contexts that hold those of a segment's events, and the number of its first event among them."""
        whole = self._whole[which]
        if whole is not None:
            return whole, segment.before
        return EventContexts(segment.ids, [len(segment.ids)], bos=self._bos, runs_on=False), 0

    def _distribution(self, which: int, context: NDArray[np.uint32]) -> Distribution | None:
        model = self._models[which]
        return normalized(model.log_distribution(context), model.label)

    def worst(self, segments: Sequence[SegmentEvents], kl: Floats) -> WorstContext | None:
        """Return where KL(A || B), float64 [events], is largest (the first such event); None if it is nowhere defined.

        Raises:
            InputError: a model returns a value that is not a log-probability.
        """
        if np.isnan(kl).all():
            return None
        event = int(np.nanargmax(kl))
        ends = np.cumsum([len(segment.ids) for segment in segments])
        which = int(np.searchsorted(ends, event, side="right"))
        segment = segments[which]
        position = event - int(ends[which]) + len(segment.ids)
        vocabulary, tokenizer = self._models[0].vocabulary, self._models[0].tokenizer
        tops = []
        for model in (0, 1):
            contexts, first = self._contexts(model, segment)
            distribution = self._distribution(model, contexts[first + position])
            p = np.zeros(len(vocabulary)) if distribution is None else distribution.p
            tops.append((vocabulary.token(int(p.argmax())), float(p.max())))
        before = [vocabulary.token(i) for i in segment.ids[max(0, position - _SHOWN_CONTEXT) : position].tolist()]
        token = vocabulary.token(int(segment.ids[position]))
        return WorstContext(
            segment.index, position, tokenizer.detokenize(before), token, float(kl[event]), *tops[0], *tops[1]
        )
