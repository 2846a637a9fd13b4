"""What readers of records yield and writers take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.filtering.document_scores import DocumentColumns
from lmgauge.filtering.documents import Documents
from lmgauge.text.streams import Source

BLOCK_BYTES = 1 << 22
"""About how much of a file is parsed, scored and written at a time."""


@dataclass(frozen=True)
class RecordFields:
    """Which fields of a record are read.

    Attributes:
        text: the field or column with the text.
        others: further ones whose values are asked for.
        taken: names that a record must not use, as scores are put there.
    """

    text: str = "text"
    others: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RawBlock:
    """Some records of a file, as they lie there."""

    content: Any  # the bytes of whole lines, or a table
    first: int  # number of the first record (line, row) in the file, from 1
    size: int  # bytes of the file, as it is packed, that it takes; about


@dataclass(frozen=True)
class Records:
    """Records of a file, parsed."""

    documents: Documents  # their texts; what is wrong with a record stands in its problems
    numbers: NDArray[np.int64]  # int64 [records], the line or row of each in its file, from 1
    # by the name of a field that was asked for, the value of each record; None where it has none
    values: Mapping[str, list[str | None]]
    raw: Any  # each record as it was read: lines, or a table
    source: str
    is_text: bool = False  # whether they are lines of text, which have no fields
    names: bytes | None = None  # the first line of a table of lines, if it names the columns

    def __len__(self) -> int:
        return self.documents.count

    def identifier(self, row: int) -> str:
        """Return where a record is, "file:line"."""
        return f"{self.source}:{self.numbers[row]}"


@dataclass(frozen=True)
class ScoredRecords:
    """Records with what models make of them."""

    records: Records  # as they were read
    scores: DocumentColumns
    # further columns of strings, by name, each [records], such as the bucket
    labels: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


class RecordReader(Protocol):
    """Reads a file of records."""

    source: Source

    def blocks(self) -> Iterator[RawBlock]:
        """Yield the file in blocks.

        Raises:
            InputError: the file cannot be read.
        """

    def parse(self, block: RawBlock) -> Records:
        """Return the records of a block; a bad one has a problem, and ends nothing.

        Args:
            block: the bytes of whole lines, or a table.

        Raises:
            InputError: the file is not what its form says.
        """

    def raw_record(self, records: Records, row: int) -> bytes | None:
        """Return the bytes of a record as it was read, to be put aside: a line, or the text of a row; None without a text.

        Args:
            records: parsed.
            row: the record, from 0.
        """


class RecordWriter(Protocol):
    """Writes records to a file, which appears under its name when the `with` block ends without an error."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> bool | None: ...

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write some of the records, in their order; return their size in bytes.

        Args:
            scored: records and their scores.
            rows: intp [rows], which of them, from 0.

        Raises:
            OutputError: the file cannot be written.
        """
