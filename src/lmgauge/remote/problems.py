"""What goes wrong with a remote file: what may be over soon is tried again, with longer and longer pauses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from lmgauge.errors import InputError, LmgaugeError
from lmgauge.threads import go_on

TRIES = 5
FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the one before."""
LONGEST_PAUSE = 30.0
_TOLD_PAUSE = 2.0  # shorter ones nobody notices
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class NotThereError(InputError):
    """Raised when there is no such file."""


class PassingProblem(Exception):
    """A problem that may be over soon."""

    # after: seconds that the server asks to wait.

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class Patience:
    """How often a thing has failed in a row; waits before it may be tried again."""

    tries, longest = TRIES, LONGEST_PAUSE

    def __init__(self, name: str, pause: Callable[[float], None] | None = None) -> None:
        self.name, self._pause, self._failures = name, pause, 0

    def wait(self, problem: PassingProblem) -> None:
        """Wait after a failure: half a second first, twice as long each time, or as the server asks, with a limit."""
        go_on()  # a thread whose work nobody waits for any more says nothing
        self._failures += 1
        if self._failures >= self.tries:
            raise self.spent(problem) from None
        seconds = min(max(FIRST_PAUSE * 2.0 ** (self._failures - 1), problem.after), self.longest)
        if seconds >= _TOLD_PAUSE:
            _LOGGER.warning("%s: %s; asking again in %.0f s", self.name, problem, seconds)
        (go_on if self._pause is None else self._pause)(seconds)

    def spent(self, problem: PassingProblem) -> LmgaugeError:
        """Return the error to end with."""
        return InputError(f"{self.name}: {problem}, after {self.tries} tries; try again later")

    def restore(self) -> None:
        """Count from zero again, as there was progress."""
        self._failures = 0


def retried(name: str, attempt: Callable[[], T]) -> T:
    """Return what a function returns, tried up to five times, seconds apart, while its problem may be over soon."""
    patience = Patience(name)
    while True:
        try:
            return attempt()
        except PassingProblem as problem:
            patience.wait(problem)


def rewritten(name: str) -> InputError:
    """Return the error for a file that was written anew while it was read."""
    return InputError(f"{name}: was written anew while it was being read; read it again when it stays as it is")
