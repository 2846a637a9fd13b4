"""A file of another program, what it says of each segment, and what is to be said of all of them."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, starmap, tee
from pathlib import Path
from typing import Any, NamedTuple

from lmgauge.base.choices import Format, LogUnit
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.json_text import from_json
from lmgauge.base.option_numbers import number, shown
from lmgauge.numerics.units import bits_to_nats, log10_to_nats
from lmgauge.records.compression import read_chunks
from lmgauge.records.formats import reader_of
from lmgauge.records.lines import UTF8_BOM, cut_lines, line_blocks
from lmgauge.records.records import Fields, RecordReader, Row
from lmgauge.records.separated import Reader as SeparatedReader
from lmgauge.records.sources import Source, find_sources
from lmgauge.scores.sequences import ROUNDING
from lmgauge.scores.spans import Piece

TO_NATS: dict[LogUnit, Callable[[float], float]] = {"nats": float, "bits": bits_to_nats, "log10": log10_to_nats}
_SURROGATES = re.compile("[\ud800-\udfff]")
HEAD_BYTES = 1 << 20
_LARGEST_VALUE = 1 << 28
"""Bytes of a JSON value that is held at a time."""
_LONGEST_CELL = 1 << 22
_CHUNK = 1 << 20


@dataclass(frozen=True)
class LogFile:
    """A file that a program wrote."""

    path: Path
    frame: Any = None  # a data frame in place of it, as an Arrow table
    shared: Iterator[Row] | None = None  # its rows, where others read them too

    @cached_property
    def source(self) -> Source:
        """Return the file as records are read from it, more than once: a pipe is refused."""
        source = find_sources(self.path)[0]
        if source.one_shot:
            raise InputError(f"{source.name}: a log is read more than once: save the pipe in a file first")
        return source

    @cached_property
    def head(self) -> bytes:
        """Return the first bytes, by which the program is recognized; of a data frame none."""
        if self.frame is not None:
            return b""
        head = next(read_chunks(self.source, HEAD_BYTES), b"")[:HEAD_BYTES]
        if not head.strip():
            raise InputError(f"{self.path}: is empty")
        return head.removeprefix(UTF8_BOM)

    def columns(self) -> list[str]:
        """Return the names of the columns, if it is a table; the fields of its first record, if it has some."""
        if self.frame is not None:
            return [str(name) for name in self.frame.column_names]
        reader = self._reader()
        if isinstance(reader, SeparatedReader):
            return reader.names(self.head)
        try:
            return list(next(reader.rows()).fields)
        except (InputError, StopIteration):
            return []

    def rows(self) -> Iterator[Row]:
        """Yield the rows of a table."""
        if self.shared is not None:
            return self.shared
        if self.frame is not None:
            rows = chain.from_iterable(part.to_pylist() for part in self.frame.to_batches(1 << 13))
            return starmap(Row, enumerate(rows, 1))
        return self._reader().rows()

    def for_each(self, readers: int) -> list[LogFile]:
        """Return a file for each reader of its table; while they keep in step it is read once."""
        return [replace(self, shared=rows) for rows in tee(self.rows(), readers)]

    def _reader(self) -> RecordReader:
        source = self.source
        if source.format == "text":  # its format is told by its beginning, as its name does not
            first = self.head.partition(b"\n")[0]
            form: Format = "jsonl" if self.head.lstrip()[:1] == b"{" else "tsv" if b"\t" in first else "csv"
            source = replace(source, format="parquet" if self.head.startswith(b"PAR1") else form)
        return reader_of(source, Fields(quotes=True))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers, counted from 1, without their ends; bytes that are not UTF-8 as surrogates."""
        for block in line_blocks(self.source, _CHUNK):
            for count, line in enumerate(cut_lines(block.content), block.first):
                yield count, line.rstrip(b"\r").decode("utf-8", "surrogateescape")

    def cells(self) -> Iterator[tuple[int, str, bool]]:
        """Yield what stands between tabs and ends of lines."""
        # The line's number, the cell, and whether it is the line's last.
        # A line may be as long as the file; it is never held whole.
        line, rest = 1, b""
        for chunk in read_chunks(self.source, _CHUNK):
            *parts, rest = re.split(rb"([\t\n])", rest + chunk)
            for cell, end in zip(parts[::2], parts[1::2], strict=True):
                yield line, cell.decode("utf-8", "surrogateescape"), end == b"\n"
                line += end == b"\n"
            if len(rest) > _LONGEST_CELL:
                raise InputError(f"{self.path}, line {line}: has {len(rest):,} bytes without a tab; is it a log?")
        if rest:
            yield line, rest.decode("utf-8", "surrogateescape"), True

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield JSON values and where they are: those of JSON lines, the items of one array, or one value."""
        whole = self._one_value()
        if whole is None:
            for number, line in self.lines():
                if line.strip():
                    where = f"{self.path}, line {number}"
                    yield where, parsed(line, where)
        elif isinstance(whole, list):
            for number, item in enumerate(whole, 1):
                yield f"{self.path}, item {number}", item
        else:
            yield str(self.path), whole

    def _one_value(self) -> Any:
        # File's only JSON value; None if it is JSON lines: its first line is a value, and another follows.
        first, _, more = self.head.partition(b"\n")
        if more.strip() or len(self.head) == HEAD_BYTES:
            try:
                if not isinstance(from_json(first), list) or more.lstrip()[:1] in (b"[", b"{"):
                    return None
            except ValueError:
                pass  # a value goes on over the end of the line
        content = bytearray()
        for chunk in read_chunks(self.source, _CHUNK):
            content += chunk
            if len(content) > _LARGEST_VALUE:
                raise InputError(
                    f"{self.path}: is one JSON value of more than {_LARGEST_VALUE:,} bytes; write it as JSON lines"
                )
        return parsed(content.decode("utf-8-sig", "surrogateescape"), str(self.path))


def parsed(text: str | bytes, where: str) -> Any:
    """Return what a JSON text of a file says."""
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}") from error


class NoLogprobsError(InputError):
    """Raised for what has no log-probabilities; it may have scores of a task."""


class LoggedSegment(NamedTuple):
    """What a program wrote of one segment, and where that lies in the text once it is laid there."""

    where: str  # file and line or record, for messages
    pieces: Sequence[Piece]  # its tokens, [n], as the program shows them
    logprob: list[float | None]  # [n], nats; None where the program gives none, as of first tokens
    kinds: Sequence[int] | None = None  # [n], as in the score table; None if all are tokens
    contexts: Sequence[int] | None = None  # [n], length of the n-gram that matched; None if the program does not say
    text: str | None = None  # the segment's own text, where the log has it; its tokens are then one
    given: str | None = None  # the text before it that was given, where the log has both
    document: str | None = None  # what it belongs to, where the log says it
    generated: tuple[int, ...] = (0,)  # tokens at the end that may be the model's own, the likeliest count first
    headless: bool = False  # True if tokens may be missing at its beginning; laid, if they are
    ends: Sequence[int] = ()  # [n], once it is laid: where each token ends, bytes
    exact: bool = True  # False if the tokens do not give the text back
    crosses: bool = False  # True if the first token begins in the text that is given before the segment

    def part(self, first: int, last: int | None = None, **changes: Any) -> LoggedSegment:
        """Return some of its tokens, with changes of other fields."""
        if first or last not in (None, len(self.pieces)):
            names = ("pieces", "logprob", "kinds", "contexts", "ends")
            changes = {name: values[first:last] for name in names if (values := getattr(self, name))} | changes
        return self._replace(**changes) if changes else self

    def after(self, first: int, offset: int) -> LoggedSegment:
        """Return its tokens from one on, with their places in the text behind the first bytes."""
        # LoggedSegment("log", ["the", " cat"], [-1.0, -2.0], ends=[3, 7]).after(1, 3).ends -> [4]
        return self.part(first, ends=[end - offset for end in self.ends[first:]])

    def behind(self, given: int) -> LoggedSegment:
        """Return the tokens that end behind the first `given` bytes, with their places in what follows these."""
        if not given:
            return self
        before = bisect_right(self.ends, given)
        begin = self.ends[before - 1] if before else 0
        return self.after(before, given)._replace(headless=self.headless and not before, crosses=begin < given)


@dataclass
class Log:
    """What is found out while the files of one program are read."""

    unit: LogUnit | None = None  # the logarithms' unit; None until it is known
    column: str = ""  # of a table, the one that holds the scores, where it was named
    model: str = ""  # what the log calls the model; empty if it does not
    unscored: int = 0  # segments whose first token has no score
    # how often each thing that a reader must know was met; `{:,}` in its words is the count
    remarks: Counter[str] = field(default_factory=Counter)

    def remark(self, words: str, count: int = 1) -> None:
        """Note what a reader must know."""
        if count:
            self.remarks[words] += count

    def notes(self) -> list[str]:
        """Return what a reader must know, in words."""
        return [words.replace("{:,}", f"{count:,}") for words, count in self.remarks.items()]

    def states(self, unit: LogUnit, program: str) -> None:
        """Take the unit that a program always writes."""
        if self.unit not in (None, unit):
            raise UsageError(f"--log-unit {self.unit}: {program} writes {unit}; leave the option out")
        self.unit = unit

    def nats(self, value: object, where: str) -> float:
        """Return a log-probability of the log in nats."""
        assert self.unit is not None
        nats = TO_NATS[self.unit](number(value, where))
        if math.isnan(nats) or nats > ROUNDING:
            raise InputError(f"{where}: a log-probability is {shown(value)}; it must be the logarithm of a probability")
        return min(nats, 0.0)


def score_of(value: object, where: str) -> float:
    """Return the score that a program wrote of a token, which is not NaN."""
    score = number(value, where)
    if math.isnan(score):
        raise InputError(f"{where}: a log-probability is NaN; the model is damaged")
    return score


def printable(piece: Piece) -> str:
    """Return a token as a string of the score table; what is not text in it becomes U+FFFD."""
    if isinstance(piece, bytes):
        return piece.decode("utf-8", "replace")
    return _SURROGATES.sub("\ufffd", piece)


@dataclass(frozen=True)
class ProgramOutput:
    """What a program writes."""

    recognizes: Callable[[bytes], bool]  # returns True for the first bytes of its output
    # yields the segments of a file; None for a score table, which is rows already
    parse: Callable[[LogFile, Log], Iterator[LoggedSegment]] | None = None
    unit: str = "token"  # of its tokens, as signatures name it
    words: bool = False  # True if tokens are the words of a text, between white space
    places: bool = True  # True if what it writes has a place in the text
    has_text: bool = False  # True if it writes the text of every segment


SCORE_TABLE = ProgramOutput(lambda head: False)  # known by its columns
