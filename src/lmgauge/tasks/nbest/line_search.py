"""Weights of scores that make the fewest errors, by exact line search over n-best lists.

Along a line in the space of weights the total of each hypothesis is a straight line, and the best hypothesis of a list
follows the upper envelope of these lines. Where one hypothesis takes over from another the number of errors changes, and
nowhere else; so the least number of errors along the line is known exactly, without a grid.

Source: Och (2003), "Minimum error rate training in statistical machine translation", ACL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.tasks.metrics.protocol import Floats
from lmgauge.tasks.texts import Integers

_NARROW = 1e-9  # relative width of an interval between two changes that rounding may have made
_MOST_ROUNDS = 50


@dataclass(frozen=True)
class Candidates:
    """The hypotheses of all lists, as numbers."""

    features: Floats  # float64 [features, hypotheses], what is weighted; finite
    offsets: Integers  # int64 [lists + 1], rising: the hypotheses of list i are `offsets[i]` to `offsets[i + 1]` (excluded)
    errors: Integers  # int64 [hypotheses]

    @cached_property
    def owners(self) -> Integers:
        """Return int64 [hypotheses], the list of each."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def totals(self, weights: Floats) -> Floats:
        """Return the weighted sum of each hypothesis, float64 [hypotheses]; equal hypotheses have equal sums."""
        # weights: float64 [features].
        total = np.zeros(self.features.shape[1])
        for weight, column in zip(weights.tolist(), self.features, strict=True):
            total += weight * column
        return total

    def choose(self, weights: Floats) -> Integers:
        """Return the index of the best hypothesis of each list, int64 [lists]; of equal ones the first."""
        # weights: float64 [features].
        totals = self.totals(weights)
        best = np.maximum.reduceat(totals, self.offsets[:-1])
        at_top = np.flatnonzero(totals == best[self.owners])
        # totals [1, 3, 3 | 2], offsets [0, 3, 4]: at_top [1, 2, 3], of which the first in each list are 1 and 3.
        return at_top[np.searchsorted(at_top, self.offsets[:-1])]

    def count(self, weights: Floats) -> int:
        """Return the errors of the best hypotheses together."""
        # weights: float64 [features].
        return int(self.errors[self.choose(weights)].sum())

    def along(self, weights: Floats, direction: Floats) -> Steps:
        """Return the number of errors at every point of the line `weights + x direction`."""
        # weights, direction: float64 [features].
        return _steps(self.totals(weights), self.totals(direction), self.offsets[:-1], self.errors)


@dataclass(frozen=True)
class Steps:
    """The number of errors along a line: constant but for steps."""

    changes: Floats  # float64 [n], rising: where it changes
    errors: Integers  # int64 [n + 1], before the first change, between them, after the last

    def least(self, low: float, high: float) -> tuple[float, int]:
        """Return a place between two others where there are the fewest errors, and their number."""
        # It is 0 where that is as good as any, else the middle of the widest interval with the fewest.
        # Steps([0.5, 1.5], [2, 1, 3]).least(-math.inf, math.inf) -> (1.0, 1)
        inside = (self.changes > low) & (self.changes < high)
        begin = int(np.searchsorted(self.changes, low, side="right"))
        cuts = self.changes[inside]
        errors = self.errors[begin : begin + len(cuts) + 1]
        if not len(cuts):
            return 0.0, int(errors[0])
        # The outermost intervals have no end: one is set that makes their middles neither 0 nor far out.
        reach = max(float(cuts[-1] - cuts[0]), float(np.abs(cuts).max())) or 1.0
        first = low if math.isfinite(low) else float(cuts[0]) - reach
        last = high if math.isfinite(high) else float(cuts[-1]) + reach
        edges = np.concatenate(([first], cuts, [last]))
        width = np.diff(edges)
        middle = edges[:-1] + width / 2
        usable = width > _NARROW * np.maximum(1.0, np.abs(middle))
        now = int(np.searchsorted(cuts, 0.0, side="right"))
        usable[now] = True
        fewest = int(errors[usable].min())
        if errors[now] == fewest:
            return 0.0, fewest
        best = int(np.argmax(np.where(usable & (errors == fewest), width, -1.0)))
        return float(middle[best]), fewest


def _steps(at_zero: Floats, slope: Floats, starts: Integers, errors: Integers) -> Steps:
    # Errors along straight lines, one of each hypothesis, with their values at zero and their slopes; `starts`: where each
    # list begins. Changes of all upper envelopes together; each list goes from its least slope to its greatest.
    # In each turn every list that is not done finds the line that is the next to overtake its own: that whose crossing is
    # the nearest, of equal ones the steepest. Lines less steep than that are done with.
    rest = np.arange(len(slope))
    sizes = np.diff(np.append(starts, len(rest)))
    own = _highest((slope, at_zero), np.flatnonzero(slope == np.repeat(np.minimum.reduceat(slope, starts), sizes)), starts)
    base = int(errors[own].sum())
    changes, deltas = [np.zeros(0)], [np.zeros(0, np.int64)]
    while True:
        gain = slope[rest] - np.repeat(slope[own], sizes)
        steeper = gain > 0
        sizes = np.add.reduceat(steeper, _begins(sizes))
        own, rest, gain, sizes = own[sizes > 0], rest[steeper], gain[steeper], sizes[sizes > 0]
        if not len(own):
            break
        with np.errstate(over="ignore"):
            # Lines 1 + x and 0 + 3 x: (1 - 0) / (3 - 1) = 0.5, from where the steeper one is above.
            crossing = (np.repeat(at_zero[own], sizes) - at_zero[rest]) / gain
        nearest = np.minimum.reduceat(crossing, _begins(sizes))
        at_nearest = crossing == np.repeat(nearest, sizes)
        following = _highest((slope, at_zero), rest[at_nearest], rest[_begins(sizes)])
        changes.append(nearest)
        deltas.append(errors[following] - errors[own])
        own = following
    # One row of steps; changes at infinity (slopes that differ by nothing) are none.
    # base 2, changes [1.5, 0.5] by [2, -1] -> changes [0.5, 1.5], errors [2, 1, 3]
    places, by = np.concatenate(changes), np.concatenate(deltas)
    finite = np.isfinite(places)
    order = np.argsort(places[finite], kind="stable")
    counts = base + int(by[places == -math.inf].sum()) + np.append(0, np.cumsum(by[finite][order]))
    return Steps(places[finite][order], counts.astype(np.int64))


def _highest(values: Sequence[Floats], lines: Integers, firsts: Integers) -> Integers:
    # One line of each list: that with the highest of the first values, of equal ones of the next, of equal ones the first.
    # lines: int64 [lines], rising; firsts: int64 [lists], no line of a list is before its own, and each has one.
    starts = np.searchsorted(lines, firsts)
    for one in values:
        if len(lines) == len(starts):
            return lines
        own = one[lines]
        at_top = own == np.repeat(np.maximum.reduceat(own, starts), np.diff(np.append(starts, len(lines))))
        # values [1, 4, 4 | 2], starts [0, 3] -> lines [1, 2, 3], of 2 and 1: starts [0, 2]
        lines, starts = lines[at_top], _begins(np.add.reduceat(at_top, starts))
    return lines[starts]


def _begins(sizes: Integers) -> Integers:
    # Where lists of these sizes begin.
    # _begins([2, 1, 3]) -> [0, 2, 3]
    return np.cumsum(sizes) - sizes


@dataclass(frozen=True)
class Tuned:
    """Weights, and the errors they make."""

    weights: Floats  # float64 [features]
    errors: int  # of the lists they were chosen on
    lines: int


@dataclass(frozen=True)
class Search:
    """How weights are looked for: from several places, along each weight, random directions and the way just gone."""

    # The first weight is 1 and stays so, as only ratios matter.

    candidates: Candidates
    lows: Floats  # float64 [features], what weights may not fall below; -inf for none
    starts: int  # how many random places to begin at, besides two fixed ones
    seed: int

    def climb(self, number: int) -> Tuned:
        """Return the best weights that line searches from one place lead to; they depend on nothing but seed and number."""
        generator = np.random.default_rng((self.seed, number))
        weights = self._place(number, generator)
        errors, lines = self.candidates.count(weights), 0
        for _ in range(_MOST_ROUNDS):
            before, errors_before = weights, errors
            for direction in self._directions(generator):
                weights, errors = self._improved(weights, errors, direction)
                lines += 1
            if errors == errors_before:
                break
            weights, errors = self._improved(weights, errors, weights - before)
            lines += 1
        return Tuned(weights, errors, lines)

    def run(self, threads: int | None = None) -> Tuned:
        """Return the best of all places; of equal ones the first."""
        results = list(map_in_order(self.climb, range(self.starts + 2), thread_count(threads)))
        best = min(results, key=lambda result: result.errors)
        return Tuned(best.weights, best.errors, sum(result.lines for result in results))

    @cached_property
    def scales(self) -> Floats:
        """Return float64 [features], weights that give all features the say of the first."""
        # Ratios of deviations within lists.
        candidates = self.candidates
        sizes = np.diff(candidates.offsets)
        means = np.add.reduceat(candidates.features, candidates.offsets[:-1], axis=1) / sizes
        deviations = np.sqrt(np.mean((candidates.features - np.repeat(means, sizes, axis=1)) ** 2, axis=1))
        first = deviations[0] or 1.0
        return np.asarray(np.where(deviations > 0, first / np.where(deviations > 0, deviations, 1.0), 1.0))

    def _place(self, number: int, generator: np.random.Generator) -> Floats:
        free = np.isneginf(self.lows)
        if number == 0:
            weights = np.zeros(len(self.lows))
        elif number == 1:
            weights = np.where(free, 0.0, self.scales)
        else:
            drawn = generator.standard_exponential(len(free))
            weights = self.scales * np.where(free, drawn - 1.0, drawn)
        weights[0] = 1.0
        return weights

    def _directions(self, generator: np.random.Generator) -> Iterator[Floats]:
        # Directions of a round: each weight, and as many random ones.
        features = len(self.lows)
        for k in range(1, features):
            yield np.eye(features)[k]
        for _ in range(1, features if features > 2 else 1):
            direction = self.scales * generator.standard_normal(features)
            direction[0] = 0.0
            yield direction

    def _improved(self, weights: Floats, errors: int, direction: Floats) -> tuple[Floats, int]:
        # Best weights along a line, and their errors; the same weights where none are better.
        place, promised = self.candidates.along(weights, direction).least(*self._ends(weights, direction))
        if promised >= errors:
            return weights, errors
        better = np.maximum(weights + place * direction, self.lows)
        # Counted again, as rounding may put a place on the other side of a change.
        counted = self.candidates.count(better)
        return (better, counted) if counted < errors else (weights, errors)

    def _ends(self, weights: Floats, direction: Floats) -> tuple[float, float]:
        # How far one may go along a line, backwards and forwards, before a weight falls below its least value.
        held = np.isfinite(self.lows)
        room, pace = (weights - self.lows)[held], direction[held]
        falling, rising = pace < 0, pace > 0
        high = float(np.min(room[falling] / -pace[falling], initial=math.inf))
        low = -float(np.min(room[rising] / pace[rising], initial=math.inf))
        return low, high
