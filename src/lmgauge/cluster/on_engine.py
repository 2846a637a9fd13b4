"""All shards of a job as one stage, for an engine: threads or processes of this machine, or a cluster of Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.api.inputs import PathLike
from lmgauge.cluster.job import Job
from lmgauge.cluster.merging import merge
from lmgauge.cluster.record import PARTS_FILE, RECORD_FILE, is_shard_folder
from lmgauge.cluster.running import run_shard
from lmgauge.files import writing_directory
from lmgauge.temporaries import scratch_folder
from lmgauge.work.ray_engine import RayEngine
from lmgauge.work.shard import Shard
from lmgauge.work.stage import Array, Engine, Read, Stage

if TYPE_CHECKING:
    from lmgauge.cluster.merging import Merged

_FILES = (RECORD_FILE, PARTS_FILE)


def run_shards(job: Job, engine: Engine, output: Path, shards: int | None = None) -> None:
    """Compute all shards of a job, several at a time, and write their folders for `merge`."""
    count = engine.workers if shards is None else shards
    makes = [[f"shards/{number}/{name}" for name in _FILES] for number in range(count)]
    stage = Stage("shards", count, _compute, (job, count), lambda _: [], makes.__getitem__, title="computing shards")
    engine.run(stage)
    for number, names in enumerate(makes):
        with writing_directory(output / Shard(number + 1, count).folder, is_ours=is_shard_folder) as folder:
            for name, file in zip(names, _FILES, strict=True):
                (folder / file).write_bytes(engine.read(name).tobytes())
        engine.drop(names)


def run_on_ray(job: Job, address: str, output: PathLike | None = None) -> Merged:
    """Compute a job on a cluster of Ray, and return the result of the whole: `--ray`.

    Args:
        job: as in `run_shards`.
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
        run_shards(job, engine, folder)
        return merge(folder, output)


def _compute(read: Read, number: int, settings: tuple[Job, int]) -> Iterator[Array]:
    # Compute a shard, and yield the bytes of its files: the machines need not see the folder of the output.
    job, shards = settings
    with scratch_folder() as folder:
        done = run_shard(job, number, shards, folder)
        for name in _FILES:
            yield np.fromfile(Path(done.folder) / name, np.uint8)
