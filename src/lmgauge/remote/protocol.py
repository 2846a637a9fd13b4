"""What a store of remote files offers, and what a file of it is read by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, NamedTuple, Protocol


class FileState(NamedTuple):
    """What is known of a file without reading it."""

    size: int | None  # bytes; None where the server does not say
    version: str  # differs once the file is written anew (an entity tag, or the time of writing); "" where that is not known


class Transfer(Protocol):
    """The bytes of one version of a remote file."""

    @property
    def state(self) -> FileState:
        """Return the size and the version that are read."""

    def pieces(self, start: int) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order; a connection that breaks is resumed."""

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""

    def check_unchanged(self) -> None:
        """Raise InputError if the file was written anew since the first byte was read."""


class Store(Protocol):
    """Where the file or folder of one address is; errors are `InputError` in reading, `OSError` in writing."""

    name: str  # of the file, as it may be shown

    def state(self) -> FileState:
        """Return the size and the version of the file."""

    def exists(self) -> bool:
        """Return True if the file is there."""

    def matches(self) -> list[str]:
        """Return the addresses that the address, as a pattern, stands for: sorted, perhaps none."""

    def names(self) -> list[str]:
        """Return the names of the files directly in the folder, sorted."""

    def transfer(self) -> Transfer:
        """Return the means to read the file as it is now."""

    def uploading(self) -> AbstractContextManager[IO[bytes]]:
        """Open a file that appears at the address when the block ends well, and not at all when it does not."""

    def remove(self) -> None:
        """Remove the file, if it is there."""
