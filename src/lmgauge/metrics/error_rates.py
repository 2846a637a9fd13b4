"""Error rates of transcripts, from counts of hits, substitutions, deletions and insertions.

Every function takes float64 [rows, 4], a row for each text (or resample): hits H, substitutions S, deletions D and
insertions I, summed over the segments; so a rate is always that of the sum, never a mean of rates. The reference has
H + S + D units (words or characters), the hypothesis H + S + I.

Morris, Maier & Green (2004), "From WER and RIL to MER and WIL: improved evaluation measures for connected speech
recognition", Interspeech.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def error_rates(counts: Floats) -> Floats:
    """Errors for each unit of the reference, (S + D + I) / (H + S + D): the word or character error rate.

    :param counts: float64 [rows, 4]
    :returns: float64 [rows], 0 or more, and more than 1 where there are many insertions; against an empty reference the
        number of insertions, as jiwer has it
    """
    hits, substitutions, deletions, insertions = counts.T
    errors, length = substitutions + deletions + insertions, hits + substitutions + deletions
    return _divided(errors, length, insertions)


def match_error_rates(counts: Floats) -> Floats:
    """The share of errors among all matches, (S + D + I) / (H + S + D + I).

    :param counts: float64 [rows, 4]
    :returns: float64 [rows], 0 to 1; 0 where both texts are empty
    """
    hits, substitutions, deletions, insertions = counts.T
    errors = substitutions + deletions + insertions
    return _divided(errors, hits + errors, np.zeros(len(counts)))


def information_preserved(counts: Floats) -> Floats:
    """Word information preserved: hits by reference length times hits by hypothesis length.

    :param counts: float64 [rows, 4]
    :returns: float64 [rows], 0 to 1; 1 where both texts are empty, 0 where one is
    """
    hits, substitutions, deletions, insertions = counts.T
    reference, hypothesis = hits + substitutions + deletions, hits + substitutions + insertions
    both_empty = (reference + hypothesis == 0).astype(np.float64)
    return _divided(hits, reference, both_empty) * _divided(hits, hypothesis, both_empty)


def information_lost(counts: Floats) -> Floats:
    """Word information lost: 1 less what is preserved.

    :param counts: float64 [rows, 4]
    :returns: float64 [rows], 0 to 1
    """
    return np.asarray(1.0 - information_preserved(counts), dtype=np.float64)


def _divided(numerator: Floats, denominator: Floats, otherwise: Floats) -> Floats:
    """The quotient; `otherwise` where the denominator is 0."""
    whole = denominator != 0
    return np.where(whole, numerator / np.where(whole, denominator, 1.0), otherwise)
