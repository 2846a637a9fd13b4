"""A shard on disk: a folder with what was computed and a record of what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from lmgauge.cluster.shard import Shard
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.run_folder import content_fingerprint, file_sha256
from lmgauge.files import is_special, local_path
from lmgauge.json_text import from_json, plain, to_json
from lmgauge.places import is_remote
from lmgauge.version import __version__

RECORD_FILE = "shard.json"
PARTS_FILE = "parts.parquet"
_LARGEST = 1 << 28  # bytes of a record
_MOST = 1 << 31  # of a number among settings

T = TypeVar("T")


@dataclass(frozen=True)
class ShardRecord:
    """What a shard says of itself."""

    path: Path
    job: str  # the kind of work: evaluation, overlap, task
    shard: Shard
    made_of: Mapping[str, Any]  # model, text and settings, by name: what all shards of one job have in common
    facts: Mapping[str, Any]  # what this shard found out besides its arrays
    parts_sha256: str  # digest of the file with the arrays

    @property
    def parts(self) -> Path:
        """Return the file with the arrays."""
        return self.path / PARTS_FILE


def is_shard_folder(path: Path) -> bool:
    """Return True if a folder holds a shard and nothing else, so that it may be replaced by one."""
    return {file.name for file in path.iterdir()} == {RECORD_FILE, PARTS_FILE}


def write_record(folder: Path, job: str, shard: Shard, made_of: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write what a shard says of itself, once its arrays are in the folder."""
    content = plain(
        {
            "lmgauge": __version__,
            "job": job,
            "shard": shard.number,
            "of": shard.of,
            "made_of": dict(made_of),
            "facts": dict(facts),
            "parts_sha256": file_sha256(folder / PARTS_FILE),
        }
    )
    content["fingerprint"] = content_fingerprint(content)
    (folder / RECORD_FILE).write_bytes((to_json(content) + "\n").encode("utf-8", "backslashreplace"))


def read_record(folder: Path) -> ShardRecord:
    """Read what a shard says of itself, and see whether either file was changed after it was written."""
    file, parts = folder / RECORD_FILE, folder / PARTS_FILE
    for needed in (file, parts):
        if not needed.is_file() or is_special(needed):
            raise InputError(f"{folder}: is not the folder of a shard: {needed.name} is missing; run the shard again")
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"it has {file.stat().st_size:,} bytes")
        content = from_json(file.read_bytes())
        if not isinstance(content, dict):
            raise TypeError("it is not an object")
        shard = Shard(_typed(content, "shard", int), _typed(content, "of", int))
        job, made_of, facts = _typed(content, "job", str), _typed(content, "made_of", dict), _typed(content, "facts", dict)
        version, digest = _typed(content, "lmgauge", str), _typed(content, "parts_sha256", str)
        sealed = content_fingerprint(content)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as the record of a shard ({error}); run the shard again") from error
    if content.get("fingerprint") != sealed:
        raise InputError(f"{file}: was changed after it was written; run the shard again")
    if digest != file_sha256(parts):
        raise InputError(f"{parts}: was changed after it was written; run the shard again")
    return ShardRecord(folder, job, shard, {"lmgauge": version, **made_of}, facts, digest)


def _typed(content: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = content[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}")
    return value


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the name of the first thing in which two shards, or a shard and a job, differ; empty if in none."""
    for name in [*one, *(name for name in other if name not in one)]:
        mine, theirs = one.get(name), other.get(name)
        if mine != theirs:
            inner = difference(mine, theirs) if isinstance(mine, dict) and isinstance(theirs, dict) else ""
            return f"{name}: {inner}" if inner else name
    return ""


def find_records(paths: Sequence[Path]) -> list[ShardRecord]:
    """Return the records of all shards of one job, in order."""
    records = [read_record(folder) for path in paths for folder in _shard_folders(path)]
    if not records:
        raise UsageError("there is no shard to merge: name the folders of all shards, or the folder that they are in")
    first = records[0]
    by_number: dict[int, ShardRecord] = {}
    for record in records:
        if (record.job, record.shard.of) != (first.job, first.shard.of):
            raise UsageError(
                f"{first.path} is one of {first.shard.of} shards of kind {first.job}, {record.path} one of "
                f"{record.shard.of} of kind {record.job}: merge the shards of one job"
            )
        if different := difference(first.made_of, record.made_of):
            raise UsageError(f"{first.path} and {record.path} differ in {different}: merge the shards of one job")
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


def stored_settings(made: type[T], values: object) -> T:
    """Return a settings object from the plain values of a record.

    >>> from lmgauge.text.reading_options import ReadingOptions
    >>> stored_settings(ReadingOptions, {"unit": "document"}).unit
    'document'
    """
    default, chosen = made(), dict[str, Any]()
    if not isinstance(values, dict):
        raise TypeError(f"settings are {values!r}")
    number_too = {field.name for field in fields(made) if "int" in str(field.type)}  # type: ignore[arg-type]
    for name, value in values.items():
        usual = vars(default)[name]
        kinds = list if isinstance(usual, tuple) else str if usual is None else type(usual)
        none = value is None and (usual is None or isinstance(usual, str))
        number = usual is None and name in number_too and type(value) is int
        items = value if isinstance(value, list) else []
        fits = (none or number or isinstance(value, kinds)) and all(isinstance(item, str) for item in items)
        if not fits or (isinstance(value, int) and abs(value) > _MOST):
            raise TypeError(f"{name} is {value!r}")
        chosen[name] = tuple(value) if isinstance(value, list) else value
    return made(**chosen)


def stored_paths(paths: object) -> list[str]:
    """Return the paths in a record."""
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and "\0" not in path for path in paths):
        raise TypeError(f"the files are {paths!r}")
    if any(map(is_remote, paths)):
        raise InputError("the text that the shards read is at an address: name it with text")
    if "-" in paths or any(map(is_special, paths)):
        raise InputError("the shards name a pipe or a device as their text, which none of them can have read")
    return paths
