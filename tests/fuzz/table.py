"""The parsers that are tried: a row each."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Attempt = Callable[[random.Random], str]
"""Draws one input, gives it to the parser, and returns in a word or two how that ended: "read", "refused", "same" ...

It may let a `LmgaugeError` through, which counts as "refused". Whatever else it raises is a fault.
"""


@dataclass(frozen=True)
class Parser:
    """What is tried.

    Attributes:
        name: As it stands in the table of counts.
        module: Where its function `prepare(folder) -> Attempt` stands; it makes in `folder` what all inputs begin with.
        reads: What the parser reads, for people.
        budget: How many inputs the suite tries.
        needs: Packages without which it is left out.
    """

    name: str
    module: str
    reads: str
    budget: int = 200
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return the packages it needs that are not installed."""
        return [package for package in self.needs if importlib.util.find_spec(package) is None]

    def prepare(self, folder: Path) -> Attempt:
        """Make what all its inputs begin with in `folder`."""
        attempt: Attempt = importlib.import_module(self.module).prepare(folder)
        return attempt


PARSERS = [
    Parser("kernels", "tests.fuzz.kernels.attempts", "the compiled functions, called by hand", budget=600),
    Parser("arpa", "tests.fuzz.parsers.arpa", "ARPA files"),
]


def named(name: str) -> Parser:
    """Return the parser of this name."""
    return next(parser for parser in PARSERS if parser.name == name)
