"""Units of information and of probability: every conversion has a name, so that no `/ 0.693` hides in a formula.

Log-probabilities are natural logs everywhere inside the package; bits, decimal logs and perplexities appear at the edge:

    bits = nats / ln 2        log10 = nats / ln 10        perplexity = exp(nats per event) = 2^(bits per event)
"""

from __future__ import annotations

import math
import sys
from typing import TypeVar

import numpy as np

from lmgauge.numerics.checks import as_real_array, refuse
from lmgauge.numerics.exact import Floats
from lmgauge.numerics.figures import Scale

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
