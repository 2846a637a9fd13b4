"""Tables for people. In a pipe they are plain text without colour; `NO_COLOR` is respected."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lmgauge.evaluation.results import Evaluation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console() -> Console:
    """Standard output; wide enough for any table where it is no terminal, so that pipes see whole lines."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 240, highlight=False, soft_wrap=not sys.stdout.isatty())


def number(value: float | None, digits: int = 4) -> str:
    """A figure for people: so many significant digits after the point, `inf` in words, nothing for None."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and (abs(value) >= 10**7 or abs(value) < 10**-digits):
        return f"{value:.{digits}g}"
    return f"{value:,.{digits}f}"


def evaluation_table(results: Sequence[Evaluation], title: str | None = None) -> Table:
    """A row an evaluation: perplexity first, then the units, then what could spoil them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    groups = any(result.group is not None for result in results)
    zeros = any(result.zero_probability_events for result in results)
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("model", style="bold", no_wrap=True)
    if groups:
        table.add_column("group", no_wrap=True)
    columns = ["perplexity", "95 % interval", "nats/event", "bits/word", "bits/char", "bits/byte", "OOV", "events"]
    for name in columns + (["p = 0", "ppl without"] if zeros else []):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        cells = [result.model] + ([result.group or "(all)"] if groups else [])
        interval = result.interval
        bound = "≥ " if result.bits_per_byte_is_bound else ""
        cells += [
            number(result.perplexity, 2),
            "–"
            if interval is None or math.isinf(result.perplexity)
            else f"{number(interval.low, 2)} – {number(interval.high, 2)}",
            number(result.cross_entropy),
            *(
                ("" if value is None else bound) + number(value)
                for value in (result.bits_per_word, result.bits_per_character, result.bits_per_byte)
            ),
            f"{100 * result.oov_rate:.2f} %",
            f"{result.events:,}",
        ]
        if zeros:
            cells += [f"{result.zero_probability_events:,}", number(result.perplexity_without_zeros, 2)]
        table.add_row(*cells)
    return table


def print_evaluations(results: Sequence[Evaluation], title: str | None = None) -> None:
    """The table, then what a reader must know to read it, then the signatures."""
    out = console()
    out.print(evaluation_table(results, title))
    for line in footnotes(results):
        out.print(line, style="dim", markup=False)
    for result in results:
        out.print(result.signature, style="cyan", markup=False)


def footnotes(results: Sequence[Evaluation]) -> Iterator[str]:
    """Sentences about bounds, zero probabilities and what reading changed; each once."""
    if any(result.bits_per_byte_is_bound for result in results):
        why = []
        if any(result.oov for result in results):
            why.append("unseen words are one event <unk>, cheaper to predict than they are")
        if any(result.lossy_segments for result in results):
            why.append("the tokens do not give back all white space")
        yield f"≥: lower bound, as {' and '.join(why)}."
    for result in results:
        if result.zero_probability_events and result.group is None:
            first = result.first_zero_probability_events[0]
            yield (
                f"{result.model}: {result.zero_probability_events:,} events have probability zero, "
                f"first {first.token!r}, event {first.position + 1} of segment {first.segment + 1}; "
                "'ppl without' leaves them out."
            )
    yield from dict.fromkeys(note for result in results for note in result.notes)


def print_pairs(pairs: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values in two columns."""
    from rich.table import Table

    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    console().print(table)


class _Silent:
    def update(self, text: str) -> None:
        """Says nothing."""


class _Live:
    def __init__(self, status: Any) -> None:
        self._status = status

    def update(self, text: str) -> None:
        """Shows what is being done."""
        self._status.update(f"{text} …")


@contextmanager
def progress() -> Iterator[_Silent | _Live]:
    """A line on standard error that says what is being done; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting …") as status:
        yield _Live(status)
