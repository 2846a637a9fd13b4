"""Lines of text as records, and what all formats share whose records are lines: read as they are, written as they were."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import naming
from lmgauge.records.compression import read_chunks, writing_packed
from lmgauge.records.records import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    Ints,
    RawBlock,
    RecordReader,
    Records,
    RecordWriter,
    Row,
    ScoredRecords,
    Strings,
)
from lmgauge.records.sources import Source

UTF8_BOM = codecs.BOM_UTF8
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PACKED_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz"}


def file_chunks(
    source: Source, chunk_bytes: int, *, to_nul: bool, consumed: Callable[[int], None] = lambda position: None
) -> Iterator[bytes]:
    """Yield chunks of a file; `to_nul`: none after one with a NUL that will be refused, so that nobody waits for more."""
    for chunk in read_chunks(source, chunk_bytes, consumed):
        yield chunk
        if to_nul and b"\0" in chunk:
            return


def bom_bytes(start: bytes, name: str) -> int:
    """Return the length of the byte order mark that a file begins with; refuse UTF-16 and compressed data."""
    if start.startswith(_UTF16_BOMS):
        raise InputError(f"{name}: the file is UTF-16 (or UTF-32), not UTF-8: convert it, e.g. iconv -f UTF-16 -t UTF-8")
    for magic, program in _PACKED_MAGIC.items():
        if start.startswith(magic):
            raise InputError(f"{name}: these are {program}-compressed data: unpack them, or name the file so")
    return len(UTF8_BOM) if start.startswith(UTF8_BOM) else 0


def last_newline(content: bytes) -> int:
    """Return the end of the last whole line."""
    return content.rfind(b"\n") + 1


def cut_lines(content: bytes) -> list[bytes]:
    """Return whole lines, without the newline behind each."""
    return content.split(b"\n")[:-1]


def line_blocks(
    source: Source,
    block_bytes: int,
    *,
    to_nul: bool = False,
    keep_bom: bool = False,
    end_of: Callable[[bytes], int] = last_newline,
) -> Iterator[RawBlock]:
    """Yield blocks of whole records of about `block_bytes`; `end_of` returns where the last whole one of some bytes ends."""
    waiting: list[bytes] = []
    first, byte, before, positions, enough = 1, 0, 0, [0], 0

    def block(content: bytes, ends: bool = True) -> Iterator[RawBlock]:
        nonlocal first, byte, before
        if byte == 0 and (mark := bom_bytes(content, source.name)) and not keep_bom:
            content, byte = content[mark:], mark
            if not ends and content == b"\n":  # the file was a byte order mark alone: an empty text
                return
        yield RawBlock(content, first, positions[-1] - before, byte, ends)
        first, byte, before = first + content.count(b"\n"), byte + len(content), positions[-1]
        del positions[:-1]

    for chunk in file_chunks(source, block_bytes, to_nul=to_nul, consumed=positions.append):
        waiting.append(chunk)
        size = sum(map(len, waiting))
        if size < enough and size <= MAX_RECORD_BYTES:
            continue
        if end_of is not last_newline:
            waiting = [b"".join(waiting)]
        *before_it, chunk = waiting
        cut = end_of(chunk)
        if cut == 0:  # a record longer than a chunk: keep the pieces, join them once
            enough = 0 if end_of is last_newline else 2 * size  # its bytes are looked at again, but not each time
            if size > MAX_RECORD_BYTES:
                raise InputError(
                    f"{source.name}: there is no newline within {MAX_RECORD_BYTES:,} bytes, and a line is read as a whole: "
                    "is this a text of lines? Put newlines in it, e.g. with fold -s"
                )
            continue
        content = b"".join([*before_it, memoryview(chunk)[:cut]])
        waiting, enough = [chunk[cut:]] if cut < len(chunk) else [], 0
        yield from block(content)
    if waiting:
        ends = waiting[-1].endswith(b"\n")
        last = b"".join(waiting if ends else [*waiting, b"\n"])
        waiting.clear()
        yield from block(last, ends)


class ReaderOfLines(RecordReader):
    """What readers share whose records are lines: `raw` of their records is a list of the bytes of each."""

    def blocks(self, block_bytes: int, *, to_nul: bool = False, keep_bom: bool = False) -> Iterator[RawBlock]:
        return line_blocks(self.source, block_bytes, to_nul=to_nul, keep_bom=keep_bom)

    def split(self, content: bytes) -> list[bytes]:
        """Return the records of a block, without the newline behind each."""
        return cut_lines(content)

    def numbered(self, block: RawBlock) -> tuple[list[bytes], Ints]:
        """Return the records of a block, and the line that each begins on."""
        lines = self.split(block.content)
        return lines, np.arange(block.first, block.first + len(lines)) if block.numbers is None else block.numbers

    def raw_record(self, records: Records, row: int) -> bytes | None:
        line: bytes = records.raw[row]
        return line


class Reader(ReaderOfLines):
    """Reads the lines of a text file as records; they have no fields, so none may be asked for."""

    def parse(self, block: RawBlock) -> Records:
        lines, numbers = self.numbered(block)
        returns = b"\r" in block.content
        texts = Strings.of([line.rstrip(b"\r") for line in lines]) if returns else Strings.of_lines(block.content)
        return Records(self.source.name, numbers, texts, {}, {}, lines, is_text=True)

    def rows(self) -> Iterator[Row]:
        return (Row(number, {str(self.fields.text): line}) for number, line in text_lines(self.source))


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1, without their ends and a byte order mark."""
    for block in line_blocks(source, BLOCK_BYTES):
        for number, line in enumerate(cut_lines(block.content), block.first):
            try:
                yield number, line.decode().removesuffix("\r")
            except UnicodeDecodeError as error:
                place = f"is not UTF-8 at byte {error.start + 1} of the line; convert it with iconv"
                raise InputError(f"{source.name}:{number}: {place}") from error


class PackedLines(RecordWriter):
    """A packed file to which lines are added; it appears when the `with` block ends well."""

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(writing_packed(self._path))
        return self

    def put(self, parts: Iterable[bytes]) -> None:
        """Add bytes."""
        with naming(self._path):
            self._file.write(b"".join(parts))


class Writer(PackedLines):
    """Writes the lines of documents as they were; columns have no place there."""

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
        """Write lines; see `RecordWriter`."""
        lines = scored.records.raw
        self.put(lines[row] + b"\n" for row in rows.tolist())
