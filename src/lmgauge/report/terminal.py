"""Tables for people. In a pipe they are plain text without colour; `NO_COLOR` is respected."""

from __future__ import annotations

import contextlib
import errno
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.results import Evaluation, comparison_notes
from lmgauge.numerics.intervals import DOCUMENTS, UNKNOWN
from lmgauge.readable import readable as readable
from lmgauge.readable import sign as sign
from lmgauge.readable import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table


_FIRST_LINE_SECONDS, _NEXT_LINE_SECONDS = 10.0, 30.0


def console() -> Console:
    """Standard output; wide enough for any table where it is no terminal, so that pipes see whole lines."""
    from rich.console import Console
    from rich.segment import Segment

    class Quiet(Console):
        """Leaves it to the command line what a reader that has gone means, and lets no text drive the terminal."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            # All that is printed comes through here, whoever wrote it; rich's own controls are marked as such.
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text, keep="\n"), style, control)

    terminal = sys.stdout.isatty()
    return Quiet(width=None if terminal else 240, highlight=False, markup=False, soft_wrap=not terminal)


def number(value: float | None, digits: int = 4) -> str:
    """A figure for people: so many digits after the point, infinity as a sign, a dash for None."""
    if value is None:
        return sign("–", "-")
    if math.isinf(value):
        return sign("∞", "inf") if value > 0 else sign("-∞", "-inf")
    if value and (abs(value) >= 10**7 or abs(value) < 10**-digits):
        return f"{value:.{digits}g}"
    return f"{value:,.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    """A difference for people: as `number`, with its sign always in front."""
    return ("+" if value is not None and value > 0 else "") + number(value, digits)


def p_value(value: float | None) -> str:
    """A p-value for people; very small ones as a bound."""
    if value is None:
        return number(None)
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _bounded(value: float | None, result: Evaluation) -> str:
    bound = result.bits_per_byte_is_bound and value is not None and math.isfinite(value)
    return (sign("≥", ">=") + " " if bound else "") + number(value)


def _interval(result: Evaluation) -> str:
    interval = result.interval
    if interval is None or math.isinf(result.perplexity):
        return sign("–", "-")
    return f"{number(interval.low, 2)} {sign('–', '-')} {number(interval.high, 2)}"


# heading -> (cell, how soon the column goes where the terminal is too narrow; 0: it stays)
_COLUMNS: dict[str, tuple[Callable[[Evaluation], str], int]] = {
    "perplexity": (lambda r: number(r.perplexity, 2), 0),
    "95 % interval": (_interval, 4),
    "nats/event": (lambda r: number(r.cross_entropy), 3),
    "bits/word": (lambda r: _bounded(r.bits_per_word, r), 2),
    "bits/char": (lambda r: _bounded(r.bits_per_character, r), 1),
    "bits/byte": (lambda r: _bounded(r.bits_per_byte, r), 6),
    "OOV": (lambda r: f"{100 * r.oov_rate:.2f} %", 7),
    "events": (lambda r: f"{r.events:,}", 5),
}
_ZERO_COLUMNS: dict[str, tuple[Callable[[Evaluation], str], int]] = {
    "p = 0": (lambda r: f"{r.zero_probability_events:,}", 0),
    "ppl without": (lambda r: number(r.perplexity_without_zeros, 2), 8),
}


def evaluation_table(results: Sequence[Evaluation], title: str | None = None, width: int | None = None) -> Table:
    """A row an evaluation: perplexity first, then the units, then what could spoil them.

    Columns that do not fit `width` are left out, the least telling first; --json has them all.
    """
    columns = dict(_COLUMNS)
    if any(result.zero_probability_events for result in results):
        columns |= _ZERO_COLUMNS
    table = _table(results, columns, title)
    for name in sorted((n for n in columns if columns[n][1]), key=lambda n: columns[n][1]):
        if width is None or _width(table) <= width:
            break
        del columns[name]
        table = _table(results, columns, title)
    return table


def _table(
    results: Sequence[Evaluation], columns: dict[str, tuple[Callable[[Evaluation], str], int]], title: str | None
) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    groups = any(result.group is not None for result in results)
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("model", style="bold", no_wrap=True)
    if groups:
        table.add_column("group", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        names = [result.model] + ([result.group or "(all)"] if groups else [])
        table.add_row(*(Text(readable(cell)) for cell in names), *(cell(result) for cell, _ in columns.values()))
    return table


def _width(table: Table) -> int:
    from rich.console import Console
    from rich.measure import Measurement

    wide = Console(width=10_000)
    title, table.title = table.title, None
    width = Measurement.get(wide, wide.options, table).maximum
    table.title = title
    return width


def print_evaluations(results: Sequence[Evaluation], title: str | None = None) -> None:
    """The table, then what a reader must know to read it, then the signatures."""
    out = console()
    out.print(evaluation_table(results, title, out.width))
    for line in footnotes(results):
        out.print(readable(line), style="dim")
    for result in results:
        out.print(readable(result.signature), style="cyan")


def footnotes(results: Sequence[Evaluation]) -> Iterator[str]:
    """Sentences about bounds, zero probabilities, what reading changed and what may be compared; each once."""
    if any(result.bits_per_byte_is_bound for result in results):
        why = dict.fromkeys(reason for result in results for reason in _bound_reasons(result))
        yield f"{sign('≥', '>=')}: lower bound, as {' and '.join(why)}."
    for result in results:
        if result.zero_probability_events and result.group is None:
            first = result.first_zero_probability_events[0]
            yield (
                f"{result.model}: {result.zero_probability_events:,} events have probability zero, "
                f"first {first.token!r}, event {first.position + 1} of segment {first.segment + 1}; "
                "'ppl without' leaves them out."
            )
    widest: dict[tuple[str, int, bool], Evaluation] = {}  # one sentence for intervals of one kind
    for result in results:
        interval = result.interval
        if interval is not None and result.group is None:
            kind = interval.unit, interval.units, interval.alike > 1.0
            known = widest.get(kind)
            if known is None or known.interval is None or interval.alike > known.interval.alike:
                widest[kind] = result
    for result in widest.values():
        yield f"95 % interval: {result.independence}."
    groups = [result for result in results if result.group is not None and result.interval is not None]
    if any(r.documents_by != UNKNOWN and r.interval is not None and r.interval.unit == UNKNOWN for r in groups):
        yield "95 % interval of a group that is one document: about text like this document."
    elif groups and any(r.interval is not None and r.interval.unit == DOCUMENTS for r in groups):
        yield "95 % interval of a group: over the documents in it."
    yield from dict.fromkeys(note for result in results for note in result.notes)
    yield from comparison_notes(results)


def _bound_reasons(result: Evaluation) -> Iterator[str]:
    """Why bits per byte are a lower bound; nothing where they are exact."""
    if result.oov:
        cheaper = "unseen words are one event <unk>, cheaper to predict than they are"
        yield "unseen words are impossible" if result.oov_policy == "closed" else cheaper
    if not result.lossy_segments:
        return
    if not ContextPolicy.parse(result.context).scores_first_tokens:
        yield "what comes first in a context is not scored"
    elif result.unit == "word":
        yield "the tokens do not give back all white space"
    else:
        yield "the tokenizer alters some of the text, or reads it as special tokens"


def print_pairs(pairs: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(readable(name)), Text(visible(value, keep="\n")))
    console().print(table)


class _NowAndThen:
    """Says what is being done in plain lines: nothing at first, so that short commands are quiet, then every so often."""

    def __init__(self) -> None:
        self._text, self._began, self._over = "working", time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def update(self, text: str) -> None:
        """Keep what is being done, until it is time to say so."""
        self._text = text

    def end(self) -> None:
        """Say no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        wait = _FIRST_LINE_SECONDS
        while not self._over.wait(wait):
            wait = _NEXT_LINE_SECONDS
            with contextlib.suppress(OSError, ValueError):  # nobody reads standard error
                print(
                    f"lmgauge: {visible(self._text)} ({time.monotonic() - self._began:.0f} s)", file=sys.stderr, flush=True
                )


class _Live:
    def __init__(self, status: Any) -> None:
        self._status = status

    def update(self, text: str) -> None:
        """Shows what is being done."""
        from rich.text import Text

        self._status.update(Text(f"{visible(text)} …"))


class Speed:
    """Tokens a second since the beginning, for people who wait."""

    def __init__(self) -> None:
        self._began, self.tokens = time.perf_counter(), 0

    def add(self, tokens: int) -> str:
        """The count and the rate, after so many tokens more."""
        self.tokens += tokens
        seconds = max(time.perf_counter() - self._began, 1e-9)
        return f"{self.tokens:,} tokens, {self.tokens / seconds:,.0f} a second"


@contextmanager
def progress() -> Iterator[_NowAndThen | _Live]:
    """A line on standard error that says what is being done; where that is not a terminal, a new line now and then."""
    if not sys.stderr.isatty():
        lines = _NowAndThen()
        try:
            yield lines
        finally:
            lines.end()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting …") as status:
        yield _Live(status)
