"""JSONL as records: the members of an object stay as they were written, and those of its scores are put behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.document_scores import name_taken
from lmgauge.filtering.documents import BAD_RECORD, NO_TEXT, Documents, label_of
from lmgauge.filtering.records.lines import ReaderOfLines
from lmgauge.filtering.records.packing import PackedLines
from lmgauge.filtering.records.records import RawBlock, Records, ScoredRecords
from lmgauge.json_text import to_json
from lmgauge.text.cleaning import what_is_wrong
from lmgauge.text.readers import json_record, kind_of

TAKEN = "field taken"


class JsonlReader(ReaderOfLines):
    """Reads the objects of a JSONL file; a line of nothing but white space is not a record."""

    def parse(self, block: RawBlock) -> Records:
        """Return the records of a block, whose content is the bytes of whole lines; see `RecordReader`."""
        # Raises InputError: the first record has a field of the name of a score.
        lines: list[bytes] = []
        numbers: list[int] = []
        texts: list[str | None] = []
        values: dict[str, list[str | None]] = {name: [] for name in self._fields.others}
        problems: dict[int, tuple[str, str]] = {}
        for number, line in enumerate(block.content.split(b"\n")[:-1], start=block.first):
            if not line or line.isspace():
                continue
            record, text, problem = self._read(line)
            if problem is not None:
                if problem[0] == TAKEN and number == 1:  # not a bad record, but a file that was scored before
                    raise name_taken(f"{self.source.name}:1", self._taken(record))
                problems[len(lines)] = problem
            lines.append(line)
            numbers.append(number)
            texts.append(text)
            for name, column in values.items():
                column.append(label_of(record.get(name)))
        documents = Documents.of(texts, self.source.name, problems)
        return Records(documents, np.array(numbers, np.int64), values, lines, self.source.name)

    def _read(self, line: bytes) -> tuple[dict[str, Any], str | None, tuple[str, str] | None]:
        try:
            record = json_record(line.decode(), "")
        except UnicodeDecodeError as error:
            return {}, None, (BAD_RECORD, f"not valid JSON: {what_is_wrong(line, error.start)}")
        except InputError as error:
            return {}, None, (BAD_RECORD, str(error).removeprefix(": "))
        name = self._fields.text
        text = record.get(name)
        if not isinstance(text, str):
            names = ", ".join(map(repr, list(record)[:8])) or "none"
            held = f"field {name!r} holds {kind_of(text)}, not a string"
            return record, None, (NO_TEXT, held if name in record else f"no field {name!r}; the fields are {names}")
        if not self._fields.taken.isdisjoint(record):
            return record, None, (TAKEN, f"there is a field {self._taken(record)!r} already, which scores would hide")
        return record, text, None

    def _taken(self, record: Mapping[str, Any]) -> str:
        return min(self._fields.taken.intersection(record))


class JsonlWriter(PackedLines):
    """Writes JSONL: objects as they were, with the members of their scores behind their own; lines of text as objects."""

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write records, and return their bytes before packing; see `RecordWriter`."""
        columns = scored.scores.json_columns(rows)
        parts: list[bytes] = []
        for row, members in zip(rows.tolist(), columns, strict=True):
            labels = "".join(f", {json.dumps(name)}: {json.dumps(values[row])}" for name, values in scored.labels.items())
            parts += _open_object(scored.records, row), members.encode(), labels.encode(), b"}\n"
        return self.put(parts)


def _open_object(records: Records, row: int) -> bytes:
    line: bytes = records.raw[row]
    if records.is_text:
        text = {"id": records.identifier(row), "text": line.rstrip(b"\r").decode()}
        return to_json(text, indent=None)[:-1].encode() + b", "
    members = line.rstrip()[:-1].rstrip()
    return members + (b"" if members.endswith(b"{") else b", ")
