"""References and outputs of systems from files: read in step, a line (record) of each a segment, or matched by their ids.

The records of one file come first (a `Cursor` gives some at a time), then all files together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.records.sources import Source, find_sources
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import Block, Integers, References, Texts
from lmgauge.tasks.transcripts import UtteranceIds
from lmgauge.text.documents import Corpus
from lmgauge.text.segment_metadata import BY_NAMES, DOCUMENT_RULES, FILE, SEGMENT, UNKNOWN, DocumentNumbers, Names
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


BY_FILE = "file"
Path = str | os.PathLike[str]


def paths_of(paths: Path | Iterable[Path]) -> list[str]:
    """Return a path, or several, as strings."""
    if not isinstance(paths, (str, os.PathLike, Iterable)):
        raise UsageError(f"a path, or a list of paths, is needed, not {type(paths).__name__}")
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def find_outputs(hypotheses: Sequence[str], others: Sequence[str | None], format: str | None) -> list[Source]:
    """Return the file of each system, each once; standard input is one of all files."""
    if [*hypotheses, *others].count("-") > 1:
        raise UsageError("standard input (-) is named twice, but can be read only once")
    sources = find_sources(list(hypotheses), format)
    paths = [source.path for source in sources]
    repeated = next((path for i, path in enumerate(paths) if path in paths[:i]), None)
    if repeated is not None:
        raise UsageError(f"{repeated} is named twice; name each system once")
    return sources


@dataclass
class _Part:
    """Files whose segments go together: all that were named, or those of one name in folders."""

    references: list[Corpus]
    hypotheses: list[Corpus]  # one file of each system, then that of the source texts, if there is one
    # files with the name of a group, and of a document, on each line
    labels: tuple[Corpus | None, Corpus | None] = (None, None)
    label: str | None = None  # the group of all segments

    @property
    def texts(self) -> list[Corpus]:
        return [*self.references, *self.hypotheses]

    @property
    def files(self) -> list[Corpus]:
        return [*self.texts, *(corpus for corpus in self.labels if corpus is not None)]

    def block(self, taken: Sequence[Records], names: LabelNames) -> Block:
        # Records of all files as a block.
        count = len(self.references)
        texts, of_lines = taken[: len(self.texts)], iter(taken[len(self.texts) :])
        references = merged([records.references for records in texts[:count]])
        groups, documents = (
            next((records.labels[k] for records in texts if records.labels[k] is not None), None)
            if corpus is None
            else names[k].numbers(next(of_lines).references.texts.strings())
            for k, corpus in enumerate(self.labels)
        )
        if self.label is not None:
            groups = names[0].numbers([self.label] * len(references))
        return Block(references, tuple(records.references.texts for records in texts[count:]), groups, documents)


class ParallelFiles:
    """References and hypotheses of one or more systems, as an iterable of `Block`."""

    def __init__(
        self,
        references: Path | Iterable[Path],
        hypotheses: Path | Iterable[Path],
        reading: Reading | None = None,
        sources: Path | None = None,
    ) -> None:
        # Look for the files; they are read when it is iterated over.
        self._reading = reading or Reading()
        self._bare = replace(self._reading, group=None, document=None)  # how a file is read that tells neither
        self.group_names: list[str] = []
        self.notes: list[str] = []
        self.documents_by = UNKNOWN
        self._has_sources = sources is not None
        ours, outputs = paths_of(references), paths_of(hypotheses)
        if not ours or not outputs:
            raise UsageError("name the references, then the outputs of at least one system")
        # Source texts are read as one more system is, and taken apart in the blocks.
        if sources is not None:
            outputs.append(os.fspath(sources))
            if not os.path.isdir(sources) and len(find_sources(outputs[-1], self._reading.format)) > 1:
                raise UsageError(f"{sources}: stands for several files: name one")
        folders = any(os.path.isdir(path) for path in (*ours, *outputs))
        names, self._parts = (self._of_folders if folders else self._of_files)(ours, outputs)
        self.names = names[:-1] if self._has_sources else names

    def _of_files(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Part]]:
        reading = self._reading
        sources = find_outputs(hypotheses, [*references, reading.group, reading.document], reading.format)
        if reading.group == BY_FILE:
            raise UsageError("--group file needs folders: lmgauge wer references/ hypotheses/ --group file")
        first = find_sources(references[0], reading.format)[0]
        several = next((path for path in references if len(find_sources(path, reading.format)) > 1), None)
        if several is not None:
            raise UsageError(f"{several}: stands for several files: name one, and each further reference for itself (-r)")
        documents = _Documents.of_files(references, sources, first, reading)
        self.documents_by = documents.by
        groups, group = None, reading.group
        if group is not None and (first.format == "text" or (os.path.exists(group) and not os.path.isdir(group))):
            groups, group = Corpus.from_files(group, group=None, errors=reading.errors), None
        corpora: list[Corpus] = []
        for path in references:
            for name in reading.ref_field or (reading.field,):
                labels = {} if corpora else {"group": group, "document": documents.in_references}
                corpora.append(Corpus.from_files(path, reading=self._bare, field=name, lists=True, **labels))
        if any(not corpus.rereadable for corpus in corpora) and len(reading.ref_field) > 1:
            raise UsageError("several fields of one file are read one after the other, which a pipe cannot: save it first")
        outputs = [Corpus.from_files(sources[0].path, reading=self._bare, document=documents.in_outputs)]
        outputs += [Corpus.from_files(source.path, reading=self._bare) for source in sources[1:]]
        return [s.label for s in sources], [_Part(corpora, outputs, (groups, documents.names))]

    def _of_folders(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Part]]:
        reading = self._reading
        odd = next((path for path in (*references, *hypotheses) if not os.path.isdir(path)), None)
        if odd is not None:
            folder = next(path for path in (*references, *hypotheses) if os.path.isdir(path))
            raise UsageError(f"{folder} is a folder and {odd} is not: name files only, or folders only")
        if reading.group not in (None, BY_FILE):
            raise UsageError(f"--group {reading.group}: folders can be grouped by file only")
        files = _names_in(references[0])
        if not files:
            raise InputError(f"{references[0]}: the folder holds no file")
        for folder in (*references[1:], *hypotheses):
            _same_names(files, _names_in(folder), references[0], folder)
        sources = [find_sources(os.path.join(references[0], name), reading.format)[0] for name in files]
        rule, self.documents_by = _folder_documents(sources, reading)
        parts = []
        for name in files:
            ours, theirs = ([os.path.join(folder, name) for folder in folders] for folders in (references, hypotheses))
            corpora = [Corpus.from_files(ours[0], reading=self._bare, document=rule, lists=True)]
            corpora += [Corpus.from_files(path, reading=self._bare, lists=True) for path in ours[1:]]
            outputs = [Corpus.from_files(path, reading=self._bare) for path in theirs]
            parts.append(_Part(corpora, outputs, label=name if reading.group == BY_FILE else None))
        names = [os.path.basename(os.path.normpath(folder)) or folder for folder in hypotheses]
        return (names if len(set(names)) == len(names) else list(hypotheses)), parts

    def __iter__(self) -> Iterator[Block]:
        self.notes.clear()
        self.group_names.clear()
        names, noted = (Names(self.group_names), Names()), False
        for part in self._parts:
            files = [corpus.sources[0] for corpus in (part.references[0], *part.hypotheses)]
            plain = all(corpus.sources[0].format == "text" for corpus in part.texts)
            ids = UtteranceIds(len(part.hypotheses))
            try:
                for block in (_in_step if self._reading.id is None else _matched)(part, names):
                    if plain:
                        ids.add(block.references, block.hypotheses)
                    yield self._with_sources(block)
            except InputError as error:
                if (note := ids.note([file.name for file in files])) is None:
                    raise
                raise InputError(f"{error}. {note}") from error
            notes = (f"{corpus.sources[0].name}: {note}" for corpus in part.texts for note in corpus.report.notes())
            self.notes.extend(note for note in notes if "final newline" not in note)
            if not noted and (note := ids.note([file.name for file in files])):
                noted = True  # once: the other files of a folder are most likely the same
                self.notes.append(note)

    def _with_sources(self, block: Block) -> Block:
        if not self._has_sources:
            return block
        return replace(block, hypotheses=block.hypotheses[:-1], sources=block.hypotheses[-1])


def _names_in(folder: str) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))


def _same_names(wanted: list[str], present: list[str], reference: str, folder: str) -> None:
    for have, other, names in ((folder, reference, {*wanted} - {*present}), (reference, folder, {*present} - {*wanted})):
        if names:
            more = f" ({len(names) - 1} more are missing)" if len(names) > 1 else ""
            raise InputError(f"{have}: has no file {min(names)}, which {other} has{more}")


@dataclass
class _Documents:
    """Where the documents of segments are told."""

    by: str = UNKNOWN  # what tells them apart, for people
    in_references: str | None = None  # rule or field, of the first file of references
    in_outputs: str | None = None  # field, of the first system's outputs
    names: Corpus | None = None  # a file with a document's name on each line

    @classmethod
    def of_files(cls, references: Sequence[str], outputs: Sequence[Source], first: Source, reading: Reading) -> _Documents:
        rule = reading.document
        if rule in (None, UNKNOWN):
            return cls()
        if rule == FILE:
            raise UsageError("--document file needs folders: lmgauge wer references/ hypotheses/ --document file")
        if rule == SEGMENT:
            return cls(_source_of(rule))
        if rule in DOCUMENT_RULES:
            return cls(_source_of(rule), in_references=rule)
        if rule == "-" or os.path.isfile(rule):
            by = "standard input" if rule == "-" else os.path.basename(rule)
            return cls(by, names=Corpus.from_files(rule, group=None, errors=reading.errors))
        if first.format != "text":
            return cls(_source_of(rule), in_references=rule)
        if outputs[0].format != "text":
            return cls(_source_of(rule), in_outputs=rule)
        raise UsageError(
            f"--document {rule}: there is no such file with the name of a document on each line, and {references[0]} is "
            "plain text, which has no fields; name such a file, or segment, unknown, blank-line or heading"
        )


def _folder_documents(sources: Sequence[Source], reading: Reading) -> tuple[str | None, str]:
    rule = reading.document
    if rule is None:
        rule = FILE if len(sources) > 1 and all(source.format == "text" for source in sources) else UNKNOWN
    if rule not in DOCUMENT_RULES and sources[0].format == "text":
        raise UsageError(f"--document {rule}: plain text has no fields, and in folders one file cannot name all documents")
    return (None if rule in (SEGMENT, UNKNOWN) else rule), _source_of(rule)


def _source_of(rule: str) -> str:
    return DocumentNumbers(rule if rule in DOCUMENT_RULES else BY_NAMES, Names(), rule).source


def _in_step(part: _Part, names: LabelNames) -> Iterator[Block]:
    cursors = [Cursor(corpus, names) for corpus in part.files]
    while count := min(left := [cursor.left() for cursor in cursors]):
        yield part.block([cursor.take(count) for cursor in cursors], names)
    if any(left) or not cursors[0].done:
        raise InputError(unequal(cursors))


def _matched(part: _Part, names: LabelNames) -> Iterator[Block]:
    # All segments in the order of the references, found by their ids.
    ordered: list[Records] = []
    wanted: list[str] = []
    first = part.references[0].sources[0].name
    for corpus in part.texts:
        records, ids = whole(corpus, names)
        file = corpus.sources[0].name
        check_once(ids, file)
        wanted = wanted or ids
        where = places(wanted, ids, first, file)
        ordered.append(records if where is None else picked(records, where))
    for corpus in part.files[len(ordered) :]:
        ordered.append(whole(corpus, names)[0])
        if (count := len(ordered[-1].references)) != len(wanted):
            what = "groups" if corpus is part.labels[0] else "documents"
            raise InputError(
                f"{corpus.sources[0].name}: {count:,} names of {what} for the {len(wanted):,} segments of {first}: give one "
                "for each, in its order"
            )
    yield part.block(ordered, names)
