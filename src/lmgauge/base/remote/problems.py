"""What goes wrong with a server: what may be over soon is tried again, with longer and longer pauses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.threads import go_on

PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses of servers that are busy, or not well."""
FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the one before."""
_TOLD_PAUSE = 2.0  # shorter ones nobody notices
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class NotThereError(InputError):
    """Raised when there is no such file."""


class RewrittenError(InputError):
    """Raised when a file was written anew while it was read."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: was written anew while it was being read; read it again when it stays as it is")


class PassingProblem(Exception):
    """A problem that may be over soon."""

    # after: seconds that the server asks to wait.

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class Patience:
    """How often a thing has failed in a row; waits before it may be tried again."""

    tries, longest = 5, 30.0

    def __init__(self, name: str) -> None:
        self.name, self.failures = name, 0

    def wait(self, problem: PassingProblem) -> None:
        """Wait after a failure: half a second first, twice as long each time, or as the server asks, with a limit."""
        go_on()  # a thread whose work nobody waits for any more says nothing
        self.failures += 1
        if self.failures >= self.tries:
            raise self.spent(problem) from None
        seconds = min(max(FIRST_PAUSE * 2.0 ** (self.failures - 1), problem.after), self.longest)
        if seconds >= _TOLD_PAUSE:
            _LOGGER.warning("%s: %s; asking again in %.0f s", self.name, problem, seconds)
        go_on(seconds)

    def spent(self, problem: PassingProblem) -> LmgaugeError:
        """Return the error to end with."""
        return InputError(f"{self.name}: {problem}, after {self.tries} tries; try again later")

    def retried(self, attempt: Callable[[], T]) -> T:
        """Return what a function returns, tried a few times, seconds apart, while its problem may be over soon."""
        while True:
            try:
                return attempt()
            except PassingProblem as problem:
                self.wait(problem)
