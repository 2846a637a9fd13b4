"""The part of a text that is examined closely: segments drawn from it, and the tokens before each of their events."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.contexts import EventContexts
from lmgauge.evaluation.audit.results import counted
from lmgauge.evaluation.audit.rows import Rows, Subject

T = TypeVar("T")
_COLUMNS = ("segments", "segment_events", "token_ids", "logprob", "kind", "ends", "lossy", "begins")


@dataclass(frozen=True)
class Extent:
    """Size of a text: segments, events, and bytes with their terminators."""

    segments: int = 0
    events: int = 0
    bytes: int = 0


def sampled(part: int, whole: int, noun: str) -> str:
    """Return in words how much of a whole was examined."""
    if part < whole:
        return f"{part:,} of {counted(whole, noun)}"
    return f"all {counted(part, noun)}" if part > 1 else counted(part, noun)


class Portion:
    """Segments drawn from a text while it passes by: at random, so that they are spread over it, or its beginning."""

    def __init__(self, size: int | None, *, beginning: bool, seed: int) -> None:
        self._size, self._beginning = size, beginning
        self._generator = np.random.default_rng(seed)
        self._drawn: list[tuple[float, Rows]] = []
        self._bytes = 0
        self._largest = float("inf")

    def offer(self, rows: Rows) -> None:
        """Take the rows of the next segment, or leave them."""
        key = float(rows.segment) if self._beginning else float(self._generator.random())
        if key >= self._largest:
            return
        columns = {name: getattr(rows, name).copy() for name in _COLUMNS}  # views would keep the batch
        extra = {name: values.copy() for name, values in rows.extra.items()}
        self._drawn.append((key, replace(rows, extra=extra, **columns)))
        self._bytes += len(rows.source)
        if self._size is not None and self._bytes > (1 if self._beginning else 4) * self._size:
            self._drawn = self._within(self._size)
            self._bytes = sum(len(drawn.source) for _, drawn in self._drawn)
            self._largest = self._drawn[-1][0]

    def _within(self, size: int | None) -> list[tuple[float, Rows]]:
        in_order = sorted(self._drawn, key=lambda entry: entry[0])
        if size is None:
            return in_order
        ends = np.cumsum([len(rows.source) for _, rows in in_order])
        return in_order[: int(np.searchsorted(ends, size)) + 1]

    def segments(self, size: int | None = None) -> list[Rows]:
        """Return the drawn segments in the order of the text: about `size` bytes of them, all if not given."""
        drawn = self._within(self._size if size is None else size)
        return sorted((rows for _, rows in drawn), key=lambda rows: rows.segment)


def drawn(choices: Sequence[T], wanted: int | None, source: int | np.random.Generator) -> list[T]:
    """Return `wanted` of some choices in their order, drawn without replacement; all if there are no more."""
    # source: of chance; a seed, or a generator.
    if wanted is None or wanted >= len(choices):
        return list(choices)
    places = np.random.default_rng(source).choice(len(choices), wanted, replace=False)
    return [choices[i] for i in sorted(places.tolist())]


class Contexts:
    """The context of each event of some segments: in a stream all that came before, else what its sentence holds."""

    # stream: uint32 [events of the text + 1], all ids of a stream, `<s>` first; None where segments stand alone; impossible:
    # number of the first event of a stream that has probability zero.

    def __init__(
        self,
        rows: Sequence[Rows],
        bos: int,
        whole: Extent,
        stream: NDArray[np.uint32] | None = None,
        impossible: float = math.inf,
    ) -> None:
        self.rows, self.whole = rows, whole
        self._stream, self._impossible = stream, impossible
        counts = [len(part) for part in rows]
        self._starts = np.cumsum([0, *counts])
        nothing = np.zeros(0, np.uint32)
        shown = np.concatenate([nothing, *(part.given for part in rows)])
        given_tokens = shown, np.array([len(part.given) for part in rows], np.int64)
        ids = np.concatenate([nothing, *(part.token_ids for part in rows)])
        self._alone = EventContexts(ids, counts, bos=bos, runs_on=False, given_tokens=given_tokens)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def of(self, index: int, position: int) -> NDArray[np.uint32]:
        """Return the ids before an event, `<s>` first, uint32 [n]: a copy, behind which nothing can be seen."""
        if self._stream is not None:
            return self._stream[: self.rows[index].offset + position + 1].copy()
        return self._alone[int(self._starts[index]) + position].copy()

    def reachable(self, index: int, position: int) -> bool:
        """Return False behind an event of probability zero, where the model never comes."""
        rows = self.rows[index]
        if self._stream is not None:
            return self._impossible >= rows.offset + position
        return not (rows.logprob[:position] == -np.inf).any()

    def drawn(self, wanted: int | None, source: int | np.random.Generator) -> Iterator[tuple[int, int]]:
        """Yield events of the segments: of each the segment (index into `rows`) and the position there, in order."""
        for number in drawn(range(len(self)), wanted, source):
            index = int(np.searchsorted(self._starts, number, side="right")) - 1
            yield index, number - int(self._starts[index])


class Sample:
    """The segments of a text that are examined closely; for a stream also the ids of all its events."""

    # A stream has two draws: contexts can be taken anywhere, but a decoder, or a text that is changed, has to begin where
    # the stream does.

    def __init__(self, subject: Subject, size: int | None, seed: int) -> None:
        self._subject = subject
        self._spread = Portion(size, beginning=False, seed=seed)
        self._first = Portion(size, beginning=True, seed=seed) if subject.running else self._spread
        self._stream = array("I", [subject.bos])
        # The first event of a stream that has probability zero, and one with an id outside the vocabulary.
        self._impossible = self._foreign = math.inf
        self.whole = Extent()

    def offer(self, rows: Rows) -> None:
        """Take the rows of the next segment of the text, or leave them."""
        whole = self.whole
        rows = replace(rows, offset=whole.events)
        self.whole = Extent(whole.segments + 1, whole.events + len(rows), whole.bytes + len(rows.source))
        if self._subject.running:
            self._stream.frombytes(rows.token_ids.astype(np.uint32).tobytes())
            for at in np.flatnonzero(rows.logprob == -np.inf)[:1].tolist():
                self._impossible = min(self._impossible, rows.offset + at)
            if not self._is_known(rows):
                self._foreign = min(self._foreign, rows.offset)
            self._first.offer(rows)
        self._spread.offer(rows)

    def _is_known(self, rows: Rows) -> bool:
        return bool((rows.token_ids < len(self._subject.vocabulary)).all())

    def segments(self, size: int | None = None) -> list[Rows]:
        """Return segments of about `size` bytes in all; of a stream its beginning."""
        return self._usable(self._first.segments(size))

    def _usable(self, rows: list[Rows]) -> list[Rows]:
        # Leave out segments with ids outside the vocabulary, in a stream also those behind them: they failed already.
        return [part for part in rows if part.offset < self._foreign and self._is_known(part)]

    def beginning(self, size: int | None = None) -> Contexts:
        """Return the contexts of the events of `segments(size)`."""
        return self._contexts(self.segments(size))

    def spread(self) -> Contexts:
        """Return the contexts of the events of segments drawn from the whole text."""
        return self._contexts(self._usable(self._spread.segments()))

    def _contexts(self, rows: list[Rows]) -> Contexts:
        stream = np.frombuffer(self._stream, np.uint32) if self._subject.running else None
        return Contexts(rows, self._subject.bos, self.whole, stream, self._impossible)
