"""The records of one file: some at a time, in step with other files, or all at once, to be found by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.tasks.texts import Integers, References, Texts
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments


class Records(NamedTuple):
    """Some records of a file; a record with a list of references is one segment."""

    references: References
    groups: NDArray[np.int32] | None  # int32 [records], by the names of the corpus; None without groups
    documents: Integers | None  # int64 [records], as the corpus numbers them; None where it does not

    def with_references(self, references: References, where: slice | Integers) -> Records:
        """Return the references of some of these records, with what is known of those."""
        groups, documents = self.groups, self.documents
        return Records(
            references,
            None if groups is None else groups[where],
            None if documents is None else documents[where],
        )


class Cursor:
    """One file's records, some at a time."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.done = 0
        self._blocks = iter(corpus)
        self._at = 0
        self._block: Records | None = None

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return self.corpus.sources[0].name

    def left(self) -> int:
        """Return how many segments can be taken now; 0 at the end of the file."""
        while self._block is None or self._at == len(self._block.references):
            segments = next(self._blocks, None)
            if segments is None:
                return 0
            self._block = _records(segments)
            self._at = 0
        return len(self._block.references) - self._at

    def take(self, count: int) -> Records:
        """Return the next records, at most as many as `left` returned."""
        assert self._block is not None
        begin, self._at = self._at, self._at + count
        self.done += count
        return self._block.with_references(self._block.references.part(begin, self._at), slice(begin, self._at))

    def count_rest(self) -> int:
        """Read to the end, and return how many segments the file has in all."""
        while count := self.left():
            self.take(count)
        return self.done


def _records(segments: Segments) -> Records:
    # Segments as records: those with one line number came from one list.
    texts = Texts.of_segments(segments)
    numbers, groups, documents = segments.line_numbers, segments.groups, segments.documents
    records = Records(References.single(texts), groups, documents)
    if numbers is None or (np.diff(numbers) > 0).all():
        return records
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    return records.with_references(References(texts, np.append(begins, len(numbers)).astype(np.int64)), begins)


def merged(streams: Sequence[References]) -> References:
    """Return the references of several files, side by side for each segment."""
    if len(streams) == 1:
        return streams[0]
    texts = Texts.of_bytes([text for stream in streams for text in stream.texts.encoded()])
    segments = np.concatenate([np.repeat(np.arange(len(stream)), np.diff(stream.offsets)) for stream in streams])
    order = np.argsort(segments, kind="stable")
    return References(texts.picked(order), np.sum([stream.offsets for stream in streams], axis=0))


def unequal(cursors: Sequence[Cursor]) -> str:
    """Return a sentence that says which file ends first, and where."""
    counts = [cursor.count_rest() for cursor in cursors]
    shortest = min(range(len(cursors)), key=counts.__getitem__)
    longest = max(range(len(cursors)), key=counts.__getitem__)
    if not counts[longest]:
        return f"{cursors[shortest].name}: the file is empty, as the others are: there is nothing to measure"
    if not counts[shortest]:
        return f"{cursors[shortest].name}: the file is empty; {cursors[longest].name} has {_lines(cursors[longest])}"
    return (
        f"{cursors[shortest].name} ends first, after {_lines(cursors[shortest])}; {cursors[longest].name} has "
        f"{_lines(cursors[longest])}. Every file needs one for each segment (an empty one where there is no text)"
    )


def _lines(cursor: Cursor) -> str:
    unit = "line" if cursor.corpus.sources[0].format == "text" else "record"
    return f"{cursor.done:,} {unit}{'s' * (cursor.done != 1)}"


def whole(corpus: Corpus) -> tuple[Records, list[str]]:
    """Return all records of a file, and the name of the group of each; no names where it has no groups."""
    blocks = [_records(segments) for segments in corpus if len(segments)]
    if not blocks:
        raise InputError(f"{corpus.sources[0].name}: the file is empty")
    texts = Texts.of_bytes([text for block in blocks for text in block.references.texts.encoded()])
    counts = np.concatenate([np.diff(block.references.offsets) for block in blocks])
    names = [corpus.group_names[c] for block in blocks if block.groups is not None for c in block.groups.tolist()]
    known = [block.documents for block in blocks if block.documents is not None]
    references = References(texts, np.append(0, np.cumsum(counts)).astype(np.int64))
    return Records(references, None, np.concatenate(known) if known else None), names


def check_once(ids: Sequence[str], name: str) -> None:
    """Refuse ids that occur twice."""
    # ids: of the segments, in the order of the file.
    # Raises InputError: an id occurs twice; names the first, and its record.
    seen: set[str] = set()
    for i, own in enumerate(ids):
        if own in seen:
            raise InputError(f"{name}: record {i + 1}: the id {own!r} occurs a second time")
        seen.add(own)


def places(wanted: Sequence[str], present: Sequence[str], reference: str, file: str) -> Integers | None:
    """Return where each wanted id is in another file; None if both are in the same order."""
    # -> int64 [segments].
    if wanted == present:
        return None
    place = {name: i for i, name in enumerate(present)}
    missing = [name for name in wanted if name not in place]
    for names, has, lacks in ((missing, reference, file), (sorted({*present} - {*wanted}), file, reference)):
        if names:
            more = f" ({len(names):,} in all)" if len(names) > 1 else ""
            raise InputError(f"{lacks}: has no record with the id {names[0]!r}, which {has} has{more}")
    return np.array([place[name] for name in wanted], dtype=np.int64)


def picked(records: Records, where: Integers) -> Records:
    """Return the records at these places."""
    # where: int64 [segments], indexes of records.
    references = records.references
    counts = np.diff(references.offsets)[where]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    begins = references.offsets[where]
    indexes = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
    return records.with_references(References(references.texts.picked(indexes), offsets), where)
