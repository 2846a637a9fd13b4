"""Mutual information from joint counts: of two variables, of pairs, and of tokens some distance apart in a sequence.

Sources: Cover & Thomas (2006), "Elements of Information Theory", 2nd ed., chapter 2; Miller (1955), "Note on the bias of
information estimates"; Church & Hanks (1990), "Word association norms, mutual information, and lexicography"; Lin & Tegmark
(2017), "Critical behavior in physics and probabilistic formal languages".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.checks import as_real_array, as_vector, refuse
from lmgauge.numerics.exact import Floats, Ints, exact_sum
from lmgauge.numerics.information.distributions import InformationUnit, check_unit, in_unit
from lmgauge.numerics.intervals import sums_by
from lmgauge.numerics.units import nats_to_bits

Correction = Literal["none", "miller-madow"]
JointCounts = ArrayLike | Mapping[tuple[Any, Any], float]

# Above it float64 no longer holds every whole number, and a count would be rounded.
LARGEST_COUNT = 2.0**53
# Products of two weights above it stay within float64.
SMALLEST_FACTOR = 1e-150
# A table of this many cells (characters, bytes) is filled faster than the pairs are sorted.
DENSE_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a joint table that are not zero."""

    x: Ints  # [cells], row of each cell
    y: Ints  # [cells], column of each cell
    counts: Floats  # [cells], > 0

    def totals(self) -> tuple[Floats, Floats]:
        # Row totals [rows] and column totals [columns].
        return sums_by(self.x, self.counts), sums_by(self.y, self.counts)


def mutual_information(joint: JointCounts, *, unit: InformationUnit = "bits", correction: Correction = "none") -> float:
    """Return the mutual information of two variables, KL(joint || product of the margins) (Cover & Thomas 2006).

    Args:
        joint: counts (or probabilities), 0 or more: an array [rows, columns], or a mapping from pairs (x, y).
        unit: of the result, "bits" or "nats".
        correction: "none" for the plug-in estimate, which is too high for sparse counts by about
            (cells - rows - columns + 1) / (2 N) nats; "miller-madow" subtracts just that (rows, columns and cells that
            occur; Miller 1955), needs whole counts, and may fall below 0.

    Returns:
        0 or more without correction, at most the smaller of the two entropies.

    Raises:
        InputError: a count is NaN, negative or too large, or all are zero.
        UsageError: the unit or the correction is unknown.

    Example:
        >>> mutual_information([[10, 0], [0, 10]])
        1.0
    """
    _check_options(unit, correction)
    cells = _cells_of_mapping(joint) if isinstance(joint, Mapping) else _cells_of_table(joint)
    return in_unit(_information(cells, correction), unit)


def mutual_information_of_pairs(
    x: Iterable[Any],
    y: Iterable[Any],
    counts: ArrayLike | None = None,
    *,
    unit: InformationUnit = "bits",
    correction: Correction = "none",
) -> float:
    """Return the mutual information of two variables from a list of pairs, each seen `counts` times.

    Args:
        x: shape [n], labels (numbers or strings); pairs may repeat.
        y: shape [n], labels.
        counts: shape [n], 0 or more; None: each pair was seen once.
        unit: of the result, "bits" or "nats".
        correction: see `mutual_information`.

    Raises:
        InputError: the lengths differ, or a count is out of range.
        UsageError: the unit or the correction is unknown.

    Example:
        >>> mutual_information_of_pairs("aabb", "xxyy")
        1.0
    """
    _check_options(unit, correction)
    cells, _ = _cells_of_pairs(x, y, counts)
    return in_unit(_information(cells, correction), unit)


def pointwise_mutual_information(
    words: Iterable[Any], contexts: Iterable[Any], counts: ArrayLike, *, unit: InformationUnit = "bits"
) -> Floats:
    """Return the association of each word with its context: ln p(w, c) / (p(w) p(c)) (Church & Hanks 1990, section 3).

    Pairs listed more than once count together. Rare pairs get high values from little evidence: look at the counts, too.

    Args:
        words: shape [n], labels (numbers or strings).
        contexts: shape [n], labels.
        counts: shape [n], above 0, how often the word was seen in the context.
        unit: of the result, "bits" or "nats".

    Returns:
        float64 [n], the value of the pair in each row; its mean weighted by the counts is the mutual information.

    Raises:
        InputError: the lengths differ, or a count is out of range.
        UsageError: the unit is unknown.

    Example:
        >>> pointwise_mutual_information(["strong", "hot"], ["tea", "day"], [1, 1]).tolist()
        [1.0, 1.0]
    """
    check_unit(unit)
    seen = _as_counts(counts)
    refuse(seen == 0.0, seen, "count", "zero: leave out pairs never seen, whose value is -inf")
    cells, cell_of_row = _cells_of_pairs(words, contexts, counts)
    values = _pointwise_nats(cells)[cell_of_row]
    return nats_to_bits(values) if unit == "bits" else values


def _pointwise_nats(cells: _Cells) -> Floats:
    counts, total = cells.counts, exact_sum(cells.counts)
    rows, columns = cells.totals()
    row, column = rows[cells.x], columns[cells.y]
    if counts.min() > SMALLEST_FACTOR:
        # Products of whole numbers are exact while they fit: independent variables give 0, not 1e-16.
        nats: Floats = np.log((counts * total) / (row * column))
    else:
        nats = (np.log(counts) - np.log(row)) - (np.log(column) - np.log(total))
    return nats


def _information(cells: _Cells, correction: Correction) -> float:
    total = exact_sum(cells.counts)
    nats = max(0.0, exact_sum(cells.counts / total * _pointwise_nats(cells)))
    if correction == "none":
        return nats
    counts = cells.counts
    reason = "not a whole number: the Miller-Madow correction needs numbers of observations"
    refuse(counts != np.floor(counts), counts, "count", reason)
    rows, columns = (int(np.count_nonzero(totals)) for totals in cells.totals())
    return nats - (counts.size - rows - columns + 1) / (2.0 * total)


def _check_options(unit: str, correction: str) -> None:
    check_unit(unit)
    if correction not in get_args(Correction):
        raise UsageError(f"correction {correction!r} is unknown: it is none or miller-madow")


def _as_counts(counts: ArrayLike) -> Floats:
    values = as_vector(counts, "count")
    refuse(values < 0.0, values, "count", "negative: counts start at 0")
    reason = "above 2^53, where float64 rounds counts: divide all of them by one number"
    refuse(values > LARGEST_COUNT, values, "count", reason)
    if not values.any():
        raise InputError("all counts are 0: nothing was observed")
    return values


def _cells_of_table(table: ArrayLike) -> _Cells:
    array = as_real_array(table, "count")
    if array.ndim != 2:
        shape = array.shape
        raise InputError(f"joint counts must be [rows, columns], not of shape {shape}; for pairs: a mapping")
    flat = _as_counts(array.ravel())
    occupied = np.flatnonzero(flat)
    x, y = np.divmod(occupied, array.shape[1])
    return _Cells(x.astype(np.int64), y.astype(np.int64), flat[occupied])


def _cells_of_mapping(joint: Mapping[Any, float]) -> _Cells:
    for key in joint:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InputError(f"key {key!r} of the joint counts is not a pair (x, y)")
    cells, _ = _cells_of_pairs([key[0] for key in joint], [key[1] for key in joint], list(joint.values()))
    return cells


def _cells_of_pairs(x: Iterable[Any], y: Iterable[Any], counts: ArrayLike | None) -> tuple[_Cells, Ints]:
    # Cells of equal pairs merged, and the cell of each row (without meaning for rows of count zero).
    x_codes, y_codes = _codes(x), _codes(y)
    weights = _as_counts(np.ones(x_codes.size) if counts is None else counts)
    if not x_codes.size == y_codes.size == weights.size:
        sizes = f"{x_codes.size}, {y_codes.size} and {weights.size}"
        raise InputError(f"lists of {sizes} entries do not pair up: give one x, y and count for each pair")
    # Both codes are below the number of rows, so that their pair fits in 64 bits up to 3e9 rows.
    columns = int(y_codes.max()) + 1
    keys, cell_of_row = np.unique(x_codes * columns + y_codes, return_inverse=True)
    totals = sums_by(cell_of_row, weights)
    occupied = totals > 0.0
    renumbered = np.cumsum(occupied) - 1
    cells = _Cells(keys[occupied] // columns, keys[occupied] % columns, totals[occupied])
    return cells, renumbered[cell_of_row]


def _codes(labels: Iterable[Any]) -> Ints:
    # Labels as codes from 0, int64 [n]: equal codes for equal labels.
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iuUS":
        if labels.ndim != 1:
            raise InputError(f"labels must be a list, not of shape {labels.shape}: flatten them first")
        return np.unique(labels, return_inverse=True)[1].astype(np.int64, copy=False)
    # Not np.asarray for lists: it would make "1" of 1 and merge the two.
    numbers: dict[Hashable, int] = {}
    try:
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    except TypeError:
        raise InputError("labels must be numbers or strings, not lists or arrays") from None


def mutual_information_by_distance(
    ids: ArrayLike,
    distances: ArrayLike,
    *,
    unit: InformationUnit = "bits",
    segment_lengths: ArrayLike | None = None,
    correction: Correction = "none",
) -> Floats:
    """Return the mutual information between tokens d apart in a sequence, for each d: how far back the text is informative.

    The margins are those of the pairs at that distance, so that the estimate is never negative. Sparse pairs (a large
    vocabulary, a short text) inflate it: compare with the value for shuffled ids, or ask for the correction. In natural text
    it falls like a power of d, in a Markov chain exponentially (Lin & Tegmark 2017).

    Args:
        ids: shape [n], token ids, whole numbers.
        distances: shape [m], in tokens, whole numbers of 1 or more.
        unit: of the result, "bits" or "nats".
        segment_lengths: shape [segments], lengths that add up to n: no pair crosses from one segment into another; None: one
            segment.
        correction: see `mutual_information`.

    Returns:
        float64 [m].

    Raises:
        InputError: ids or distances are not whole numbers, the lengths do not add up, or no segment is long enough for a
            distance.
        UsageError: the unit or the correction is unknown.

    Example:
        >>> mutual_information_by_distance([0, 0, 1, 1, 0, 0, 1, 1, 0], [1, 2]).round(6).tolist()
        [0.0, 0.985228]
    """
    _check_options(unit, correction)
    codes = _codes(_as_whole(ids, "id"))
    lengths = np.array([codes.size]) if segment_lengths is None else _as_whole(segment_lengths, "length")
    segment_of = _segment_of(lengths, codes.size)
    longest = int(lengths.max())
    values = []
    for distance in _as_whole(distances, "distance").tolist():
        if not 1 <= distance < longest:
            reach = f"the longest segment has {longest} ids"
            raise InputError(f"distance {distance} must be at least 1 and below {longest}: {reach}")
        same = segment_of[distance:] == segment_of[:-distance]
        cells = _cells_of_codes(codes[:-distance][same], codes[distance:][same])
        values.append(in_unit(_information(cells, correction), unit))
    return np.array(values, dtype=np.float64)


def _cells_of_codes(x: Ints, y: Ints) -> _Cells:
    # Counts of pairs of codes [n], each from 0, by one 64-bit key for each pair.
    columns = int(y.max()) + 1
    keys = x * columns + y
    if (int(x.max()) + 1) * columns <= max(DENSE_CELLS, keys.size):
        table = np.bincount(keys)
        occupied = np.flatnonzero(table)
        counts = table[occupied]
    else:
        occupied, counts = np.unique(keys, return_counts=True)
    return _Cells(occupied // columns, occupied % columns, counts.astype(np.float64))


def _segment_of(lengths: Ints, total: int) -> Ints:
    if lengths.min() < 0 or int(lengths.sum()) != total:
        raise InputError(f"segment lengths add up to {int(lengths.sum())}, but there are {total} ids")
    return np.repeat(np.arange(lengths.size), lengths)


def _as_whole(values: ArrayLike, name: str) -> Ints:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise InputError(f"{name}s must be a plain list of whole numbers: {error}") from None
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}s must be a non-empty list of whole numbers")
    return array.astype(np.int64, copy=False)
