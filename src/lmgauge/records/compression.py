"""Packed files: read piece by piece, with errors that say which file; written, the same bytes make the same file."""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from io import BufferedReader
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from lmgauge.base.errors import InputError, needing
from lmgauge.base.files import reason_of, writing
from lmgauge.base.paths import open_reading
from lmgauge.records.formats import split_compression
from lmgauge.records.sources import STDIN, Source

if TYPE_CHECKING:
    import zipfile

# A zstd stream gives at most 128 KiB for 4 bytes read, so this bounds what one call can return (at 128 MiB).
_ZSTD_READ_BYTES = 1 << 12
_PACKED_BYTES = 1 << 16  # of .bz2 and .xz at a time, and what may come out of them at a time
_UNPACKED_BYTES = 1 << 20
_ZSTD_MAX_WINDOW = 2**31  # the largest window of `zstd --long=31`; by default the library refuses more than 2**27
_ZSTD_LEVEL = 3
_ZIP_ZSTD = 93  # number of that compression in zip files
_LARGEST_PART = 1 << 28  # bytes of one, as they are held at a time


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
    return open_reading(source.path, source.state) if source.shown else open(source.path, "rb")


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


@contextmanager
def writing_packed(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for bytes, which appears under its name, packed as its ending says, when the block ends well."""
    if os.fspath(path) == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    ending = split_compression(os.fspath(path))[1]
    with writing(path) as plain, _packer(plain, ending) as packed:
        yield packed


@contextmanager
def _packer(plain: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    if not ending:
        yield plain
    elif ending == ".zst":
        with needing("zstandard", extra="zstd"):
            import zstandard
        with zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).stream_writer(plain, closefd=False) as packed:
            yield cast(IO[bytes], packed)
    elif ending == ".gz":
        import gzip

        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as file:
            yield cast(IO[bytes], file)
    else:
        import bz2
        import lzma

        with bz2.BZ2File(plain, "wb") if ending == ".bz2" else lzma.LZMAFile(plain, "wb") as other:
            yield cast(IO[bytes], other)


def zip_parts(path: str | os.PathLike[str], names: str) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a zip file whose names match a pattern: FILE, NAME for messages, and what they hold."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            for part in archive.infolist():
                if re.fullmatch(names, part.filename):
                    if part.file_size > _LARGEST_PART:
                        raise InputError(f"{path}, {part.filename}: has more than {_LARGEST_PART:,} bytes")
                    yield f"{path}, {part.filename}", _unzipped(archive, part)
    except (
        zipfile.BadZipFile,
        RuntimeError,
        EOFError,
        zlib.error,
    ) as error:  # RuntimeError: a compression, a password
        raise InputError(f"{path}: is a damaged zip file, or was cut off: {error}") from error


def _unzipped(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    if part.compress_type != _ZIP_ZSTD or sys.version_info >= (3, 14):
        return archive.read(part)
    import zipfile

    with needing("zstandard", extra="zstd"):
        import zstandard
    packed = copy(part)  # read as it lies there
    packed.compress_type, packed.file_size = 0, part.compress_size
    del packed.CRC
    stream = zstandard.ZstdDecompressor().stream_reader(archive.read(packed), read_across_frames=True)
    with suppress(zstandard.ZstdError):
        content: bytes = stream.read(part.file_size)
        if zlib.crc32(content) == part.CRC:
            return content
    raise zipfile.BadZipFile(f"{part.filename} does not hold what was written")
