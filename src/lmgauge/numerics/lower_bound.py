"""A number of which only this is known: it is at least so much. It is not ranked, and nothing is divided by it."""

from __future__ import annotations

import math
from typing import NoReturn, TypeVar

from lmgauge.base.errors import UsageError

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
            f"{self:.4g} is a lower bound, so it is not ranked or divided by: the true figure may be higher. "
            "Exact bits need a model that spells unseen words (--vocabulary spelled, lmgauge spell), or one of "
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
