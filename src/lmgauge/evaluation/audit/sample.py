"""What is looked at closely of a text: segments drawn from it, what comes before each event, and how much of it that is."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import counted
from lmgauge.evaluation.audit.rows import Rows, Subject


@dataclass(frozen=True)
class Extent:
    """How much there is of a text: segments, events, and bytes with their terminators."""

    segments: int = 0
    events: int = 0
    bytes: int = 0


def sampled(part: int, whole: int, noun: str) -> str:
    """How much of a whole was looked at.

    >>> sampled(3, 1200, "segment"), sampled(5, 5, "byte"), sampled(1, 1, "event")
    ('3 of 1,200 segments', 'all 5 bytes', '1 event')
    """
    if part < whole:
        return f"{part:,} of {counted(whole, noun)}"
    return f"all {counted(part, noun)}" if part > 1 else counted(part, noun)


class Portion:
    """Segments drawn from a text while it goes by: at random, so that they are spread over it, or its beginning.

    Args:
        size: about how many bytes; None keeps all.
        beginning: the first segments instead of any.
        seed: same seed, same segments, however the text is cut into blocks.
    """

    def __init__(self, size: int | None, *, beginning: bool, seed: int) -> None:
        self._size, self._beginning = size, beginning
        self._generator = np.random.default_rng(seed)
        self._kept: list[tuple[float, Rows]] = []
        self._bytes = 0
        self._largest = float("inf")

    def offer(self, rows: Rows) -> None:
        """Takes the next segment, or leaves it."""
        key = float(rows.segment) if self._beginning else float(self._generator.random())
        if key >= self._largest:
            return
        arrays = {name: getattr(rows, name).copy() for name in ("ids", "logprob", "kind", "ends")}  # views keep the batch
        self._kept.append((key, replace(rows, **arrays)))
        self._bytes += len(rows.source)
        if self._size is not None and self._bytes > (1 if self._beginning else 4) * self._size:
            self._kept = self._within(self._size)
            self._bytes = sum(len(kept.source) for _, kept in self._kept)
            self._largest = self._kept[-1][0]

    def _within(self, size: int | None) -> list[tuple[float, Rows]]:
        """The segments with the smallest keys, until they have so many bytes."""
        total, kept = 0, []
        for entry in sorted(self._kept, key=lambda entry: entry[0]):
            if size is not None and total >= size:
                break
            kept.append(entry)
            total += len(entry[1].source)
        return kept

    def segments(self, size: int | None = None) -> list[Rows]:
        """What was drawn, in the order of the text: of `size` bytes, if given, else all that was asked for."""
        chosen = self._within(self._size if size is None else size)
        return sorted((rows for _, rows in chosen), key=lambda rows: rows.segment)


def sampled_events(events: int, wanted: int | None, seed: int) -> list[int]:
    """Numbers of events drawn without putting back, ascending; all if there are no more than wanted."""
    if wanted is None or wanted >= events:
        return list(range(events))
    drawn = np.random.default_rng(seed).choice(events, wanted, replace=False)
    return sorted(drawn.tolist())


class Contexts:
    """The context of each event of some segments: of a stream all that was before, else what its sentence holds.

    Args:
        rows: the segments.
        bos: id of `<s>`.
        whole: the text that they were drawn from.
        stream: uint32 [events of the text + 1], all ids of a stream, `<s>` first; None where segments stand alone.
        impossible: the first event of a stream, from 0, that has probability zero; None if none has.
    """

    def __init__(
        self,
        rows: Sequence[Rows],
        bos: int,
        whole: Extent,
        stream: NDArray[np.uint32] | None = None,
        impossible: int | None = None,
    ) -> None:
        self.rows, self.whole, self.impossible = rows, whole, impossible
        self._bos, self._stream = bos, stream
        self._starts = np.cumsum([0] + [len(part) for part in rows])

    def __len__(self) -> int:
        """Return the number of events."""
        return int(self._starts[-1])

    def of(self, index: int, position: int) -> NDArray[np.uint32]:
        """uint32 ids before event `position` of segment `index`, `<s>` first; a copy, behind which nothing can be seen."""
        rows = self.rows[index]
        if self._stream is not None:
            return self._stream[: rows.offset + position + 1].copy()
        return np.concatenate((np.array([self._bos], np.uint32), rows.ids[:position]))

    def event(self, number: int) -> tuple[int, int]:
        """Segment (index into `rows`) and position of an event."""
        index = int(np.searchsorted(self._starts, number, side="right")) - 1
        return index, number - int(self._starts[index])


class Sample:
    """The segments that are kept of a text to be looked at closely; of a stream also the ids of all its events.

    Of a stream there are two draws: contexts can be taken anywhere, but a decoder, or a text that is changed, has to begin
    where the stream does.

    Args:
        subject: the model.
        size: about how many bytes; None keeps all.
        seed: of the draw.
    """

    def __init__(self, subject: Subject, size: int | None, seed: int) -> None:
        self._subject = subject
        self._spread = Portion(size, beginning=False, seed=seed)
        self._first = Portion(size, beginning=True, seed=seed) if subject.running else self._spread
        self._stream = array("I", [subject.bos])
        self._impossible: int | None = None
        self._foreign: int | None = None
        self.whole = Extent()

    def offer(self, rows: Rows) -> None:
        """Takes the next segment of the text, or leaves it."""
        whole = self.whole
        rows = replace(rows, offset=whole.events)
        self.whole = Extent(whole.segments + 1, whole.events + len(rows), whole.bytes + len(rows.source))
        if self._subject.running:
            self._stream.frombytes(rows.ids.astype(np.uint32).tobytes())
            if self._impossible is None and (at := np.flatnonzero(rows.logprob == -np.inf)).size:
                self._impossible = rows.offset + int(at[0])
            if self._foreign is None and (rows.ids >= len(self._subject.vocabulary)).any():
                self._foreign = rows.offset
            self._first.offer(rows)
        self._spread.offer(rows)

    def segments(self, size: int | None = None) -> list[Rows]:
        """About so many bytes, of a stream its beginning."""
        return self._usable(self._first.segments(size))

    def _usable(self, rows: list[Rows]) -> list[Rows]:
        """Without segments whose ids, or of a stream those before them, are outside the vocabulary: they failed already."""
        end = float("inf") if self._foreign is None else self._foreign
        return [part for part in rows if part.offset < end and (part.ids < len(self._subject.vocabulary)).all()]

    def beginning(self, size: int | None = None) -> Contexts:
        """The same segments, with what comes before each event."""
        return self._contexts(self.segments(size))

    def spread(self) -> Contexts:
        """Segments of the whole text, with what comes before each event."""
        return self._contexts(self._usable(self._spread.segments()))

    def _contexts(self, rows: list[Rows]) -> Contexts:
        stream = np.frombuffer(self._stream, np.uint32) if self._subject.running else None
        return Contexts(rows, self._subject.bos, self.whole, stream, self._impossible)
