"""All shards of a job at once, on a cluster of Ray."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.api.inputs import PathLike
from lmgauge.cluster.job import Job
from lmgauge.cluster.merging import merge
from lmgauge.cluster.record import PARTS_FILE, RECORD_FILE, is_shard_folder
from lmgauge.cluster.running import run_shard
from lmgauge.files import writing_directory
from lmgauge.temporaries import scratch_folder
from lmgauge.work.ray_engine import RayEngine
from lmgauge.work.shard import Shard

if TYPE_CHECKING:
    from lmgauge.cluster.merging import Merged


def write_shards(shards: Iterable[dict[str, bytes]], count: int, output: Path) -> None:
    """Write the folders of all shards of a job for `merge`, from the bytes of their files."""
    for number, files in enumerate(shards, 1):
        with writing_directory(output / Shard(number, count).folder, is_ours=is_shard_folder) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)


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
        count = engine.workers
        write_shards(engine.results("shards", "computing shards", compute_shard, (job, count), count), count, folder)
        return merge(folder, output)


def compute_shard(number: int, settings: tuple[Job, int]) -> dict[str, bytes]:
    """Return the files of a shard: the machines need not see the folder of the output."""
    job, shards = settings
    with scratch_folder() as folder:
        done = run_shard(job, number, shards, folder)
        return {name: (Path(done.folder) / name).read_bytes() for name in (RECORD_FILE, PARTS_FILE)}
