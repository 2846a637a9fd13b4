"""Values that are written in a way of their own: numbers as people write them, lists with commas, and a few odd ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from lmgauge.choices import SMOOTHINGS
from lmgauge.option_numbers import read_number

_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def number(word: str) -> float:
    """Return a number as a person writes it, the same in every option: 0.25, 1/4 or 25%.

    >>> number("1/4"), number("25%")
    (0.25, 0.25)
    """
    return read_number(word, "number", percent=True)


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """One number, as `number` reads it."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            return number(value) if isinstance(value, str) else float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number such as 0.25, 1/4 or 25%", param, ctx)


class CommaList(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """Values with commas between them; the command gets a tuple of them."""

    name = "N[,N...]"

    def __init__(self, kind: type[int | float | str]) -> None:
        self._kind = kind
        self._numbers, example = {int: ("whole numbers", "1,5"), float: ("numbers", "0.5,0.5")}.get(kind, ("words", "a,b"))
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the values.

        >>> CommaList(int)("0,1"), CommaList(float)("1/4,75%")
        ((0, 1), (0.25, 0.75))
        """
        if not isinstance(value, str):
            return value
        read = number if self._kind is float else self._kind
        try:
            return tuple(read(part.strip()) for part in value.split(",") if part.strip() or self._kind is not str)
        except ValueError:
            self.fail(f"{value!r} is not a list of {self._numbers} like {self._example}", param, ctx)


class NamedNumbers(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """Numbers with names, and commas between them; the command gets a dictionary."""

    name = "NAME=X[,...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers by their names.

        >>> NamedNumbers()("score=1,kn5=1/2")
        {'score': 1.0, 'kn5': 0.5}
        """
        named: dict[str, float] = {}
        for part in value.split(",") if isinstance(value, str) else ():
            name, _, written = part.rpartition("=")
            try:
                named[name.strip()] = number(written)
            except ValueError:
                name = ""
            if not name.strip():
                self.fail(f"{part!r} is not NAME=NUMBER, as in score=1,kn5=0.5,words=-0.2", param, ctx)
        return named or value


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """What a function of the house reads."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what was read."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def read_count(word: str) -> int:
    """Return a number of things.

    >>> read_count("1.5M"), read_count("20_000")
    (1500000, 20000)
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([kMG]?)", word.replace(",", "").replace("_", ""))
    if match is None or not (count := int(float(match[1]) * _FACTORS[match[2]] + 0.5)):
        raise ValueError(f"{word!r} is not a whole number such as 250000, 500k or 1M")
    return count


def read_sample(word: str) -> int | None:
    """Return a number of documents; None for all."""
    try:
        return None if word == "all" else read_count(word)
    except ValueError as error:
        raise ValueError(f"{word!r} is not a number of documents such as 20000, or 'all'") from error


class KindChoice(click.Choice[str]):
    """A kind of model; an unknown word is answered with the kinds spelled like it."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is wrong with `value`, and which kind may be meant."""
        from difflib import get_close_matches

        word = str(value).lower()
        short = [kind for kind, (name, _) in SMOOTHINGS.items() if len(word) > 1 and name.endswith(word)]
        meant = " or ".join(short or get_close_matches(word, self.choices, 2))
        hint = f"; did you mean {meant}?" if meant else ""
        return super().get_invalid_choice_message(value, ctx).rstrip(".") + hint


_LIST = Parsed("LIST", lambda word: word.split(","))
PARSERS: dict[str, click.ParamType[Any]] = {
    "context": click.STRING,
    "tokens": Parsed("TEXT", str),
    "p": _LIST,
    "q": _LIST,
    "recipes": click.STRING,
    "sample": Parsed("N|all", read_sample),
    "to_size": Parsed("N", read_count),
    "words": Parsed("FILE", str),
}
"""Keyword -> what reads its value."""
