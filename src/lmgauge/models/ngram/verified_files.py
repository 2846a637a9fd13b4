"""Which model files were looked at entry by entry before: a second load of the same file need not do it again."""

# A record in the user's cache folder says of a file that it was sound: where it is (device, inode), its size, when it was
# last written and last changed (`mtime`, `ctime`, in nanoseconds), the digest of the model's config.json, which has the
# checksums of the file's parts, and the version of lmgauge. All of it must agree. Every ordinary write sets `ctime`, and no
# program can set it back, so a byte changed by one is noticed even where `mtime` is restored. Not noticed is what changes a
# file without writing to it through the file system: a failing disk, or a program that writes to the device itself. `touch`
# the file, and the next load looks at all of it.
#
# A file that was changed within the last two seconds is not remembered: a clock could be too coarse to tell a later write
# apart. On Windows nothing is, as files have no `ctime` there. A record that cannot be read or written, is damaged, or
# belongs to another user counts as none.

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lmgauge.digests import digest
from lmgauge.files import regular
from lmgauge.temporaries import temporary_beside
from lmgauge.version import __version__

_QUIET_NS = 2_000_000_000
_MOST_BYTES = 4096
_MOST_RECORDS = 1000


@dataclass(frozen=True)
class FileState:
    """A file at one moment, and what its parts must be."""

    device: int
    inode: int
    size: int  # in bytes
    mtime_ns: int  # when the content was last written, as far as the file says
    ctime_ns: int  # when the file was last changed, by the clock of the system
    digest: str  # SHA-256 of the config.json that belongs to it
    version: str = __version__  # of lmgauge, as another one may check more

    @classmethod
    def of(cls, file: Path | int, digest: str) -> FileState:
        """Return the state of a file, open or not."""
        seen = os.stat(file)
        return cls(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, digest)

    def is_known(self) -> bool:
        """Return True if this very file was found sound before."""
        if not hasattr(os, "geteuid"):  # Windows has no ctime, and no number of a user
            return False
        try:
            with open(self._record, "rb", opener=regular) as file:
                own = os.fstat(file.fileno()).st_uid == os.geteuid()
                return own and file.read(_MOST_BYTES) == self._content
        except (OSError, ValueError):
            return False

    def remember(self, file: Path, since_ns: int) -> None:
        """Record that a file was found sound, unless it changed meanwhile; if that cannot be recorded, nothing happens."""
        if not hasattr(os, "geteuid") or since_ns - self.ctime_ns < _QUIET_NS:
            return
        with suppress(OSError):
            if FileState.of(file, self.digest) == self:
                self._write()

    @property
    def _record(self) -> Path:
        name = digest(f"{self.device} {self.inode}")[:32]
        return records_folder() / f"{name}.json"

    @property
    def _content(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def _write(self) -> None:
        folder = self._record.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        records = list(folder.iterdir())
        if len(records) >= _MOST_RECORDS:
            for old in sorted(records, key=lambda path: path.lstat().st_mtime)[: len(records) // 2]:
                old.unlink()
        # Not `files.writing`, which writes through a link or into a pipe: whatever stands there is replaced.
        with temporary_beside(self._record, folder=False) as temporary:
            temporary.write_bytes(self._content)
            os.replace(temporary, self._record)


def records_folder() -> Path:
    """Return where the records are: `lmgauge/verified` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(chosen) if os.path.isabs(chosen) else Path(os.path.expanduser("~"), ".cache")
    return root / "lmgauge" / "verified"
