"""Numbers that are given as options: their bounds, one check of them, and one sentence about what is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from lmgauge.errors import UsageError

MOST = 2**64 - 1


@dataclass(frozen=True)
class Bounds:
    """What numbers an option may be; beside its type, as in `Annotated[int, Bounds(1)]`."""

    least: float
    most: float = math.inf
    open_least: bool = False
    open_most: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse what is not a number within the bounds.

        >>> Bounds(0, 1, open_least=True).check("decay", 0)
        Traceback (most recent call last):
            ...
        lmgauge.errors.UsageError: decay must be a number from above 0 to 1; got 0
        """
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
        over = number > self.least if self.open_least else number >= self.least
        under = number < self.most if self.open_most else number <= self.most
        if not (over and under):
            raise UsageError(f"{name} must be a number {self._in_words()}; got {value!r}")

    def _in_words(self) -> str:
        least = f"above {self.least:g}" if self.open_least else f"{self.least:g}"
        if self.most == math.inf:
            return least if self.open_least else f"from {least}"
        return f"from {least} to {'below ' if self.open_most else ''}{self.most:g}"


Count = Annotated[int, Bounds(1)]
Natural = Annotated[int, Bounds(0)]
Share = Annotated[float, Bounds(0, 1)]
Positive = Annotated[float, Bounds(0, open_least=True, open_most=True)]
NotNegative = Annotated[float, Bounds(0, open_most=True)]
AtLeastOne = Annotated[float, Bounds(1)]


def check_whole(name: str, value: object, least: int, most: int = MOST) -> None:
    """Refuse what is not a whole number in a range; True and False are no numbers."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value.__index__() <= most:
        allowed = f", {least} or more" if most >= MOST else f" from {least:,} to {most:,}"
        raise UsageError(f"{name} must be a whole number{allowed}; got {value!r}")
