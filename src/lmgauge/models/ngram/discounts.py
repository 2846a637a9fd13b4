"""Stage 3, discounts: how much of each count is kept back for what was not seen.

Input: the counts of counts of one order, n_c = the number of n-grams with adjusted count c.
Output: `Discounts`, D(c) for c = 0, 1, 2, ...

A smoothing that discounts is hardly more than this table:

    absolute discounting, kneser-ney   D(c) = D               Ney, Essen & Kneser 1994; Kneser & Ney 1995
    modified-kneser-ney                D(c) = D1, D2, D3+     Chen & Goodman 1998, eq. 26
    good-turing                        D(c) = c (1 - d_c)     Katz 1987, eq. 15, for small c; 0 for the others
    witten-bell                        0: every distinct word after a context adds one to its total instead
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.settings import NgramTrainingSettings

MASS_BITS = 28  # the kernels sum mass in units of 2^-28: integer sums do not depend on their order
_FALLBACK = (0.5, 1.0, 1.5)
_KATZ_LIMIT = 7  # counts up to it are discounted (SRILM's default; Katz's k = 5)


class KernelDiscounts(NamedTuple):
    """Discounts as the kernels take them."""

    # float64 [c], D(c), which an n-gram counted c times loses; the last is for all higher counts
    discount: NDArray[np.float64]
    mass: NDArray[np.uint64]  # uint64 [c], in units of 2^-28, what its context then has to give away
    extra: int  # what each distinct word after a context adds to the total of the context: 1 for Witten-Bell, otherwise 0


NO_DISCOUNTS = KernelDiscounts(np.zeros(1), np.zeros(1, np.uint64), 0)


@dataclass(frozen=True)
class Discounts:
    """Discounts of one order."""

    values: tuple[float, ...]  # D(c) for c = 0, 1, ...; the last is for all higher counts
    note: str = ""  # why they could not be estimated and what is used instead; empty if they could
    distinct_words_count: bool = False

    def for_kernels(self) -> KernelDiscounts:
        """Return the arrays the kernels take, rounded to units of 2^-28.

        >>> Discounts((0.0, 0.5)).for_kernels().mass / 2**28
        array([0. , 0.5])
        """
        if self.distinct_words_count:
            return KernelDiscounts(np.zeros(1), np.full(1, 1 << MASS_BITS, np.uint64), 1)
        mass = np.round(np.array(self.values) * 2.0**MASS_BITS).astype(np.uint64)
        # The same rounding in both, so that what is taken and what is given away are the same.
        return KernelDiscounts(mass.astype(np.float64) / 2.0**MASS_BITS, mass, 0)


def estimate_discounts(settings: NgramTrainingSettings, order: int, counts_of_counts: NDArray[np.int64]) -> Discounts:
    """Return the discounts of one order under a smoothing that is not additive."""
    # estimate_discounts(NgramTrainingSettings("kneser-ney"), 2, [0, 6, 3, 1]).values # 6 / (6 + 2 * 3) -> (0.0, 0.5)
    # counts_of_counts: int64 [c], n_c of this order.
    n = [int(v) for v in counts_of_counts]
    match settings.kind:
        case "witten-bell":
            return Discounts((0.0,), distinct_words_count=True)
        case "absolute-discounting" if settings.discount is not None:
            chosen = settings.discount if isinstance(settings.discount, tuple) else (settings.discount,)
            return Discounts((0.0, chosen[min(order, len(chosen)) - 1]))
        case "absolute-discounting" | "kneser-ney":
            return _one_discount(order, n)
        case "modified-kneser-ney":
            return _three_discounts(order, n, settings.interpolate)
        case "good-turing":
            return _katz_discounts(order, n)
        case kind:
            raise ValueError(f"{kind} has no table of discounts; add a case for it to estimate_discounts")


def _one_discount(order: int, n: list[int]) -> Discounts:
    # D = n1 / (n1 + 2 n2): Ney, Essen & Kneser 1994, eq. 22. With n1, n2 = 6, 3: D = 6 / 12 = 0.5.
    if n[1] == 0 or n[2] == 0:
        once_or_twice = "once" if n[1] == 0 else "twice"
        note = (
            f"order {order}: no n-gram has been seen {once_or_twice} (adjusted count), so the discount cannot be estimated; "
            f"{_FALLBACK[0]} is used (small or artificial text?)"
        )
        return Discounts((0.0, _FALLBACK[0]), note)
    return Discounts((0.0, n[1] / (n[1] + 2 * n[2])))


def _three_discounts(order: int, n: list[int], interpolate: bool) -> Discounts:
    # D1, D2, D3+ = i - (i + 1) Y n_{i+1} / n_i with Y = n1 / (n1 + 2 n2): Chen & Goodman 1998, eq. 26. With
    # n1, n2, n3, n4 = 80, 20, 10, 4:
    #     Y = 80 / 120 = 2/3;  D1 = 1 - 2 Y 20/80 = 2/3;  D2 = 2 - 3 Y 10/20 = 1;  D3+ = 3 - 4 Y 4/10 = 1.93
    missing = [i for i in range(1, 4) if n[i] == 0]
    if missing:
        why = f"discounts cannot be estimated, as no n-gram has an adjusted count of {missing[0]}"
    else:
        y = n[1] / (n[1] + 2 * n[2])
        values = [i - (i + 1) * y * n[i + 1] / n[i] for i in range(1, 4)]
        # A discount that takes the whole count leaves nothing to an n-gram that was seen, unless lower orders are mixed in.
        if all(0 <= value < i or (interpolate and value == i) for i, value in enumerate(values, 1)):
            return Discounts((0.0, *values))
        why = f"estimated discounts ({', '.join(f'{v:.3g}' for v in values)}) are out of range"
    fallback = ", ".join(f"{v:g}" for v in _FALLBACK)
    return Discounts(
        (0.0, *_FALLBACK),
        f"order {order}: {why}; using {fallback} (small or artificial text?)",
    )


def _katz_discounts(order: int, n: list[int]) -> Discounts:
    # D(c) = c (1 - d_c), where d_c c is Katz's discounted count (1987, eq. 15); limits and exceptions as in SRILM.
    # d_c = (r_c - A) / (1 - A), with r_c = (c + 1) n_{c+1} / (c n_c), the Good-Turing estimate of c over c, and
    # A = (k + 1) n_{k+1} / n_1; counts above k are not discounted.
    # Nothing to back off to: only words seen once give to those never seen.
    limit = 1 if order == 1 else _KATZ_LIMIT
    while limit > 0 and n[limit + 1] == 0:
        limit -= 1
    if n[1] == 0 or limit == 0:
        return Discounts((0.0,), f"order {order}: counts of counts do not allow Good-Turing discounts; none are applied")
    a = (limit + 1) * n[limit + 1] / n[1]
    values = [0.0] * (limit + 2)
    for c in range(1, limit + 1):
        # 2 stands for "no estimate", which the next line refuses: it would make more of a count than it is.
        ratio = (c + 1) * n[c + 1] / (c * n[c]) if n[c] else 2.0
        d = (ratio - a) / (1 - a) if a != 1 else 0.0
        if ratio <= 1 and 3e-6 < d <= 1:
            values[c] = c * (1 - d)
    return Discounts(tuple(values))
