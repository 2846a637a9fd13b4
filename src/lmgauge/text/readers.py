"""Lines, documents, JSONL and Parquet records, read block by block into segments.

Each reader yields `Segments` numbered from zero within its file; `documents.Corpus` puts them in their place. The
text that comes out does not depend on the block size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.text.cleaning import Place, clean_lines, clean_record, strip_file_start
from lmgauge.text.segments import Segments, TextReport
from lmgauge.text.streams import Source, read_chunks

MAX_LINE_BYTES = 1 << 30
"""The longest line, or cell of a Parquet file, that is read: whole corpora that stand on one line are shorter."""

GroupCode = Callable[[str], int]
_ZERO = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Reading:
    """The choices of one pass over a corpus, and what it finds out.

    Attributes:
        field: name of the field or column that holds the text of a record.
        group_field: name of the field or column that holds the group of a record, or None.
        group_code: gives the code of a group by its name, a new one for a new name.
        errors: "fail", "replace" or "skip".
        block_bytes: about how many bytes to hold at a time.
        report: counts what is read and changed.
        lists: a JSONL field may also hold a list of strings; each is a segment then, with its record's line number.
    """

    field: str
    group_field: str | None
    group_code: GroupCode
    errors: str
    block_bytes: int
    report: TextReport
    lists: bool = False


def read_lines(source: Source, reading: Reading) -> Iterator[Segments]:
    """Yield the lines of a text file: cut at newlines alone, blank lines included, a missing last newline supplied."""
    for segments, characters in clean_blocks(source, reading):
        reading.report.characters += characters
        yield segments


def clean_blocks(source: Source, reading: Reading) -> Iterator[tuple[Segments, int]]:
    """Yield blocks of lines and their code points, newlines included."""
    place = Place(source.name)
    for raw, newline_supplied in _line_blocks(source, reading):
        block = strip_file_start(raw, place, reading.report) if place.byte == 0 else raw
        if newline_supplied:
            if block == b"\n":  # the file was a byte order mark alone: an empty text
                return
            reading.report.missing_final_newline += 1
        clean = clean_lines(block, place, reading.errors, reading.report)
        data = np.frombuffer(clean.data, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n")).astype(np.int64, copy=False)
        if len(ends):
            starts = np.concatenate((_ZERO, ends[:-1] + 1))
            numbers = None if clean.kept is None else clean.kept + place.line
            first_line = place.line if numbers is None else int(numbers[0])
            yield Segments(data, starts, ends, 1, 0, None, source.name, first_line, numbers), clean.characters
        place.line += len(ends) if clean.kept is None else block.count(b"\n")
        place.byte = (place.byte or 0) + len(block)


def _line_blocks(source: Source, reading: Reading) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of whole lines of about `block_bytes`, and whether a newline had to be added at the end.

    Raises:
        InputError: a line is longer than `MAX_LINE_BYTES`.
    """
    waiting: list[bytes] = []
    for chunk in _chunks_to_nul(source, reading):
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:  # a line longer than a chunk: keep the pieces, join them once
            waiting.append(chunk)
            if sum(map(len, waiting)) > MAX_LINE_BYTES:
                raise InputError(
                    f"{source.name}: there is no newline within {MAX_LINE_BYTES:,} bytes, and a line is read as a whole: "
                    "is this a text of lines? Put newlines in it, e.g. with fold -s"
                )
            continue
        block = b"".join([*waiting, memoryview(chunk)[:cut]])
        waiting = [chunk[cut:]] if cut < len(chunk) else []
        yield block, False
    if waiting:
        last = b"".join([*waiting, b"\n"])
        waiting.clear()
        yield last, True


def _chunks_to_nul(source: Source, reading: Reading) -> Iterator[bytes]:
    """Yield the chunks of a file; none after one with a NUL that will be refused, so that nobody waits for more."""
    for chunk in read_chunks(source, reading.block_bytes):
        yield chunk
        if reading.errors == "fail" and b"\0" in chunk:
            return


def read_document(source: Source, reading: Reading) -> Iterator[Segments]:
    """Yield a text file as one segment, its last newline supplied if missing; nothing for an empty file."""
    place = Place(source.name)
    chunks = list(_chunks_to_nul(source, reading))
    complete = not chunks or chunks[-1].endswith(b"\n")
    whole = b"".join(chunks if complete else [*chunks, b"\n"])
    chunks.clear()
    text = strip_file_start(whole, place, reading.report)
    if text in (b"", b"\n") and not (complete and text):
        return
    reading.report.missing_final_newline += not complete
    clean = clean_record(text, place, reading.errors, reading.report)
    if clean is not None:
        yield pack_records([clean.data], [1], None, source.name, reading, clean.characters)


def read_jsonl(source: Source, reading: Reading) -> Iterator[Segments]:
    """Yield the records of a JSONL file; lines of nothing but white space are no records."""
    for lines, _ in clean_blocks(source, reading):
        texts: list[bytes] = []
        numbers: list[int] = []
        codes: list[int] = []
        for i in range(len(lines)):
            raw = lines.text(i)
            if not raw.strip():
                continue
            record = _parse_json(raw, source.name, lines.line(i))
            found = _text_field(record, reading, source.name, lines.line(i))
            texts.extend(found)
            numbers.extend([lines.line(i)] * len(found))
            if reading.group_field is not None:
                code = reading.group_code(_group_field(record, reading.group_field, source.name, numbers[-1]))
                codes.extend([code] * len(found))
        if texts:
            yield from read_records(texts, numbers, codes or None, source.name, reading)


def _parse_json(raw: bytes, name: str, line: int) -> dict[str, object]:
    try:
        record = json.loads(raw)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{line}: not valid JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets thousands deep
        raise InputError(f"{name}:{line}: not usable JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f'{name}:{line}: a JSON object such as {{"text": "..."}} is needed, not {_kind(record)}')
    return record


def _text_field(record: dict[str, object], reading: Reading, name: str, line: int) -> list[bytes]:
    value = _field(record, reading.field, name, line)
    if isinstance(value, str):
        return [utf8(value)]
    wanted, what = "a string", _kind(value)
    if reading.lists:
        wanted = "a string or a list of strings"
        if isinstance(value, list):
            present = [text for text in value if text is not None]  # null: a reference that is absent
            if present and all(isinstance(text, str) for text in present):
                return [utf8(text) for text in present]
            what = "a list without a string" if not present else "a list with something that is no string"
    raise InputError(f"{name}:{line}: field {reading.field!r} holds {what}, not {wanted}")


def _group_field(record: dict[str, object], field: str, name: str, line: int) -> str:
    value = _field(record, field, name, line)
    if not isinstance(value, (str, int)):
        raise InputError(f"{name}:{line}: the field {field!r} holds {_kind(value)}, not a string or an integer")
    return value if isinstance(value, str) else json.dumps(value)


def _field(record: dict[str, object], field: str, name: str, line: int) -> object:
    if field not in record:
        found = ", ".join(map(repr, list(record)[:8])) or "none"
        raise InputError(f"{name}:{line}: no field {field!r}; the fields are {found}: name one of them")
    return record[field]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null", str: "a string"}
    return names.get(type(value), "a number")


def utf8(text: str) -> bytes:
    """Return a string as UTF-8; a lone surrogate becomes ill-formed UTF-8, to be handled like any other."""
    return text.encode("utf-8", "surrogatepass")


def read_records(
    records: Iterable[bytes], numbers: Sequence[int], codes: Sequence[int] | None, name: str, reading: Reading
) -> Iterator[Segments]:
    """Yield raw records as one batch of segments (none if all are skipped), cleaned as the text of a file would be.

    Args:
        records: the bytes of each.
        numbers: line or record number of each.
        codes: group code of each, or None.
        name: where they are from, for messages.
        reading: the choices made.
    """
    kept: list[bytes] = []
    kept_numbers: list[int] = []
    kept_codes: list[int] = []
    characters = 0
    for i, raw in enumerate(records):
        clean = clean_record(raw, Place(name, numbers[i], None, "record"), reading.errors, reading.report)
        if clean is None:
            continue
        characters += clean.characters
        kept.append(clean.data)
        kept_numbers.append(numbers[i])
        if codes is not None:
            kept_codes.append(codes[i])
    if kept:
        yield pack_records(kept, kept_numbers, kept_codes if codes is not None else None, name, reading, characters)


def pack_records(
    records: list[bytes], numbers: list[int], codes: list[int] | None, name: str, reading: Reading, characters: int
) -> Segments:
    """Return clean records as segments that share one array; `characters` of them are added to the report."""
    reading.report.characters += characters
    lengths = np.fromiter(map(len, records), dtype=np.int64, count=len(records))
    ends = np.cumsum(lengths)
    data = np.frombuffer(records[0] if len(records) == 1 else b"".join(records), dtype=np.uint8)
    groups = None if codes is None else np.array(codes, dtype=np.int32)
    return Segments(data, ends - lengths, ends, 0, 0, groups, name, numbers[0], _gaps(numbers))


def _gaps(numbers: list[int]) -> NDArray[np.int64] | None:
    """Return the record numbers as an array if some in between are missing or come twice, else None."""
    values = np.array(numbers, dtype=np.int64)
    return None if (np.diff(values) == 1).all() else values
