"""Runs shards of a job: one, whose folder appears when it is complete and is then left alone; or all on a cluster of Ray."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lmgauge.api.inputs import PathLike
from lmgauge.cluster.merging import Merged, merge
from lmgauge.cluster.record import PARTS_FILE, RECORD_FILE, ShardRecord, is_shard_folder, read_record
from lmgauge.errors import InputError
from lmgauge.files import refuse_replacing, writing_directory
from lmgauge.result_list import Result
from lmgauge.temporaries import scratch_folder
from lmgauge.work.manifest import described, refuse_other, write_manifest
from lmgauge.work.parts import writing_parts
from lmgauge.work.ray_engine import RayEngine
from lmgauge.work.shard import Shard

_LOG = logging.getLogger(__name__)
P = TypeVar("P")


class Work(Protocol[P]):
    """A job that is ready to run: models are loaded, files are there."""

    kind: str
    inputs: list[str]  # paths of what it reads, which no output may replace

    def made_of(self) -> Any:
        """Return model, text and settings as a dataclass: equal if, and only if, two shards are of one job.

        The text is read for its digest, unless all pieces were taken.
        """

    def pieces(self) -> Iterable[tuple[int, P]]:
        """Yield all pieces of the work in order, each with the number of its unit, which is of one shard."""

    def compute(self, own: Iterator[P]) -> Iterator[object]:
        """Yield what comes of the pieces of a shard, in order: a dataclass for each, or one for all.

        Raises:
            LmgaugeError: a text or a model cannot be used.
        """

    def facts(self) -> Any:
        """Return what `merge` must know besides, as a dataclass, once all is computed."""


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
        job: the kind of work: evaluation, overlap, task.
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
        job: an `EvaluationJob`, `OverlapJob` or `TaskJob`.
        rank: number of the shard, from 0.
        world_size: how many shards there are.
        output: folder of all shards; this one gets a folder in it, which appears when it is complete.

    Raises:
        UsageError: the folder holds a complete shard of another job, or the job cannot be cut.
        LmgaugeError: what computing raises.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.cluster.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
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
        facts = {**asdict(work.facts()), "shard": vars(shard), "parts": pieces}
        write_manifest(made / RECORD_FILE, work.kind, asdict(work.made_of()), facts, [PARTS_FILE])
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
    refuse_other(folder, record.common, {"job": work.kind, "shards": shard.of, **described(asdict(work.made_of()))})
    return record


def run_on_ray(job: Job, address: str, output: PathLike | None = None) -> Merged:
    """Compute a job on a cluster of Ray, and return the result of the whole: `--ray`.

    Args:
        job: as in `run_shard`.
        address: of the cluster, or `local`; see `RayEngine`.
        output: of an evaluation, the run folder to write.

    Raises:
        UsageError: there is no cluster at the address, or the job cannot be cut.
        LmgaugeError: what computing raises.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.cluster.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> run_on_ray(job, "127.0.0.1:1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.errors.UsageError: no Ray cluster answers at 127.0.0.1:1: ...
    """
    job.prepare()  # what is wrong with the job is said before anything is started
    with RayEngine(address) as engine, scratch_folder() as folder:
        count = engine.workers
        for number, files in enumerate(engine.results("shards", "computing shards", compute_shard, (job, count), count)):
            (folder / str(number)).mkdir()
            for name, content in files.items():
                (folder / str(number) / name).write_bytes(content)
        return merge(folder, output)


def compute_shard(number: int, settings: tuple[Job, int]) -> dict[str, bytes]:
    """Return the files of a shard: the machines need not see the folder of the output."""
    job, shards = settings
    with scratch_folder() as folder:
        done = run_shard(job, number, shards, folder)
        return {name: (Path(done.folder) / name).read_bytes() for name in (RECORD_FILE, PARTS_FILE)}
