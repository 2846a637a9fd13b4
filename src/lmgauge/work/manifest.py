"""The manifest of a piece of work: a JSON file that says what the work is made of, and what came of it.

It is sealed: a byte that changed is noticed, of the manifest as of the files that it lists. Two pieces of work are the same
if, and only if, what they are made of is equal: the version of lmgauge, digests of models and texts, settings.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError, digest, file_sha256, growing_digest, reason_of, regular
from lmgauge.base.json_text import from_json, plain, to_json
from lmgauge.base.paths import read_json, write_json
from lmgauge.base.remote.addresses import PathLike, shown_name
from lmgauge.base.version import __version__

T = TypeVar("T")

UNSEALED = b"sha256:" + b"0" * 64
"""What stands in the last bytes of a file of other content, such as the footer of Parquet, until it is sealed."""
_SEAL = re.compile(rb"sha256:[0-9a-f]{64}")
_TAIL = 1 << 12  # bytes; those behind a seal are fewer
_OURS = f"what lmgauge {__version__} notes of its work"
_AGAIN = "remove it and run the work again, or name another folder"


@dataclass(frozen=True)
class Manifest:
    """What a piece of work says of itself."""

    job: str  # the kind of work, such as `evaluation`
    made_of: dict[str, Any]
    facts: Any  # what came of it, of a type that its job knows; None while it is worked on
    files: dict[str, str]  # the SHA-256 of files beside it, by their names
    fingerprint: str  # the SHA-256 of all of this


def described(made_of: Mapping[str, Any]) -> dict[str, Any]:
    """Return what some work is made of as a manifest has it."""
    whole: dict[str, Any] = from_json(to_json({"lmgauge": __version__, **made_of}))
    return whole


def write_manifest(
    place: PathLike, job: str, made_of: Mapping[str, Any], facts: object = None, files: Sequence[str] = ()
) -> None:
    """Write a manifest, whole or not at all; `files` are names of files beside it that are complete."""
    digests = {name: file_sha256(Path(place).with_name(name)) for name in files}
    write_json(place, sealed({"job": job, "made_of": described(made_of), "facts": facts, "files": digests}))


def read_manifest(place: PathLike, files: Sequence[str] = ()) -> Manifest:
    """Read a manifest, and see whether it, or one of the files beside it, was changed after it was written."""
    content = read_json(place, dict[str, Any], _OURS, _AGAIN)
    manifest = decode_facts(content, Manifest, place)
    try:
        changed = changed_file(place, content, {name: manifest.files.get(name, "") for name in files})
    except OSError as error:
        raise InputError(f"{error.filename or place}: cannot be read: {reason_of(error)}; {_AGAIN}") from error
    if changed:
        raise InputError(f"{changed}: was changed after it was written; {_AGAIN}")
    return manifest


def decode_facts(content: object, kind: type[T], place: PathLike) -> T:
    """Return a part of a manifest as an object of a type."""
    return decode(content, kind, shown_name(place), _OURS, _AGAIN)


def difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the name of the first thing in which two pieces of work differ, and both values; None if they do not."""
    # difference({"a": {"b": 1}}, {"a": {"b": 2}}) -> ("a: b", 1, 2)
    for name in {**there, **here}:
        one, other = there.get(name), here.get(name)
        if one != other:
            inner = difference(one, other) if isinstance(one, dict) and isinstance(other, dict) else None
            return (f"{name}: {inner[0]}", *inner[1:]) if inner else (name, one, other)
    return None


def refuse_other(folder: PathLike, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder that holds other work."""
    if found := difference(there, here):
        name, one, other = found[0], *(json.dumps(value)[:100] for value in found[1:])
        raise UsageError(
            f"{shown_name(folder)}: holds other work: {name} is {one} there, and {other} here; give the same inputs and "
            "options to go on with it, or name another folder"
        )


def unfinished(folder: PathLike, done: str) -> UsageError:
    """Return what to say of a folder that holds work which was stopped, where it is not resumed."""
    # done: how far it has come.
    return UsageError(
        f"{shown_name(folder)}: holds the unfinished work of an earlier run ({done}); continue it with --resume "
        "(resume=True), or remove the folder to start again"
    )


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a JSON file is to hold, with its seal."""
    whole: dict[str, Any] = plain(content)
    return whole | {"fingerprint": content_fingerprint(whole)}


def content_fingerprint(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a JSON file holds, without its own fingerprint; the order of keys does not matter."""
    return digest({key: value for key, value in content.items() if key != "fingerprint"})


def changed_file(place: PathLike, content: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return which was changed after it was written: a sealed JSON file, or one beside it of a digest; empty if none was."""
    if content.get("fingerprint") != content_fingerprint(content):
        return shown_name(place)
    beside = {Path(place).with_name(name): sha256 for name, sha256 in files.items()}
    return next((str(path) for path, sha256 in beside.items() if file_sha256(path) != sha256), "")


def seal(file: IO[bytes]) -> None:
    """Put the SHA-256 of a file, with zeros in its place, where it has `UNSEALED`."""
    place, _, right = _seals(file)
    file.seek(place)
    file.write(right)


def check_seal(file: IO[bytes]) -> None:
    """Refuse a file whose seal is not that of its bytes; it is to be read from its begin."""
    _, there, right = _seals(file)
    if there != right:
        raise InputError("its seal is broken: the file was damaged, cut off or changed after it was written")
    file.seek(0)


def _seals(file: IO[bytes]) -> tuple[int, bytes, bytes]:
    # Where the seal of a file is, what it says, and what it must say.
    tail = max(0, file.seek(0, os.SEEK_END) - _TAIL)
    file.seek(tail)
    end = file.read()
    there = _SEAL.findall(end)[-1:]
    if not there:
        raise InputError("it has no seal: it was cut off, or another program wrote it")
    whole, left = growing_digest(), tail + end.rindex(there[0])
    place = left
    file.seek(0)
    while left and (data := file.read(min(left, 1 << 20))):
        whole.update(data)
        left -= len(data)
    whole.update(UNSEALED + end[place - tail + len(UNSEALED) :])
    return place, there[0], b"sha256:" + whole.hexdigest().encode()


# -- what of some work is done, and what came of it: a line of a file each, kept as soon as it is known -----------------
class DiskFullError(OutputError):
    """Raised when there is no room for an array; what was written of it is removed."""


def unwritten(path: Path, error: OSError) -> OutputError:
    """Return what to raise where a file cannot be written.

    >>> unwritten(Path("arrays/0.npy"), OSError(errno.ENOSPC, "No space left on device"))
    DiskFullError('arrays/0.npy: the disk is full')
    >>> unwritten(Path("arrays/0.npy"), OSError(errno.EACCES, "Permission denied"))
    OutputError('arrays/0.npy: cannot be written: Permission denied')
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"{path}: the disk is full")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")


_Note: Any = tuple[tuple[str | int | None, ...], Any]
"""A key, and what came of it."""


class Notes(dict[Any, Any]):
    """What is done by its key, a tuple, and what came of it, all of which JSON can hold: a line each, with its sum."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        super().__init__(self._stored())

    def _stored(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        # A line that a killed run began to write, or that was changed, says nothing.
        with suppress(FileNotFoundError), open(self._path, "rb", opener=regular) as file:
            for line in file:
                line = line.removesuffix(b"\n")
                if line[:9] == _sum_of(line[9:]):
                    yield decode(line[9:], _Note, self._path, "a note of what is done", "remove it and start again")

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        self.write(key, value)
        super().__setitem__(key, value)

    def write(self, key: tuple[Any, ...], value: Any) -> None:
        """Note something for a later run, and not in memory."""
        line = to_json([key, value], indent=None).encode()
        try:
            self._file = self._file or open(self._path, "ab")  # noqa: SIM115 - until `close`
            self._file.write(b"\n" + _sum_of(line) + line)  # a line on which a killed run stopped ends here
            self._file.flush()
        except OSError as error:
            raise unwritten(self._path, error) from error

    def close(self) -> None:
        """Close the file, which stays."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def clear(self) -> None:
        """Forget all."""
        self.close()
        self._path.unlink(missing_ok=True)
        super().clear()


def _sum_of(line: bytes) -> bytes:
    return b"%08x " % zlib.crc32(line)
