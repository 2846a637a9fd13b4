"""How far a long piece of work is: what functions say of it, to whoever listens. By default nobody does.

>>> with listening(print):
...     say_progress("loading")
loading
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

Listener = Callable[[str], None]


def _silent(stage: str) -> None:
    """Drop what is said."""


_LISTENER: ContextVar[Listener] = ContextVar("listener", default=_silent)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hand on what the functions called in the block say of their progress."""
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


def listener_for(work: str) -> Listener:
    """Return what says of each stage which work it belongs to, to who listens here, not to who listens when it is called."""
    listens = _LISTENER.get()
    return lambda stage: listens(f"{work}: {stage}")


def show_speed(models: Iterable[Any]) -> None:
    """Let models that report how much they have scored say so, with their speed, if somebody listens."""
    listener, began, total = _LISTENER.get(), time.perf_counter(), 0

    def report(tokens: int) -> None:
        nonlocal total
        total += tokens
        listener(f"scored {total:,} tokens, {total / max(time.perf_counter() - began, 1e-9):,.0f} a second")

    for model in models:
        if listener is not _silent and model.progress is not None:
            model.progress = report


# -----------------------------------------------------------------------------------------------------------------------
# A note that says in how many segments something happened, so that the notes of parts of a text add up.
class CountedNote(str):
    """A sentence with two numbers: how many segments it is about, and how many there are."""

    template: str  # the sentence, with `{count:,}` and `{total:,}` where the numbers stand
    number: int

    @classmethod
    def of(cls, template: str, count: int, total: int) -> Self:
        """Return the note with its numbers."""
        note = cls(template.format(count=count, total=total))
        note.template, note.number = template, count
        return note


def merged_notes(parts: Sequence[Sequence[str]], total: int) -> list[str]:
    """Return the notes on a whole text, from those on its parts."""
    counts: dict[str, int | None] = {}
    for note in (note for notes in parts for note in notes):
        if isinstance(note, CountedNote):
            counts[note.template] = (counts.get(note.template) or 0) + note.number
        else:
            counts[note] = None
    return [note if count is None else CountedNote.of(note, count, total) for note, count in counts.items()]
