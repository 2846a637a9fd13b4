"""Labels of segments: names as numbers, and the document that each line or record belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.records.formats import RECORD_ENDINGS
from lmgauge.records.sources import Source
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import KEEP, Segments, is_white_space

GROUP, DOCUMENT, ID, GIVEN, CHAT = "group", "document", "id", "given", "chat"
FILE, SEGMENT, UNKNOWN, BLANK_LINE, HEADING = "file", "segment", "unknown", "blank-line", "heading"
BY_NAMES = "names"
"""Documents that come with their names, from a field or beside strings; any other word here is one that users write."""

_SOURCES = {FILE: "files", SEGMENT: "segments", UNKNOWN: "unknown", BLANK_LINE: "blank lines", HEADING: "headings"}
DOCUMENT_RULES = tuple(_SOURCES)
CONVERSATION, ROLE = "conversation", "role"
_SOURCES[CONVERSATION] = "conversations"


def choose_labels(options: ReadingOptions, sources: Sequence[Source]) -> tuple[str, dict[str, str]]:
    """Return what tells documents apart, and the fields that hold the labels of records."""
    rule = _document_rule(options, sources)
    document = options.document if rule == BY_NAMES else None
    group = None if options.group == FILE or (options.chat and options.group == ROLE) else options.group
    asked = {GROUP: group, DOCUMENT: document, ID: options.id, GIVEN: options.given}
    fields = {label: name for label, name in asked.items() if name is not None}
    fields |= {KEEP + name: name for name in options.keep}
    plain = next((source for source in sources if source.format == "text"), None)
    if (fields or options.chat) and plain is not None:
        label, name = next(iter((fields | {CHAT: options.chat}).items()))
        rules = f", or {', '.join(DOCUMENT_RULES)}" if label == DOCUMENT else ""
        pipe = " (of a pipe: --format jsonl)" if plain.one_shot else ""
        raise UsageError(f"{plain.name}: lines of text have no field {name!r}; use {RECORD_ENDINGS}{rules}{pipe}")
    return rule, fields


def _document_rule(options: ReadingOptions, sources: Sequence[Source]) -> str:
    document = options.document
    if document is None and options.chat is not None:
        return CONVERSATION
    other = next((source for source in sources if source.format != "text"), None)
    if document is None:
        return FILE if other is None and len({source.stored_path for source in sources}) > 1 else UNKNOWN
    if document not in DOCUMENT_RULES:
        return BY_NAMES
    if document in (BLANK_LINE, HEADING):
        if other is not None:
            raise UsageError(
                f"{other.name}: only plain text has documents by {document}: name the field that tells them apart"
            )
        if options.unit == "document":
            raise UsageError(f"documents by {document} are made of lines: use unit line, or file as what is a document")
    return document


class Names:
    """Numbers of names, counted from 0 by first appearance."""

    def __init__(self, known: list[str] | None = None) -> None:
        # Start with the names in `known`; new ones are added to that list.
        self.known = [] if known is None else known
        self._numbers = {name: number for number, name in enumerate(self.known)}

    def numbers(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Return the number of each name, a new one for a new name: int64 [names]."""
        # Names().numbers(["news", "law", "news"]) -> array([0, 1, 0])
        return np.array([self._number(name) for name in names], dtype=np.int64)

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self.known))
        if number == len(self.known):
            self.known.append(name)
        return number


class DocumentNumbers:
    """Numbers the documents of a corpus while it is read, from 0 by first appearance."""

    def __init__(self, rule: str, names: Names, field: str | None = None) -> None:
        self._rule, self._names, self._begun = rule, names, 0
        self.source = _SOURCES.get(rule, BY_NAMES if field is None else f"field {field}")
        self._file, self._at_start, self._text_seen, self._after_blank = "", True, False, False

    @property
    def count(self) -> int:
        """Return the number of documents so far; 0 if they are not known."""
        return len(self._names.known) or self._begun

    def begin_file(self, path: str) -> None:
        """Begin a new file, and with it a new document."""
        self._file, self._at_start, self._text_seen, self._after_blank = path, True, False, False

    def of(self, part: Segments, first: int) -> NDArray[np.int64] | None:
        """Return the number of the document of each segment: int64 [segments]; None if it is not known."""
        if self._rule == UNKNOWN:
            return None
        if self._rule == BY_NAMES:
            return part.documents
        if self._rule == FILE:
            return np.full(len(part), self._names.numbers([self._file])[0])
        if self._rule == SEGMENT:
            self._begun = first + len(part)
            return np.arange(first, first + len(part), dtype=np.int64)
        numbers = np.cumsum(self._begins(part), dtype=np.int64) + (self._begun - 1)
        self._begun = int(numbers[-1]) + 1
        return numbers

    def _begins(self, part: Segments) -> NDArray[np.bool_]:
        if self._rule == CONVERSATION:
            return np.diff(part.lines(), prepend=0) > 0  # a record is one
        # Blank lines at the top of a file belong to its first document, later ones to the document before them:
        #     line        (blank)  a      b      (blank)  c      (blank)
        #     text seen   False    False  True   True     True   True     before the line, in this file
        #     begins      True     False  False  False    True   False
        blank = np.logical_and.reduceat(is_white_space(part.data), part.starts)
        after_blank = np.concatenate(([self._after_blank], blank[:-1]))
        text_seen = np.logical_or.accumulate(np.concatenate(([self._text_seen], ~blank[:-1])))
        begins = (_headings(part, after_blank) if self._rule == HEADING else after_blank & ~blank) & text_seen
        begins[0] |= self._at_start
        self._at_start, self._after_blank = False, bool(blank[-1])
        self._text_seen = bool(text_seen[-1] or not blank[-1])
        return begins


def _headings(lines: Segments, after_blank: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # Which lines are headings of the first level: ` = Title = ` after a blank line, or `# Title`.
    # Tables and formulas that WikiText broke into lines look like headings but for the blank line: with it there are 60
    # articles in the test text and 601 in the training text of WikiText-2, which has 60 and 600; without it 62 and 629.
    data = lines.data
    # The spaces at both ends of WikiText's lines may have been stripped.
    starts, ends = lines.starts + (data[lines.starts] == ord(" ")), lines.ends - (data[lines.ends - 1] == ord(" "))
    long = np.flatnonzero(after_blank & (ends - starts >= len("= x =")))
    starts, ends = starts[long], ends[long]
    headings = np.zeros(len(lines), dtype=bool)
    headings[long] = _heading_marks(data[starts], data[starts + 1], data[starts + 2])
    headings[long] &= _heading_marks(data[ends - 1], data[ends - 2], data[ends - 3])
    hashes = np.flatnonzero((data[lines.starts] == ord("#")) & (lines.ends - lines.starts >= len("# x")))
    headings[hashes] |= data[lines.starts[hashes] + 1] == ord(" ")
    return headings


def _heading_marks(outer: NDArray[np.uint8], inner: NDArray[np.uint8], title: NDArray[np.uint8]) -> NDArray[np.bool_]:
    # Where one equals sign and a space stand before (or behind) something that is not an equals sign.
    marks: NDArray[np.bool_] = (outer == ord("=")) & (inner == ord(" ")) & (title != ord("="))
    return marks
