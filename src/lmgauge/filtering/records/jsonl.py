"""JSONL as records: the members of an object stay as they were written, and those of its scores are put behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.document_scores import name_taken
from lmgauge.filtering.documents import NO_TEXT, Documents, label_of
from lmgauge.filtering.records.lines import as_text, whole_lines
from lmgauge.filtering.records.packing import writing_packed
from lmgauge.filtering.records.records import RawBlock, RecordFields, Records, ScoredRecords
from lmgauge.text.readers import json_record
from lmgauge.text.streams import Source

BAD_RECORD = "bad record"


class JsonlReader:
    """Reads the objects of a JSONL file; a line of nothing but white space is not a record.

    Args:
        source: the file.
        fields: which of them to read.
    """

    def __init__(self, source: Source, fields: RecordFields) -> None:
        self.source, self._fields = source, fields

    def blocks(self) -> Iterator[RawBlock]:
        """Yield blocks of whole lines; see `RecordReader`."""
        return whole_lines(self.source)

    def parse(self, block: RawBlock) -> Records:
        """Return the records of a block; see `RecordReader`."""
        lines: list[bytes] = []
        numbers: list[int] = []
        texts: list[str | None] = []
        values: dict[str, list[str | None]] = {name: [] for name in self._fields.others}
        problems: dict[int, tuple[str, str]] = {}
        for number, line in enumerate(block.content.split(b"\n")[:-1], start=block.first):
            if not line or line.isspace():
                continue
            record: dict[str, Any] = {}
            text: object = None
            try:
                record = json_record(line, f"line {number}")
                text = self._text(record)
            except InputError as error:
                problems[len(lines)] = BAD_RECORD if not record else NO_TEXT, str(error).removeprefix(f"line {number}: ")
            lines.append(line)
            numbers.append(number)
            texts.append(text if isinstance(text, str) else None)
            for name, column in values.items():
                column.append(label_of(record.get(name)))
        documents = Documents.of(texts, self.source.name, problems)
        return Records(documents, np.array(numbers, np.int64), values, lines, self.source.name)

    def _text(self, record: dict[str, Any]) -> str:
        """Return the text of a record.

        Raises:
            InputError: it has none.
        """
        name = self._fields.text
        if name not in record:
            names = ", ".join(map(repr, list(record)[:8])) or "none"
            raise InputError(f"no field {name!r}; the fields are {names}")
        text = record[name]
        if not isinstance(text, str):
            what = "null" if text is None else f"a {type(text).__name__}"
            raise InputError(f"field {name!r} holds {what}, not a string")
        return text

    def raw_record(self, records: Records, row: int) -> str | None:
        """Return a line; see `RecordReader`."""
        return as_text(records.raw[row])


class JsonlWriter:
    """Writes JSONL: objects as they were, with the members of their scores behind their own; lines of text as objects.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self._path, self._stack = path, ExitStack()

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._stack.enter_context(writing_packed(self._path))
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write records; see `RecordWriter`.

        Raises:
            InputError: a record has a member of the name of a column.
        """
        columns = scored.scores.json_columns(rows)
        _refuse_taken(scored, rows)
        parts: list[bytes] = []
        for row, members in zip(rows.tolist(), columns, strict=True):
            labels = "".join(f", {json.dumps(name)}: {json.dumps(values[row])}" for name, values in scored.labels.items())
            parts += _open_object(scored.records, row), members.encode(), labels.encode(), b"}\n"
        return self._file.write(b"".join(parts))


def _open_object(records: Records, row: int) -> bytes:
    """Return a record as a JSON object to which members can be added."""
    line: bytes = records.raw[row].rstrip()
    if not line.endswith(b"}") or records.is_text:
        text = json.dumps(line.decode(), ensure_ascii=False)
        return f'{{"id": {json.dumps(records.identifier(row))}, "text": {text}, '.encode()
    members = line[:-1].rstrip()
    return members + (b"" if members.endswith(b"{") else b", ")


def _refuse_taken(scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
    """Refuse records that have a member of the name of a column: the new one would hide it.

    Raises:
        InputError: there is one.
    """
    if scored.records.is_text:
        return
    names = [*scored.scores.columns(), *scored.labels]
    quoted = [json.dumps(name).encode() for name in names]
    for row in rows.tolist():
        line = scored.records.raw[row]
        for name, needle in zip(names, quoted, strict=True):
            if needle in line and name in json.loads(line):
                raise name_taken(scored.records.identifier(row), name)
