"""How far the tasks of a stage are, in words for who listens: `counting, 3 of 8, about 12 s left`."""

from __future__ import annotations

import time

from lmgauge.progress import say_progress


class Countdown:
    """Says how many tasks of a stage are done, and how long the others will take at the pace of this run."""

    def __init__(self, title: str, tasks: int, done: int = 0) -> None:
        self._title, self._tasks, self._before, self._done = title, tasks, done, done
        self._began = time.monotonic()
        say_progress(f"{title}, {done} of {tasks}")

    def step(self) -> None:
        """One task more is done."""
        self._done += 1
        left = (time.monotonic() - self._began) / (self._done - self._before) * (self._tasks - self._done)
        more = f", about {rounded_time(left)} left" if self._done < self._tasks else ""
        say_progress(f"{self._title}, {self._done} of {self._tasks}{more}")


def rounded_time(seconds: float) -> str:
    """Return a time in one unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
