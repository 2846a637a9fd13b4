"""What readers of records yield, and what writers take."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from lmgauge.records.sources import Source


# -- bytes that are text: valid UTF-8 without NUL -----------------------------------------------------------------------
_DECODE_BYTES = 1 << 16  # text is decoded to check it in slices: a line of 100 MB then needs no 400 MB string


def find_problem(data: bytes) -> tuple[int, int]:
    r"""Return the offset of the first NUL or ill-formed UTF-8 byte (-1 if there is none), and the number of code points."""
    # The number of code points is only meaningful when there is no problem.
    nul = data.find(b"\0")
    if data.isascii():
        return nul, len(data)
    view = memoryview(data)
    position = characters = 0
    while position < len(data):
        piece = view[position : position + _DECODE_BYTES]
        try:
            text, used = codecs.utf_8_decode(piece, "strict", position + len(piece) == len(data))
        except UnicodeDecodeError as error:
            invalid = position + error.start
            return (invalid if nul < 0 else min(invalid, nul)), 0
        position += used
        characters += len(text)
    return nul, characters


def what_is_wrong(block: bytes, problem: int) -> str:
    r"""Return what is wrong with a byte that is not text."""
    if block[problem] == 0:
        return "NUL (0x00) is not text; is this UTF-16, or a binary file?"
    if block[problem] == 0xED and block[problem + 1 : problem + 2] >= b"\xa0":
        return "a lone surrogate (U+D800 to U+DFFF, \\ud800 in JSON) is not a character"
    return f"0x{block[problem]:02X} is not valid UTF-8"


def utf8(text: str) -> bytes:
    r"""Return a string as UTF-8 bytes; a lone surrogate becomes ill-formed UTF-8, to be handled like any other."""
    return text.encode("utf-8", "surrogatepass")


BLOCK_BYTES = 1 << 22
"""About how much of a file is parsed at a time, where nobody says."""
MAX_RECORD_BYTES = 1 << 30
"""The longest line, or cell of a Parquet file, that is read: whole corpora that stand on one line are shorter."""
BAD_RECORD, NO_TEXT, TAKEN = "bad record", "no text", "field taken"
Ints = NDArray[np.int64]
Problem = tuple[str, str]
"""What is wrong with a record: one of a few short reasons, and what it is in particular."""


class Fields(NamedTuple):
    """Which fields of a record are read."""

    text: str | None = "text"  # the field or column with the text; None: no text is asked for, only values
    others: tuple[str, ...] = ()  # further ones whose values are asked for
    taken: frozenset[str] = frozenset()  # names that a record must not use, as scores are put there
    whole: bool = True  # whether a record is kept as it stands in the file, to be written back
    lists: bool = False  # whether a field may hold several texts
    quotes: bool = False  # whether cells of TSV may be quoted, as those of CSV are: data frames are often written so
    # for fields without which a record cannot be used, the option that names another one
    options: Mapping[str, str] = {}

    def columns(self, known: Sequence[str]) -> list[str]:
        """Return which columns of a table are read: where options name fields, others than the text may be absent."""
        named = (name for name in (self.text, *self.others) if name is not None)
        return [name for name in named if name in (self.text, *known, *self.options) or not self.options]

    def missing(self, name: str, known: Sequence[str], *, what: str = "field") -> str:
        """Return a sentence about a field or column that is not there, or is not the only one of its name."""
        names = ", ".join(repr(one[:40]) for one in known[:8]) or "none"
        option = f" ({self.options[name]})" if name in self.options else ""
        advice = f": name one of them{option}" if option or what == "column" else ""
        return (
            f"{'several' if name in known else 'no'} {what}{'s' * (name in known)} {name!r}; the {what}s are {names}{advice}"
        )


class RawBlock(NamedTuple):
    """Some records of a file, as they lie there."""

    content: Any  # the bytes of whole lines, or a table
    first: int  # number of the first line or row in the file, from 1
    size: int  # bytes of the file, as it is packed, that it takes; about
    byte: int = 0  # where it begins in the unpacked file
    ends: bool = True  # False if a newline was put behind the last line
    numbers: Ints | None = None  # int64 [records], where they do not follow one another from `first`


@dataclass(frozen=True, slots=True)
class Strings:
    """Texts of records in one block of bytes, one right behind the other; lines have newlines between."""

    data: bytes
    starts: Ints  # int64 [strings]
    ends: Ints  # int64 [strings]
    rows: Ints  # int64 [strings], the record of each, from 0, rising

    @classmethod
    def of(cls, texts: Sequence[bytes | None], rows: Sequence[int] | None = None) -> Strings:
        """Return texts side by side without absent ones; `rows`: the record of each, where it is not one of every record."""
        present = [text for text in texts if text is not None]
        lengths = np.fromiter(map(len, present), np.int64, len(present))
        ends = np.cumsum(lengths)
        owners = [row for row, text in enumerate(texts) if text is not None] if rows is None else rows
        return cls(b"".join(present), ends - lengths, ends, np.array(owners, np.int64))

    @classmethod
    def of_lines(cls, content: bytes) -> Strings:
        """Return the lines of a block, each ended by a newline."""
        ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")).astype(np.int64, copy=False)
        return cls(content, np.concatenate((np.zeros(1, np.int64), ends + 1))[: len(ends)], ends, np.arange(len(ends)))

    @classmethod
    def of_column(cls, column: pa.Array, *, lists: bool = False) -> Strings | None:
        """Return the strings of a column without a Python object for each; None where it holds something else."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = np.arange(len(column))
        if lists and (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            rows, column = pc.list_parent_indices(column).to_numpy().astype(np.int64), column.flatten()
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_null(kind):
            return cls.of([])
        if not is_text(kind):
            return None
        strings = column.cast(pa.large_string())
        if strings.null_count:
            rows = rows[strings.is_valid().to_numpy(zero_copy_only=False)]
            strings = strings.drop_null()
        offsets = np.frombuffer(strings.buffers()[1], np.int64)[strings.offset : strings.offset + len(strings) + 1]
        buffer = strings.buffers()[2]
        # A copy of its own: checked as bytes, and kept after Arrow frees the batch.
        data = b"" if buffer is None or not len(offsets) else memoryview(buffer)[offsets[0] : offsets[-1]].tobytes()
        bounds = offsets - offsets[:1]
        return cls(data, bounds[:-1], bounds[1:], rows)

    def __len__(self) -> int:
        return len(self.rows)

    def text(self, i: int) -> bytes:
        """Return one of the texts."""
        return self.data[self.starts[i] : self.ends[i]]

    def clean_characters(self) -> int | None:
        """Return how many characters the block has if nothing has to be changed in any text, else None."""
        problem, characters = find_problem(self.data)
        if problem >= 0 or b"\r" in self.data:
            return None
        # Two ill-formed texts can join to a well-formed one: then one of them begins with a continuation byte.
        data = np.frombuffer(self.data, np.uint8)
        if bool(np.any((data[self.starts[self.ends > self.starts]] & 0xC0) == 0x80)):
            return None
        return characters


@dataclass(frozen=True)
class Records:
    """Records of a file, parsed."""

    source: str
    numbers: Ints  # int64 [records], the line or row of each in its file, from 1
    texts: Strings
    # by the name of a field that was asked for, the value of each record; None where it has none
    values: Mapping[str, Sequence[Any]]
    problems: Mapping[int, Problem]  # what is wrong with records that have no text, by their places
    raw: Any = None  # each record as it was read: lines, or a table
    is_text: bool = False  # whether they are lines of text, which have no fields
    names: bytes | None = None  # the first line of a table of lines, if it names the columns

    def __len__(self) -> int:
        return len(self.numbers)

    def identifier(self, row: int) -> str:
        """Return where a record is, "file:line"."""
        return f"{self.source}:{self.numbers[row]}"


Column = NDArray[np.float64] | NDArray[np.int64] | Sequence[str | None]


class ScoredRecords(NamedTuple):
    """Records with columns that are put behind their own."""

    records: Records  # as they were read
    # by name, each [records]: figures, NaN where there is none; or plain names, such as that of a bucket
    columns: Mapping[str, Column]
    missing: NDArray[np.bool_]  # bool [records], those without figures


class Row(NamedTuple):
    """A record as a mapping."""

    number: int  # its line or row, from 1
    fields: dict[str, Any]  # strings where the format has no other values


class RecordReader(ABC):
    """Reads a file of records."""

    def __init__(self, source: Source, fields: Fields) -> None:
        self.source, self.fields = source, fields

    @abstractmethod
    def blocks(self, block_bytes: int, *, to_nul: bool = False, keep_bom: bool = False) -> Iterator[RawBlock]:
        """Yield the file in blocks of about `block_bytes`, in order."""
        # to_nul: of lines, none after a block with a NUL; keep_bom: a byte order mark at the start is text.

    @abstractmethod
    def parse(self, block: RawBlock) -> Records:
        """Return the records of a block; a bad one has a problem, and ends nothing."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Yield all records with all fields; a bad one ends it."""

    @abstractmethod
    def raw_record(self, records: Records, row: int) -> bytes | None:
        """Return the bytes of a record as it was read: a line, or the text of a row; None without a text."""

    def bad(self, number: int, detail: object) -> InputError:
        """Return the error for a record."""
        return InputError(f"{self.source.name}:{number}: {detail}")


class RecordWriter(ABC):
    """Writes records to a file, which appears under its name when the `with` block ends without an error."""

    def __init__(self, path: str, form: Format) -> None:
        self._path, self._stack = path, ExitStack()

    @abstractmethod
    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    @abstractmethod
    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
        """Write some of the records, by their places and in their order."""


def name_taken(where: str, name: str) -> InputError:
    """Return the error for a record or table that has a field of the name of a column of scores."""
    remedy = "rename it, or the model, as in NAME=PATH"
    return InputError(f"{where}: there is already a field {name!r} already, which scores would hide: {remedy}")


def is_text(kind: pa.DataType) -> bool:
    """Return True if values of a type are strings."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
