"""Exact sums over score tables, whatever their size: what every headline number is made of.

Sums are kept as integers, multiples of 2^-80 nats, so they do not depend on how the rows were cut into batches or groups.
`Paired` has what models gave each segment of a text, and how sure their difference is over what is independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.intervals import Spread, spread
from lmgauge.scores import OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch

_SHOWN_ZEROS = 10
_ROUNDING = 1e-6  # nats by which a part may seem larger than the whole it is of
_NONE = np.zeros(0, np.int64)
# Of the segments of a batch: index, high and low words of the exact sum, events, events of probability zero.
_Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class ZeroEvent:
    """An event of probability zero: where it is and what it was."""

    segment: int
    position: int
    token: str


@dataclass
class EventSums:
    """An accumulator: exact sums over the rows added so far, whatever their batches."""

    # per kind the sum of the finite log-probabilities, in multiples of 2^-80 nats
    exact: Counter[int] = field(default_factory=Counter)
    # events, zeros: per kind the rows, and those of probability zero
    events: Counter[int] = field(default_factory=Counter)
    zeros: Counter[int] = field(default_factory=Counter)
    first_zeros: list[ZeroEvent] = field(default_factory=list)  # where the first of these are
    # rows by the order (or context length; 255 and more together) that was used, where the table tells
    contexts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))
    # of `exact`, per column (`spelling`, `separator`) and kind, what is spelled letters and white space; no column where
    # the table has none
    parts: dict[str, Counter[int]] = field(default_factory=dict)
    lossy_segments: int = 0  # segments that their tokens do not give back exactly
    given_bytes: int = 0  # bytes of text that was given before segments
    crossing_tokens: int = 0  # first events of segments that begin in the given text
    _columns: list[_Columns] = field(default_factory=lambda: [(_NONE, _NONE, _NONE.astype(np.uint64), _NONE, _NONE)])
    _documents: list[NDArray[np.int64]] = field(default_factory=list)

    @classmethod
    def of(cls, batch: ScoreBatch) -> EventSums:
        """Return the sums of a batch."""
        tally = cls()
        tally.add(batch)
        return tally

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch."""
        # batch: log-probabilities in nats.
        count = len(batch.segments)
        high, low, zeros = np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.int64)
        context = np.minimum(batch.extra.get("context", np.zeros(0, np.uint8)), 255).astype(np.uint8, copy=False)
        kinds, contexts, bad = _native.sum_events(batch.logprob, batch.kind, context, batch.segment_events, high, low, zeros)
        if bad >= 0:
            raise InputError(
                f"segment {batch.row_segments()[bad]}: the log-probability {batch.logprob[bad]} is not that of an event; "
                "a score table holds natural logs, none above 0 and none NaN"
            )
        for kind, (h, part, events, zero_events) in enumerate(kinds):
            self.exact[kind] += (int(h) << 64) + int(part)
            self.events[kind] += events
            self.zeros[kind] += zero_events
        if zeros.any() and len(self.first_zeros) < _SHOWN_ZEROS:
            self._note_zeros(batch)
        self.contexts += contexts
        self._add_parts(batch)
        self.lossy_segments += batch.lossy_segments
        if batch.before is not None:
            self.given_bytes += int(batch.before.lengths.sum())
            self.crossing_tokens += int(np.count_nonzero(batch.before.crossing))
        self._columns.append((batch.segments, high, low, batch.segment_events, zeros))
        documents = batch.documents()
        if documents is not None:
            self._documents.append(documents)

    def _add_parts(self, batch: ScoreBatch) -> None:
        # Add what of the log-probabilities is spelled letters and white space; impossible events are in neither sum.
        for name in (SPELLING, SEPARATOR):
            if name not in batch.extra:
                continue
            column = np.where(batch.logprob > -np.inf, np.asarray(batch.extra[name], np.float64), 0.0)
            over = np.flatnonzero(~((column <= 0) & (column >= batch.logprob - _ROUNDING)))
            if len(over):
                i = over[0]
                raise InputError(
                    f"segment {batch.row_segments()[i]}: {name} {column[i]} is not a part of the log-probability "
                    f"{batch.logprob[i]}; the column has natural logs, none above 0 and none below it"
                )
            self.parts.setdefault(name, Counter()).update(_exact_by_kind(column, batch.kind))

    def _note_zeros(self, batch: ScoreBatch) -> None:
        rows = np.flatnonzero(batch.logprob == -np.inf)[: _SHOWN_ZEROS - len(self.first_zeros)]
        segment_of_row = batch.row_segments()
        first_row = np.cumsum(batch.segment_events) - batch.segment_events
        for row in rows.tolist():
            segment = int(segment_of_row[row])
            position = row - int(first_row[np.searchsorted(batch.segments, segment)]) + self._rows_of(segment)
            self.first_zeros.append(ZeroEvent(segment, position, batch.strings.tokens[batch.token_ids[row]]))

    def _rows_of(self, segment: int) -> int:
        count = 0
        for segments, _, _, events, _ in reversed(self._columns):
            if len(segments) and segments[-1] != segment:
                break
            count += int(events[-1:].sum())
            if len(segments) > 1:
                break
        return count

    def merge(self, other: EventSums) -> None:
        """Add the rows of another tally, which come after those of this one."""
        self.exact.update(other.exact)
        self.events.update(other.events)
        self.zeros.update(other.zeros)
        for name, totals in other.parts.items():
            self.parts.setdefault(name, Counter()).update(totals)
        for zero in other.first_zeros[: _SHOWN_ZEROS - len(self.first_zeros)]:
            self.first_zeros.append(replace(zero, position=zero.position + self._rows_of(zero.segment)))
        self.contexts += other.contexts
        self.lossy_segments += other.lossy_segments
        self.given_bytes += other.given_bytes
        self.crossing_tokens += other.crossing_tokens
        self._columns += other._columns
        self._documents += other._documents

    def nats(self, *kinds: int) -> float:
        """Sum of the finite log-probabilities of these kinds (all if none is named), correctly rounded."""
        return exact_to_nats(sum(self.exact[k] for k in kinds or self.exact))

    def part_nats(self, name: str, *kinds: int) -> float:
        """Sum of a column `spelling` or `separator` over these kinds (all if none is named), correctly rounded."""
        totals = self.parts.get(name, Counter())
        return exact_to_nats(sum(totals[k] for k in kinds or totals))

    def event_nats(self, *kinds: int) -> float:
        """Sum of the finite log-probabilities of these kinds without spelled letters and white space, correctly rounded."""
        return exact_to_nats(sum(self.exact[k] - sum(part[k] for part in self.parts.values()) for k in kinds or self.exact))

    @property
    def tokens(self) -> int:
        """Return rows that are not ends of segments."""
        return self.events[TOKEN] + self.unseen_events

    @property
    def unseen_events(self) -> int:
        """Return rows that are unseen words, whether they stand as `<unk>` or are spelled."""
        return self.events[OOV] + self.events[SPELLED]

    @property
    def total_events(self) -> int:
        """Return all rows."""
        return self.events.total()

    @property
    def total_zeros(self) -> int:
        """Return all rows of probability zero."""
        return self.zeros.total()

    @property
    def names_documents(self) -> bool:
        """Return True if the rows name the documents of their segments."""
        return bool(self._documents)

    def per_segment(self) -> SegmentSums:
        """Return the sums of each segment; a segment whose rows came in several batches is one."""
        segments, high, low, events, zeros = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        sums = ExactSums(high, low, zeros)
        nats = sums.nats()
        documents = np.concatenate(self._documents) if self._documents else None
        if documents is not None and len(documents) < len(segments):
            raise InputError("the score table names the document of some segments only; name it in each row, or in none")
        if len(segments) > 1 and not np.all(np.diff(segments) > 0):
            segments, first, inverse = np.unique(segments, return_index=True, return_inverse=True)
            documents = None if documents is None else documents[first]
            nats = np.array([exact_to_nats(total) for total in sums.totals(inverse, len(segments))])
            events = np.bincount(inverse, events, len(segments)).astype(np.int64)
            zeros = np.bincount(inverse, zeros, len(segments)).astype(np.int64)
            nats[zeros > 0] = -np.inf
        return SegmentSums(segments, nats, events, zeros, documents)


def _exact_by_kind(column: NDArray[np.float64], kind: NDArray[np.uint8]) -> dict[int, int]:
    # Sum of a column over the rows of each kind, in multiples of 2^-80 nats.
    events, none = np.array([len(column)], np.int64), np.zeros(0, np.uint8)
    sums = np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros(1, np.int64)
    kinds, _, _ = _native.sum_events(column, kind, none, events, *sums)
    return {k: (int(high) << 64) + int(low) for k, (high, low, _, _) in enumerate(kinds)}


@dataclass(frozen=True)
class SegmentSums:
    """Per segment: index, log-probability in nats (-inf with a zero-probability event), events, zero-probability events."""

    # `documents` has the number of the document of each; None where documents are not known.

    segments: NDArray[np.int64]
    nats: NDArray[np.float64]
    events: NDArray[np.int64]
    zeros: NDArray[np.int64]
    documents: NDArray[np.int64] | None = None


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Paired:
    """Columns with one row per segment; those of two models can be tested."""

    nats: tuple[Floats, ...]  # of each model, finite log-probabilities only
    zeros: Ints  # events of probability zero, of all models
    sizes: Floats  # float64 [segments, k], such as events, bytes, characters, words
    documents: Ints | None  # the document of each segment; None where documents are not known

    @classmethod
    def joined(cls, parts: Sequence[Paired]) -> Paired:
        """Return all blocks of a text as one; there is one at least."""
        nats, zeros, sizes, documents = zip(*((one.nats, one.zeros, one.sizes, one.documents) for one in parts), strict=True)
        known = [part for part in documents if part is not None]
        return Paired(
            tuple(map(np.concatenate, zip(*nats, strict=True))),
            np.concatenate(zeros),
            np.concatenate(sizes),
            np.concatenate(known) if known else None,
        )

    @property
    def used(self) -> NDArray[np.bool_]:
        """Return bool [segments], where both models are finite and there is something to compare."""
        used: NDArray[np.bool_] = (self.zeros == 0) & (self.sizes[:, 0] > 0)
        return used

    def spreads(self, total: float | None = None) -> list[Spread | None]:
        """Return nats of the first model minus the second per event, byte, character and word of the used segments."""
        # total: the exact difference in nats; None where a segment is not used.
        used = self.used
        difference = self.nats[0][used] - self.nats[1][used]
        documents = None if self.documents is None else self.documents[used]
        return [spread(difference, sizes, documents, total=total) for sizes in self.sizes[used].T]
