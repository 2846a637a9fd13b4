"""Runs one shard of a job: a folder appears when it is complete, and is left alone by whoever runs it again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmgauge.api.inputs import PathLike
from lmgauge.cluster.job import Job, Work
from lmgauge.cluster.record import PARTS_FILE, RECORD_FILE, ShardRecord, is_shard_folder, read_record
from lmgauge.errors import InputError
from lmgauge.files import refuse_replacing, writing_directory
from lmgauge.shown import Shown
from lmgauge.work.manifest import described, refuse_other, write_manifest
from lmgauge.work.parts import writing_parts
from lmgauge.work.shard import Shard

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class FinishedShard(Shown):
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

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain values."""
        return dict(vars(self))

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
        return FinishedShard(work.kind, shard.number, shard.of, str(folder), complete.place.parts, False)
    own: list[int] = []  # numbers of pieces, in the order in which they are computed

    def _owned() -> Iterator[Any]:
        for number, (unit, piece) in enumerate(work.pieces()):
            if shard.has(unit):
                own.append(number)
                yield piece

    with writing_directory(folder, is_ours=is_shard_folder) as made:
        with writing_parts(made / PARTS_FILE) as write:
            for done, part in enumerate(work.compute(_owned())):
                write(own[done] if own else 0, part)
        facts = {**asdict(work.facts()), "shard": vars(shard), "parts": len(own)}
        write_manifest(made / RECORD_FILE, work.kind, asdict(work.made_of()), facts, [PARTS_FILE])
    return FinishedShard(work.kind, shard.number, shard.of, str(folder), len(own), True)


def _complete(folder: Path, work: Work[Any], shard: Shard) -> ShardRecord | None:
    # Record of a shard that is complete; None where there is none, or it is damaged.
    if not (folder / RECORD_FILE).exists():
        return None
    try:
        record = read_record(folder)
    except InputError as error:
        _LOG.warning("%s", error)
        return None
    there = {"job": record.manifest.job, "shard": vars(record.shard), **record.manifest.made_of}
    refuse_other(folder, there, {"job": work.kind, "shard": vars(shard), **described(asdict(work.made_of()))})
    return record
