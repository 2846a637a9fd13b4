"""Units of information and of probability: every conversion has a name, so that no `/ 0.693` hides in a formula.

Log-probabilities are natural logs everywhere inside the package; bits, decimal logs and perplexities appear at the edge:

    bits = nats / ln 2        log10 = nats / ln 10        perplexity = exp(nats per event) = 2^(bits per event)
"""

from __future__ import annotations

import math
import sys
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.exact import Floats, exact_sum
from lmgauge.numerics.figures import Scale

# -- checks of the numbers that people hand to the measures. Positions in messages count from 1 -------------------------
SUM_TOLERANCE = 1e-6
"""How far the sum of a distribution may be from 1: a float32 softmax over a large vocabulary is off by about this much."""


def as_real_array(values: ArrayLike, name: str) -> Floats:
    """Return `values` as float64 if they are real numbers."""
    # as_real_array([[1, 2], [3, 4]], "count").shape -> (2, 2)
    # -> float64, same shape; may share memory with `values`.
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise InputError(f"{name}s must be a plain list of numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        kind = array.dtype.name
        raise InputError(f"{name}s must be real numbers, not {kind}: convert them with float() first")
    return array.astype(np.float64, copy=False)


def as_vector(values: ArrayLike, name: str) -> Floats:
    """Return `values` as float64 [n] if they are a list of real numbers, none of them NaN."""
    # as_vector([1, 2], "count") -> [1.0, 2.0]
    # values: numbers, shape [n], at least one.
    # -> float64 [n]; may share memory with `values`.
    array = as_real_array(values, name)
    if array.ndim != 1:
        shape = array.shape
        raise InputError(f"{name}s must be a list of numbers, not of shape {shape}: flatten them first")
    if array.size == 0:
        raise InputError(f"no {name} given: at least one is needed")
    refuse(np.isnan(array), array, name, "not a number: remove it or fix the program that computed it")
    return array


def as_distribution(probabilities: ArrayLike, name: str) -> Floats:
    """Return `probabilities` as float64 [n] if they are a probability distribution."""
    # as_distribution([0.25, 0.75], "p") -> [0.25, 0.75]
    # A sum within 1e-6 of one is taken as rounding (float32 models do no better) and divided out.
    # probabilities: shape [n], each between 0 and 1.
    # -> float64 [n], its sum 1 to the last digits.
    values = as_vector(probabilities, f"{name} value")
    refuse(values < 0.0, values, f"{name} value", "negative: a probability lies between 0 and 1")
    above = values > 1.0 + SUM_TOLERANCE
    refuse(above, values, f"{name} value", "above 1: divide counts or weights by their sum first")
    total = exact_sum(values)
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"{name} sums to {total!r}, not to 1: divide counts or weights by their sum first")
    return values / total


def refuse(bad: NDArray[np.bool_], values: Floats, name: str, reason: str) -> None:
    """Raise an error for the first value that is marked as bad."""
    # bad: bool [n]; values: float64 [n].
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"{name} {at + 1} of {values.size} is {float(values[at])!r}, {reason}")


# -----------------------------------------------------------------------------------------------------------------------
LN_2 = math.log(2.0)
"""Nats in one bit."""
LN_10 = math.log(10.0)
"""Nats in one unit of a decimal log."""

Number = TypeVar("Number", float, Floats)
# Significant decimal digits a float64 sum can be trusted for.
_FLOAT64_DIGITS = 14
_NEGATIVE = "negative: it is minus the mean log-probability in "
_BELOW_ONE = "below 1, which no probabilities give: is it a cross-entropy?"


def nats_to_bits(nats: Number) -> Number:
    """Return nats in bits: nats / ln 2; never -0.0."""
    # nats: a float, or float64 of any shape.
    return nats / LN_2 + 0.0


def bits_to_nats(bits: Number) -> Number:
    """Return bits in nats: bits * ln 2."""
    # bits: a float, or float64 of any shape.
    return bits * LN_2


def nats_to_log10(nats: Number) -> Number:
    """Return natural logs as decimal logs, the unit of ARPA files: nats / ln 10."""
    # nats: a float, or float64 of any shape.
    return nats / LN_10


def log10_to_nats(log10: Number) -> Number:
    """Return decimal logs, the unit of ARPA files, as natural logs: log10 * ln 10."""
    # log10: a float, or float64 of any shape.
    return log10 * LN_10


def perplexity_from_nats(nats: Number) -> Number:
    """Return the perplexity of a cross-entropy: exp(nats)."""
    # nats: nats per event, 0 or more; a float, or float64 of any shape.
    # -> Perplexity, 1 or more; `inf` above about 709.8 nats, where float64 ends.
    _check(nats, "cross-entropy value", 0.0, _NEGATIVE + "nats, so negate it")
    with np.errstate(over="ignore"):
        # float(): a scalar in, a Python float out.
        return np.exp(nats) if isinstance(nats, np.ndarray) else float(np.exp(nats))


def perplexity_from_bits(bits: Number) -> Number:
    """Return the perplexity of a cross-entropy in bits: 2^bits."""
    # bits: bits per event, 0 or more; a float, or float64 of any shape.
    # -> Perplexity, 1 or more; `inf` from 1024 bits, where float64 ends.
    _check(bits, "cross-entropy value", 0.0, _NEGATIVE + "bits, so negate it")
    with np.errstate(over="ignore"):
        return np.exp2(bits) if isinstance(bits, np.ndarray) else float(np.exp2(bits))


def perplexity_ratio_from_nats(difference: float) -> float:
    """Return the ratio of two perplexities from the difference of their cross-entropies: exp(difference)."""
    # difference: nats per event, of any sign, infinities allowed.
    # -> 0 or more; `inf` where float64 ends.
    try:
        return math.exp(difference)
    except OverflowError:
        return math.inf


def nats_to_scale(nats: float, scale: Scale) -> float:
    """Return a mean of nats as a figure prints it: as it is, in bits, or as a perplexity; never -0.0."""
    # nats: mean nats per unit, 0 or more.
    if scale == "perplexity":
        return perplexity_from_nats(nats)
    return nats_to_bits(nats) if scale == "bits" else nats + 0.0


def difference_to_scale(nats: float, scale: Scale) -> float:
    """Return a difference of means of nats as a figure prints it: for perplexity the ratio of the two."""
    if scale == "perplexity":
        return perplexity_ratio_from_nats(nats)
    return nats_to_bits(nats) if scale == "bits" else nats


def nats_from_perplexity(perplexity: Number) -> Number:
    """Return the cross-entropy of a perplexity in nats per event: ln(perplexity)."""
    # perplexity: 1 or more, `inf` allowed; a float, or float64 of any shape.
    _check(perplexity, "perplexity value", 1.0, _BELOW_ONE)
    return np.log(perplexity) if isinstance(perplexity, np.ndarray) else math.log(perplexity)


def bits_from_perplexity(perplexity: Number) -> Number:
    """Return the cross-entropy of a perplexity in bits per event: log2(perplexity)."""
    # perplexity: 1 or more, `inf` allowed; a float, or float64 of any shape.
    _check(perplexity, "perplexity value", 1.0, _BELOW_ONE)
    return np.log2(perplexity) if isinstance(perplexity, np.ndarray) else math.log2(perplexity)


def _check(value: float | Floats, name: str, lowest: float, reason: str) -> None:
    flat = np.ravel(as_real_array(value, name))
    refuse(np.isnan(flat), flat, name, "not a number: fix the program that computed it")
    refuse(flat < lowest, flat, name, reason)


def scientific_from_nats(nats: float) -> str:
    """Return exp(nats) in decimal, with 12 digits or as many as `nats` determines, also where float64 underflows."""
    # nats: a log-probability, 0 or less and not NaN; `-inf` gives "0".
    value = math.exp(nats)
    # Subnormal numbers have lost digits already, so they too go by their logarithm.
    if value >= sys.float_info.min or nats == -math.inf:
        return f"{value:.12g}"
    log10 = nats_to_log10(nats)
    # Each digit before the point of `nats` is one digit less of exp(nats).
    digits = _FLOAT64_DIGITS - len(str(int(-nats)))
    if digits < 1:
        return f"about 10^{log10:.12g}"
    exponent = math.floor(log10)
    mantissa = f"{10.0 ** (log10 - exponent):.{digits}g}"
    return f"1e{exponent + 1}" if mantissa == "10" else f"{mantissa}e{exponent}"


# -----------------------------------------------------------------------------------------------------------------------
# A number of which only this is known: it is at least so much. It is not ranked, and nothing is divided by it.
Figure = TypeVar("Figure", float, float | None)


class LowerBound(float):
    """A figure that is only a lower bound, such as bits per byte of a model for which unseen words are one event `<unk>`.

    It prints with its sign, and is a float in JSON and arrays. What would take it for the figure itself is refused:
    `<`, `>`, `sorted`, `min`, `max`, and dividing by it. Only that it exceeds something may be known.

    Raises:
        UsageError: it is compared, sorted or divided by.

    Example:
        >>> bound = LowerBound(0.745)
        >>> bound, f"{bound:.1f}", bound.exceeds(0.5)
        (>= 0.745, '>= 0.7', True)
    """

    __slots__ = ()

    def exceeds(self, figure: float) -> bool:
        """Return True if even the bound is above a figure: then what it is a bound of is, too.

        Args:
            figure: in the same unit.

        Example:
            >>> LowerBound(2.0).exceeds(1.5), LowerBound(1.0).exceeds(1.5)
            (True, False)
        """
        return float(self) > float(figure)

    def __repr__(self) -> str:
        return f">= {float(self)!r}"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return f">= {float(self):{form}}"

    def _refuse(self, other: object) -> NoReturn:
        raise UsageError(
            f"{self:.4g} is a lower bound, so it is not ranked and nothing is divided by it: the figure itself may be any "
            "more. Exact bits need a model that spells unseen words (--vocabulary spelled, lmgauge spell), or one of "
            "characters or bytes; float(...) has the bare number"
        )

    __lt__ = __le__ = __gt__ = __ge__ = __rtruediv__ = _refuse

    def __mul__(self, times: float) -> LowerBound:
        return LowerBound(float(self) * times)

    def __truediv__(self, count: float) -> LowerBound:
        return LowerBound(float(self) / float(count)) if not isinstance(count, LowerBound) else self._refuse(count)


def marked(figure: Figure, *, bound: bool) -> Figure:
    """Return a figure as a `LowerBound` if it is one; None and infinite ones as they are."""
    return LowerBound(figure) if bound and figure is not None and math.isfinite(figure) else figure
