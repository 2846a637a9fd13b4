"""Shards of a job: what a job is; one run into a folder, whole or not there; all put together, or run on a cluster of Ray.

The folder of a shard holds what came of its pieces and its manifest; a complete one is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lmgauge.api.inputs import PathLike, Text, corpus_of
from lmgauge.base.decoding import Whole
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.files import is_special, local_path, refuse_replacing, writing_directory
from lmgauge.base.remote.addresses import is_remote
from lmgauge.base.result_list import Result
from lmgauge.base.temporaries import scratch_folder
from lmgauge.work.manifest import Manifest, decode_facts, described, difference, read_manifest, refuse_other, write_manifest
from lmgauge.work.parts import read_parts, writing_parts
from lmgauge.work.ray_engine import RayEngine
from lmgauge.work.shard import Shard

if TYPE_CHECKING:
    from lmgauge.api.sharding.merging import Merged

_LOG = logging.getLogger(__name__)
_KINDS = ("evaluation", "overlap")
"""Kinds of jobs, called as the modules here whose `merge` puts their shards together."""
RECORD_FILE, PARTS_FILE = "shard.json", "parts.zst"
P = TypeVar("P")
T = TypeVar("T")


class Work(Protocol[P]):
    """A job that is ready to run: models are loaded, files are there."""

    kind: str
    inputs: list[str]  # paths of what it reads, which no output may replace

    def made_of(self) -> dict[str, Any]:
        """Return model, text and settings, all plain: equal if, and only if, two shards are of one job.

        The text is read for its digest, unless all pieces were taken.
        """

    def pieces(self) -> Iterable[tuple[int, P]]:
        """Yield all pieces of the work in order, each with the number of its unit, which is of one shard."""

    def compute(self, own: Iterator[P]) -> Iterator[object]:
        """Yield what comes of the pieces of a shard, in order: a dataclass for each, or one for all.

        Raises:
            LmgaugeError: a text or a model cannot be used.
        """

    def facts(self) -> dict[str, Any]:
        """Return what `merge` must know besides, all plain, once all is computed."""


class Job(Protocol):
    """What is to be computed, before anything is loaded: it can be sent to another machine."""

    def prepare(self) -> Work[Any]:
        """Load what is needed.

        Raises:
            LmgaugeError: something is missing, or this job cannot be cut.
        """


@dataclass(frozen=True, repr=False)
class FinishedShard(Result):
    """A shard that is complete.

    Attributes:
        job: the kind of work: evaluation or overlap.
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


def run_shard(job: Job, rank: int, world_size: int, output: PathLike) -> FinishedShard:
    """Compute one shard of a job, unless it is complete: `--shard`.

    Args:
        job: an `EvaluationJob` or `OverlapJob`.
        rank: number of the shard, from 0.
        world_size: how many shards there are.
        output: folder of all shards; this one gets a folder in it, which appears when it is complete.

    Raises:
        UsageError: the folder holds a complete shard of another job, or the job cannot be cut.
        LmgaugeError: what computing raises.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.sharding.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first, again = (run_shard(job, 0, 2, folder) for _ in range(2))
        >>> first.parts, first.computed, again.computed
        (1, True, False)
    """
    shard, work = Shard(rank + 1, world_size), job.prepare()
    folder = Path(output) / shard.folder
    refuse_replacing({"-o": folder}, work.inputs)
    complete = _complete(folder, work, shard)
    if complete is not None:
        return FinishedShard(work.kind, shard.number, shard.of, str(folder), complete.pieces, False)
    pieces = 0

    def _owned() -> Iterator[Any]:
        nonlocal pieces
        for unit, piece in work.pieces():
            if shard.has(unit):
                pieces += 1
                yield piece

    with writing_directory(folder, is_ours=is_shard_folder) as made:
        with writing_parts(made / PARTS_FILE) as write:
            for part in work.compute(_owned()):
                write(part)
        facts = {**work.facts(), "shard": vars(shard), "parts": pieces}
        write_manifest(made / RECORD_FILE, work.kind, work.made_of(), facts, [PARTS_FILE])
    return FinishedShard(work.kind, shard.number, shard.of, str(folder), pieces, True)


def _complete(folder: Path, work: Work[Any], shard: Shard) -> ShardRecord | None:
    # Record of a shard that is complete; None where there is none, or it is damaged.
    if not (folder / RECORD_FILE).exists():
        return None
    try:
        record = read_record(folder)
    except InputError as error:
        _LOG.warning("%s", error)
        return None
    refuse_other(folder, record.common, {"job": work.kind, "shards": shard.of, **described(work.made_of())})
    return record


def run_on_ray(job: Job, address: str, output: PathLike | None = None) -> Merged:
    """Compute a job on a cluster of Ray, and return the result of the whole: `--ray`.

    Args:
        job: as in `run_shard`.
        address: of the cluster, or `local`; see `RayEngine`.
        output: run folder to write, of an evaluation.

    Raises:
        UsageError: there is no cluster at the address, or the job cannot be cut.
        LmgaugeError: what computing raises.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.sharding.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> run_on_ray(job, "127.0.0.1:1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.base.errors.UsageError: no Ray cluster answers at 127.0.0.1:1: ...
    """
    job.prepare()  # what is wrong with the job is said before anything is started
    with RayEngine(address) as engine, scratch_folder() as folder:
        count = engine.workers
        for number, files in enumerate(engine.results("shards", "computing shards", compute_shard, (job, count), count)):
            (folder / str(number)).mkdir()
            for name, content in files.items():
                (folder / str(number) / name).write_bytes(content)
        return put_together([folder], output)


def compute_shard(number: int, settings: tuple[Job, int]) -> dict[str, bytes]:
    """Return the files of a shard: the machines need not see the folder of the output."""
    job, shards = settings
    with scratch_folder() as folder:
        done = run_shard(job, number, shards, folder)
        return {name: (Path(done.folder) / name).read_bytes() for name in (RECORD_FILE, PARTS_FILE)}


# -- on disk, and put together ------------------------------------------------------------------------------------------
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


def stored_paths(paths: list[Any]) -> list[str]:
    """Return the paths in a record."""
    if not paths or not all(isinstance(path, str) and "\0" not in path for path in paths):
        raise InputError("the shards do not name the files of their text: name it with text")
    if "-" in paths or any(is_remote(path) or is_special(path) for path in paths):
        raise InputError("the shards name an address, a pipe or a device as their text: name it with text")
    return paths


def put_together(paths: Sequence[Path], output: PathLike | None = None, text: Text | None = None) -> Merged:
    """Return the result of the whole from the folders of all shards; see `merge`."""
    records = find_records(paths)
    first, job = records[0].path, records[0].manifest.job
    if job not in _KINDS:
        raise InputError(f"{first}: is a shard of a job that this lmgauge does not know: {job!r}")
    merge_kind = import_module(f"lmgauge.api.sharding.{job}").merge
    corpus = None if text is None else corpus_of(text)
    if output is not None and job != "evaluation":
        raise UsageError(f"{first}: a run folder (-o) is for evaluations, and this is a shard of kind {job}")
    refuse_replacing({"-o": output}, [*map(str, paths), *(str(record.path) for record in records)])
    try:
        merged: Merged = merge_kind(records, corpus, *([] if output is None else [Path(output)]))
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        if isinstance(error, LmgaugeError):
            raise
        raise InputError(f"{first}: the shards do not hold what they should ({error!r}); run them again") from error
    return merged
