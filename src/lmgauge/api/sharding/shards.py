"""Shards on disk: the folder of each holds what came of its pieces of the text, and its manifest; a complete one stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lmgauge.base.decoding import Whole
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import local_path
from lmgauge.base.result_list import Result
from lmgauge.work.manifest import Manifest, decode_facts, difference, read_manifest
from lmgauge.work.shard import Shard

RECORD_FILE, PARTS_FILE = "shard.json", "parts.zst"
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class FinishedShard(Result):
    """A shard that is complete.

    Attributes:
        job: the kind of work: evaluation.
        shard: its number, from 1.
        of: how many there are.
        folder: where it is.
        parts: pieces of the text that it has; 0 where the text has fewer units than there are shards.
        computed: False where it was complete before.

    Example:
        >>> FinishedShard("evaluation", 2, 8, "shards/2-of-8", 12, True)
        <FinishedShard: evaluation, shard 2 of 8: 12 pieces of the text, in shards/2-of-8>
    """

    job: str
    shard: int
    of: int
    folder: str
    parts: int
    computed: bool

    def _in_brief(self) -> str:
        before = "" if self.computed else ", complete before"
        share = f"{self.job}, shard {self.shard} of {self.of}: {self.parts:,} piece{'s' * (self.parts != 1)} of the text"
        return f"{share}, in {self.folder}{before}"


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

    def said(self, kind: type[T]) -> T:
        """Return what of its job and of what it found out besides its parts a type has; the latter, where both are there."""
        return decode_facts({**self.manifest.made_of, **self.manifest.facts}, kind, self.path / RECORD_FILE)


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
