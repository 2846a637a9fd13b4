"""The outer form of ARPA files: header, sections and their rows, read piece by piece with the line for messages."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import InputError, ModelFileError
from lmgauge.models.ngram.settings import MAX_ORDER

READ_BYTES = 1 << 24
MAX_LINE_BYTES = 1 << 24
_ZERO = -98.0  # log10 of zero: SRILM writes -99, the CMU toolkit -98.9 and the like
_SMALLEST = -37.5
_REASONS = {
    1: "a number that cannot be read",
    2: "the wrong number of columns",
    3: "a value out of range (log10 of a probability is not above 0, and never NaN)",
}


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file, unpacked if it is gzipped."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.open(raw) as file:
                    yield file  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, (InputError, ModelFileError)):
            raise
        raise ModelFileError(f"{path}: cannot be read: {error}") from error


class ArpaReader:
    """The file in large pieces, with the position for messages."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.at, self.line = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8), 0, 0

    def fill(self) -> bool:
        """Read another piece, as no whole line is left; return False at the end of the file."""
        rest = self.buffer[self.at :]
        if len(rest) > MAX_LINE_BYTES:
            raise self.fail(f"the line has more than {MAX_LINE_BYTES:,} bytes", self.line + 1)
        piece = self.file.read(READ_BYTES)
        if not piece and rest and not rest.endswith(b"\n"):
            rest += b"\n"
        self.buffer, self.at = rest + piece, 0
        return bool(piece)

    def next_line(self) -> bytes | None:
        """Return the next line without white space at its ends; None at the end of the file."""
        while (end := self.buffer.find(b"\n", self.at)) < 0:
            if not self.fill() and b"\n" not in self.buffer:
                return None
        text = self.buffer[self.at : end]
        self.at = end + 1
        self.line += 1
        return text.strip()

    def next_text(self) -> bytes | None:
        """Return the next line that is not blank; None at the end of the file."""
        while (line := self.next_line()) == b"":
            pass
        return line

    def fail(self, what: str, line: int | None = None) -> ModelFileError:
        """Return the error that names the file and the line."""
        return ModelFileError(f"{self.path}, line {line or self.line}: {what}; the ARPA file is damaged")


def read_header(reader: ArpaReader) -> list[int]:
    """Read up to `\\1-grams:` and return how many n-grams of each order the header promises.

    >>> import io
    >>> file = io.BytesIO(b"\\\\data\\\\\\nngram 1=4\\nngram 2=7\\n\\\\1-grams:\\n")
    >>> read_header(ArpaReader(file, Path("model.arpa")))
    [4, 7]
    """
    while (line := reader.next_line()) is not None and line != b"\\data\\":
        if reader.line > 1000:
            break
    if line != b"\\data\\":
        raise ModelFileError(f"{reader.path}: is not an ARPA file: the line \\data\\ is missing")
    counts: list[int] = []
    while (line := reader.next_text()) is not None and line != b"\\1-grams:":
        match = re.fullmatch(rb"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})", line)
        if match is None or int(match[1]) != len(counts) + 1:
            raise reader.fail(
                f"expected 'ngram {len(counts) + 1}=<count>' or '\\1-grams:', got {line[:60].decode('utf-8', 'replace')!r}"
            )
        counts.append(int(match[2]))
    if line is None or not counts:
        raise reader.fail("the header ends without \\1-grams:")
    if len(counts) > MAX_ORDER:
        raise ModelFileError(f"{reader.path}: has n-grams up to order {len(counts)}; orders up to {MAX_ORDER} can be read")
    if sum(counts) >= 2**40:
        raise reader.fail(f"the header promises {sum(counts):,} n-grams, more than any memory holds")
    return counts


def expect(reader: ArpaReader, expected: str, hint: str = "") -> None:
    """Read the line that begins a section or ends the file."""
    line = reader.next_text() or b"the end of the file"
    if line != expected.encode():
        raise reader.fail(f"expected {expected}{hint}, got {line[:60].decode('utf-8', 'replace')!r}")


_Section = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


def read_pieces(reader: ArpaReader, order: int, count: int) -> Iterator[_Section]:
    """Yield the rows of one section, piece by piece."""
    # -> log10 probabilities and back-off weights, float64 [rows] each; a piece of the file, uint8; where the words are in
    # it, starts and ends, int64 [rows * order] each.
    left = count
    while left:
        if reader.buffer.find(b"\n", reader.at) < 0 and not reader.fill() and not reader.buffer:
            raise reader.fail(f"the file ends {left:,} lines before the {count:,} {order}-grams its header promises")
        data = np.frombuffer(reader.buffer, np.uint8)[reader.at :]
        rows = min(left, reader.buffer.count(b"\n", reader.at))
        p, b = np.empty(rows), np.empty(rows)
        starts, ends = np.empty(rows * order, np.int64), np.empty(rows * order, np.int64)
        lines, consumed, fault, reason = _native.parse_arpa_lines(data, order, p, b, starts, ends)
        if fault >= 0:
            raise reader.fail(_REASONS[reason], reader.line + 1 + lines)
        if lines:
            yield p[:lines], b[:lines], data, starts[: lines * order], ends[: lines * order]
        elif rows or not reader.fill():
            raise reader.fail(
                f"section \\{order}-grams: ends {left:,} lines before the {count:,} its header promises",
                reader.line + 1,
            )
        reader.at += consumed
        reader.line += lines
        left -= lines


def linear(log10: NDArray[np.float64], reader: ArpaReader) -> NDArray[np.float32]:
    """Return probabilities or weights, float32 [n], from log10, float64 [n]; -98 and less, such as SRILM's -99, is zero."""
    low = np.flatnonzero((log10 > _ZERO) & (log10 < _SMALLEST))
    if len(low):
        line = reader.line + 1 + int(low[0])
        raise reader.fail(f"{log10[low[0]]:g} is too small for a single-precision probability (-99 means zero)", line)
    return np.where(log10 <= _ZERO, 0.0, np.power(10.0, log10)).astype(np.float32)
