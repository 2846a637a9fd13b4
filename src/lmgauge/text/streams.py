"""Files as streams of bytes: names and globs, compression, and errors that say which file and what to do."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import BinaryIO, cast

from lmgauge.choices import FORMATS, Format
from lmgauge.errors import InputError, UsageError, needing
from lmgauge.files import reason_of
from lmgauge.places import FileState, expand, file_states, is_remote, open_reading, shown_name
from lmgauge.text.formats import BY_SUFFIX

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
STDIN = "-"

# A zstd stream gives at most 128 KiB for 4 bytes read, so this bounds what one call can return (at 128 MiB).
_ZSTD_READ_BYTES = 1 << 12
_PACKED_BYTES = 1 << 16  # of .bz2 and .xz at a time, and what may come out of them at a time
_UNPACKED_BYTES = 1 << 20
_ZSTD_MAX_WINDOW = 2**31  # the largest window of `zstd --long=31`; by default the library refuses more than 2**27


@dataclass(frozen=True, slots=True)
class Source:
    """One file (or standard input) to read."""

    path: str  # as given by the user, "-" for standard input; a local path, or an address, which may hold a password
    format: Format
    compression: str  # ".gz", ".bz2", ".xz", ".zst" or ""
    label: str  # short name, unique among the files of a corpus
    one_shot: bool  # whether it can be read only once (standard input, a pipe)
    shown: str = ""  # the name of a remote file to show and store, unique among the files of a corpus; "" for a local one
    # size and version of a remote file, which it must keep while it is read; None for a local one
    state: FileState | None = None

    @property
    def name(self) -> str:
        """Return the name that messages show."""
        return "<stdin>" if self.path == STDIN else self.stored_path

    @property
    def stored_path(self) -> str:
        """Return the path or address that may be stored: without user, password and query."""
        return self.shown or self.path

    @property
    def version(self) -> str:
        """Return what a remote file's version must be while it is read; "" for any."""
        return "" if self.state is None else self.state.version


def find_sources(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None = None
) -> list[Source]:
    """Turn paths and globs into files to read, in the order given (the matches of a glob sorted)."""
    if format is not None and format not in FORMATS:
        raise UsageError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [name for path in listed for name in ([STDIN] if path == STDIN else expand(os.fspath(path)))]
    if not names:
        raise UsageError("no text to read: name at least one file, or - for standard input")
    if names.count(STDIN) > 1:
        raise UsageError("standard input (-) is named twice, but can be read only once")
    shown = _unique_names(names)
    labels = _labels(shown)
    remote = list(dict.fromkeys(filter(is_remote, names)))
    states = dict(zip(remote, file_states(remote), strict=True))
    return [
        _source(name, format, label, known if name in states else "", states.get(name))
        for name, known, label in zip(names, shown, labels, strict=True)
    ]


def _unique_names(names: list[str]) -> list[str]:
    # Names that may be shown; those of different addresses differ, also where only their queries do.
    owners: dict[str, list[str]] = {}
    unique = []
    for name in names:
        shown = shown_name(name)
        same = owners.setdefault(shown, [])
        if name not in same:
            same.append(name)
        number = same.index(name) + 1
        unique.append(shown if number == 1 else f"{shown} ({number})")
    return unique


def _source(path: str, format: str | None, label: str, shown: str, state: FileState | None) -> Source:
    one_shot = state is None and (path == STDIN or not stat.S_ISREG(_mode(path)))
    bare, compression = split_compression(shown_name(path))
    if format is None:
        format = BY_SUFFIX.get(os.path.splitext(bare)[1].lower(), "text")
    if format == "parquet" and (one_shot or compression):
        reason = "a pipe" if one_shot else f"a {compression} file"
        raise InputError(f"{shown or path}: Parquet cannot be read from {reason}: save it as a plain file first")
    return Source(path, cast(Format, format), compression, label, one_shot, shown, state)


def _mode(path: str) -> int:
    # File's type bits; raise InputError if there is nothing to read under that name.
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{path!r}: {reason_of(error)}") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a directory: name its files, or a glob such as {os.path.join(path, '*.txt')}")
    return mode


def split_compression(path: str) -> tuple[str, str]:
    """Return a path without the ending of a compression, and that ending in lower case, empty where there is none."""
    bare, suffix = os.path.splitext(path)
    return (bare, suffix.lower()) if suffix.lower() in COMPRESSIONS else (path, "")


def _labels(names: list[str]) -> list[str]:
    # Label per file: its stem, or the path as given where different files share a stem.
    stems = [_stem(name) for name in names]
    owners: dict[str, set[str]] = {}
    for stem, name in zip(stems, names, strict=True):
        owners.setdefault(stem, set()).add(name)
    return [stem if len(owners[stem]) == 1 else name for stem, name in zip(stems, names, strict=True)]


def _stem(name: str) -> str:
    if name == STDIN:
        return "stdin"
    base = split_compression(PurePath(name).name)[0]
    bare, suffix = os.path.splitext(base)
    return bare if suffix.lower() in BY_SUFFIX else base


@contextmanager
def file_errors(source: Source) -> Iterator[None]:
    """Turn the operating system's and the decompressors' errors into one that names the file."""
    try:
        yield
    except EOFError as error:
        raise InputError(
            f"{source.name}: the {source.compression} file ends too early; it was cut off: copy or pack it again"
        ) from error
    except zlib.error as error:
        raise InputError(f"{source.name}: the {source.compression} file is damaged: {error}") from error
    except OSError as error:
        # gzip and bz2 report damage as OSError without an errno; a real one has it.
        damaged = bool(source.compression) and error.errno is None
        reason = f"the {source.compression} file is damaged: {error}" if damaged else reason_of(error)
        raise InputError(f"{source.name}: {reason}") from error


def read_chunks(
    source: Source, chunk_bytes: int, consumed: Callable[[int], None] = lambda position: None
) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in chunks of about `chunk_bytes`, never an empty one."""
    # consumed: called before each chunk with the bytes of the file, as it is packed, that were read so far; not for what
    # can be read only once.
    with file_errors(source):
        stream = _standard_input() if source.path == STDIN else _opened(source)
    try:
        chunks = _decompressed(stream, source, chunk_bytes)
        while True:
            with file_errors(source):  # around the read alone: the consumer's own errors are not the file's
                chunk = next(chunks, b"")
            if not chunk:
                return
            if not source.one_shot:
                consumed(stream.tell())
            yield chunk
    finally:
        if source.path != STDIN:
            stream.close()


def _opened(source: Source) -> BufferedReader:
    return open_reading(source.path, source.version) if source.shown else open(source.path, "rb")


def _standard_input() -> BufferedReader:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("<stdin>: there is no standard input to read: name a file")
    return cast(BufferedReader, stream)


def _decompressed(stream: BufferedReader, source: Source, chunk_bytes: int) -> Iterator[bytes]:
    if source.compression and not stream.peek(1):  # every format has a header, so nothing at all is a cut-off file
        raise EOFError
    if source.compression in (".zst", ".bz2", ".xz"):
        pieces = _zstd_pieces if source.compression == ".zst" else _stream_pieces
        yield from _gather(pieces(stream, source), chunk_bytes)
        return
    opened: BinaryIO = stream
    if source.compression == ".gz":
        import gzip

        opened = cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    while chunk := opened.read(chunk_bytes):
        yield chunk


def _stream_pieces(stream: BufferedReader, source: Source) -> Iterator[bytes]:
    # Python's own readers ignore whatever follows a complete stream: half a text would be left out in silence.
    import bz2
    import lzma

    xz = source.compression == ".xz"
    decompressor = lzma.LZMADecompressor() if xz else bz2.BZ2Decompressor()
    packed = stream.read(_PACKED_BYTES)
    try:
        while packed:
            while not decompressor.eof:
                piece = decompressor.decompress(packed, _UNPACKED_BYTES)
                if piece:
                    yield piece
                packed = b""
                if decompressor.needs_input and not (packed := stream.read(_PACKED_BYTES)):
                    raise EOFError
            packed = decompressor.unused_data or stream.read(_PACKED_BYTES)
            packed = _after_padding(stream, packed) if xz else packed
            decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ) if xz else bz2.BZ2Decompressor()
    except lzma.LZMAError as error:
        raise InputError(f"{source.name}: the .xz file is damaged: {error}") from error


def _after_padding(stream: BufferedReader, packed: bytes) -> bytes:
    # What follows the padding that the .xz format allows after a stream: zero bytes, a multiple of four.
    zeros = 0
    while packed:
        rest = packed.lstrip(b"\0")
        zeros += len(packed) - len(rest)
        packed = rest or stream.read(_PACKED_BYTES)
        if rest:
            break
    if zeros % 4:
        raise OSError(f"{zeros} zero bytes follow a stream; padding is a multiple of four")
    return packed


def _zstd_pieces(stream: BufferedReader, source: Source) -> Iterator[bytes]:
    # Decompressed pieces of one or more zstd frames; unlike the library's own reader, notice a cut-off frame.
    with needing("zstandard", extra="zstd"):
        import zstandard
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
    frame = None
    try:
        while packed := stream.read(_ZSTD_READ_BYTES):
            while packed:
                frame = frame or decompressor.decompressobj()
                piece = frame.decompress(packed)
                packed = b""
                if frame.eof:
                    packed, frame = frame.unused_data, None
                if piece:
                    yield piece
    except zstandard.ZstdError as error:
        raise InputError(f"{source.name}: the .zst file is damaged: {error}") from error
    if frame is not None:
        raise EOFError


def _gather(pieces: Iterator[bytes], chunk_bytes: int) -> Iterator[bytes]:
    # Join small pieces into chunks of at least `chunk_bytes` (the last may be smaller).
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= chunk_bytes:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
