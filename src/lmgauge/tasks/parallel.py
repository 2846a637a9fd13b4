"""References and the outputs of systems, read from files in step: a line (record) of each is one segment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lmgauge.errors import InputError, UsageError
from lmgauge.records.sources import Source, find_sources
from lmgauge.tasks.blocks import Block
from lmgauge.tasks.records import Cursor, LabelNames, Records, check_once, merged, picked, places, unequal, whole
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.utterance_ids import UtteranceIds
from lmgauge.text.documents import Corpus
from lmgauge.text.segment_metadata import BY_NAMES, DOCUMENT_RULES, FILE, SEGMENT, UNKNOWN, DocumentNumbers, Names

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
