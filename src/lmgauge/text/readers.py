"""Lines, documents, records, conversations and strings, read block by block into segments.

Messages of conversations are read as OpenAI and TRL write them (`role`, `content`) and as ShareGPT does (`from`, `value`). A
turn's text is the content of its message; what a chat template puts around it is the model's business.
"""

# Each reader yields `Segments` numbered from zero within its file; `documents.Corpus` puts them in their place. The text
# that comes out does not depend on the block size.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lmgauge.base.choices import ROLES
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.json_text import from_json
from lmgauge.records.formats import reader_of
from lmgauge.records.jsonl import kind_of
from lmgauge.records.lines import UTF8_BOM, ReaderOfLines, bom_bytes, file_chunks, line_blocks
from lmgauge.records.lines import Reader as LineReader
from lmgauge.records.records import TAKEN, Fields, Ints, RawBlock, Records, Strings, find_problem, utf8, what_is_wrong
from lmgauge.records.sources import Source
from lmgauge.text.cleaning import CleanBlock, Place, clean_lines, clean_record, supplied_newline
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segment_metadata import DOCUMENT, GIVEN, GROUP, ROLE, Names
from lmgauge.text.segments import KEEP, Segments, TextReport

_OTHER_NAMES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "observation": "tool"}
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Members of a message that templates take for what was thought before the content."""
_KEYS = {"from": "role", "value": "content"}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages as chat templates take them.

    Attributes:
        messages: of each "role", "content" (None where it has none) and its other members as they are, such as "tool_calls".
        tools: what the assistant can call, as the record describes it; None where it does not.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[Any, ...] | None = None

    def to_json(self) -> bytes:
        """Return the conversation as JSON, the same for the same content."""
        return utf8(json.dumps([self.messages, self.tools], ensure_ascii=False, sort_keys=True, default=str))

    def cleaned(self, errors: str, report: TextReport) -> Conversation:
        """Return the conversation with all of its strings cleaned, as the text of a file is."""
        text = self.to_json()
        if b"\\r" not in text and b"\\u0000" not in text and find_problem(text)[0] < 0:
            return self

        def clean(value: Any) -> Any:
            if isinstance(value, str):
                data = utf8(value)
                if errors != "replace" and (problem := find_problem(data)[0]) >= 0:
                    raise InputError(f"{what_is_wrong(data, problem)}: convert the file, or choose --errors replace")
                return clean_lines(data, Place(""), errors, report).data.decode()
            if isinstance(value, Mapping):
                return {clean(name): clean(member) for name, member in value.items()}
            return [clean(item) for item in value] if isinstance(value, (list, tuple)) else value

        return Conversation(tuple(clean(self.messages)), None if self.tools is None else tuple(clean(self.tools)))

    def turns(self, roles: Sequence[str], report: TextReport) -> list[Turn]:
        """Return the turns of some roles that have content; the report counts those that have none."""
        own = [Turn(self, at) for at, message in enumerate(self.messages) if message["role"] in roles]
        turns = [turn for turn in own if turn.message["content"] is not None]
        report.turns_without_content += len(own) - len(turns)
        report.turns_with_reasoning += sum(any(turn.message.get(name) for name in REASONING) for turn in turns)
        report.without_turns += not own
        return turns


class Turn(NamedTuple):
    """A message of a conversation whose content is a segment."""

    conversation: Conversation
    at: int  # index of the message

    @property
    def message(self) -> dict[str, Any]:
        """The message itself."""
        return self.conversation.messages[self.at]


def lone_turns(segments: Segments, role: str) -> list[Turn]:
    """Return segments as messages, each in a conversation of its own."""
    texts = (segments.text(i).decode() for i in range(len(segments)))
    return [Turn(Conversation(({"role": role, "content": text},)), 0) for text in texts]


def conversation_of(value: object, tools: object = None) -> Conversation:
    """Return the conversation that a field holds: messages, an object of them and of tools, or JSON of either.

    Raises:
        InputError: it is none, or has none; without the place, which the caller knows.
    """
    held = _parsed(value)
    if isinstance(held, dict):
        tools, held = held.get("tools", tools), _parsed(held.get("messages", held))
    if not isinstance(held, list):
        raise InputError(f"{kind_of(held)} is not a list of messages")
    if not held:
        raise InputError("a conversation without messages")
    tools = _parsed(tools) or None
    if tools is not None and not isinstance(tools, list):
        raise InputError(f"tools are a list, not {kind_of(tools)}")
    messages = tuple(_message(message, f"message {number}") for number, message in enumerate(held, 1))
    return Conversation(messages, tuple(tools) if tools else None)


def _parsed(value: Any) -> Any:
    try:
        return from_json(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InputError(f"not messages, nor JSON: {error}") from error


def _message(value: object, name: str) -> dict[str, Any]:
    # A message as templates take it. A member that is null is absent: tables have all members that any row has.
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {kind_of(value)}, not an object with a role and content")
    message = {key: member for key, member in value.items() if member is not None}
    if "role" not in message:
        message = {_KEYS.get(key, key): member for key, member in message.items()}
    role = message.get("role")
    role = _OTHER_NAMES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        has = "no role" if role is None else f"the role {str(role)[:40]!r}"
        raise InputError(f"{name} has {has}; roles are {', '.join(ROLES)}")
    content = message.get("content")
    if content is None and not any(message.get(key) for key in ("tool_calls", "function_call")):
        raise InputError(f"{name} has no content")
    if not isinstance(content, (str, type(None))):
        raise InputError(f"the content of {name} is {kind_of(content)}, not a string")
    return message | {"role": role, "content": content}


def as_json(value: object) -> str:
    """Return what stands for a conversation in Python as JSON."""
    return json.dumps(asdict(value) if isinstance(value, Conversation) else value, default=list)


_TOOLS = "tools"
"""The field of a record with what the assistant of its conversation can call, where it has one."""
Labels = Mapping[str, Sequence[str]]
"""The names of the groups and documents of some records, their ids and given texts; only what is asked for."""

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
    # names that records must not have, where segments carry the records that they are of, to be written back; else None
    taken: frozenset[str] | None = None

    def leave_out(self, problem: InputError) -> None:
        """Count a record that cannot be used."""
        if self.options.errors != "skip":
            raise problem
        self.report.skipped += 1
        self.report.unusable += 1
        self.report.first_unusable = self.report.first_unusable or str(problem)

    @property
    def fields(self) -> Fields:
        """Return the fields of records that are read."""
        chat = self.options.chat
        text, more, option = (self.options.field, (), "--field") if chat is None else (None, (chat, _TOOLS), "--chat")
        options = {text or str(chat): option}
        for label, name in self.label_fields.items():
            options.setdefault(name, f"--{label.partition(':')[0]}")
        others, whole = tuple(dict.fromkeys((*self.label_fields.values(), *more))), self.taken is not None
        return Fields(text, others, self.taken or frozenset(), whole, self.options.lists, options=options)


def read_file(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield a file as its records, its lines or as one document, as its format and `reading.options.unit` say."""
    if source.format == "text":
        yield from (read_document if reading.options.unit == "document" else read_lines)(source, reading)
        return
    reader = reader_of(source, reading.fields)
    for block in reader.blocks(reading.options.block_bytes, to_nul=_refuses_nul(reading)):
        if isinstance(reader, ReaderOfLines):
            clean = _clean_block(block, reader, reading)
            numbers = None if clean.line_indexes is None else reader.numbered(block)[1][clean.line_indexes]
            block = block._replace(content=clean.data, numbers=numbers)
        yield from _read_records(reader.parse(block), reading)


def read_lines(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield the lines of a text file, cut at newlines alone, blank ones included, a missing last newline supplied."""
    reader = LineReader(source, reading.fields)
    for block in line_blocks(
        source, reading.options.block_bytes, to_nul=_refuses_nul(reading), keep_bom=reading.options.keep_bom
    ):
        clean = _clean_block(block, reader, reading)
        data = np.frombuffer(clean.data, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n")).astype(np.int64, copy=False)
        if not len(ends):
            continue
        starts = np.concatenate((_ZERO, ends[:-1] + 1))
        numbers = None if clean.line_indexes is None else clean.line_indexes + block.first
        first_line = block.first if numbers is None else int(numbers[0])
        reading.report.characters += clean.characters
        segments = Segments(data, starts, ends, source.name, first_line, numbers, terminator=1)
        yield segments if reading.taken is None else replace(segments, records=_raw_lines(block, reader, numbers))


def _opened(block: RawBlock, source: Source, reading: ReadingPass) -> tuple[bytes, Place]:
    # The text of a block, and where it begins; the report counts a byte order mark and a newline that is supplied.
    content: bytes = block.content
    reading.report.bom += block.first == 1 and block.byte > 0
    reading.report.bom_kept += block.byte == 0 and content.startswith(UTF8_BOM)
    if not block.ends:
        content = supplied_newline(content, reading.report)
    return content, Place(source.name, block.first, block.byte)


def _clean_block(block: RawBlock, reader: ReaderOfLines, reading: ReadingPass) -> CleanBlock:
    return clean_lines(*_opened(block, reader.source, reading), reading.options.errors, reading.report, reader.split)


def _raw_lines(block: RawBlock, reader: ReaderOfLines, numbers: Ints | None) -> tuple[Records, Ints]:
    lines, all_numbers = reader.numbered(block)
    records = Records(reader.source.name, all_numbers, Strings.of([]), {}, {}, lines, is_text=True)
    return records, np.arange(len(lines)) if numbers is None else numbers - block.first


def _refuses_nul(reading: ReadingPass) -> bool:
    return reading.options.errors == "fail"


def read_document(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield a text file as one segment, its last newline supplied if missing; nothing for an empty file."""
    options = reading.options
    chunks = list(file_chunks(source, options.block_bytes, to_nul=_refuses_nul(reading)))
    complete = not chunks or chunks[-1].endswith(b"\n")
    text = b"".join(chunks if complete else [*chunks, b"\n"])
    chunks.clear()
    mark = bom_bytes(text, source.name)
    byte = 0 if options.keep_bom else mark
    if len(text) - byte <= (not complete):
        return
    content, place = _opened(RawBlock(text[byte:], 1, len(text), byte, complete), source, reading)
    clean = clean_record(content, place, options.errors, reading.report)
    if clean is not None:
        yield _packed(Strings.of([clean.data]), np.ones(1, np.int64), {}, source.name, reading, clean.characters)


def _read_records(records: Records, reading: ReadingPass) -> Iterator[Segments]:
    # Parsed records as one batch of segments, those that cannot be used left out where that is asked for.
    wrong = {row: detail for row, (_, detail) in records.problems.items()}
    labels: dict[str, list[str]] = {}
    for label, name in reading.label_fields.items():
        column = labels[label] = []
        for row, value in enumerate(records.values[name]):
            text, problem = ("", None) if row in wrong else _label(value, label, name)
            column.append(text)
            if problem is not None:
                wrong[row] = problem
    texts, turns = (records.texts, None) if reading.options.chat is None else _turns(records, reading, wrong)
    for row in sorted(wrong):
        error = InputError(f"{records.identifier(row)}: {wrong[row]}")
        if records.problems.get(row, ("",))[0] == TAKEN:
            raise error
        reading.leave_out(error)
    if wrong:
        usable = [i for i, row in enumerate(texts.rows.tolist()) if row not in wrong]
        texts = Strings.of([texts.text(i) for i in usable], texts.rows[usable].tolist())
    owners = texts.rows.tolist()
    of_texts = {label: [column[row] for row in owners] for label, column in labels.items()}
    if turns is not None and reading.options.group == ROLE:
        of_texts[GROUP] = [turn.message["role"] for turn in turns]
    for segments, rows in read_texts(texts, records.numbers[texts.rows], of_texts, records.source, reading):
        segments = segments if turns is None else replace(segments, turns=turns)  # clean already: none was left out
        yield segments if reading.taken is None else replace(segments, records=(records, rows))
    if reading.taken is not None and not len(records):
        yield Segments(np.zeros(0, np.uint8), _ZERO[:0], _ZERO[:0], records.source, records=(records, _ZERO[:0]))


def _turns(records: Records, reading: ReadingPass, wrong: dict[int, str]) -> tuple[Strings, list[Turn]]:
    # The turns of conversations that are segments, and their texts; what is wrong with a record is put to the others.
    options, field, tools = reading.options, str(reading.options.chat), records.values.get(_TOOLS, [None] * len(records))
    turns: list[Turn] = []
    rows: list[int] = []
    for row, value in enumerate(records.values[field]):
        if row not in wrong:
            try:
                conversation = conversation_of(value, tools[row]).cleaned(options.errors, reading.report)
            except (InputError, RecursionError) as error:
                wrong[row] = f"field {field!r}: {error}"
                continue
            own = conversation.turns(options.roles, reading.report)
            turns += own
            rows += [row] * len(own)
    return Strings.of([turn.message["content"].encode() for turn in turns], rows), turns


def _label(value: object, label: str, field: str) -> tuple[str, str | None]:
    # What a segment carries of a field, and what is wrong with it.
    if label == GIVEN:  # cleaned as the text itself is
        if isinstance(value, str):
            return value, None
        return "", f"the field {field!r} of given text holds {kind_of(value)}, not a string"
    if label.startswith(KEEP) and (value is None or isinstance(value, float)):
        return "" if value is None else json.dumps(value), None
    if not isinstance(value, (str, int)):
        return "", f"the field {field!r} holds {kind_of(value)}, not a string or an integer"
    if not isinstance(value, str):
        return json.dumps(value) if isinstance(value, bool) else str(value), None
    if find_problem(utf8(value))[0] >= 0:
        return "", f"the field {field!r} holds NUL, a lone surrogate or bytes that are not UTF-8 (\\u0000, \\ud800)"
    return value, None


_PLURALS = {GROUP: "groups", DOCUMENT: "documents", GIVEN: "given texts"}


def read_strings(texts: Iterable[Any], labels: Mapping[str, Iterable[str]], reading: ReadingPass) -> Iterator[Segments]:
    """Yield strings, or conversations, in batches of about `block_bytes`."""
    batch: list[bytes] = []
    names: dict[str, list[str]] = {label: [] for label in labels}
    waiting = {label: iter(values) for label, values in labels.items()}
    first, size = 1, 0
    for number, text in enumerate(texts if reading.options.chat is None else map(as_json, texts), start=1):
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
            yield from _read_batch(batch, first, names, reading)
            batch, names, first, size = [], {label: [] for label in labels}, number + 1, 0
    if batch:
        yield from _read_batch(batch, first, names, reading)
    for label, values in waiting.items():
        if next(values, None) is not None:
            raise UsageError(f"there are more {_PLURALS[label]} than texts")


def _read_batch(texts: Sequence[bytes], first: int, labels: Labels, reading: ReadingPass) -> Iterator[Segments]:
    numbers = np.arange(first, first + len(texts))
    if (chat := reading.options.chat) is not None:
        values = {**labels, chat: [text.decode() for text in texts]}
        return _read_records(Records("<conversations>", numbers, Strings.of([]), values, {}), reading)
    return (segments for segments, _ in read_texts(Strings.of(texts), numbers, labels, "<strings>", reading))


def read_texts(
    texts: Strings, numbers: Ints, labels: Labels, name: str, reading: ReadingPass
) -> Iterator[tuple[Segments, Ints]]:
    """Yield raw texts as one batch of segments, cleaned as the text of a file would be, and their rows; none if all go."""
    # numbers: int64 [texts], the record of each in the file, from 1; labels: for each text, too.
    before = labels.get(GIVEN)
    if before is None and (characters := texts.clean_characters()) is not None:
        if len(texts):  # most batches: as fast as one record
            yield _packed(texts, numbers, labels, name, reading, characters), texts.rows
        return
    clean_texts: list[bytes] = []
    given_texts: list[bytes] = []
    valid: list[int] = []
    characters = 0
    for i, number in enumerate(numbers.tolist()):
        place = Place(name, number, None, "record")
        shown = None if before is None else clean_record(utf8(before[i]), place, reading.options.errors, reading.report)
        if before is not None and shown is None:
            continue
        clean = clean_record(texts.text(i), place, reading.options.errors, reading.report)
        if clean is None:
            continue
        if shown is not None:
            if not clean.data:
                reading.leave_out(InputError(f"{name}, record {number}: {_NO_TARGET}"))
                continue
            given_texts.append(shown.data)
        characters += clean.characters
        clean_texts.append(clean.data)
        valid.append(i)
    if valid:
        own = {label: [values[i] for i in valid] for label, values in labels.items()}
        segments = _packed(Strings.of(clean_texts), numbers[valid], own, name, reading, characters)
        yield (segments if before is None else _with_given(segments, clean_texts, given_texts, reading)), texts.rows[valid]


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


def _packed(texts: Strings, numbers: Ints, labels: Labels, name: str, reading: ReadingPass, characters: int) -> Segments:
    # Clean texts as segments that share one array; `characters` of them are added to the report.
    reading.report.characters += characters
    groups = reading.groups.numbers(labels[GROUP]).astype(np.int32) if GROUP in labels else None
    documents = reading.documents.numbers(labels[DOCUMENT]) if DOCUMENT in labels else None
    others = {label: list(values) for label, values in labels.items() if label not in (GROUP, DOCUMENT, GIVEN)}
    # A number for each where some in between are missing or come twice: [3, 4, 5] -> None, [3, 5] -> [3, 5].
    lines = None if (np.diff(numbers) == 1).all() else numbers
    data = np.frombuffer(texts.data, dtype=np.uint8)
    return Segments(data, texts.starts, texts.ends, name, int(numbers[0]), lines, groups, documents, others)
