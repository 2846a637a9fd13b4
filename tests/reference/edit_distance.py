"""Alignments the slow way: the whole matrix of distances, and steps back through it in a stated order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

EQUAL, SUBSTITUTE, DELETE, INSERT = range(4)

LARGEST_MATRIX = 1024 * 1024
"""Bytes of two bits a cell above which rapidfuzz divides the problem (Hirschberg 1975)."""


def rows(reference: Sequence[str], hypothesis: Sequence[str]) -> NDArray[np.int64]:
    """[j, i]: the distance between the first j units of the hypothesis and the first i of the reference."""
    names: dict[str, int] = {}
    ref, hyp = (np.array([names.setdefault(x, len(names)) for x in units], dtype=int) for units in (reference, hypothesis))
    steps = np.arange(len(ref) + 1)
    matrix = [steps]
    for j, unit in enumerate(hyp):
        above = matrix[-1]
        row = np.append(j + 1, np.minimum(above[1:] + 1, above[:-1] + (ref != unit)))
        # A deletion costs one more than the cell to the left: the running minimum of what is left after taking i off.
        matrix.append(np.minimum.accumulate(row - steps) + steps)
    return np.array(matrix)


def distance(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """The least number of substitutions, deletions and insertions."""
    return int(rows(reference, hypothesis)[-1, -1])


def align(reference: Sequence[str], hypothesis: Sequence[str], bound: int | None = None) -> list[int]:
    """The operations, left to right, of the optimal alignment that rapidfuzz takes.

    `bound` is the distance where it is known; it decides only whether the problem is divided.
    """
    shorter = min(len(reference), len(hypothesis))
    before = next((i for i in range(shorter) if reference[i] != hypothesis[i]), shorter)
    left = shorter - before
    behind = next((i for i in range(left) if reference[-1 - i] != hypothesis[-1 - i]), left)
    reference = reference[before : len(reference) - behind]
    hypothesis = hypothesis[before : len(hypothesis) - behind]
    longest = max(len(reference), len(hypothesis))
    bound = longest if bound is None else min(bound, longest)
    size = 2 * min(len(reference), 2 * bound + 1) * len(hypothesis) // 8
    if size < LARGEST_MATRIX or len(reference) < 65 or len(hypothesis) < 10:
        middle = _traced(reference, hypothesis)
    else:
        middle = _divided(reference, hypothesis)
    return [EQUAL] * before + middle + [EQUAL] * behind


def _traced(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    matrix = rows(reference, hypothesis)
    j, i = len(hypothesis), len(reference)
    found = []
    while i and j:
        if matrix[j, i] == matrix[j, i - 1] + 1:
            i -= 1
            found.append(DELETE)
            continue
        j -= 1
        if matrix[j, i] == matrix[j, i - 1] - 1:
            found.append(INSERT)
        else:
            i -= 1
            found.append(EQUAL if reference[i] == hypothesis[j] else SUBSTITUTE)
    return [INSERT] * j + [DELETE] * i + found[::-1]


def _divided(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    half = len(hypothesis) // 2
    left = rows(reference, hypothesis[:half])[-1]
    right = rows(reference[::-1], hypothesis[half:][::-1])[-1][::-1]
    cut = int(np.argmin(left + right))
    first = align(reference[:cut], hypothesis[:half], int(left[cut]))
    return first + align(reference[cut:], hypothesis[half:], int(right[cut]))
