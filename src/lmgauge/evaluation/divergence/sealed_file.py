"""A Parquet file with a seal: the SHA-256 of its bytes, with zeros in place of the digest, stands in its footer."""

# So a file that was damaged, cut off or changed is known before anything in it is parsed.

from __future__ import annotations

import hashlib
import os
import re
from typing import IO, Any

from lmgauge.errors import InputError

MAGIC = b"PAR1"
UNSEALED = b"sha256:" + b"0" * 64
"""What stands in the footer of a file that is not sealed yet."""
_SEAL = re.compile(rb"sha256:[0-9a-f]{64}")
_LONGEST_FOOTER = 1 << 26
_CHUNK = 1 << 20


class HashedFile:
    """A file that is written from begin to end, and knows the SHA-256 of its bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self._size = file, hashlib.sha256(), 0
        self.footer: bytearray | None = None
        self.closed = self.discarding = False

    def write(self, data: bytes) -> int:
        """Write bytes; return how many."""
        if self.discarding:
            return len(data)
        self._digest.update(data)
        self._size += len(data)
        if self.footer is not None:
            self.footer += data
        return self._file.write(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Take note; the file itself stays open for the seal."""
        self.closed = True

    def seal(self) -> None:
        """Put the digest of the file, with zeros in its place, into the footer."""
        assert self.footer is not None
        self._file.flush()
        self._file.seek(self._size - len(self.footer) + self.footer.rindex(UNSEALED))
        self._file.write(b"sha256:" + self._digest.hexdigest().encode())


def check_seal(file: IO[bytes]) -> int:
    """Return the length of the footer of a file whose seal is that of its bytes."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != MAGIC:
        file.seek(0)
        begun = file.read(4) == MAGIC
        what = "its end is missing: it was cut off" if begun else "it is not even Parquet"
        raise InputError(what)
    if length > min(size - 12, _LONGEST_FOOTER):
        raise InputError("its footer is longer than it can be")
    file.seek(size - 8 - length)
    footer = file.read(length)
    seals = [match.start() for match in _SEAL.finditer(footer)]
    if len(seals) != 1:
        raise InputError("it has no seal, so another program wrote it")
    place = size - 8 - length + seals[0]
    digest = hashlib.sha256()
    file.seek(0)
    _feed(digest, file, place)
    digest.update(UNSEALED)
    file.seek(place + len(UNSEALED))
    _feed(digest, file, size - place - len(UNSEALED))
    if footer[seals[0] : seals[0] + len(UNSEALED)] != b"sha256:" + digest.hexdigest().encode():
        raise InputError("its seal is broken: the file was damaged or changed after it was written")
    return length


def _feed(digest: Any, file: IO[bytes], count: int) -> None:
    while count > 0:
        data = file.read(min(count, _CHUNK))
        if not data:
            return
        digest.update(data)
        count -= len(data)
