"""BLEU from sums of its statistics: a weighted geometric mean of n-gram precisions, times a penalty for brevity.

A row of sums holds: words of the hypotheses, length of the references, matching n-grams of order 1 to N, n-grams of the
hypotheses of order 1 to N. Every function takes many rows at a time (segments, groups, resamples) and changes none of them.

Sources: Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation", section 2.3; the
smoothing methods: Chen & Cherry (2014), "A systematic comparison of smoothing techniques for sentence-level BLEU", methods
1 (floor), 2 (add-k; Lin & Och 2004) and 3 (exp; mteval-v13a). Where the papers leave something open (no match at all, no
n-grams of an order, the effective order), this is what sacreBLEU does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.choices import BLEU_SMOOTHING_VALUES
from lmgauge.errors import UsageError
from lmgauge.numerics.checks import Floats

__all__ = ["BleuFormula", "bleu_scores", "brevity_penalties", "ngram_precisions"]

LARGEST_VALUE = 1e6
LARGEST_ORDER = 64
# Weights written with as many digits as people write.
WEIGHT_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class BleuFormula:
    """The choices that make a BLEU score of sums.

    Attributes:
        order: N, the longest n-grams, 1 to 64.
        smoothing: what a precision of zero is replaced by. "exp": 1/2, 1/4, ... of a match for the first, second, ... order
            without one; "floor": `smoothing_value` of a match; "add-k": `smoothing_value` more matches and n-grams for
            all orders from 2; "none": it stays zero, and so does the score.
        smoothing_value: for "floor" (default 0.1) and "add-k" (default 1), at least 0.
        effective_order: only orders of which there are n-grams count: for single sentences.
        weights: of orders 1 to N, not negative, their sum is 1; None: 1/N each. With `effective_order` those of the orders
            that count are divided by their sum.
    """

    order: int = 4
    smoothing: str = "exp"
    smoothing_value: float | None = None
    effective_order: bool = False
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            UsageError: one of them is out of range, or two contradict each other.
        """
        if isinstance(self.order, bool) or not isinstance(self.order, int) or not 1 <= self.order <= LARGEST_ORDER:
            raise UsageError(f"order: {self.order!r} is not a longest n-gram; give 1 to {LARGEST_ORDER}")
        if self.smoothing not in BLEU_SMOOTHING_VALUES:
            raise UsageError(f"smoothing: {self.smoothing!r} is not known; give one of {', '.join(BLEU_SMOOTHING_VALUES)}")
        if self.smoothing_value is not None:
            if BLEU_SMOOTHING_VALUES[self.smoothing] is None:
                raise UsageError(f"smoothing_value: {self.smoothing} takes no value; leave it out, or choose floor or add-k")
            number = isinstance(self.smoothing_value, Real) and math.isfinite(self.smoothing_value)
            if not number or not 0 <= self.smoothing_value <= LARGEST_VALUE:
                raise UsageError(f"smoothing_value: {self.smoothing_value!r} is not a number from 0 to {LARGEST_VALUE:,.0f}")
        if self.weights is not None:
            _check_weights(self.weights, self.order)

    @property
    def value(self) -> float:
        """The value of the smoothing method; 0 where it takes none."""
        given = BLEU_SMOOTHING_VALUES[self.smoothing] if self.smoothing_value is None else self.smoothing_value
        return 0.0 if given is None else float(given)

    @property
    def uniform(self) -> bool:
        """Whether all orders weigh the same."""
        return self.weights is None or min(self.weights) == max(self.weights)


def _check_weights(weights: tuple[float, ...], order: int) -> None:
    if len(weights) != order:
        raise UsageError(f"weights: {len(weights)} given for order {order}; give one for each order")
    if not all(math.isfinite(w) and w >= 0 for w in weights):
        raise UsageError(f"weights: {', '.join(f'{w:g}' for w in weights)} are not all finite and at least 0")
    if abs(math.fsum(weights) - 1) > WEIGHT_TOLERANCE:
        raise UsageError(f"weights: their sum is {math.fsum(weights):g}, not 1; divide each by it")


def bleu_scores(sums: ArrayLike, formula: BleuFormula) -> Floats:
    """BLEU times 100 of each row of sums (Papineni et al. 2002, section 2.3).

    Args:
        sums: [rows, 2 + 2 N]: words of the hypotheses, length of the references, matches of order 1 to N, n-grams of the
            hypotheses of order 1 to N.
        formula: order, smoothing and weights.

    Returns:
        float64 [rows], 0 to 100; exactly 100 where everything matches.

    Raises:
        UsageError: the number of columns does not belong to the order.

    Example:
        "The cat sat on the mat" against "The cat sits on the mat", up to trigrams: the cube root of 5/6 x 3/5 x 1/4.

        >>> bleu_scores([[6, 6, 5, 3, 1, 6, 5, 4]], BleuFormula(order=3))
        array([50.])
    """
    rows = _checked(sums, formula.order)
    hits, total, exists = _smoothed(rows, formula)
    ratios = np.divide(hits, total, out=np.zeros(total.shape), where=exists)
    counted = _orders_counted(exists, formula)
    means = _uniform_means(ratios, counted) if formula.uniform else _weighted_means(ratios, counted, formula)
    return 100.0 * brevity_penalties(rows[:, 0], rows[:, 1]) * means


def ngram_precisions(sums: ArrayLike, formula: BleuFormula) -> Floats:
    """The precisions, smoothed, that `bleu_scores` takes the mean of.

    Args:
        sums: [rows, 2 + 2 N], as in `bleu_scores`.
        formula: order and smoothing.

    Returns:
        float64 [rows, N], in per cent; all 0 where nothing matches.

    Raises:
        UsageError: the number of columns does not belong to the order.
    """
    hits, total, exists = _smoothed(_checked(sums, formula.order), formula)
    return np.divide(100.0 * hits, total, out=np.zeros(total.shape), where=exists)


def brevity_penalties(hypothesis: ArrayLike, reference: ArrayLike) -> Floats:
    """1 for hypotheses at least as long as their references, else exp(1 - r / h) (Papineni et al. 2002, section 2.2.2).

    Args:
        hypothesis: [rows], length of the hypotheses in words.
        reference: [rows], length of the references in words.

    Returns:
        float64 [rows], 0 to 1.
    """
    h, r = np.asarray(hypothesis, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    ratio = np.divide(r, h, out=np.full(np.broadcast(h, r).shape, np.inf), where=h > 0)
    return np.where(h < r, np.exp(1.0 - np.maximum(ratio, 1.0)), 1.0)


def _checked(sums: ArrayLike, order: int) -> Floats:
    rows = np.asarray(sums, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 + 2 * order:
        raise UsageError(f"sums of shape {rows.shape} are not BLEU statistics of order {order}: [rows, {2 + 2 * order}]")
    return rows


def _smoothed(rows: Floats, formula: BleuFormula) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Matches and n-grams after smoothing, and which orders have a precision, [rows, N] each.

    Without any match none has; otherwise those before the first order without n-grams.
    """
    order, value = formula.order, formula.value
    correct, total = rows[:, 2 : 2 + order], rows[:, 2 + order :]
    matched = np.any(correct != 0, axis=1, keepdims=True)
    if formula.smoothing == "add-k":
        added = np.where(np.arange(order) > 0, value, 0.0)
        correct, total = correct + added, total + added
    exists = np.logical_and.accumulate(total != 0, axis=1) & matched
    hits = correct
    if formula.smoothing == "exp":
        hits = np.where(correct == 0, 0.5 ** np.cumsum((correct == 0) & exists, axis=1), correct)
    elif formula.smoothing == "floor":
        hits = np.where(correct == 0, value, correct)
    return hits, total, exists


def _orders_counted(exists: NDArray[np.bool_], formula: BleuFormula) -> Floats:
    """How many orders the mean of each row is over, float64 [rows]; 0 where nothing matched, and the score is 0."""
    counted: Floats = exists.astype(np.float64).sum(axis=1)
    return counted if formula.effective_order else np.where(counted > 0, float(formula.order), 0.0)


def _uniform_means(ratios: Floats, counted: Floats) -> Floats:
    """The geometric mean of the first `counted` precisions of each row.

    By their product and not by logarithms, so that 1 and 1/2 come out as they are; exponents apart, against underflow.
    """
    product = np.ones(len(ratios))
    exponent = np.zeros(len(ratios))
    for n in range(ratios.shape[1]):
        factor, power = np.frexp(np.where(n < counted, ratios[:, n], 1.0))
        product, carried = np.frexp(product * factor)
        exponent += power + carried
    roots = np.maximum(counted, 1.0)
    whole = np.floor(exponent / roots)
    means = np.ldexp(np.ldexp(product, (exponent - whole * roots).astype(np.int64)) ** (1.0 / roots), whole.astype(np.int64))
    return np.where(counted > 0, means, 0.0)


def _weighted_means(ratios: Floats, counted: Floats, formula: BleuFormula) -> Floats:
    weights = np.where(np.arange(formula.order) < counted[:, None], np.array(formula.weights), 0.0)
    used = weights.sum(axis=1)
    logs = np.log(ratios, out=np.full(ratios.shape, -np.inf), where=ratios > 0)
    # An order of weight 0 has no say, also where nothing of it matched.
    terms = np.multiply(weights, logs, out=np.zeros(ratios.shape), where=weights > 0)
    return np.where(used > 0, np.exp(terms.sum(axis=1) / np.where(used > 0, used, 1.0)), 0.0)
