"""Lines, documents, JSONL records and strings, read block by block into segments."""

# Each reader yields `Segments` numbered from zero within its file; `documents.Corpus` puts them in their place. The text
# that comes out does not depend on the block size.

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.json_text import from_json
from lmgauge.text.cleaning import Place, clean_lines, clean_record, find_problem, strip_file_start, supplied_newline
from lmgauge.text.labels import DOCUMENT, GIVEN, GROUP, Names
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import KEEP, Segments, TextReport
from lmgauge.text.streams import Source, read_chunks

Labels = Mapping[str, Sequence[str]]
"""The names of the groups and documents of some records, their ids and given texts; only what is asked for."""

MAX_LINE_BYTES = 1 << 30
"""The longest line, or cell of a Parquet file, that is read: whole corpora that stand on one line are shorter."""

_ZERO = np.zeros(1, dtype=np.int64)
_NO_TARGET = "the text to score after the given text is empty: fill it, or leave the record out (--errors skip)"


@dataclass(frozen=True, slots=True)
class ReadingPass:
    """One pass over a corpus: its options, and the names and counts that it collects."""

    options: ReadingOptions
    # by label ("group", "document", "id", "given", "keep:NAME") the field or column that holds it; only what is asked for
    label_fields: Mapping[str, str]
    groups: Names
    documents: Names  # numbers of the documents that have names
    report: TextReport  # counts what is read and changed

    def leave_out(self, problem: InputError, count: int = 1) -> None:
        """Count records that cannot be used."""
        if self.options.errors != "skip":
            raise problem
        self.report.skipped += count
        self.report.unusable += count
        self.report.first_unusable = self.report.first_unusable or str(problem)


def read_text(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield a text file as its lines or as one document, as `reading.options.unit` says."""
    # Lines are cut at newlines alone, blank lines included, and a missing last newline is supplied.
    if reading.options.unit == "document":
        yield from read_document(source, reading)
        return
    for segments, characters in clean_blocks(source, reading):
        reading.report.characters += characters
        yield segments


def clean_blocks(source: Source, reading: ReadingPass) -> Iterator[tuple[Segments, int]]:
    """Yield blocks of lines and the number of their code points, newlines included."""
    place = Place(source.name)
    keep_bom = reading.options.keep_bom and source.format == "text"
    for raw, newline_supplied in line_blocks(source, reading.options.block_bytes, to_nul=_refuses_nul(reading)):
        block = strip_file_start(raw, place, reading.report, keep_bom) if place.byte == 0 else raw
        if newline_supplied:
            if block == b"\n":  # the file was a byte order mark alone: an empty text
                return
            block = supplied_newline(block, reading.report)
        clean = clean_lines(block, place, reading.options.errors, reading.report)
        data = np.frombuffer(clean.data, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n")).astype(np.int64, copy=False)
        if len(ends):
            starts = np.concatenate((_ZERO, ends[:-1] + 1))
            numbers = None if clean.line_indexes is None else clean.line_indexes + place.line
            first_line = place.line if numbers is None else int(numbers[0])
            yield Segments(data, starts, ends, source.name, first_line, numbers, terminator=1), clean.characters
        place.line += len(ends) if clean.line_indexes is None else block.count(b"\n")
        place.byte = (place.byte or 0) + len(block)


def line_blocks(
    source: Source, block_bytes: int, *, to_nul: bool = False, consumed: Callable[[int], None] = lambda position: None
) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of whole lines of about `block_bytes`, and whether a newline had to be added at the end."""
    waiting: list[bytes] = []
    for chunk in _chunks(source, block_bytes, to_nul=to_nul, consumed=consumed):
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


def _chunks(
    source: Source, block_bytes: int, *, to_nul: bool, consumed: Callable[[int], None] = lambda position: None
) -> Iterator[bytes]:
    # Chunks of a file; none after one with a NUL that will be refused, so that nobody waits for more.
    for chunk in read_chunks(source, block_bytes, consumed):
        yield chunk
        if to_nul and b"\0" in chunk:
            return


def _refuses_nul(reading: ReadingPass) -> bool:
    return reading.options.errors == "fail"


def read_document(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield a text file as one segment, its last newline supplied if missing; nothing for an empty file."""
    place = Place(source.name)
    chunks = list(_chunks(source, reading.options.block_bytes, to_nul=_refuses_nul(reading)))
    complete = not chunks or chunks[-1].endswith(b"\n")
    whole = b"".join(chunks if complete else [*chunks, b"\n"])
    chunks.clear()
    text = strip_file_start(whole, place, reading.report, reading.options.keep_bom)
    if text in (b"", b"\n") and not (complete and text):
        return
    if not complete:
        text = supplied_newline(text, reading.report)
    clean = clean_record(text, place, reading.options.errors, reading.report)
    if clean is not None:
        yield pack_records([clean.data], [1], {}, source.name, reading, clean.characters)


def read_jsonl(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield the records of a JSONL file; a line of nothing but white space is not a record."""

    def parse(raw: bytes, line: int) -> tuple[list[bytes], list[str]]:
        if not raw.strip():
            return [], []
        record = json_record(raw, f"{source.name}:{line}")
        texts = _text_field(record, reading, source.name, line)
        return texts, [_label_field(record, label, reading, source.name, line) for label in reading.label_fields]

    for lines, _ in clean_blocks(source, reading):
        yield from parse_lines(lines, parse, reading)


def parse_lines(
    lines: Segments, parse: Callable[[bytes, int], tuple[list[bytes], list[str]]], reading: ReadingPass, first: int = 0
) -> Iterator[Segments]:
    """Yield lines that hold records as one batch of segments, those that cannot be used left out where that is asked for."""
    # parse: takes the bytes of a line and its number; returns the texts in it, and their labels in the order of
    # `reading.label_fields`.
    texts: list[bytes] = []
    numbers: list[int] = []
    labels: dict[str, list[str]] = {label: [] for label in reading.label_fields}
    for i in range(first, len(lines)):
        try:
            own_texts, own_labels = parse(lines.text(i), lines.line(i))
        except InputError as error:
            reading.leave_out(error)
            continue
        texts += own_texts
        numbers += [lines.line(i)] * len(own_texts)
        for values, value in zip(labels.values(), own_labels, strict=False):
            values += [value] * len(own_texts)
    if texts:
        yield from read_records(texts, numbers, labels, lines.source, reading)


def json_record(raw: bytes | str, where: str, such_as: str = '{"text": "..."}') -> dict[str, Any]:
    """Return the object of a line of JSONL."""
    try:
        record = from_json(raw)
    except json.JSONDecodeError as error:
        wrong = error.msg.removesuffix(" starting at")
        raise InputError(f"{where}: not valid JSON: {wrong} at column {error.colno}") from error
    except ValueError as error:  # a key twice; a number of thousands of digits; brackets thousands deep
        raise InputError(f"{where}: not usable JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"{where}: a JSON object such as {such_as} is needed, not {kind_of(record)}")
    return record


def _text_field(record: dict[str, object], reading: ReadingPass, name: str, line: int) -> list[bytes]:
    value = _field(record, reading.options.field, name, line)
    if isinstance(value, str):
        return [utf8(value)]
    wanted, what = "a string", kind_of(value)
    if reading.options.lists:
        wanted = "a string or a list of strings"
        if isinstance(value, list):
            present = [text for text in value if text is not None]  # null: a reference that is absent
            if present and all(isinstance(text, str) for text in present):
                return [utf8(text) for text in present]
            what = "a list without a string" if not present else "a list with something that is not a string"
    raise InputError(f"{name}:{line}: field {reading.options.field!r} holds {what}, not {wanted}")


def _label_field(record: dict[str, object], label: str, reading: ReadingPass, name: str, line: int) -> str:
    field = reading.label_fields[label]
    value = _field(record, field, name, line, label)
    if label == GIVEN:  # cleaned as the text itself is
        if isinstance(value, str):
            return value
        raise InputError(f"{name}:{line}: the field {field!r} of given text holds {kind_of(value)}, not a string")
    if label.startswith(KEEP) and (value is None or isinstance(value, float)):
        return "" if value is None else json.dumps(value)
    if not isinstance(value, (str, int)):
        raise InputError(f"{name}:{line}: the field {field!r} holds {kind_of(value)}, not a string or an integer")
    if not isinstance(value, str):
        return json.dumps(value) if isinstance(value, bool) else str(value)
    if find_problem(utf8(value))[0] >= 0:
        raise InputError(f"{name}:{line}: the field {field!r} holds NUL or a lone surrogate (\\u0000, \\ud800)")
    return value


def _field(record: dict[str, object], field: str, name: str, line: int, label: str = "field") -> object:
    if field not in record:
        fields = ", ".join(map(repr, list(record)[:8])) or "none"
        raise InputError(f"{name}:{line}: no field {field!r}; the fields are {fields}: {name_one(label)}")
    return record[field]


def name_one(label: str) -> str:
    """Return the end of a message about a field that is not there."""
    return f"name one of them (--{label.partition(':')[0]})" if label else "name one of them"


def kind_of(value: object) -> str:
    """Return what a value of JSON is called in messages."""
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null", str: "a string"}
    return names.get(type(value), "a number")


def utf8(text: str) -> bytes:
    r"""Return a string as UTF-8 bytes; a lone surrogate becomes ill-formed UTF-8, to be handled like any other."""
    return text.encode("utf-8", "surrogatepass")


_PLURALS = {GROUP: "groups", DOCUMENT: "documents", GIVEN: "given texts"}


def read_strings(texts: Iterable[str], labels: Mapping[str, Iterable[str]], reading: ReadingPass) -> Iterator[Segments]:
    """Yield strings in batches of about `block_bytes`."""
    batch: list[bytes] = []
    names: dict[str, list[str]] = {label: [] for label in labels}
    waiting = {label: iter(values) for label, values in labels.items()}
    first, size = 1, 0
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UsageError(f"text {number} is {type(text).__name__}, not a string")
        batch.append(utf8(text))
        size += len(batch[-1])
        for label, values in waiting.items():
            name = next(values, None)
            if name is None:
                raise UsageError(f"there are more texts than {_PLURALS[label]}: text {number} has none")
            if label == GIVEN and not isinstance(name, str):
                raise UsageError(f"the given text of text {number} is {type(name).__name__}, not a string")
            names[label].append(name)
        if size >= reading.options.block_bytes:
            yield from read_records(batch, range(first, number + 1), names, "<strings>", reading)
            batch, names, first, size = [], {label: [] for label in labels}, number + 1, 0
    if batch:
        yield from read_records(batch, range(first, first + len(batch)), names, "<strings>", reading)
    for label, values in waiting.items():
        if next(values, None) is not None:
            raise UsageError(f"there are more {_PLURALS[label]} than texts")


def read_records(
    records: Sequence[bytes], numbers: Sequence[int], labels: Labels, name: str, reading: ReadingPass
) -> Iterator[Segments]:
    """Yield raw records as one batch of segments (none if all are skipped), cleaned as the text of a file would be."""
    before = labels.get(GIVEN)
    if before is None:
        # A newline between them: no two records make something valid, or something to be cleaned, together.
        problem, characters = find_problem(whole := b"\n".join(records))
        if problem < 0 and records and b"\r" not in whole:  # most batches: as fast as one record
            yield pack_records(records, numbers, labels, name, reading, characters - (len(records) - 1))
            return
    names = {label: values for label, values in labels.items() if label != GIVEN}
    texts: list[bytes] = []
    given_texts: list[bytes] | None = None if before is None else []
    valid: list[int] = []
    characters = 0
    for i, raw in enumerate(records):
        place = Place(name, numbers[i], None, "record")
        shown = None if before is None else clean_record(utf8(before[i]), place, reading.options.errors, reading.report)
        if before is not None and shown is None:
            continue
        clean = clean_record(raw, place, reading.options.errors, reading.report)
        if clean is None:
            continue
        if given_texts is not None and shown is not None:
            if not clean.data:
                reading.leave_out(InputError(f"{name}, record {numbers[i]}: {_NO_TARGET}"))
                continue
            given_texts.append(shown.data)
        characters += clean.characters
        texts.append(clean.data)
        valid.append(i)
    if valid:
        valid_names = {label: [values[i] for i in valid] for label, values in names.items()}
        segments = pack_records(texts, [numbers[i] for i in valid], valid_names, name, reading, characters)
        yield segments if given_texts is None else _with_given(segments, texts, given_texts, reading)


def _with_given(segments: Segments, texts: list[bytes], given_texts: list[bytes], reading: ReadingPass) -> Segments:
    # Segments with the text that is given before each: `data` holds given text and target in turn.
    both = b"".join(part for pair in zip(given_texts, texts, strict=True) for part in pair)
    lengths = np.fromiter(map(len, given_texts), dtype=np.int64, count=len(given_texts))
    shift = np.cumsum(lengths)
    reading.report.given_bytes += int(lengths.sum())
    starts = segments.starts + shift
    return replace(
        segments,
        data=np.frombuffer(both, dtype=np.uint8),
        starts=starts,
        ends=segments.ends + shift,
        given_starts=starts - lengths,
        boundary=reading.options.boundary,
    )


def pack_records(
    records: Sequence[bytes], numbers: Sequence[int], labels: Labels, name: str, reading: ReadingPass, characters: int
) -> Segments:
    """Return clean records as segments that share one array; `characters` of them are added to the report."""
    reading.report.characters += characters
    lengths = np.fromiter(map(len, records), dtype=np.int64, count=len(records))
    ends = np.cumsum(lengths)
    data = np.frombuffer(records[0] if len(records) == 1 else b"".join(records), dtype=np.uint8)
    groups = reading.groups.numbers(labels[GROUP]).astype(np.int32) if GROUP in labels else None
    documents = reading.documents.numbers(labels[DOCUMENT]) if DOCUMENT in labels else None
    others = {label: list(values) for label, values in labels.items() if label not in (GROUP, DOCUMENT, GIVEN)}
    lines = gaps(np.array(numbers, dtype=np.int64))
    return Segments(data, ends - lengths, ends, name, numbers[0], lines, groups, documents, others)


def gaps(numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the record numbers, int64 [segments], if some in between are missing or come twice, else None."""
    # gaps([3, 4, 5]), gaps([3, 5]) -> (None, array([3, 5]))
    return None if (np.diff(numbers) == 1).all() else numbers
