"""Live figures of a training run on standard error; a line an epoch where that is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from lmgauge.models.training.loop import TrainingEvent

_TIMES_A_SECOND = 4
_BAR = 8


class PlainDisplay:
    """A line an epoch."""

    def say(self, text: str) -> None:
        """Show nothing of what is being done."""

    def show(self, event: TrainingEvent) -> None:
        """Show where the run is at the end of an epoch."""
        if event.finished:
            click.echo(epoch_line(event), err=True)


class LiveDisplay:
    """A line that moves, and one that stays for each epoch."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console, self._status = console, status
        self._shown = 0.0

    def say(self, text: str) -> None:
        """Show what is being done."""
        self._status.update(f"{text} …")

    def show(self, event: TrainingEvent) -> None:
        """Show where the run is."""
        if event.finished:
            self._console.print(epoch_line(event), highlight=False, markup=False, soft_wrap=True)
        if event.finished or time.monotonic() - self._shown > 1 / _TIMES_A_SECOND:
            self._shown = time.monotonic()
            self._status.update(live_line(event))


def epoch_line(event: TrainingEvent) -> str:
    """Return what there is to say of an epoch that has ended."""
    parts = [f"epoch {event.epoch + 1}/{event.epochs}: training perplexity {event.perplexity:,.2f} ({event.bits:.3f} bits)"]
    if event.valid_perplexity is not None:
        best = " (best)" if event.valid_perplexity == event.best_perplexity else ""
        parts.append(f"validation perplexity {event.valid_perplexity:,.2f}{best}")
    parts.append(f"{event.tokens_per_second:,.0f} tokens/s")
    parts.append(f"learning rate {event.learning_rate:.4g}")
    return ", ".join(parts)


def live_line(event: TrainingEvent) -> str:
    """Return what there is to say during an epoch."""
    done = event.update / max(1, event.updates)
    filled = round(_BAR * done)
    bar = "━" * filled + "╌" * (_BAR - filled)
    best = "" if event.best_perplexity is None else f" best {event.best_perplexity:,.2f}"
    return (
        f"epoch {event.epoch + 1}/{event.epochs} {bar} "
        f"ppl {event.perplexity:,.1f} ({event.bits:.2f} bits) "
        f"{event.tokens_per_second:,.0f} tok/s {duration(event.seconds_left)} left{best}"
    )


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds, such as 1:02:03.

    Args:
        seconds: of any size; infinity becomes "?".

    Example:
        >>> duration(3723.4)
        '1:02:03'
    """
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def training_display() -> Iterator[LiveDisplay | PlainDisplay]:
    """Yield what shows a run, as the terminal allows."""
    if not sys.stderr.isatty():
        yield PlainDisplay()
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting …") as status:
        yield LiveDisplay(console, status)
