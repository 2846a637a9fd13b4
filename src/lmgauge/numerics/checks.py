"""What the metrics share: checking the numbers they are given, and summing them exactly.

Positions in messages count from 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.errors import InputError

Floats = NDArray[np.float64]

# The sum of a float32 softmax over a large vocabulary is off by about this much.
SUM_TOLERANCE = 1e-6
# How many values `exact_sum` holds as Python floats at a time.
SUM_BLOCK = 1 << 16


def exact_sum(values: Floats) -> float:
    """Sum in float64, rounded once: the same for every order and every division of the values.

    :param values: float64 [n], no NaN, not both `inf` and `-inf`
    :returns: the correctly rounded sum; `-0.0` never
    """
    return math.fsum(_python_floats(values)) + 0.0


def as_real_array(values: ArrayLike, name: str) -> Floats:
    """Check that `values` are real numbers, of any shape, and make them float64.

    :param name: what one of them is called in messages
    :returns: float64, same shape; may share memory with `values`
    :raises InputError: for text, objects, complex numbers, truth values or rows of unequal length
    """
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise InputError(f"{name}s must be a plain list of numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        kind = array.dtype.name
        raise InputError(f"{name}s must be real numbers, not {kind}: convert them with float() first")
    return array.astype(np.float64, copy=False)


def as_vector(values: ArrayLike, name: str) -> Floats:
    """Check that `values` are a non-empty list of real numbers, none of them NaN.

    :param values: numbers, shape [n]
    :param name: what one of them is called in messages
    :returns: float64 [n]; may share memory with `values`
    :raises InputError: for another shape or type, no values, or a NaN
    """
    array = as_real_array(values, name)
    if array.ndim != 1:
        shape = array.shape
        raise InputError(f"{name}s must be a list of numbers, not of shape {shape}: flatten them first")
    if array.size == 0:
        raise InputError(f"no {name} given: at least one is needed")
    refuse(np.isnan(array), array, name, "not a number: remove it or mend what produced it")
    return array


def as_distribution(probabilities: ArrayLike, name: str) -> Floats:
    """Check that numbers form a probability distribution.

    A sum within 1e-6 of one is taken as rounding (float32 models do no better) and divided out.

    :param probabilities: shape [n], each between 0 and 1
    :param name: what the distribution is called in messages
    :returns: float64 [n], its sum 1 to the last digits
    :raises InputError: if there are none, one is NaN or negative, or the sum is not one
    """
    values = as_vector(probabilities, f"{name} value")
    refuse(values < 0.0, values, f"{name} value", "negative: a probability lies between 0 and 1")
    above = values > 1.0 + SUM_TOLERANCE
    refuse(above, values, f"{name} value", "above 1: divide counts or weights by their sum first")
    total = exact_sum(values)
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"{name} sums to {total!r}, not to 1: divide counts or weights by their sum first")
    return values / total


def entropy_nats(distribution: Floats) -> float:
    """Entropy in nats of a distribution that `as_distribution` has checked: float64 [n]."""
    positive = distribution[distribution > 0.0]
    # 0.0 - x and not -x: a certain outcome has entropy 0.0, not -0.0.
    return 0.0 - exact_sum(positive * np.log(positive))


def refuse(bad: NDArray[np.bool_], values: Floats, name: str, reason: str) -> None:
    """Raise InputError for the first value marked bad.

    :param bad: bool, same shape as `values`, which has one dimension
    :param name: what one value is called
    :param reason: what is wrong with it and what to do; follows "... is <value>, "
    """
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"{name} {at + 1} of {values.size} is {float(values[at])!r}, {reason}")


def _python_floats(values: Floats) -> Iterator[float]:
    # tolist() of a block is several times faster than iterating over NumPy scalars and bounds the memory.
    for start in range(0, values.size, SUM_BLOCK):
        yield from values[start : start + SUM_BLOCK].tolist()
