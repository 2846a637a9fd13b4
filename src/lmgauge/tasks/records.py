"""The records of one file: some at a time, in step with other files, or all at once, to be found by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.tasks.texts import Integers, References, Texts
from lmgauge.text.documents import Corpus
from lmgauge.text.segment_metadata import Names
from lmgauge.text.segments import Segments

LabelNames = tuple[Names, Names]
"""The names of groups and those of documents in all files: a name is one group, or document, in every file."""

Labels = tuple[Integers | None, Integers | None]
"""The groups and the documents of records, int64 [records], as numbers of their names; None where there are none."""


class Records(NamedTuple):
    """Some records of a file; a record with a list of references is one segment."""

    references: References
    labels: Labels = (None, None)

    def with_references(self, references: References, where: slice | Integers) -> Records:
        """Return the references of some of these records, with what is known of those."""
        groups, documents = (None if numbers is None else numbers[where] for numbers in self.labels)
        return Records(references, (groups, documents))


class Cursor:
    """One file's records, some at a time."""

    def __init__(self, corpus: Corpus, names: LabelNames) -> None:
        self.corpus = corpus
        self.done = 0
        self._blocks = (_records(corpus, segments, names)[0] for segments in corpus)
        self._at = 0
        self._block: Records | None = None

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return self.corpus.sources[0].name

    def left(self) -> int:
        """Return how many segments can be taken now; 0 at the end of the file."""
        while self._block is None or self._at == len(self._block.references):
            self._block, self._at = next(self._blocks, None), 0
            if self._block is None:
                return 0
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


def _records(corpus: Corpus, segments: Segments, names: LabelNames) -> tuple[Records, Integers]:
    # Segments as records, those with one line number came from one list; and the first segment of each record.
    texts, file = Texts.of_segments(segments), corpus.sources[0].name
    groups = _renumbered(segments.groups, corpus.group_names, file, names[0])
    documents = _renumbered(segments.documents, corpus.document_names, file, names[1])
    records = Records(References.single(texts), (groups, documents))
    lines = segments.lines()
    begins = np.flatnonzero(np.diff(lines, prepend=lines[:1] - 1))
    if len(begins) < len(texts):
        references = References(texts, np.append(begins, len(texts)).astype(np.int64))
        records = records.with_references(references, begins)
    return records, begins


def _renumbered(codes: NDArray[np.integer] | None, known: Sequence[str], file: str, names: Names) -> Integers | None:
    # Numbers of labels in one file as those in all files; what has no name is a label of its own file.
    if codes is None:
        return None
    used, where = np.unique(codes, return_inverse=True)
    return names.numbers(known[code] if known else f"{file}:{code}" for code in used.tolist())[where]


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


def whole(corpus: Corpus, names: LabelNames) -> tuple[Records, list[str]]:
    """Return all records of a file, and their ids; no ids where it has none."""
    blocks, ids = list[Records](), list[str]()
    for segments in corpus:
        records, begins = _records(corpus, segments, names)
        blocks += [records] if len(segments) else []
        ids += [] if segments.ids is None else [segments.ids[i] for i in begins.tolist()]
    if not blocks:
        raise InputError(f"{corpus.sources[0].name}: the file is empty")
    texts = Texts.of_bytes([text for block in blocks for text in block.references.texts.encoded()])
    counts = np.concatenate([np.diff(block.references.offsets) for block in blocks])
    references = References(texts, np.append(0, np.cumsum(counts)).astype(np.int64))
    groups, documents = (_joined(numbers) for numbers in zip(*(block.labels for block in blocks), strict=True))
    return Records(references, (groups, documents)), ids


def _joined(parts: Sequence[Integers | None]) -> Integers | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


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
