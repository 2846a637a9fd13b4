"""References and the outputs of systems, read from files in step: a line (record) of each is one segment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.records.sources import Source, find_sources
from lmgauge.tasks.blocks import Block
from lmgauge.tasks.records import Cursor, Records, check_once, merged, picked, places, unequal, whole
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import Integers
from lmgauge.tasks.utterance_ids import UtteranceIds
from lmgauge.text.documents import Corpus
from lmgauge.text.labels import BY_NAMES, DOCUMENT_RULES, FILE, SEGMENT, UNKNOWN, DocumentNumbers, Names

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
class _Files:
    """What belongs together."""

    references: list[Corpus]  # files of references; grouped by their ids where records are matched by them
    hypotheses: list[Corpus]  # one file of each system, then that of the source texts, if there is one; grouped likewise
    labels: Corpus | None
    label: str
    documents: Corpus | None = None

    def names(self) -> list[str]:
        return [corpus.sources[0].name for corpus in (self.references[0], *self.hypotheses)]


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

    def _of_files(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Files]]:
        reading = self._reading
        sources = find_outputs(hypotheses, [*references, reading.group, reading.document], reading.format)
        paths = [source.path for source in sources]
        if reading.group == BY_FILE:
            raise UsageError("--group file needs folders: lmgauge wer references/ hypotheses/ --group file")
        first = find_sources(references[0], reading.format)[0]
        several = next((path for path in references if len(find_sources(path, reading.format)) > 1), None)
        if several is not None:
            raise UsageError(f"{several}: stands for several files: name one, and each further reference for itself (-r)")
        named = reading.group is not None and os.path.exists(reading.group) and not os.path.isdir(reading.group)
        by_field = reading.group is not None and first.format != "text" and not named
        documents = _Documents.of_files(references, sources, first, reading)
        self.documents_by = documents.by
        corpora: list[Corpus] = []
        for path in references:
            for name in reading.ref_field or (reading.field,):
                group = reading.group if by_field and not corpora else None
                rule = documents.in_references if not corpora else None
                corpora.append(_corpus(reading, path, field=name, group=reading.id or group, document=rule, lists=True))
        if any(not corpus.rereadable for corpus in corpora) and len(reading.ref_field) > 1:
            raise UsageError("several fields of one file are read one after the other, which a pipe cannot: save it first")
        labels = None
        if reading.group is not None and not by_field:
            labels = Corpus.from_files(reading.group, group=None, errors=reading.errors)
        elif reading.group is not None and reading.id is not None:
            name = (reading.ref_field or (reading.field,))[0]
            labels = _corpus(reading, references[0], field=name, group=reading.group, lists=True)
            if not labels.rereadable:
                raise UsageError(f"{references[0]}: ids and groups are read in two passes, and a pipe gives one: save it")
        outputs = [
            _corpus(reading, path, group=reading.id, document=None if i else documents.in_outputs)
            for i, path in enumerate(paths)
        ]
        return [s.label for s in sources], [_Files(corpora, outputs, labels, "", documents.names)]

    def _of_folders(self, references: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], list[_Files]]:
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
        parts = [
            _Files(
                [
                    _corpus(reading, path, group=reading.id, document=None if i else rule, lists=True)
                    for i, path in enumerate(os.path.join(folder, name) for folder in references)
                ],
                [_corpus(reading, os.path.join(folder, name), group=reading.id) for folder in hypotheses],
                None,
                name,
            )
            for name in files
        ]
        names = [os.path.basename(os.path.normpath(folder)) or folder for folder in hypotheses]
        return (names if len(set(names)) == len(names) else list(hypotheses)), parts

    def __iter__(self) -> Iterator[Block]:
        self.notes.clear()
        self.group_names.clear()
        groups, documents = Names(self.group_names), Names()
        noted = False
        for part in self._parts:
            corpora = [*part.references, *part.hypotheses]
            ids = UtteranceIds(len(part.hypotheses))
            if self._reading.id is not None:
                yield self._with_sources(_matched(part, self._reading, groups, documents))
            else:
                plain = all(corpus.sources[0].format == "text" for corpus in corpora)
                try:
                    for block in _in_step(part, self._reading, groups, documents):
                        if plain:
                            ids.add(block.references, block.hypotheses)
                        yield self._with_sources(block)
                except InputError as error:
                    if (note := ids.note(part.names())) is None:
                        raise
                    raise InputError(f"{error}. {note}") from error
            notes = (f"{corpus.sources[0].name}: {note}" for corpus in corpora for note in corpus.report.notes())
            self.notes.extend(note for note in notes if "final newline" not in note)
            if not noted and (note := ids.note(part.names())):
                noted = True  # once: the other files of a folder are most likely the same
                self.notes.append(note)

    def _with_sources(self, block: Block) -> Block:
        if not self._has_sources:
            return block
        return replace(block, hypotheses=block.hypotheses[:-1], sources=block.hypotheses[-1])


def _corpus(
    reading: Reading,
    path: str,
    group: str | None,
    document: str | None = None,
    field: str | None = None,
    lists: bool = False,
) -> Corpus:
    options = replace(reading, id=None, group=group, document=document, field=field or reading.field, lists=lists)
    return Corpus.from_files(path, reading=options)


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


def _in_step(part: _Files, reading: Reading, groups: Names, documents: Names) -> Iterator[Block]:
    cursors = [Cursor(corpus) for corpus in (*part.references, *part.hypotheses)]
    labels, named = (None if corpus is None else Cursor(corpus) for corpus in (part.labels, part.documents))
    everything = [*cursors, *(cursor for cursor in (labels, named) if cursor is not None)]
    while True:
        left = [cursor.left() for cursor in everything]
        if not all(left):
            if any(left) or not everything[0].done:
                raise InputError(unequal(everything))
            return
        count = min(left)
        taken = [cursor.take(count) for cursor in cursors]
        references = merged([records.references for records in taken[: len(part.references)]])
        hypotheses = tuple(records.references.texts for records in taken[len(part.references) :])
        names: list[str] | None = None
        if labels is not None:
            names = labels.take(count).references.texts.strings()
        elif taken[0].groups is not None:
            names = [part.references[0].group_names[c] for c in taken[0].groups.tolist()]
        elif reading.group == BY_FILE:
            names = [part.label] * count
        if named is not None:
            codes: Integers | None = documents.numbers(named.take(count).references.texts.strings())
        else:
            codes = _document_codes([*part.references, *part.hypotheses], taken, documents)
        yield Block(references, hypotheses, None if names is None else groups.numbers(names), codes)


def _document_codes(corpora: Sequence[Corpus], taken: Sequence[Records], documents: Names) -> Integers | None:
    # Documents of segments, as the one file that names them has it: a name is one document in every file.
    for corpus, records in zip(corpora, taken, strict=True):
        if records.documents is not None:
            codes, inverse = np.unique(records.documents, return_inverse=True)
            names, file = corpus.document_names, corpus.sources[0].name
            return documents.numbers(names[code] if names else f"{file}:{code}" for code in codes.tolist())[inverse]
    return None


def _matched(part: _Files, reading: Reading, groups: Names, documents: Names) -> Block:
    # All segments in the order of the references, found by their ids.
    ordered: list[Records] = []
    wanted: list[str] = []
    corpora = [*part.references, *part.hypotheses]
    for corpus in corpora:
        records, ids = whole(corpus)
        check_once(ids, corpus.sources[0].name)
        wanted = wanted or ids
        where = places(wanted, ids, part.references[0].sources[0].name, corpus.sources[0].name)
        ordered.append(records if where is None else picked(records, where))
    count = len(part.references)
    names = _group_names(part, reading, len(wanted))
    if part.documents is not None:
        of_documents = whole(part.documents)[0].references.texts.strings()
        _check_number(of_documents, "documents", len(wanted), part.documents, part)
        codes: Integers | None = documents.numbers(of_documents)
    else:
        codes = _document_codes(corpora, ordered, documents)
    outputs = tuple(records.references.texts for records in ordered[count:])
    references = merged([records.references for records in ordered[:count]])
    return Block(references, outputs, None if names is None else groups.numbers(names), codes)


def _group_names(part: _Files, reading: Reading, segments: int) -> list[str] | None:
    # Group of each record of the references that are matched by ids, in their order.
    if part.labels is None:
        return [part.label] * segments if reading.group == BY_FILE else None
    records, names = whole(part.labels)
    names = names or records.references.texts.strings()
    _check_number(names, "groups", segments, part.labels, part)
    return names


def _check_number(names: Sequence[str], of: str, segments: int, file: Corpus, part: _Files) -> None:
    if len(names) != segments:
        raise InputError(
            f"{file.sources[0].name}: {len(names):,} names of {of} for the {segments:,} segments of "
            f"{part.references[0].sources[0].name}: give one for each, in its order (and the columns of a TSV all by "
            "name, or all by number)"
        )
