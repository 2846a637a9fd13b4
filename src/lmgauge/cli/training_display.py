"""Live figures of a training run on standard error; a line an epoch where that is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lmgauge.models.training.loop import TrainingEvent
    from lmgauge.progress import Listener

_TIMES_A_SECOND = 4
_BAR = 8


def epoch_line(event: TrainingEvent) -> str:
    """Return what there is to say of an epoch that has ended."""
    parts = [f"epoch {event.epoch + 1}/{event.epochs}: training perplexity {event.perplexity:,.2f} ({event.bits:.3f} bits)"]
    if event.valid_perplexity is not None:
        best = " (best)" if event.valid_perplexity == event.best_perplexity else ""
        parts.append(f"validation perplexity {event.valid_perplexity:,.2f}{best}")
    return ", ".join([*parts, f"{event.tokens_per_second:,.0f} tokens/s", f"learning rate {event.learning_rate:.4g}"])


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
    """Return hours, minutes and seconds, such as 1:02:03; infinity becomes "?"."""
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def training_display() -> Iterator[tuple[Listener, Callable[[TrainingEvent], None]]]:
    """Yield what shows what is being done, and where a run is: on a line that moves, where there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda stage: None, lambda event: click.echo(epoch_line(event), err=True) if event.finished else None
        return
    from rich.console import Console

    console, shown = Console(stderr=True), 0.0
    with console.status("starting …") as status:

        def show(event: TrainingEvent) -> None:
            nonlocal shown
            if event.finished:
                console.print(epoch_line(event), highlight=False, markup=False, soft_wrap=True)
            if event.finished or time.monotonic() - shown > 1 / _TIMES_A_SECOND:
                shown = time.monotonic()
                status.update(live_line(event))

        yield lambda stage: status.update(f"{stage} …"), show
