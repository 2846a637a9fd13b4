"""Segments of text as arrays, the report on how they were read, and the counts that denominators are made of."""

# A segment is what a model scores on its own: a line, a record or a document. Many consecutive ones share one byte
# array, so that a corpus of a million lines is a few hundred objects and compiled loops can run over each.

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.choices import Boundary
from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import counted
from lmgauge.records.records import Records

if TYPE_CHECKING:
    from lmgauge.text.readers import Conversation, Turn

KEEP = "keep:"
"""What the label of a field that is carried along begins with."""
UTF8_LENGTHS = np.array([1] * 0xC0 + [2] * 0x20 + [3] * 0x10 + [4] * 0x10, dtype=np.int64)
"""Bytes of a character in UTF-8, by its first byte."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive segments of a corpus, validated and normalized."""

    # `data` is valid UTF-8 in every segment, without NUL, CRLF read as LF, a byte order mark removed (unless it was to be
    # kept). It may be read-only. Segment i is `data[starts[i]:ends[i]]`, its terminator excluded.
    # A segment may have given text before it, which is shown to a model and not scored: then the segment is the target
    # alone, in every count, span and figure.

    data: NDArray[np.uint8]  # uint8 [bytes], the bytes that hold the segments
    starts: NDArray[np.int64]  # int64 [segments], first byte of each segment
    ends: NDArray[np.int64]  # int64 [segments], one past its last byte
    source: str  # name of the file, for messages
    first_line: int = 1  # line (or record) in `source` of the first segment, counted from 1
    # int64 [segments], line of each segment where lines in between were left out; usually None
    line_numbers: NDArray[np.int64] | None = None
    # int32 [segments], index into `Corpus.group_names`; None when all belong to one group
    groups: NDArray[np.int32] | None = None
    # int64 [segments], number of the document of each segment, counted from 0 over the whole corpus by first appearance;
    # None where documents are not known
    documents: NDArray[np.int64] | None = None
    # what its source says of each segment, as far as it is asked for: under "id" its id, under "keep:NAME" a field that is
    # carried along
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    terminator: int = 0
    first: int = 0  # index of the first segment in reading order over the whole corpus
    # int64 [segments], where the given text of each begins: that of segment i is `data[given_starts[i]:starts[i]]`, and may
    # be empty; None where no text is given
    given_starts: NDArray[np.int64] | None = None
    boundary: Boundary = "joint"  # how given text and target are cut into tokens: as one text, or each on its own
    # where they are to be written back, the records that they are from, and int64 [segments], the place of each there
    records: tuple[Records, NDArray[np.int64]] | None = None
    turns: Sequence[Turn] | None = None  # the message that each is the content of; None where they are no messages

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, i: int) -> bytes:
        """Return a segment as UTF-8 bytes, without its terminator."""
        return self.data[self.starts[i] : self.ends[i]].tobytes()

    def given_text(self, i: int) -> bytes:
        """Return the text that is given before a segment, as UTF-8 bytes; empty where there is none."""
        return b"" if self.given_starts is None else self.data[self.given_starts[i] : self.starts[i]].tobytes()

    def given_lengths(self) -> NDArray[np.int64]:
        """Return how many bytes are given before each segment, int64 [segments]."""
        return np.zeros(len(self), np.int64) if self.given_starts is None else self.starts - self.given_starts

    def place(self, i: int) -> str:
        """Return where a segment is, for messages."""
        return f"{self.source}, {'line' if self.terminator else 'record'} {self.line(i)}"

    def byte_count(self) -> int:
        """Return the number of source bytes, terminators included and given text not."""
        return int((self.ends - self.starts).sum()) + self.terminator * len(self)

    def line(self, i: int) -> int:
        """Return the line (record) number of segment `i` in `source`, counted from 1."""
        return self.first_line + i if self.line_numbers is None else int(self.line_numbers[i])

    def lines(self) -> NDArray[np.int64]:
        """Return the line (record) number of each segment in `source`, int64 [segments]."""
        return np.arange(len(self)) + self.first_line if self.line_numbers is None else self.line_numbers

    def part(self, begin: int, end: int) -> Segments:
        """Return consecutive segments as a block of their own, with the text that is given before each."""
        # Nothing is copied.
        if (begin, end) == (0, len(self)):
            return self
        low = int(self.starts[begin] if self.given_starts is None else self.given_starts[begin])
        rows = slice(begin, end)
        return replace(
            self._with_labels(rows),
            data=self.data[low : int(self.ends[end - 1]) + self.terminator],
            starts=self.starts[rows] - low,
            ends=self.ends[rows] - low,
            first_line=self.line(begin),
            line_numbers=None if self.line_numbers is None else self.line_numbers[rows],
            first=self.first + begin,
            given_starts=None if self.given_starts is None else self.given_starts[rows] - low,
        )

    def where(self, chosen: NDArray[np.bool_]) -> Segments:
        """Return some segments as a block of their own, one right behind the other, each with its terminator."""
        # chosen: bool [segments], those to return; one at least.
        if self.given_starts is not None:
            raise UsageError("segments with given text cannot be chosen: leave out given")
        rows = np.flatnonzero(chosen)
        lengths = self.ends[rows] - self.starts[rows] + self.terminator
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        # Segments at 0-2 and 6-9: lengths [2, 3], bounds [0, 2, 5] -> places [0, 1, 6, 7, 8].
        places = np.arange(bounds[-1]) + np.repeat(self.starts[rows] - bounds[:-1], lengths)
        return replace(
            self._with_labels(rows),
            data=self.data[places],
            starts=bounds[:-1],
            ends=bounds[1:] - self.terminator,
            first_line=self.line(int(rows[0])),
            line_numbers=self.lines()[rows],
        )

    def _with_labels(self, rows: slice | NDArray[np.int64]) -> Segments:
        # What is said of some segments, before their text.
        groups = None if self.groups is None else self.groups[rows]
        documents = None if self.documents is None else self.documents[rows]
        places = range(len(self))[rows] if isinstance(rows, slice) else rows.tolist()
        labels = {label: [values[i] for i in places] for label, values in self.labels.items()}
        turns = None if self.turns is None else [self.turns[i] for i in places]
        return replace(self, groups=groups, documents=documents, labels=labels, turns=turns)

    def alone(self) -> Segments:
        """Return the segments without the text that is given before them, one right behind the other."""
        if self.given_starts is None:
            return self
        ends = np.cumsum(self.ends - self.starts)
        data = b"".join(self.text(i) for i in range(len(self)))
        starts = ends - (self.ends - self.starts)
        return replace(self, data=np.frombuffer(data, np.uint8), starts=starts, ends=ends, given_starts=None)

    def as_lines(self, chosen: NDArray[np.bool_], *, records: bool) -> bytes:
        """Return some segments as the lines of a file."""
        # chosen: bool [segments], those to return.
        # -> UTF-8 bytes, each line with its newline.
        if not records:
            # chosen [1, 0], lengths [2, 3] -> bytes [1, 1, 0, 0, 0]
            return self.data[np.repeat(chosen, self.ends - self.starts + self.terminator)].tobytes()
        texts = (self.text(i).decode() for i in np.flatnonzero(chosen).tolist())
        return "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()

    def hash_into(self, update: Callable[[bytes | memoryview], None]) -> None:
        """Hash segments: lines as their bytes with newlines, records as 8-byte little-endian length and bytes."""
        # Neither depends on how the text was cut into blocks; the length keeps ["ab", "c"] apart from ["a", "bc"]. Before a
        # record with given text stand the name of the boundary, which no plain text has there, and the given text with its
        # length. Of turns: each conversation with its length, and which of its messages they are.
        view = self.data.data
        if self.terminator:
            update(view)
            return
        last: Conversation | None = None
        for conversation, at in self.turns or ():
            if conversation is not last:
                last, content = conversation, conversation.to_json()
                update(struct.pack("<q", len(content)) + content)
            update(struct.pack("<q", at))
        if self.turns is not None:
            return
        bounds = zip(self.starts.tolist(), self.ends.tolist(), self.given_lengths().tolist(), strict=True)
        for start, end, before in cast(Iterable[tuple[int, int, int]], bounds):
            if self.given_starts is not None:
                update(self.boundary.encode() + struct.pack("<q", before))
                update(view[start - before : start])
            update(struct.pack("<q", end - start))
            update(view[start:end])

    @property
    def ids(self) -> list[str] | None:
        """Return the id that its source gave each segment; None where no field with ids is named."""
        return self.labels.get("id")

    def kept(self, rows: NDArray[np.int64]) -> dict[str, list[str]]:
        """Return the fields that are carried along, by name: of each row that of its segment."""
        # rows: int64 [rows], the segment of each, counted from 0 in this object.
        carried = {label[len(KEEP) :]: values for label, values in self.labels.items() if label.startswith(KEEP)}
        return {name: [values[row] for row in rows.tolist()] for name, values in carried.items()}

    def identifiers(self) -> list[str]:
        """Return the id of each segment, "file:line" where its source gave none."""
        return [f"{self.source}:{line}" for line in self.lines().tolist()] if self.ids is None else self.ids


@dataclass(slots=True)
class TextReport:
    """What was read, and what was changed while reading: nothing is changed silently."""

    segments: int = 0
    bytes: int = 0  # bytes of the normalized text, terminators included; given text is not counted here
    characters: int = 0  # Unicode code points of it, terminators included
    files: int = 0
    crlf_lines: int = 0  # line ends CRLF read as LF
    lone_returns: int = 0  # carriage returns without a newline behind them
    bom: int = 0  # files whose UTF-8 byte order mark was dropped
    bom_kept: int = 0  # files whose UTF-8 byte order mark is part of the text
    replaced: int = 0  # bytes replaced by U+FFFD (`errors="replace"`)
    skipped: int = 0
    unusable: int = 0  # those of them that are records without a text: bad JSON, no such field, null
    first_unusable: str = ""  # what is wrong with the first of these, and where it is
    missing_final_newline: int = 0  # files whose last newline was supplied
    sha256: str = ""  # hexadecimal digest of the normalized content, empty until the text was read to its end
    documents_by: str = "unknown"
    documents: int = 0  # how many there are; 0 if unknown
    part: str = ""  # how many documents of how many the text is a sample of, as in "200/5000"; empty if it is none
    joined: int = 0  # joined, joined_by: how many segments were joined into one, and by what; 0 if none were
    joined_by: str = ""
    repeated_ids: int = 0  # records with the id of an earlier one
    given_bytes: int = 0  # bytes of given text, which is shown and not scored
    boundary: Boundary | None = None  # how given text is cut from the segments; None where no text is given
    turns_with_reasoning: int = 0  # turns to be scored whose thoughts are another member of the message
    turns_without_content: int = 0  # turns to be scored that call tools and say nothing
    without_turns: int = 0  # conversations in which nobody speaks who is to be scored

    @property
    def fingerprint(self) -> str:
        """Return the first six hexadecimal digits of `sha256`, as signatures print them."""
        if not self.sha256:
            raise UsageError("the fingerprint of a text is known once it was read to its end: iterate over it first")
        return self.sha256[:6]

    def left_out(self) -> list[str]:
        """Return one sentence for each thing that was left out while reading; empty if nothing was."""
        bad = f"{counted(self.skipped - self.unusable, 'segment')} left out: not valid text"
        unusable = f"{counted(self.unusable, 'record')} left out: no usable text; the first: {self.first_unusable}"
        return [bad] * (self.skipped > self.unusable) + [unusable] * (self.unusable > 0)

    def notes(self) -> list[str]:
        """Return one sentence for each thing that was left out or changed while reading; empty if nothing was."""
        lines = self.left_out()
        if self.part:
            lines.append(f"a sample, {self.part} documents of the text: these figures are of the sample alone")
        if self.crlf_lines:
            lines.append(f"{self.crlf_lines:,} CRLF line ends read as LF")
        if self.lone_returns:
            lines.append(
                f"{counted(self.lone_returns, 'carriage return')} alone: white space, no line end; if they end lines, as "
                r"on old Macs, convert the file, e.g. tr '\r' '\n'"
            )
        if self.bom:
            lines.append(f"byte order mark dropped from {self.bom:,} file{'s' if self.bom > 1 else ''}")
        if self.bom_kept:
            lines.append(
                "a byte order mark at the start is counted as text, as sacreBLEU and jiwer count it; "
                r"remove it with sed -i '1s/^\xEF\xBB\xBF//'"
            )
        if self.missing_final_newline:
            lines.append(f"final newline supplied for {self.missing_final_newline:,} of {self.files:,} files")
        if self.replaced:
            lines.append(f"{self.replaced:,} bytes that are not valid text replaced by U+FFFD")
        if self.repeated_ids:
            repeated = counted(self.repeated_ids, "record")
            lines.append(f"{repeated} with the id of an earlier one: tell rows apart by segment, not by id")
        if self.boundary is not None:
            lines.append(
                f"{self.given_bytes:,} bytes of given text are shown but not scored or counted; it is cut into "
                f"tokens {_CUT[self.boundary]}"
            )
        if self.turns_without_content:
            lines.append(f"{counted(self.turns_without_content, 'turn')} without content (tool calls): shown, not scored")
        if self.turns_with_reasoning:
            lines.append(f"{counted(self.turns_with_reasoning, 'turn')} with reasoning in a field of its own: not scored")
        if self.without_turns:
            lines.append(f"{counted(self.without_turns, 'conversation')} without a turn of the roles that are scored")
        if self.joined:
            by = {"\n": "a newline", "\n\n": "a blank line"}.get(self.joined_by, repr(self.joined_by))
            lines.append(f"{counted(self.joined, 'segment')} joined by {by} into one text")
        return lines


_CUT: dict[Boundary, str] = {"joint": "together with what follows it", "apart": "on its own"}


def is_white_space(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which bytes are ASCII white space: space, tab, newline, vertical tab, form feed, carriage return.

    >>> is_white_space(np.frombuffer(b"a b", np.uint8))
    array([False,  True, False])
    """
    # data: uint8 [bytes].
    # -> bool [bytes].
    # 9..13 are \t \n \v \f \r; the difference wraps around, so one comparison checks both ends of the range.
    white: NDArray[np.bool_] = (data == 32) | ((data - np.uint8(9)) < 5)
    return white


def is_character_start(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which bytes of valid UTF-8 begin a code point, that is, are not 0b10xxxxxx (RFC 3629, section 3).

    >>> is_character_start(np.frombuffer("für".encode(), np.uint8))
    array([ True,  True, False,  True])
    """
    # data: uint8 [bytes].
    # -> bool [bytes].
    starts: NDArray[np.bool_] = (data & 0xC0) != 0x80
    return starts


def count_text(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], terminator: int
) -> tuple[int, int]:
    """Count the words and the code points of segments."""
    # data: uint8 [bytes], valid UTF-8 in every segment; starts: int64 [segments]; ends: int64 [segments].
    # -> the number of words, maximal runs of bytes that are not ASCII white space within a segment, and of code points.
    # count_text(np.frombuffer("für uns".encode(), np.uint8), [0], [8], 0) -> (2, 7)
    words, characters = _native.count_text(data, starts, ends)
    return words, characters + terminator * len(starts)


# -- White space between tokens: which characters it is made of -------------------------------------------------------

BETWEEN_WORDS = " \t\n\v\f\r"
"""ASCII white space, which no token of a tokenizer of words has in it."""
WHITE_SPACE = (
    f"{BETWEEN_WORDS}\x1c\x1d\x1e\x1f\x85\xa0\u1680{''.join(map(chr, range(0x2000, 0x200B)))}\u2028\u2029\u202f\u205f\u3000"
)
"""All characters of white space in Unicode, which some tokenizers drop between words."""
_ASCII = 0x80


_LONGER = tuple(character.encode() for character in WHITE_SPACE if len(character.encode()) > 1)


def is_unicode_white_space(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which bytes are of white space, as `WHITE_SPACE` has it."""
    # data: uint8 [bytes], valid UTF-8.
    # -> bool [bytes], all bytes of a character alike.
    # is_unicode_white_space(np.frombuffer("a\u00a0b".encode(), np.uint8)) -> [False, True, True, False]
    white = is_white_space(data) | ((data - np.uint8(0x1C)) < 4)
    if not len(data) or data.max() < _ASCII:
        return white
    for lead in sorted({character[0] for character in _LONGER}):
        at = np.flatnonzero(data == lead)
        followed_by = [data[np.minimum(at + i, len(data) - 1)] for i in range(1, 3)]
        for character in _LONGER:
            if character[0] == lead:
                here = at[np.logical_and.reduce([a == b for a, b in zip(followed_by, character[1:], strict=False)])]
                for i in range(len(character)):
                    white[here + i] = True
    return white
