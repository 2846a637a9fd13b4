"""Values that are written in a way of their own: numbers as people write them, lists with commas, and a few odd ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from lmgauge.base.choices import SMOOTHINGS
from lmgauge.base.option_numbers import read_number

_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def number(word: str) -> float:
    """Return a number as a person writes it, the same in every option: 0.25, 1/4 or 25%.

    >>> number("1/4"), number("25%")
    (0.25, 0.25)
    """
    return read_number(word, "number", percent=True)


def read_named_numbers(words: str) -> dict[str, float]:
    """Return numbers by their names.

    >>> read_named_numbers("score=1,kn5=1/2")
    {'score': 1.0, 'kn5': 0.5}
    """
    named: dict[str, float] = {}
    for part in words.split(","):
        name, _, written = part.rpartition("=")
        try:
            named[name.strip()] = number(written)
        except ValueError:
            name = ""
        if not name.strip():
            raise ValueError(f"{part!r} is not NAME=NUMBER, as in score=1,kn5=0.5,words=-0.2")
    return named


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
    return None if word == "all" else read_count(word)


def read_band(words: str) -> tuple[float, float]:
    """Return two numbers.

    >>> read_band("0.9..1.1")
    (0.9, 1.1)
    """
    low, dots, high = words.partition("..")
    if not dots:
        raise ValueError(f"{words!r} is not LOW..HIGH, as in 0.9..1.1")
    return number(low), number(high)


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """What a function of the house reads; what it cannot read is answered by its own words, if none are given."""

    def __init__(self, name: str, read: Callable[[str], Any], wrong: str = "") -> None:
        self.name, self._read, self._wrong = name, read, wrong

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what was read."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{value!r} is not {self._wrong}" if self._wrong else str(error), param, ctx)


class CommaList(Parsed):
    """Values with commas between them; the command gets a tuple of them.

    >>> CommaList(int)("0,1"), CommaList(float)("1/4,75%")
    ((0, 1), (0.25, 0.75))
    """

    def __init__(self, kind: type[int | float | str]) -> None:
        named = {int: ("N[,N...]", "whole numbers like 1,5"), float: ("X[,X...]", "numbers like 0.5,0.5")}
        metavar, what = named.get(kind, ("NAMES", "words like a,b"))
        read = number if kind is float else kind

        def parts(words: str) -> tuple[Any, ...]:
            return tuple(read(part.strip()) for part in words.split(",") if part.strip() or kind is not str)

        super().__init__(metavar, parts, f"a list of {what}")


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


NUMBER = Parsed("X", number, "a number such as 0.25, 1/4 or 25%")
NAMED_NUMBERS = Parsed("NAME=X[,...]", read_named_numbers)
_LIST = Parsed("LIST", lambda word: word.split(","))
PARSERS: dict[str, click.ParamType[Any]] = {
    "band": Parsed("LOW..HIGH", read_band),
    "context": click.STRING,
    "logprob": click.STRING,
    "tokens": Parsed("TEXT", str),
    "p": _LIST,
    "q": _LIST,
    "pairs": click.STRING,
    "recipes": click.STRING,
    "score": click.STRING,
    "sample": Parsed("N|all", read_sample, "a number of documents such as 20000, or 'all'"),
    "to_size": Parsed("N", read_count),
    "words": Parsed("FILE", str),
}
"""Keyword -> what reads its value."""
