"""A shard on disk: a folder with what was computed and its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from lmgauge.decoding import Whole
from lmgauge.errors import InputError, UsageError
from lmgauge.files import is_special, local_path
from lmgauge.remote.addresses import is_remote
from lmgauge.text.documents import Corpus
from lmgauge.work.manifest import Manifest, decode_facts, difference, read_manifest
from lmgauge.work.parts import read_parts
from lmgauge.work.shard import Shard

RECORD_FILE = "shard.json"
PARTS_FILE = "parts.zst"

T = TypeVar("T")


@dataclass(frozen=True)
class _Place:
    shard: Shard
    parts: Whole  # pieces of the text that it has


@dataclass(frozen=True)
class ShardRecord:
    """What a shard says of itself."""

    path: Path
    manifest: Manifest
    shard: Shard
    pieces: int  # of the text, that it has

    @property
    def common(self) -> dict[str, Any]:
        """Return what all shards of one job have in common."""
        return {"job": self.manifest.job, "shards": self.shard.of, **self.manifest.made_of}

    def made_of(self, kind: type[T]) -> T:
        """Return model, text and settings: what all shards of one job have in common."""
        return decode_facts(self.manifest.made_of, kind, self.path / RECORD_FILE)

    def facts(self, kind: type[T]) -> T:
        """Return what this shard found out besides its parts."""
        return decode_facts(self.manifest.facts, kind, self.path / RECORD_FILE)


class StoredParts(Generic[T]):
    """What came of all pieces of some work, taken from its shards side by side."""

    # The pieces of units 0, 0, 1, ... come from shards 0, 0, 1, ... of two.

    def __init__(self, records: Sequence[ShardRecord], kind: type[T], known: Mapping[type, object] | None = None) -> None:
        self._records, self._parts = records, [read_parts(record.path / PARTS_FILE, kind, known) for record in records]

    def take(self, unit: int) -> tuple[int, T]:
        """Return what came of the next piece, which is of this unit, and the index of the shard that has it."""
        owner = unit % len(self._parts)
        for part in self._parts[owner]:
            return owner, part
        raise InputError(f"{self._records[owner].path}: ends before its text does; run this shard again")


def is_shard_folder(path: Path) -> bool:
    """Return True if a folder holds a shard and nothing else, so that it may be replaced by one."""
    return {file.name for file in path.iterdir()} == {RECORD_FILE, PARTS_FILE}


def read_record(folder: Path) -> ShardRecord:
    """Read what a shard says of itself, and see whether either file was changed after it was written."""
    manifest = read_manifest(folder / RECORD_FILE, [PARTS_FILE])
    place = decode_facts(manifest.facts, _Place, folder / RECORD_FILE)
    return ShardRecord(folder, manifest, place.shard, place.parts)


def find_records(paths: Sequence[Path]) -> list[ShardRecord]:
    """Return the records of all shards of one job, in order."""
    records = [read_record(folder) for path in paths for folder in _shard_folders(path)]
    if not records:
        raise UsageError("there is no shard to merge: name the folders of all shards, or the folder that they are in")
    first, by_number = records[0], dict[int, ShardRecord]()
    for record in records:
        if different := difference(first.common, record.common):
            name, one, other = different
            values = f", {one} and {other}" if name in ("job", "shards") else ""
            raise UsageError(f"{first.path} and {record.path} differ in {name}{values}: merge the shards of one job")
        twice = by_number.setdefault(record.shard.number, record)
        if twice is not record:
            raise UsageError(f"{twice.path} and {record.path} are the same shard, {record.shard.number}: leave one out")
    missing = [number for number in range(1, first.shard.of + 1) if number not in by_number]
    if missing:
        names = ", ".join(f"{number}/{first.shard.of}" for number in missing[:8]) + (", ..." if len(missing) > 8 else "")
        raise UsageError(f"{len(missing)} of {first.shard.of} shards are missing: {names}; run them, then merge")
    return [by_number[number] for number in sorted(by_number)]


def _shard_folders(path: Path) -> list[Path]:
    if (local_path(path) / RECORD_FILE).is_file() or (path / PARTS_FILE).is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; name the folders of all shards, or the folder that they are in")
    inside = sorted(folder for folder in path.iterdir() if (folder / RECORD_FILE).is_file())
    if not inside:
        raise InputError(f"{path}: has no shard in it; make some with --shard i/n -o {path}")
    return inside


def digest_of(corpus: Corpus) -> str:
    """Return the SHA-256 of a text, which is read for it unless it was."""
    if not corpus.report.sha256:
        for _ in corpus:
            pass
    return corpus.report.sha256


def stored_paths(paths: list[Any]) -> list[str]:
    """Return the paths in a record."""
    if not paths or not all(isinstance(path, str) and "\0" not in path for path in paths):
        raise InputError("the shards do not name the files of their text: name it with text")
    if "-" in paths or any(is_remote(path) or is_special(path) for path in paths):
        raise InputError("the shards name an address, a pipe or a device as their text: name it with text")
    return paths
