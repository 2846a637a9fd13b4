"""How numbers are written: one rule for each form, for cells of tables and for sentences, in every renderer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from lmgauge.base.escaping import counted as counted
from lmgauge.base.escaping import listed as listed
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import Form, Number, Range, in_one_form

_SIGNED_FORMS = ("signed", "fixed", "change")
_LARGE, _MOST_DIGITS = 10**9, 9


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure rounded to `digits` after the point, or to three that count; infinity as a sign, a dash for None."""
    return in_words(Number(value, digits))


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference: as `number`, with its sign always in front."""
    return in_words(Number(value, digits, "signed"))


def _figure(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and (abs(value) >= _LARGE or digits > _MOST_DIGITS):
        return f"{value:.2e}"
    return f"{value:,.{digits if digits <= _MOST_DIGITS else 0}f}"


def _signed(value: float, digits: int) -> str:
    # A difference has its sign: one that would be shown as zero has more digits, up to the most there are.
    if value and round(value, digits) == 0:
        needed = -math.floor(math.log10(abs(value)))
        value, digits = (value, needed) if needed <= _MOST_DIGITS else (0.0, digits)
    return "+" * (value > 0) + _figure(value, digits)


def p_value(value: float | None) -> str:
    """Return a p-value; very small ones as a bound."""
    if value is None:
        return "–"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def p_equals(value: float) -> str:
    """Return a p-value for a sentence."""
    shown = p_value(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def change(ratio: float, digits: int = 2) -> str:
    """Return a ratio as a change in per cent; very large ones as they are."""
    return f"{_signed(100 * (ratio - 1), digits)} %" if ratio < 1e6 else number(ratio)


def percent(share: float, digits: int = 2) -> str:
    """Return a share of 1 in per cent; it reads as 0 % only if it is zero, and as 100 % only if it is all."""
    least = 10.0**-digits
    if 0 < share < 1 and not least / 2 <= 100 * share < 100 - least / 2:
        return f"< {least:.{digits}f} %" if share < 0.5 else f"> {100 - least:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def share_of(part: int, whole: int) -> str:
    """Return the share that a part is of a whole, 0 of nothing."""
    return percent(part / whole if whole else 0.0)


def probability(value: float, digits: int = 1) -> str:
    """Return a probability; small ones as powers of ten, so that columns stay narrow."""
    if value and value < 0.001:
        return f"{value:.{max(0, digits - 1)}e}".replace("e-0", "e-")
    return f"{value:.{digits}g}"


def figures(value: float, digits: int = 2) -> str:
    """Return a number with a number of significant figures: 0.0000028, 0.26, 12; a zero as 0."""
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{digits - 1}e}" if decimals > _MOST_DIGITS or abs(value) >= _LARGE else f"{value:,.{max(0, decimals)}f}"


FORMS: dict[Form, Callable[[float, int], str]] = {
    "number": _figure,
    "signed": _signed,
    "fixed": lambda value, digits: f"{value:,.{digits}f}",
    "percent": percent,
    "change": change,
    "count": lambda value, digits: f"{round(value):,}",
    "p": lambda value, digits: p_value(value),
    "times": lambda value, digits: f"{value:.{digits}f} ×",
    "deviation": lambda value, digits: f"{value:+.{digits}f} σ",
    "probability": probability,
    "rank": lambda value, digits: f"{value:g}",
    "places": lambda value, digits: f"{value:+g}",
    "figures": figures,
}
"""The rules by name."""


def in_words(cell: Number | Range) -> str:
    """Return a number or an interval as it is written in a sentence: in a form of its own."""
    return in_column(cast("Number | Range", in_one_form([cell])[0]))


def in_column(cell: Number | Range) -> str:
    """Return a number or an interval as it is written in its column: a lower bound with ≥, a significant p-value with *."""

    def form(value: float) -> str:
        return FORMS[cell.form if math.isfinite(value) or cell.form == "signed" else "number"](value, cell.digits)

    if isinstance(cell, Range):
        between, ends = " .. " if cell.form in _SIGNED_FORMS else " – ", (cell.low, cell.high)
        if cell.form in ("number", "signed") and any(_LARGE <= abs(end) < math.inf for end in ends):  # both in one form
            cell = replace(cell, digits=_MOST_DIGITS + 1)
        if cell.form == "figures":  # the ends of a narrow interval would be equal
            cell = replace(cell, digits=cell.digits + 1)
        return between.join(map(form, ends))
    if cell.value is None:
        return "–"
    bound = isinstance(cell.value, LowerBound)
    return "≥ " * bound + "* " * cell.significant + form(float(cell.value) if bound else cell.value)


def names_in_brief(names: Sequence[str]) -> str:
    """Return names for a title: the first three, and how many more there are."""
    # names: in order.
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
