"""How far a long piece of work is: what functions say of it, to whoever listens. By default nobody does.

>>> with listening(print):
...     say_progress("loading")
loading
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]


def _silent(stage: str) -> None:
    """Drop what is said."""


_LISTENER: ContextVar[Listener] = ContextVar("listener", default=_silent)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hand on what the functions called in the block say of their progress.

    Args:
        listener: gets one short line at a time, such as "scored 3 MB".
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def say_progress(stage: str) -> None:
    """Say in a few words what is being done; cheap when nobody listens."""
    _LISTENER.get()(stage)


def listener() -> Listener:
    """Return who listens here, for threads to speak to: they do not inherit it."""
    return _LISTENER.get()


class Speed:
    """Tokens a second since the beginning, for people who wait."""

    def __init__(self) -> None:
        self._began, self.tokens = time.perf_counter(), 0

    def add(self, tokens: int) -> str:
        """Return the count and the rate in tokens a second, after so many tokens more."""
        self.tokens += tokens
        seconds = max(time.perf_counter() - self._began, 1e-9)
        return f"{self.tokens:,} tokens, {self.tokens / seconds:,.0f} a second"


def show_speed(models: Iterable[object]) -> None:
    """Let models that compute for long, those with an attribute `progress`, say how many tokens they scored."""
    speed, listener = Speed(), _LISTENER.get()
    for model in models:
        if listener is not _silent and hasattr(model, "progress"):
            model.progress = lambda tokens: listener(f"scored {speed.add(tokens)}")
