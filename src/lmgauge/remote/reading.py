"""Remote files as Python's own: read from start to end, or in parts here and there, with the same bytes either way."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from lmgauge.remote.problems import rewritten
from lmgauge.remote.protocol import Transfer
from lmgauge.remote.stores import store_of

_WINDOW = 8 << 20
"""Bytes that are asked for at once within a part that is read from start to end."""


def open_sequential(address: str, version: str = "") -> io.BufferedReader:
    """Open a file to read its bytes from start to end."""
    # version: that it must have; "" for any.
    return io.BufferedReader(_Sequential(_transfer(address, version)), buffer_size=1 << 20)


def open_in_parts(address: str, version: str = "") -> PartsFile:
    """Open a file of whose bytes only some parts are read."""
    # version: that it must have; "" for any.
    return PartsFile(_transfer(address, version))


def _transfer(address: str, version: str) -> Transfer:
    store = store_of(address)
    transfer = store.transfer()
    if version and transfer.state.version != version:
        raise rewritten(store.name)
    return transfer


class _Positioned(io.RawIOBase):
    """A file of known size with a position."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer, self._position = transfer, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self._transfer.state.size
        if whence == io.SEEK_END and size is None:
            raise io.UnsupportedOperation("the server does not say how long the file is")
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: size or 0}[whence]
        self._position = max(0, base + offset)
        return self._position


class _Sequential(_Positioned):
    """A file read in order: bytes come in pieces, and are handed out as they are asked for."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._pieces: Iterator[bytes] | None = None
        self._piece, self._next = memoryview(b""), 0  # what was not handed out yet, and its place in the file

    def readinto(self, buffer: Any) -> int:
        # Fill a buffer with the next bytes, and return how many there are; 0 at the end.
        if self._next != self._position or self._pieces is None:
            self._stop()
            self._pieces, self._next = self._transfer.pieces(self._position), self._position
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._piece = memoryview(piece)
        size = min(len(buffer), len(self._piece))
        buffer[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        self._position += size
        self._next = self._position
        return size

    def _stop(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()
        self._pieces, self._piece = None, memoryview(b"")

    def close(self) -> None:
        self._stop()
        super().close()


class PartsFile(_Positioned):
    """A file read in parts, such as the columns of a Parquet file."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._parts: list[tuple[int, int]] = []
        self._held: dict[int, tuple[int, bytes]] = {}  # by the part's start: the place of some bytes of it, and the bytes

    def expect(self, parts: Iterable[tuple[int, int]]) -> None:
        """Say which parts will be read, each from its start to its end: more of them is asked for at a time, and held."""
        self._parts, self._held = sorted(parts), {}

    def check_unchanged(self) -> None:
        """Refuse a file that was written anew since it was opened."""
        self._transfer.check_unchanged()

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        total = self._transfer.state.size or 0
        end = total if size is None or size < 0 else min(total, self._position + size)
        pieces = []
        while self._position < end:
            piece = self._some(self._position, end)
            self._position += len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, and return how many there are; 0 at the end."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _some(self, start: int, end: int) -> bytes:
        # At least one of the bytes from `start` to before `end`.
        number = bisect_right(self._parts, start, key=lambda part: part[0]) - 1
        if number < 0 or start >= self._parts[number][1]:
            return self._transfer.fetch(start, end)
        first, last = self._parts[number]
        place, held = self._held.get(first, (0, b""))
        if not place <= start < place + len(held):
            place, held = start, self._transfer.fetch(start, min(last, max(start + _WINDOW, min(end, last))))
            self._held[first] = place, held
        if place + len(held) == last and end >= last:
            del self._held[first]
        return held[start - place : end - place]
