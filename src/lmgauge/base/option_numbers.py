"""Numbers that are given as options: how people write them, their bounds, and one sentence about what is wrong."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import visible

_MOST_SHOWN = 60  # characters of a value in a message

MOST = 2**64 - 1


class Bounds(NamedTuple):
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
        lmgauge.base.errors.UsageError: decay must be a number from above 0 to 1; got 0
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
Part = Annotated[float, Bounds(0, 1, open_least=True, open_most=True)]
AtLeastOne = Annotated[float, Bounds(1)]


def check_whole(name: str, value: object, least: int, most: int = MOST) -> None:
    """Refuse what is not a whole number in a range; True and False are no numbers."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value.__index__() <= most:
        allowed = f", {least} or more" if most >= MOST else f" from {least:,} to {most:,}"
        raise UsageError(f"{name} must be a whole number{allowed}; got {value!r}")


def read_number(written: float | str, where: str, *, percent: bool = False) -> float:
    """Return a number as a person writes it: 0.25, 1/4 or, where it may be a percentage, 25%.

    >>> read_number("1/4", "value 1"), read_number("25%", "value 1", percent=True)
    (0.25, 0.25)
    """
    # where: what it is called in messages; `inf` and `nan` come out only where these words were written.
    if not isinstance(written, str):
        try:
            return float(written)
        except (TypeError, ValueError):
            raise InputError(f"{where}: {written!r} is not a number") from None
    word = written.strip()
    part = word.removesuffix("%")
    above, slash, below = part.partition("/")
    try:
        # Python reads 1_0 as ten; in a list of numbers it is a slip.
        if "_" in word or (part != word and not percent):
            raise ValueError
        value = _float(above) / _float(below) if slash else _float(above)
    except ZeroDivisionError:
        raise InputError(f"{where}: {written!r} divides by zero") from None
    except OverflowError:
        raise InputError(f"{where}: {written!r} is beyond the range of float64, 5e-324 to 1.8e308") from None
    except ValueError:
        forms = "0.5, 1/2 or 50%" if percent else "2.5 or 5/2"
        raise InputError(f"{where}: {written!r} is not a number: write {forms}") from None
    return value / 100 if part != word else value


def _float(word: str) -> float:
    # A word as a float; an error where its digits come out as infinity or zero that they are not.
    value = float(word)
    digits = any(character in "123456789" for character in word.lower().partition("e")[0])
    if digits and (math.isinf(value) or value == 0.0):
        raise OverflowError
    return value


def number(value: object, where: str) -> float:
    """Return a number that a program wrote as a float."""
    try:
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except ValueError:
        pass
    raise InputError(f"{where}: {shown(value)} is not a number")


def shown(value: object) -> str:
    """Return a value of a file as a message may show it: short, and harmless to a terminal."""
    # shown("a" * 100)[-6:] -> "aa...'"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)[: _MOST_SHOWN + 1]
    return repr(visible(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."))
