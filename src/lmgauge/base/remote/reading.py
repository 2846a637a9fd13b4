"""Remote files as Python's own: read from start to end, or in parts here and there, with the same bytes either way."""

from __future__ import annotations

import io
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmgauge.base.remote.buckets import BucketStore
    from lmgauge.base.remote.web import WebStore

_WINDOW = 8 << 20
"""Bytes that are asked for at once within a part that is read from start to end."""


class _RemoteFile(io.RawIOBase):
    """A file of a store, with a position; the bytes from there on are what `some` returns."""

    def __init__(self, store: WebStore | BucketStore) -> None:
        self.store, self._position = store, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self.store.opened.size
        if whence == io.SEEK_END and size is None:
            raise io.UnsupportedOperation("the server does not say how long the file is")
        self._position = max(0, (0, self._position, size or 0)[whence] + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = self.some(self._position, self._position + len(buffer))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    @abstractmethod
    def some(self, start: int, end: int) -> bytes | memoryview:
        """Return at least one of the bytes from `start` to before `end`; none at the end of the file."""


class Sequential(_RemoteFile):
    """A file read in order: bytes come in pieces, and are handed out as they are asked for."""

    def __init__(self, store: WebStore | BucketStore) -> None:
        super().__init__(store)
        self._pieces, self._piece, self._next = self.store.pieces(0), memoryview(b""), 0

    def some(self, start: int, end: int) -> memoryview:
        if start != self._next:
            self._pieces.close()
            self._pieces, self._piece, self._next = self.store.pieces(start), memoryview(b""), start
        if not self._piece:
            self._piece = memoryview(next(self._pieces, b""))
        some, self._piece = self._piece[: end - start], self._piece[end - start :]
        self._next += len(some)
        return some

    def close(self) -> None:
        self._pieces.close()
        super().close()


class Parts(_RemoteFile):
    """A file read in parts, such as the columns of a Parquet file: only their bytes are sent."""

    _parts: Sequence[tuple[int, int]] = ()

    def expect(self, parts: Iterable[tuple[int, int]]) -> None:
        """Say which parts will be read, each from its start to its end: more of them is asked for at a time, and held."""
        # held: by the part's start, the place of some bytes of it, and the bytes.
        self._parts, self._held = sorted(parts), dict[int, tuple[int, bytes]]()

    def some(self, start: int, end: int) -> bytes:
        end = min(end, self.store.opened.size or 0)
        number = bisect_right(self._parts, start, key=lambda part: part[0]) - 1
        if number < 0 or start >= min(end, self._parts[number][1]):
            return self.store.fetch(start, end) if start < end else b""
        first, last = self._parts[number]
        place, held = self._held.get(first, (0, b""))
        if not place <= start < place + len(held):
            place, held = start, self.store.fetch(start, min(last, max(start + _WINDOW, min(end, last))))
            self._held[first] = place, held
        if place + len(held) == last and end >= last:
            del self._held[first]
        return held[start - place : end - place]
