"""Files written packed, as the ending of their name says; the same bytes make the same file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Self, cast

from lmgauge.errors import needing
from lmgauge.files import STANDARD_STREAM, naming, writing
from lmgauge.text.streams import split_compression

_ZSTD_LEVEL = 3


@contextmanager
def writing_packed(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for bytes, which appears under its name, packed as its ending says, when the block ends well."""
    if os.fspath(path) == STANDARD_STREAM:
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


class PackedLines:
    """A packed file to which lines are added; see `writing_packed`."""

    # The file appears when the `with` block ends well.

    def __init__(self, path: str) -> None:
        self._path, self._stack = path, ExitStack()

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(writing_packed(self._path))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def put(self, parts: Iterable[bytes]) -> int:
        """Add bytes, and return how many."""
        with naming(self._path):
            return self._file.write(b"".join(parts))
