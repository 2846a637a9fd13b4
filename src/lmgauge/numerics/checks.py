"""Checks of the numbers that people hand to the measures. Positions in messages count from 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.base.errors import InputError
from lmgauge.numerics.exact import Floats, exact_sum

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
