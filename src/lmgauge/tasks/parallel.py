"""References and the outputs of systems, read from files in step: a line (record) of each is one segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import TASK_ERROR_POLICIES, TaskErrorPolicy
from lmgauge.errors import InputError, UsageError
from lmgauge.tasks.texts import Integers, References, Texts
from lmgauge.tasks.utterance_ids import UtteranceIds
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.streams import Source, find_sources

BY_FILE = "file"


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive segments.

    Attributes:
        references: of each segment.
        hypotheses: a text for each segment, of each system.
        groups: int32 [segments], index into `ParallelFiles.group_names`; None without groups.
    """

    references: References
    hypotheses: tuple[Texts, ...]
    groups: NDArray[np.int32] | None

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.references)


@dataclass(frozen=True)
class Reading:
    """How the files are read.

    Attributes:
        field: field of JSONL, column of TSV or Parquet of the texts (a TSV column without name by its number).
        reference_fields: those of the references; several give several references. Empty: `field`.
        id_field: field that says which segment a record is, where files are not in one order; None: they are.
        by: "file" (with folders), a field of the references, or a file with the name of a group on each line; None.
        unit: "line", or "document": a whole file is one segment.
        format: "text", "jsonl", "tsv" or "parquet" for all files; None: by their names.
        errors: "fail" or "replace" what is not valid text.
        keep_bom: count a byte order mark at the head of a text file as text, as the commands of sacreBLEU and jiwer do.
    """

    field: str = "text"
    reference_fields: tuple[str, ...] = ()
    id_field: str | None = None
    by: str | None = None
    unit: str = "line"
    format: str | None = None
    errors: TaskErrorPolicy = "fail"
    keep_bom: bool = True

    def __post_init__(self) -> None:
        """Check the choices that files cannot.

        Raises:
            UsageError: lines were to be left out, which would shift one file against another.
        """
        if self.errors not in TASK_ERROR_POLICIES:
            raise UsageError(f"errors {self.errors!r}: give fail or replace, as a line left out would shift all behind it")

    def corpus(self, path: str, *, name: str | None = None, group: str | None = None, lists: bool = False) -> Corpus:
        """The texts of one file."""
        chosen: dict[str, Any] = {"unit": self.unit, "format": self.format, "errors": self.errors, "keep_bom": self.keep_bom}
        return Corpus.from_files(path, field=name or self.field, group=group, lists=lists, **chosen)


@dataclass
class _Files:
    """What belongs together.

    Attributes:
        references: files of references; grouped by their ids where records are matched by them.
        hypotheses: one file of each system; grouped likewise.
        labels: says the group of each segment, by its groups or else by its texts; None: nothing or `references[0]` does.
        label: the name of the files.
    """

    references: list[Corpus]
    hypotheses: list[Corpus]
    labels: Corpus | None
    label: str


class ParallelFiles:
    """References and hypotheses of one or more systems, as an iterable of `Block`.

    Attributes:
        names: the names of the systems: their files' without folder and suffix, where these are told apart by them.
        group_names: found while reading, in order of appearance.
        notes: what reading changed, complete once everything was read.
    """

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str], reading: Reading | None = None) -> None:
        """Look for the files; they are read when it is iterated over.

        Args:
            references: a file, or several that each hold one more reference for every segment; or one folder.
            hypotheses: a file for each system (a glob stands for several), or a folder with the references' file names.
            reading: how to read them.

        Raises:
            InputError: a file is missing.
            UsageError: standard input is named twice, or folders and files are mixed.
        """
        self._reading = reading or Reading()
        self.group_names: list[str] = []
        self.notes: list[str] = []
        if not references or not hypotheses:
            raise UsageError("name the references, then the outputs of at least one system")
        if any(os.path.isdir(path) for path in (*references, *hypotheses)):
            self.names, self._parts = self._of_folders(references, hypotheses)
        else:
            self.names, self._parts = self._of_files(references, hypotheses)

    def _of_files(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Files]]:
        reading = self._reading
        if [*references, *hypotheses, reading.by].count("-") > 1:
            raise UsageError("standard input (-) is named twice, but can be read only once")
        sources = find_sources(list(hypotheses), reading.format)
        paths = [source.path for source in sources]
        repeated = next((path for i, path in enumerate(paths) if path in paths[:i]), None)
        if repeated is not None:
            raise UsageError(f"{repeated} is named twice; name each system once")
        if reading.by == BY_FILE:
            raise UsageError("--by file needs folders: lmgauge wer references/ hypotheses/ --by file")
        first = _checked(references, reading)[0]
        several = next((path for path in references if len(find_sources(path, reading.format)) > 1), None)
        if several is not None:
            raise UsageError(f"{several}: stands for several files: name one, and each further reference for itself (-r)")
        named = reading.by is not None and os.path.exists(reading.by) and not os.path.isdir(reading.by)
        by_field = reading.by is not None and first.format != "text" and not named
        corpora: list[Corpus] = []
        for path in references:
            for name in reading.reference_fields or (reading.field,):
                group = reading.by if by_field and not corpora else None
                corpora.append(reading.corpus(path, name=name, group=reading.id_field or group, lists=True))
        if any(not corpus.rereadable for corpus in corpora) and len(reading.reference_fields) > 1:
            raise UsageError("several fields of one file are read one after the other, which a pipe cannot: save it first")
        labels = None
        if reading.by is not None and not by_field:
            labels = Corpus.from_files(reading.by, group=None, format="text", errors=reading.errors)
        elif reading.by is not None and reading.id_field is not None:
            name = (reading.reference_fields or (reading.field,))[0]
            labels = reading.corpus(references[0], name=name, group=reading.by, lists=True)
            if not labels.rereadable:
                raise UsageError(f"{references[0]}: ids and groups are read in two passes, and a pipe gives one: save it")
        _checked(paths, reading)
        outputs = [reading.corpus(path, group=reading.id_field) for path in paths]
        return [s.label for s in sources], [_Files(corpora, outputs, labels, "")]

    def _of_folders(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Files]]:
        reading = self._reading
        odd = next((path for path in (*references, *hypotheses) if not os.path.isdir(path)), None)
        if odd is not None:
            folder = next(path for path in (*references, *hypotheses) if os.path.isdir(path))
            raise UsageError(f"{folder} is a folder and {odd} is not: name files only, or folders only")
        if reading.by not in (None, BY_FILE):
            raise UsageError(f"--by {reading.by}: folders can be grouped by file only")
        files = _names_in(references[0])
        if not files:
            raise InputError(f"{references[0]}: the folder holds no file")
        for folder in (*references[1:], *hypotheses):
            _same_names(files, _names_in(folder), references[0], folder)
        parts = [
            _Files(
                [
                    reading.corpus(path, group=reading.id_field, lists=True)
                    for path in _checked_in(references, name, reading)
                ],
                [reading.corpus(path, group=reading.id_field) for path in _checked_in(hypotheses, name, reading)],
                None,
                name,
            )
            for name in files
        ]
        names = [Path(folder).name or folder for folder in hypotheses]
        return (names if len(set(names)) == len(names) else list(hypotheses)), parts

    def __iter__(self) -> Iterator[Block]:
        """Read everything once.

        Raises:
            InputError: a file ends before another, holds what is not text, or is empty.
        """
        self.notes.clear()
        codes: dict[str, int] = {}

        def code(name: str) -> int:
            if name not in codes:
                codes[name] = len(codes)
                self.group_names.append(name)
            return codes[name]

        self.group_names.clear()
        noted = False
        for part in self._parts:
            corpora = [*part.references, *part.hypotheses]
            ids = UtteranceIds(len(part.hypotheses))
            if self._reading.id_field is not None:
                yield _matched(part, self._reading, code)
            else:
                for block in _in_step(part, self._reading, code):
                    if all(corpus.sources[0].format == "text" for corpus in corpora):
                        ids.add(block.references, block.hypotheses)
                    yield block
            told = (f"{corpus.sources[0].name}: {note}" for corpus in corpora for note in corpus.report.notes())
            self.notes.extend(note for note in told if "final newline" not in note)
            if not noted and (note := ids.note([corpora[0].sources[0].name, *(c.sources[0].name for c in part.hypotheses)])):
                noted = True  # once: the other files of a folder are most likely the same
                self.notes.append(note)


def _checked(paths: Sequence[str], reading: Reading) -> list[Source]:
    """The files, none of which is plain text where records are matched by id."""
    sources = find_sources(list(paths), reading.format)
    plain = next((source for source in sources if source.format == "text"), None)
    if reading.id_field is not None and plain is not None:
        raise UsageError(f"{plain.name}: plain text has no field {reading.id_field!r} to match by")
    return sources


def _checked_in(folders: Sequence[str], name: str, reading: Reading) -> list[str]:
    paths = [os.path.join(folder, name) for folder in folders]
    _checked(paths, reading)
    return paths


def _names_in(folder: str) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))


def _same_names(wanted: list[str], found: list[str], reference: str, folder: str) -> None:
    for have, other, names in ((folder, reference, set(wanted) - set(found)), (reference, folder, set(found) - set(wanted))):
        if names:
            one, more = min(names), len(names) - 1
            raise InputError(
                f"{have}: has no file {one}, which {other} has" + (f" ({more} more are missing)" if more else "")
            )


class _Cursor:
    """One file's segments, some at a time; a record with a list of references is one segment."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.done = 0
        self._blocks = iter(corpus)
        self._at = 0
        self._block: References | None = None
        self._groups: NDArray[np.int32] | None = None

    @property
    def name(self) -> str:
        return self.corpus.sources[0].name

    def left(self) -> int:
        """How many segments can be taken now; 0 at the end of the file."""
        while self._block is None or self._at == len(self._block):
            segments = next(self._blocks, None)
            if segments is None:
                return 0
            self._block, self._groups = _records(segments)
            self._at = 0
        return len(self._block) - self._at

    def take(self, count: int) -> tuple[References, NDArray[np.int32] | None]:
        """The next segments, and the codes of their groups."""
        assert self._block is not None
        begin, self._at = self._at, self._at + count
        self.done += count
        groups = None if self._groups is None else self._groups[begin : self._at]
        return self._block.part(begin, self._at), groups

    def count_rest(self) -> int:
        """Read to the end; how many segments the file has in all."""
        while count := self.left():
            self.take(count)
        return self.done


def _records(segments: Segments) -> tuple[References, NDArray[np.int32] | None]:
    """Segments as records: those with one line number came from one list."""
    texts = Texts.of_segments(segments)
    numbers = segments.line_numbers
    if numbers is None or (np.diff(numbers) > 0).all():
        return References.single(texts), segments.groups
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    offsets = np.append(begins, len(numbers)).astype(np.int64)
    return References(texts, offsets), None if segments.groups is None else segments.groups[begins]


def _in_step(part: _Files, reading: Reading, code: Callable[[str], int]) -> Iterator[Block]:
    cursors = [_Cursor(corpus) for corpus in (*part.references, *part.hypotheses)]
    labels = None if part.labels is None else _Cursor(part.labels)
    everything = cursors if labels is None else [*cursors, labels]
    while True:
        left = [cursor.left() for cursor in everything]
        if not all(left):
            if any(left) or not everything[0].done:
                raise InputError(_unequal(everything))
            return
        count = min(left)
        taken = [cursor.take(count) for cursor in cursors]
        references = merged([texts for texts, _ in taken[: len(part.references)]])
        hypotheses = tuple(texts.texts for texts, _ in taken[len(part.references) :])
        names: list[str] | None = None
        if labels is not None:
            names = labels.take(count)[0].texts.strings()
        elif taken[0][1] is not None:
            names = [part.references[0].group_names[c] for c in taken[0][1].tolist()]
        elif reading.by == BY_FILE:
            names = [part.label] * count
        groups = None if names is None else np.array([code(name) for name in names], dtype=np.int32)
        yield Block(references, hypotheses, groups)


def merged(streams: Sequence[References]) -> References:
    """The references of several files, side by side for each segment."""
    if len(streams) == 1:
        return streams[0]
    if all(len(stream.texts) == len(stream) for stream in streams):
        return References.of_streams([stream.texts for stream in streams])
    texts = [stream.texts.encoded() for stream in streams]
    bounds = [stream.offsets.tolist() for stream in streams]
    whole: list[bytes] = []
    offsets = [0]
    for i in range(len(streams[0])):
        for encoded, at in zip(texts, bounds, strict=True):
            whole.extend(encoded[at[i] : at[i + 1]])
        offsets.append(len(whole))
    return References(Texts.of_bytes(whole), np.array(offsets, dtype=np.int64))


def _unequal(cursors: Sequence[_Cursor]) -> str:
    """Which file ends first, and where."""
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


def _lines(cursor: _Cursor) -> str:
    unit = "line" if cursor.corpus.sources[0].format == "text" else "record"
    return f"{cursor.done:,} {unit}{'s' * (cursor.done != 1)}"


def _matched(part: _Files, reading: Reading, code: Callable[[str], int]) -> Block:
    """All segments in the order of the references, found by their ids."""
    ordered = []
    wanted: list[str] = []
    for corpus in (*part.references, *part.hypotheses):
        references, ids = _whole(corpus)
        _check_once(ids, corpus)
        wanted = wanted or ids
        where = _places(wanted, ids, part.references[0], corpus)
        ordered.append(references if where is None else _picked(references, where))
    count = len(part.references)
    names = _group_names(part, reading, len(wanted))
    groups = None if names is None else np.array([code(name) for name in names], dtype=np.int32)
    return Block(merged(ordered[:count]), tuple(texts.texts for texts in ordered[count:]), groups)


def _group_names(part: _Files, reading: Reading, segments: int) -> list[str] | None:
    """The group of each record of the references that are matched by ids, in their order."""
    if part.labels is None:
        return [part.label] * segments if reading.by == BY_FILE else None
    texts, names = _whole(part.labels)
    names = names or texts.texts.strings()
    if len(names) != segments:
        first, labels = part.references[0].sources[0].name, part.labels.sources[0].name
        raise InputError(
            f"{labels}: {len(names):,} names of groups for the {segments:,} segments of {first}: give one for each, in its "
            "order (and the columns of a TSV all by name, or all by number)"
        )
    return names


def _whole(corpus: Corpus) -> tuple[References, list[str]]:
    """All records of a file, and the name of the group of each; none where it has no groups."""
    cursor = _Cursor(corpus)
    blocks = []
    while count := cursor.left():
        blocks.append(cursor.take(count))
    if not blocks:
        raise InputError(f"{cursor.name}: the file is empty")
    texts = Texts.of_bytes([text for block, _ in blocks for text in block.texts.encoded()])
    counts = np.concatenate([np.diff(block.offsets) for block, _ in blocks])
    names = [corpus.group_names[c] for _, codes in blocks if codes is not None for c in codes.tolist()]
    return References(texts, np.append(0, np.cumsum(counts)).astype(np.int64)), names


def _check_once(ids: list[str], corpus: Corpus) -> None:
    seen: set[str] = set()
    for i, name in enumerate(ids):
        if name in seen:
            raise InputError(f"{corpus.sources[0].name}: record {i + 1}: the id {name!r} comes a second time")
        seen.add(name)


def _places(wanted: list[str], found: list[str], reference: Corpus, corpus: Corpus) -> Integers | None:
    """Where each wanted id is among those found; None if in the same order."""
    if wanted == found:
        return None
    place = {name: i for i, name in enumerate(found)}
    missing = [name for name in wanted if name not in place]
    surplus = sorted(set(found) - set(wanted))
    for names, has, lacks in ((missing, reference, corpus), (surplus, corpus, reference)):
        if names:
            more = f" ({len(names):,} in all)" if len(names) > 1 else ""
            raise InputError(
                f"{lacks.sources[0].name}: has no record with the id {names[0]!r}, which {has.sources[0].name} has{more}"
            )
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _picked(references: References, where: Integers) -> References:
    counts = np.diff(references.offsets)[where]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    begins = references.offsets[where]
    indexes = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
    return References(references.texts.picked(indexes), offsets)
