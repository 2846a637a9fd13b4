"""The score table in memory: batches of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("token", "oov", "eos", "spelled", "framing")
TOKEN, OOV, EOS_KIND, SPELLED, FRAMING = range(5)
OF_NO_TEXT = (EOS_KIND, FRAMING)
SPELLING, SEPARATOR = "spelling", "separator"
"""Optional columns: the parts of `logprob` that are the letters of an unseen word, and the white space before the event."""
ALTERED = "altered"
"""Optional column: 1 in the rows of a turn of a conversation that its template or tokens do not give back, else 0."""

_BRACKETED = re.compile("(<+)(?:unk|/?s)(>+)")


@runtime_checkable
class TokenStrings(Protocol):
    """Token strings by id: what a table needs of a vocabulary."""

    @property
    def tokens(self) -> list[str]:
        """Return all token strings by id."""
        ...


@dataclass(frozen=True)
class Strings:
    """Token strings that came with a table from elsewhere."""

    tokens: list[str]


@dataclass(frozen=True, eq=False)
class StoredStrings:
    """Token strings as they lie in a file; they are decoded when somebody looks."""

    array: pa.Array  # of strings, [vocabulary]; one may be there twice

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredStrings) and self.array.equals(other.array)

    @cached_property
    def tokens(self) -> list[str]:
        """Return all token strings by id."""
        strings: list[str] = self.array.to_pylist()
        return strings


def _count(strings: TokenStrings) -> int:
    return len(strings.array if isinstance(strings, StoredStrings) else strings.tokens)


def same_tokens(a: ScoreBatch, b: ScoreBatch) -> NDArray[np.bool_]:
    """Return which rows of two batches, as many in each, have the same token, bool [n]; no string is decoded."""
    if a.strings == b.strings and (same := a.token_ids == b.token_ids).all():
        return np.asarray(same)
    import pyarrow as pa
    import pyarrow.compute as pc

    known, other = (
        strings.array if isinstance(strings, StoredStrings) else pa.array(strings.tokens, pa.string())
        for strings in (a.strings, b.strings)
    )
    # Strings [x, y, x] and [z, x]: each by the first place where it is in the former -> [0, 1, 0] and [-1, 0].
    places = [pc.fill_null(pc.index_in(one, known), -1).to_numpy() for one in (known, other)]
    return np.asarray(places[0][a.token_ids] == places[1][b.token_ids])


def joined_strings(parts: Sequence[TokenStrings]) -> TokenStrings:
    """Return the strings of some batches, one behind the other; those from files stay undecoded."""
    if all(isinstance(part, StoredStrings) for part in parts):
        import pyarrow as pa

        return StoredStrings(pa.concat_arrays([part.array for part in parts if isinstance(part, StoredStrings)]))
    return Strings([token for part in parts for token in part.tokens])


@dataclass(frozen=True, slots=True)
class GivenTokens:
    """The tokens that were given before each segment of a batch; they are in memory only, as no row is theirs.

    >>> before = GivenTokens(np.array([5, 6, 7]), np.array([1, 2]), np.array([3, 8]), np.array([False, True]))
    >>> before.of_segments(np.array([False, True])).ids.tolist()
    [6, 7]
    """

    ids: NDArray[np.uint32]  # uint32 [m], of the given tokens, segment after segment: index into the strings of the batch
    counts: NDArray[np.int64]  # int64 [segments], given tokens of each
    lengths: NDArray[np.int64]  # int64 [segments], bytes of given text of each
    crossing: NDArray[np.bool_]  # bool [segments], True where the first event is a token that begins in the given text

    def of_segments(self, chosen: slice | NDArray[np.bool_]) -> GivenTokens:
        """Return what was given before some of the segments."""
        # chosen: a slice, or bool [segments].
        of_some = np.zeros(len(self.counts), bool)
        of_some[chosen] = True
        ids = self.ids[np.repeat(of_some, self.counts)]
        return GivenTokens(ids, self.counts[chosen], self.lengths[chosen], self.crossing[chosen])

    @classmethod
    def joined(cls, parts: Sequence[GivenTokens]) -> GivenTokens | None:
        """Return what was given before the segments of some batches, one behind the other; None of none."""
        if not parts:
            return None
        columns = zip(*((part.ids, part.counts, part.lengths, part.crossing) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def by_segment(self) -> list[NDArray[np.uint32]]:
        """Return the ids given before each segment, uint32 each."""
        return np.split(self.ids, np.cumsum(self.counts)[:-1])

    def renamed(self, ids: NDArray[np.int64]) -> GivenTokens:
        """Return the same tokens by other ids."""
        # ids: [vocabulary], the other id of each.
        return replace(self, ids=ids[self.ids].astype(np.uint32))


@dataclass(frozen=True, slots=True)
class ScoreBatch:
    """Consecutive rows of a score table.

    Attributes:
        segments: int64 [s], indices of the segments the rows belong to, ascending.
        segment_events: int64 [s], rows of each.
        token_ids: uint32 [n], index into `strings`.
        strings: the token strings.
        logprob: float64 [n], nats.
        kind: uint8 [n], index into `KINDS`.
        ends: int64 [n] or empty, where the span ends; it starts where the one before ended (0 for the first).
        extra: optional columns by name, each [n]; those of the most probable tokens [n, k]: `top_ids` (index into `strings`)
            as they are computed, `top_tokens` (the strings) as they are read, and `top_logprobs`.
        lossy: bool [s] or empty, True where the tokens do not spell the segment exactly.
        spans_apart: rows whose span does not begin where the one before ended; only tables that were read have any.
        gaps: those of them whose span begins behind that, so that bytes in between are not scored.
        begins: int64 [n] or empty, where each span starts, if not where the one before ended: protocols leave out tokens.
        before: what was given before each segment, as the model saw it; None where no text is given, and in stored tables.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["a b", "a"])
        >>> for batch in lmgauge.train("mle", text, order=1).score(text):
        ...     print(batch.row_segments().tolist(), batch.ends.tolist(), batch.logprob.round(3).tolist())
        [0, 0, 0, 1, 1] [1, 3, 3, 1, 1] [-0.916, -1.609, -0.916, -0.916, -0.916]
    """

    segments: NDArray[np.int64]
    segment_events: NDArray[np.int64]
    token_ids: NDArray[np.uint32]
    strings: TokenStrings
    logprob: NDArray[np.float64]
    kind: NDArray[np.uint8]
    ends: NDArray[np.int64]
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    lossy: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    spans_apart: int = 0
    gaps: int = 0
    begins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    before: GivenTokens | None = None

    def __len__(self) -> int:
        return len(self.logprob)

    @property
    def segment(self) -> int:
        """The first segment, of a batch that has one."""
        return int(self.segments[0])

    def tokens(self) -> list[str]:
        """Return the token of each row, [n]."""
        strings = self.strings.tokens
        return [strings[i] for i in self.token_ids.tolist()]

    @property
    def lossy_segments(self) -> int:
        """The number of segments that the tokens do not spell exactly."""
        return int(np.count_nonzero(self.lossy))

    def of_no_text(self) -> NDArray[np.bool_]:
        """Return which rows are ends of segments or framing of turns, bool [n]."""
        return np.isin(self.kind, OF_NO_TEXT)

    def unseen(self) -> NDArray[np.bool_]:
        """Return which rows are unseen words, bool [n], whether they stand as `<unk>` or are spelled."""
        unseen: NDArray[np.bool_] = (self.kind == OOV) | (self.kind == SPELLED)
        return unseen

    def event_logprob(self) -> NDArray[np.float64]:
        """Return what the model's own events cost, float64 [n], nats: without spelled letters and white space.

        Example:
            >>> batch = example_batch()
            >>> spelled = replace(batch, extra={"spelling": np.array([0.0, -0.5, 0.0]), "separator": np.zeros(3)})
            >>> (spelled.event_logprob() - batch.logprob).tolist()
            [0.0, 0.5, 0.0]
        """
        return without_parts(self.logprob, *(self.extra[name] for name in (SPELLING, SEPARATOR) if name in self.extra))

    def documents(self) -> NDArray[np.int64] | None:
        """Return the document number of each segment, int64 [s], 0 for one without rows; None if the table has none."""
        numbers = self.extra.get("document")
        if numbers is None:
            return None
        documents = np.zeros(len(self.segments), np.int64)
        scored = np.flatnonzero(self.segment_events)
        # Rows repeat the number of their document; that of a segment is read off its first row: events [2, 0, 1] -> rows 0
        # and 2.
        documents[scored] = numbers[(np.cumsum(self.segment_events) - self.segment_events)[scored]]
        return documents

    def with_documents(self, documents: NDArray[np.int64]) -> ScoreBatch:
        """Return the batch with a column `document`.

        Args:
            documents: int64 [s], the document number of each segment.

        Example:
            >>> batch = example_batch()
            >>> batch.with_documents(np.array([4, 7])).extra["document"].tolist()
            [4, 7, 7]
        """
        return replace(self, extra={**self.extra, "document": np.repeat(documents, self.segment_events)})

    def row_segments(self) -> NDArray[np.int64]:
        """Return the segment of each row, int64 [n]."""
        return np.repeat(self.segments, self.segment_events)

    def starts(self) -> NDArray[np.int64]:
        """Return where each span starts, int64 [n], bytes."""
        return self.begins if len(self.begins) else starts_of(self.ends, self.segment_events)

    def reach(self) -> NDArray[np.int64]:
        """Return the furthest byte at which a span of each segment ends, int64 [s]; 0 without rows or spans."""
        reach = np.zeros(len(self.segments), np.int64)
        scored = self.segment_events > 0
        if len(self.ends):
            # ends [3, 2, 7] of segments with 2, 0 and 1 rows -> [3, 0, 7]; reduceat would give the empty one the next row.
            reach[scored] = np.maximum.reduceat(self.ends, (np.cumsum(self.segment_events) - self.segment_events)[scored])
        return reach

    def scored_bytes(self) -> NDArray[np.int64]:
        """Return the bytes of each segment that its spans cover, int64 [s]."""
        owner = np.repeat(np.arange(len(self.segments)), self.segment_events)
        return np.bincount(owner, self.ends - self.starts(), len(self.segments)).astype(np.int64)

    def of_segments(self, begin: int, end: int) -> ScoreBatch:
        """Return the rows of some segments, as views of this batch.

        Args:
            begin: place in `segments`, int64 [s], of the first.
            end: place behind the last.

        Example:
            >>> batch = example_batch()
            >>> batch.of_segments(1, 2).row_segments().tolist()
            [1, 1]
        """
        bounds = np.concatenate(([0], np.cumsum(self.segment_events)))
        own = slice(begin, end)
        return cut(self, own, slice(int(bounds[begin]), int(bounds[end])), self.before and self.before.of_segments(own))

    def of_rows(self, rows: NDArray[np.int64]) -> ScoreBatch:
        """Return some of the rows; segments without any stay, and spans begin where that of the row kept before ended.

        Args:
            rows: int64 [m], their places, ascending.

        Example:
            >>> example_batch().of_rows(np.array([0, 2])).row_segments().tolist()
            [0, 1]
        """
        if len(rows) == len(self):
            return self
        owner = np.repeat(np.arange(len(self.segment_events)), self.segment_events)
        events = np.bincount(owner[rows], minlength=len(self.segment_events))
        return replace(self, segment_events=events, **self._columns(rows))

    def _columns(self, rows: slice | NDArray[Any]) -> dict[str, Any]:
        # What there is of some of the rows.
        own = {name: getattr(self, name) for name in ("token_ids", "logprob", "kind", "ends", "begins")}
        chosen: dict[str, Any] = {name: values[rows] if len(values) else values for name, values in own.items()}
        return chosen | {"extra": {name: values[rows] for name, values in self.extra.items()}}

    def to_arrow(self, dictionary: pa.Array | None = None) -> pa.RecordBatch:
        """Return the batch as an Arrow record batch.

        Args:
            dictionary: the token strings, [tokens], where they were made into an Arrow array before.
        """
        import pyarrow as pa

        tokens = pa.array(self.strings.tokens, pa.string()) if dictionary is None else dictionary
        columns: dict[str, pa.Array] = {
            "segment": pa.array(self.row_segments()),
            **({"start": pa.array(self.starts()), "end": pa.array(self.ends)} if len(self.ends) == len(self) else {}),
            "token": pa.DictionaryArray.from_arrays(pa.array(self.token_ids.astype(np.int32)), tokens),
            "logprob": pa.array(self.logprob),
            "kind": pa.DictionaryArray.from_arrays(pa.array(self.kind.astype(np.int8)), pa.array(KINDS)),
        }
        for name, values in self.extra.items():
            if name == "top_ids":
                chosen = pa.DictionaryArray.from_arrays(pa.array(values.ravel().astype(np.int32)), tokens)
                columns["top_tokens"] = pa.FixedSizeListArray.from_arrays(chosen.cast(pa.string()), values.shape[1])
            elif values.ndim == 2:
                columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
            else:
                columns[name] = pa.array(values)
        return pa.RecordBatch.from_pydict(columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        # Arrow PyCapsules of the batch: pandas, polars and DuckDB read it as it is.
        capsules: tuple[object, object] = self.to_arrow().__arrow_c_array__(requested_schema)
        return capsules


def cut(batch: ScoreBatch, own: Any, rows: Any, before: GivenTokens | None) -> ScoreBatch:
    """Return some segments of a batch with their rows, and what was given before these segments."""
    # own, rows: which, as slices or as bool [segments] and [rows].
    return ScoreBatch(
        batch.segments[own],
        batch.segment_events[own],
        strings=batch.strings,
        lossy=batch.lossy[own] if len(batch.lossy) else batch.lossy,
        before=before,
        **batch._columns(rows),
    )


def without_parts(logprob: NDArray[np.float64], *parts: NDArray[Any]) -> NDArray[np.float64]:
    """Return log-probabilities without what is paid for spelling and white space."""
    # without_parts([-3.0], [-1.0], np.zeros(0)) -> [-2.0]
    # logprob: float64 [n], nats; parts: float64 [n] each, or empty.
    for part in filter(len, parts):
        possible = part > -np.inf  # else the event keeps it, as what it cost cannot be known
        logprob = logprob - np.where(possible, part, 0.0)
    return logprob


def example_batch() -> ScoreBatch:
    """Return a table to try things with: segment 0 is "the", segment 1 "cat sat", each token of probability 1/2."""
    # example_batch().to_arrow().column("token").to_pylist() -> ['the', 'cat', 'sat']
    segments, events = np.array([0, 1], np.int64), np.array([1, 2], np.int64)
    ids, logprob = np.arange(3, dtype=np.uint32), np.full(3, np.log(0.5))
    ends = np.array([3, 3, 7], np.int64)
    return ScoreBatch(segments, events, ids, Strings(["the", "cat", "sat"]), logprob, np.zeros(3, np.uint8), ends)


def starts_of(ends: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where spans start that tile their segments."""
    # starts_of([3, 3, 7], [1, 2]) -> [0, 0, 3]
    # ends: int64 [n], where each ends, bytes; counts: int64 [s], rows of each segment.
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1]
    firsts = np.cumsum(counts)[:-1]
    starts[:1] = 0
    # Segments without rows at the end begin behind the last row.
    starts[firsts[firsts < len(starts)]] = 0
    return starts


def join_batches(batches: Sequence[ScoreBatch]) -> ScoreBatch:
    """Return consecutive batches of one table as one; a segment whose rows came in two of them is listed once."""
    # Of segments in two batches nothing but rows is known, as batches are only cut within one where they are stored.
    if len(batches) == 1:
        return batches[0]
    scored = [batch for batch in batches if len(batch)] or batches[:1]
    first = scored[0]
    if any(b.extra.keys() != first.extra.keys() or bool(len(b.ends)) != bool(len(first.ends)) for b in scored):
        raise InputError("the parts of the score table do not have the same columns")
    listed = np.concatenate([b.segments for b in batches])
    # segments [4, 5] and [5, 6] with events [1, 2] and [3, 1] -> [4, 5, 6] with [1, 5, 1]
    firsts = np.flatnonzero(np.diff(listed, prepend=-1))
    events = np.add.reduceat(np.concatenate([b.segment_events for b in batches]), firsts) if len(firsts) else listed
    same = all(b.strings is first.strings for b in batches)
    # strings of 3 and 2 tokens: ids of the second batch move by 3
    offsets = np.cumsum([0] + [0 if same else _count(b.strings) for b in batches])
    ids = [b.token_ids + np.uint32(offset) for b, offset in zip(batches, offsets.tolist(), strict=False)]
    ends = np.concatenate([b.ends for b in batches])
    begins = np.concatenate([b.starts() for b in batches]) if any(len(b.begins) for b in batches) else first.begins
    if len(begins) and np.array_equal(begins, starts_of(ends, events)):
        begins = first.begins[:0]  # a batch that begins within a segment needs them, the segment put together does not
    return ScoreBatch(
        listed[firsts],
        events,
        np.concatenate(ids),
        first.strings if same else joined_strings([b.strings for b in batches]),
        np.concatenate([b.logprob for b in batches]),
        np.concatenate([b.kind for b in batches]),
        ends,
        {name: np.concatenate([b.extra[name] for b in scored]) for name in first.extra},
        np.concatenate([b.lossy for b in batches]),
        spans_apart=sum(b.spans_apart for b in batches),
        gaps=sum(b.gaps for b in batches),
        begins=begins,
        before=GivenTokens.joined([b.before for b in batches if b.before is not None]),
    )


def unescaped(token: str) -> str:
    """Return the text that a token stands for: one that looks reserved has a bracket more on each side than there."""
    match = _BRACKETED.fullmatch(token)
    return token[1:-1] if match and len(match[1]) == len(match[2]) > 1 else token


def escaped(word: str) -> str:
    """Return the token that stands for a word where reserved words are ordinary ones: the other way of `unescaped`."""
    match = _BRACKETED.fullmatch(word)
    return f"<{word}>" if match and len(match[1]) == len(match[2]) else word


def distinct_neighbors(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each value that differs from the one before it, and how often it is repeated in a row."""
    # [column.tolist() for column in distinct_neighbors([4, 4, 7, 4])] -> [[4, 7, 4], [2, 1, 1]]
    # values: int64 [n].
    # -> the values and their counts, int64 [m] each.
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begins = np.concatenate(([0], np.flatnonzero(np.diff(values)) + 1))
    return values[begins].astype(np.int64), np.diff(np.concatenate((begins, [len(values)]))).astype(np.int64)
