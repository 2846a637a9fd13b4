"""How well a score tells two groups apart: the area under the ROC curve and the hits at a given rate of false alarms.

* **AUROC**: the probability that a member scores above a non-member, ties counted half: Mann & Whitney's U (1947) over the
  number of pairs, from ranks, exact. Its standard error is that of the placements (DeLong, DeLong & Clarke-Pearson 1988):
  of each text the share of the other group below (or above) it; their means vary over documents (Obuchowski 1997), by
  `spread`. The interval is symmetric in the logit (Pepe 2003, "The Statistical Evaluation of Medical Tests", 5.2).
  Where the groups do not mix at all the placements do not vary, and the ends come from Newcombe (2006), "Confidence
  intervals for an effect size measure based on the Mann-Whitney statistic, part 2", method 5.
* **Hits at a rate of false alarms** (TPR at 1 % FPR): the highest share of members above a threshold that at most this share
  of non-members passes. The threshold is itself an estimate: its ends are order statistics of the non-members, and at each
  end the share of members has Wilson's interval (1927); both at half the error (Schäfer 1994, "Efficient confidence bounds
  for ROC curves"). Texts of one document count for less: each group as its effective number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lmgauge.numerics.correlation import average_ranks
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.intervals import (
    LEVEL,
    UNKNOWN,
    Interval,
    Spread,
    binomial_quantiles,
    spread,
    student_t_quantile,
    wilson_ends,
)

DELONG = "DeLong"
NEWCOMBE = "Newcombe"
ORDER_STATISTICS = "order statistics"


@dataclass(frozen=True)
class Group:
    """The scores of one group."""

    # round(Group([1.0, 2.0, 5.0]).effective, 9) -> 3.0

    scores: Floats  # float64 [n], at least one, infinite values allowed, no NaN
    documents: Ints | None = None  # int64 [n], the document of each; None where they are not known

    def __len__(self) -> int:
        return len(self.scores)

    def varied(self, values: Floats) -> Spread | None:
        """Return the mean of values, float64 [texts], with its standard error over what is independent."""
        return spread(values, np.ones(len(values)), self.documents)

    @cached_property
    def _halves(self) -> Spread | None:
        return self.varied((self.scores > np.median(self.scores)).astype(np.float64))

    @property
    def effective(self) -> float:
        """As how many independent texts these count: by the share above the median, whose variance is then known."""
        halves = self._halves
        if halves is None or not 0.0 < halves.ratio < 1.0:
            return float(len(self))
        alike = halves.error**2 * (len(self) - 1) / (halves.ratio * (1.0 - halves.ratio))
        return len(self) / max(1.0, alike)

    def share_interval(self, hits: float, level: float) -> tuple[float, float]:
        """Return Wilson's interval of a share of the texts, these counted as their effective number."""
        freedom = len(self) - 1 if self._halves is None else self._halves.freedom
        return wilson_ends(hits, self.effective, student_t_quantile(level, max(1, freedom)))


@dataclass(frozen=True)
class Separation:
    """Two groups and how well their scores tell them apart; members are expected to score higher."""

    members: Group
    others: Group

    @cached_property
    def auroc(self) -> float:
        """Return the probability that a member scores above one of the others, ties counted half."""
        n, m = len(self.members), len(self.others)
        ranks = average_ranks(np.concatenate((self.members.scores, self.others.scores)))
        # Twice a rank is a whole number.
        doubled = int(np.rint(2 * ranks[:n]).astype(np.int64).sum())
        # U = R - n (n + 1) / 2 with R the sum of the members' ranks. Members [3, 4, 9], others [1, 2, 3]: ranks 3.5, 5, 6,
        # U = 14.5 - 6 = 8.5 of 9 pairs.
        return (doubled - n * (n + 1)) / (2 * n * m)

    def auroc_interval(self, level: float = LEVEL) -> Interval | None:
        """Return the interval of the AUROC; None where a group has fewer than six texts."""
        parts = self._parts
        if parts is None:
            return None
        first, second = parts
        variance = first.error**2 + second.error**2
        if not variance or not 0.0 < self.auroc < 1.0:
            low, high = self._apart(student_t_quantile(level, min(first.freedom, second.freedom)))
            return self._interval(low, high, level, NEWCOMBE)
        # Satterthwaite (1946): degrees of freedom of a sum of two variances.
        freedom = variance**2 / (first.error**4 / first.freedom + second.error**4 / second.freedom)
        reach = student_t_quantile(level, max(1, math.floor(freedom))) * math.sqrt(variance)
        middle, reach = math.log(self.auroc / (1 - self.auroc)), reach / (self.auroc * (1 - self.auroc))
        return self._interval(_logistic(middle - reach), _logistic(middle + reach), level, DELONG)

    def hits(self, false_alarms: float) -> float:
        """Return the highest share of members above a threshold that at most this share of the others passes."""
        # A share of a count that is meant to be whole may come out just below it in float64.
        allowed = math.floor(false_alarms * len(self.others) + 1e-9)
        return self._above(self._descending[allowed]) if allowed < len(self.others) else 1.0

    def hits_interval(self, false_alarms: float, level: float = LEVEL) -> Interval | None:
        # From 0 where the others are too few to say where the threshold is, None below six.
        if self._parts is None:
            return None
        each = (1 + level) / 2
        fewest, most = binomial_quantiles(max(1, math.floor(self.others.effective)), false_alarms, (1 - each) / 2)
        scale = len(self.others) / self.others.effective
        first, last = math.floor(fewest * scale), math.ceil(most * scale)
        low = high = 0.0
        if first:
            at_least = float(np.mean(self.members.scores >= self._descending[first - 1]))
            low = self.members.share_interval(at_least, each)[0]
        above = self._above(self._descending[last]) if last < len(self.others) else 1.0
        high = self.members.share_interval(above, each)[1]
        figure = self.hits(false_alarms)  # with equal scores it may lie outside
        return self._interval(min(low, figure), max(high, figure), level, ORDER_STATISTICS)

    @cached_property
    def _descending(self) -> Floats:
        return -np.sort(-self.others.scores)

    def _above(self, threshold: float) -> float:
        return float(np.mean(self.members.scores > threshold))

    @cached_property
    def _parts(self) -> tuple[Spread, Spread] | None:
        first = self.members.varied(_placements(self.members.scores, self.others.scores))
        second = self.others.varied(1.0 - _placements(self.others.scores, self.members.scores))
        return None if first is None or second is None else (first, second)

    def _apart(self, reach: float) -> tuple[float, float]:
        n, m = self.members.effective, self.others.effective
        half = (n + m) / 2 - 1

        def far(true: float) -> bool:
            variance = true * (1 - true) * (1 + half * (1 - true) / (2 - true) + half * true / (1 + true)) / (n * m)
            return (self.auroc - true) ** 2 > reach**2 * variance

        # Bisection between the figure, which is not far from itself, and 0 or 1: 60 halvings leave less than 2^-60.
        ends = []
        for outside in (0.0, 1.0):
            inside = self.auroc
            for _ in range(60):
                middle = (inside + outside) / 2
                inside, outside = (inside, middle) if far(middle) else (middle, outside)
            ends.append(inside)
        return ends[0], ends[1]

    def _interval(self, low: float, high: float, level: float, method: str) -> Interval:
        assert self._parts is not None
        weaker = min(self._parts, key=lambda part: (part.unit != UNKNOWN, part.units))
        return replace(weaker.interval(level), low=low, high=high, method=method)

    def independent(self) -> tuple[Spread | None, Spread | None]:
        """Return what is taken as independent in the members and in the others."""
        return self._parts or (None, None)


def _placements(scores: Floats, others: Floats) -> Floats:
    # For each score the share of the others below it, ties counted half.
    ordered = np.sort(others)
    below, upto = (np.searchsorted(ordered, scores, side=side) for side in ("left", "right"))
    # score 3 among [1, 2, 3]: 2 below, 3 up to it -> 5 / 6, that is 2 and a half of 3
    placed: Floats = (below + upto) / (2.0 * len(others))
    return placed


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
