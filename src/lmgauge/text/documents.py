"""A corpus: the text of files, standard input or strings as segments, with a report and a fingerprint.

>>> corpus = Corpus.from_strings(["ein Satz", "noch einer"])
>>> [segments.text(i) for segments in corpus for i in range(len(segments))]
[b'ein Satz', b'noch einer']
>>> corpus.report.segments, corpus.report.bytes, len(corpus.report.fingerprint)
(2, 18, 6)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Boundary, ErrorPolicy, Role
from lmgauge.base.declaration import verb
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import growing_digest
from lmgauge.records.sources import Source, find_sources
from lmgauge.text.readers import Conversation, ReadingPass, lone_turns, read_file, read_strings
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segment_metadata import (
    BY_NAMES,
    CHAT,
    CONVERSATION,
    DOCUMENT,
    FILE,
    GIVEN,
    GROUP,
    UNKNOWN,
    DocumentNumbers,
    Names,
    choose_labels,
)
from lmgauge.text.segments import Segments, TextReport

__all__ = ["Corpus", "ReadingOptions", "Segments", "TextReport"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Reader = Callable[[ReadingPass], Iterator[Segments]]


class Corpus:
    """Text to read, as an iterable of `Segments`; make one with `from_files` or `from_strings`.

    Files and lists can be iterated over again and give the same each time; standard input, pipes and iterators only
    once.

    Attributes:
        report: counts and fingerprint of the latest pass, complete once that pass came to its end.
        group_names: names of the groups by their code; for groups from a field they become known while reading.
        document_names: names of the documents by their number, known after reading; empty if they have none.
        sources: the files to read, in order; empty for strings.
        settings: what `from_files` needs to read the same text again, by name; empty for strings.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "books.jsonl").write_text('{"text": "the cat sat"}\\n{"text": "the dog sat"}\\n')
        ...     corpus = Corpus.from_files(f"{folder}/*.jsonl")
        ...     [segments.text(i) for segments in corpus for i in range(len(segments))]
        [b'the cat sat', b'the dog sat']
        >>> corpus.report.segments, corpus.report.bytes
        (2, 22)
    """

    def __init__(
        self,
        readers: Iterable[Reader],
        options: ReadingOptions,
        *,
        label_fields: Mapping[str, str] | None = None,
        documents: str = UNKNOWN,
        file_labels: list[str] | None = None,
        one_shot: str | None = None,
        sources: Iterable[Source] = (),
    ) -> None:
        self.report = TextReport()
        self.group_names: list[str] = list(dict.fromkeys(file_labels or ()))
        self.document_names: list[str] = []
        self.sources = tuple(sources)
        self.settings: dict[str, Any] = (
            {"paths": [source.stored_path for source in self.sources], **options.stored()} if self.sources else {}
        )
        self._readers = list(readers)
        self._options = options
        self._label_fields = dict(label_fields or {})
        self._documents = documents
        self._file_labels = file_labels
        self._one_shot = one_shot
        self._used, self._sha256 = False, ""
        self._chosen: NDArray[np.bool_] | None = None
        self._taken: frozenset[str] | None = None

    @classmethod
    @verb
    def from_files(cls: type[Corpus], paths: Paths, *, reading: ReadingOptions = ReadingOptions(), **fields: Any) -> Corpus:
        """Return the text of files as a corpus; the files are looked for now and read when it is iterated over.

        A segment of a text file is a line (blank ones included), or the whole file; a record always is one. Without `id` it
        is identified by its file and line. What `errors` replaces or skips is counted in `report`.

        What belongs to one document is not independent: `document` is "file", each file; "segment", nothing but the segment;
        "blank-line" and "heading", the lines of a text file up to a blank line, or to the next ` = Title = ` or `# Title`;
        "unknown"; any other name is the field or column that names it. How the text is scored does not depend on it.

        Args:
            paths: one path or address or several; globs are expanded (sorted), "-" is standard input; .gz, .bz2, .xz and
                .zst are unpacked, .jsonl, .ndjson, .csv, .tsv and .parquet read as records.
            reading: how they are read.
            fields: those of `reading`, by name.

        Returns:
            The corpus.

        Raises:
            InputError: a file is missing or a directory, or a glob matches nothing.
            UsageError: options that are unknown or contradict each other.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = Path(folder, "talks.csv").write_text("title,words\\none,the cat sat\\n")
            ...     corpus = Corpus.from_files(f"{folder}/talks.csv", field="words", document="title")
            ...     [segments.text(0) for segments in corpus]
            [b'the cat sat']
        """
        if reading.join is not None:
            return cls.from_files(paths, reading=replace(reading, join=None)).joined(reading.join)
        sources = find_sources(paths, reading.format)
        rule, label_fields = choose_labels(reading, sources)
        return cls(
            [partial(read_file, source) for source in sources],
            reading,
            label_fields=label_fields,
            documents=rule,
            file_labels=[source.label for source in sources] if reading.group == FILE else None,
            one_shot=next((source.name for source in sources if source.one_shot), None),
            sources=sources,
        )

    @classmethod
    def from_strings(
        cls,
        texts: Iterable[str],
        *,
        groups: Iterable[str] | None = None,
        documents: Iterable[str] | None = None,
        given: Iterable[str] | None = None,
        boundary: Boundary = "joint",
        errors: ErrorPolicy = "fail",
        block_bytes: int = 1 << 20,
        as_turn: Role | None = None,
    ) -> Corpus:
        """Return strings as a corpus, each string one record.

        Args:
            texts: the strings; a list can be read again, an iterator once.
            groups: the name of the group of each string, or None.
            documents: the name of the document of each string, or None if that is not known.
            given: the text that is given before each string, shown and not scored, as in `from_files`; None for none.
            boundary: how given text and string are cut into tokens, as in `from_files`.
            errors: as in `from_files` (a string is invalid if it holds NUL or a lone surrogate).
            block_bytes: about how many bytes to hold at a time.
            as_turn: each string is one message of this role, in a conversation of its own.

        Raises:
            UsageError: `texts` is a single string, or an option is out of range.

        Example:
            >>> [block.text(0) for block in Corpus.from_strings(["the cat sat"])]
            [b'the cat sat']
        """
        for name, values in (("texts", texts), ("given", given)):
            if isinstance(values, (str, bytes)):
                raise UsageError(f"{name} is one string: give a list of strings, or a path to from_files")
        once = any(isinstance(values, Iterator) for values in (texts, groups, documents, given))
        beside = ((GROUP, groups), (DOCUMENT, documents), (GIVEN, given))
        labels = {label: values for label, values in beside if values is not None}
        field = GIVEN if GIVEN in labels else None

        return cls(
            [partial(read_strings, texts, labels)],
            ReadingOptions(errors=errors, block_bytes=block_bytes, given=field, boundary=boundary, as_turn=as_turn),
            documents=UNKNOWN if documents is None else BY_NAMES,
            one_shot="this iterator" if once else None,
        )

    @classmethod
    def from_conversations(
        cls,
        conversations: Iterable[Conversation | Sequence[Mapping[str, Any]] | Mapping[str, Any]],
        *,
        roles: str | Sequence[str] = ("assistant",),
        groups: Iterable[str] | None = None,
        documents: Iterable[str] | None = None,
        errors: ErrorPolicy = "fail",
        block_bytes: int = 1 << 20,
    ) -> Corpus:
        """Return conversations as a corpus: each turn of some roles is a segment, its text the content of the message.

        Args:
            conversations: each a list of messages, as in `[{"role": "user", "content": "Hi"}, ...]`, or a record of them in
                "messages" and of what can be called in "tools"; a list can be read again, an iterator once.
            roles: whose turns are segments; models see the others.
            groups: the name of the group of each conversation, or None.
            documents: the name of the document of each; None: each is one.
            errors: as in `from_files`; what is left out is a conversation.
            block_bytes: about how many bytes to hold at a time.

        Raises:
            UsageError: a role is unknown, or there are more conversations than groups or documents.

        Example:
            >>> said = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "the cat"}]
            >>> [block.text(0) for block in Corpus.from_conversations([said])]
            [b'the cat']
        """
        labels = {label: values for label, values in ((GROUP, groups), (DOCUMENT, documents)) if values is not None}
        once = any(isinstance(values, Iterator) for values in (conversations, *labels.values()))
        return cls(
            [partial(read_strings, conversations, labels)],
            ReadingOptions(errors=errors, block_bytes=block_bytes, chat=CHAT, roles=roles),
            label_fields={label: label for label in labels},
            documents=CONVERSATION if documents is None else BY_NAMES,
            one_shot="this iterator" if once else None,
        )

    def joined(self, separator: str) -> Corpus:
        """Return the same text as one segment, as the protocols of some programs score it.

        A newline at the very end is dropped where the separator is one: lines come without their own. Groups, documents and
        ids are not known of the whole.

        Args:
            separator: what stands between two segments.

        Raises:
            UsageError: text is given before each segment, or segments are turns of conversations.

        Example:
            >>> corpus = Corpus.from_strings(["the cat", "sat"]).joined("\\n\\n")
            >>> [block.text(0) for block in corpus], corpus.report.notes()
            ([b'the cat\\n\\nsat'], ['2 segments joined by a blank line into one text'])
        """
        if self.boundary is not None or self.roles is not None:
            raise UsageError("given text and turns of conversations cannot be kept where segments are joined into one")
        options = replace(self._options, join=separator, document=None, id=None, keep=())
        return Corpus(self._readers, options, one_shot=self._one_shot, sources=self.sources)

    def in_blocks(self, block_bytes: int) -> Corpus:
        """Return the same text, to be read in blocks of another size.

        Args:
            block_bytes: about how many bytes to hold at a time.

        Raises:
            UsageError: fewer than 1.

        Example:
            >>> [len(block) for block in Corpus.from_strings(["the cat", "sat", "down"]).in_blocks(10)]
            [2, 1]
        """
        other = copy(self)
        other._options = replace(self._options, block_bytes=block_bytes)
        other.report, other.document_names = TextReport(), []
        return other

    def chosen(self, segments: NDArray[np.bool_], sample: Mapping[str, Any] | None = None) -> Corpus:
        """Return some segments of the text as a text of its own; their documents keep their numbers.

        Args:
            segments: bool [segments of this text], those to read; sample: what is remembered of it, "part" for the report.

        Raises:
            UsageError: segments are joined, chosen already, have text before them, or can be read only once.

        Example:
            >>> corpus = Corpus.from_strings(["the cat", "sat", "down"]).chosen(np.array([True, False, True]))
            >>> [block.text(i) for block in corpus for i in range(len(block))]
            [b'the cat', b'down']
        """
        if self.is_joined or self.boundary is not None or self._one_shot is not None or self._chosen is not None:
            raise UsageError("segments cannot be chosen from a text that is joined, has given text or can be read only once")
        other = self.in_blocks(self.block_bytes)
        other._chosen, other._sha256 = segments, ""
        other.settings = self.settings | ({"sample": sample} if sample else {})
        return other

    def with_records(self, taken: Iterable[str]) -> Corpus:
        """Return the same text, its segments with the records that they are of, to be written back.

        Args:
            taken: names of fields that will be put behind a record's own, so that none may have one of that name.
        """
        other = self.in_blocks(self.block_bytes)
        other._taken = frozenset(taken)
        return other

    @property
    def block_bytes(self) -> int:
        """About how many bytes of the text a block has."""
        return self._options.block_bytes

    @property
    def is_joined(self) -> bool:
        """Whether all segments are joined into one."""
        return self._options.join is not None

    @property
    def boundary(self) -> Boundary | None:
        """How text that is given before each segment is cut from it; None where no text is given."""
        return None if self._options.given is None else self._options.boundary

    @property
    def roles(self) -> tuple[str, ...] | None:
        """Whose turns of conversations the segments are; None where they are none."""
        options = self._options
        return tuple(options.roles) if options.chat is not None else options.as_turn and (options.as_turn,)

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the fields that are carried along."""
        return tuple(self._options.keep)

    def without_given(self, use: str, *, whole: bool = False) -> Corpus:
        """Return the corpus, once it is known that no text is given before its segments.

        Args:
            use: what it is for, for the message.
            whole: nor are they turns, which it would take out of their conversations.

        Raises:
            UsageError: there is given text, which such a use would pass over, or there are turns.
        """
        if whole and self.roles is not None:
            raise UsageError(f"{use} would take turns out of their conversations: leave out chat, roles and as_turn")
        if self.boundary is not None:
            raise UsageError(f"{use} takes no given text: leave out given, and put all of the text into one field")
        return self

    @property
    def rereadable(self) -> bool:
        """Whether the corpus can be iterated over more than once."""
        return self._one_shot is None

    def refuse_once(self, reads: str) -> None:
        """Refuse a text that can be read only once.

        Args:
            reads: what reads it again, for the message.

        Raises:
            UsageError: it is standard input, or what a generator gives.
        """
        if not self.rereadable:
            raise UsageError(f"{reads}, and this can be read only once: save it in a file first")

    def __iter__(self) -> Iterator[Segments]:
        # Raises (also while iterating):
        #     UsageError: a second pass over what can be read only once.
        #     InputError: text that cannot be used, with file, line and byte; another text than in the pass before.
        if self._used and self._one_shot is not None:
            raise UsageError(f"{self._one_shot} can be read only once, and has been: save the text in a file first")
        self._used = True
        self.report, self.document_names = TextReport(), []
        if self._file_labels is None:
            self.group_names = []
        parts = self._segments(self.report, self.group_names, self.document_names)
        return parts if self._options.join is None else _joined(parts, self._options.join.encode(), self.report)

    def _segments(self, report: TextReport, group_names: list[str], document_names: list[str]) -> Iterator[Segments]:
        groups, documents = Names(group_names), Names(document_names)
        numbers = DocumentNumbers(self._documents, documents, self._label_fields.get(DOCUMENT) if self.sources else None)
        report.documents_by, report.boundary = numbers.source, self.boundary
        report.part = self.settings.get("sample", {}).get("part", "")
        reading = ReadingPass(self._options, self._label_fields, groups, documents, report, self._taken)
        digest, seen, ids = growing_digest(), 0, [np.zeros(0, np.int64)]
        digest.update(" ".join(sorted(self.roles or ())).encode())
        for i, read in enumerate(self._readers):
            report.files += bool(self.sources)
            numbers.begin_file(self.sources[i].stored_path if self.sources else "")
            # One file is one group: no codes are needed then.
            several = self._file_labels is not None and len(group_names) > 1
            code = groups.numbers([self._file_labels[i]])[0] if self._file_labels and several else None
            for part in read(reading):
                segments = replace(
                    part,
                    first=report.segments,
                    groups=part.groups if code is None else np.full(len(part), code, dtype=np.int32),
                    documents=numbers.of(part, seen),
                )
                seen += len(part)
                if self._chosen is not None and not (chosen := self._chosen[seen - len(part) : seen]).all():
                    if not chosen.any():
                        continue
                    segments = segments.where(chosen)
                report.segments += len(segments)
                report.bytes += segments.byte_count()
                report.documents = numbers.count
                if segments.ids is not None:
                    own = np.fromiter(map(hash, segments.ids), np.int64, len(segments))
                    ids.append(own[np.diff(segments.lines(), prepend=0) > 0])  # of records: one may hold several texts
                segments.hash_into(digest.update)
                role = self._options.as_turn
                yield segments if role is None else replace(segments, turns=lone_turns(segments, role))
        if report.unusable and not report.segments:
            raise InputError(f"no record of the text can be used; the first: {report.first_unusable}")
        if not report.segments and (report.without_turns or report.turns_without_content):
            raise InputError(f"no conversation of the text has a turn with content of {', '.join(self.roles or ())}")
        if any(map(len, ids)):
            report.repeated_ids = sum(map(len, ids)) - len(np.unique(np.concatenate(ids)))
        report.sha256 = digest.hexdigest()
        if self._sha256 not in ("", report.sha256):
            where = self.sources[0].name if len(self.sources) == 1 else "the text"
            raise InputError(f"{where}: changed while it was used, as it was read more than once; begin again")
        self._sha256 = report.sha256


def _joined(parts: Iterator[Segments], separator: bytes, report: TextReport) -> Iterator[Segments]:
    # All segments as one, and let the report speak of that.
    texts: list[bytes] = []
    source, ends_lines = "", False
    for part in parts:
        source, ends_lines = source or part.source, bool(part.terminator)
        texts += map(part.text, range(len(part)))
    if not texts:
        return
    whole = separator.join(texts)
    if separator == b"\n" and not ends_lines:
        whole = whole.removesuffix(b"\n")
    bounds = np.array([0, len(whole)], np.int64)
    segment = Segments(np.frombuffer(whole, np.uint8), bounds[:1], bounds[1:], source)
    digest = growing_digest()
    segment.hash_into(digest.update)
    report.joined, report.joined_by, report.segments, report.bytes = len(texts), separator.decode(), 1, len(whole)
    report.characters = len(whole.decode())
    report.missing_final_newline, report.documents, report.documents_by = 0, 0, UNKNOWN
    report.sha256 = digest.hexdigest()
    yield segment
