"""A task metric in shards: a shard counts the statistics of its segments, and `merge` scores systems with those."""

# What a metric counts are integers that add up, so that scores, intervals and tests of significance come out the same.

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from glob import glob
from typing import Any

import numpy as np

from lmgauge.api.sharding.shards import ShardRecord, StoredParts, stored_paths
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import digest, file_sha256
from lmgauge.base.remote.addresses import is_remote
from lmgauge.tasks.comparison import Systems
from lmgauge.tasks.metrics.protocol import Statistics, metric_named, with_whole_statistics
from lmgauge.tasks.scoring import block_statistics, say_segments, score_parallel
from lmgauge.tasks.settings import ComparisonSettings, Reading
from lmgauge.tasks.texts import Block, ParallelSegments
from lmgauge.tasks.transcript_files import files_to_score
from lmgauge.work.manifest import described, difference

_SEGMENTS = 256  # of a unit


@dataclass(frozen=True)
class TaskJob:
    """Systems scored with a task metric: what `lmgauge.tasks.score_files` does, as a job that can be cut into shards.

    Attributes:
        metric: the name of one, such as "bleu"; of a plugin, too.
        references: a file, several with one more reference each, or a folder.
        hypotheses: a file for each system, or a folder with the same file names for each.
        options: of the metric, by name, such as {"lowercase": True}; plain values.
        reading: fields, groups, documents, formats.
        settings: how systems are compared.

    Example:
        >>> import lmgauge, tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "ref.txt").write_text("the dog barks"), Path(folder, "a.txt").write_text("a dog barks")
        ...     job = TaskJob("wer", [f"{folder}/ref.txt"], [f"{folder}/a.txt"])
        ...     shard = lmgauge.sharding.run_shard(job, 0, 1, f"{folder}/shards")
        ...     round(lmgauge.merge(f"{folder}/shards")[0].score.score, 4)
        0.3333
    """

    metric: str
    references: Sequence[str | os.PathLike[str]]
    hypotheses: Sequence[str | os.PathLike[str]]
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    settings: ComparisonSettings = field(default_factory=ComparisonSettings)

    def prepare(self) -> TaskWork:
        """Look for the files.

        Raises:
            InputError: a file is missing.
            UsageError: options contradict each other, or a text is standard input.
        """
        return TaskWork(self)


class TaskWork:
    """Files to score, known to be there."""

    kind = "task"

    def __init__(self, job: TaskJob) -> None:
        try:
            json.dumps(dict(job.options))
            options = {name: tuple(v) if isinstance(v, (list, tuple)) else v for name, v in job.options.items()}
            metric = metric_named(job.metric, **options)
        except TypeError as error:
            raise UsageError(f"{job.metric}: {error}; options of a metric in shards are plain values") from error
        self.metric = with_whole_statistics(metric)
        self._job, self.settings = job, job.settings
        self.references, self.hypotheses = ([os.fspath(p) for p in paths] for paths in (job.references, job.hypotheses))
        more = (job.reading.group, job.reading.document, job.options.get("substitutions"))
        named = [*self.references, *self.hypotheses, *(name for name in more if isinstance(name, str))]
        if "-" in named:
            raise UsageError("every shard reads the texts, and merge does again: save standard input in a file first")
        if any(map(is_remote, named)):
            raise UsageError("shards of a metric read local files, whose digests they compare: download the texts first")
        self.files: ParallelSegments = files_to_score(metric, self.references, self.hypotheses, job.reading)
        self.inputs = [path for name in named for path in _files_of(name)]

    def made_of(self) -> dict[str, Any]:
        """Return metric, texts and settings; see `Work`."""
        job, text = self._job, digest(" ".join(map(file_sha256, self.inputs)))
        how = {"reading": asdict(job.reading), "settings": asdict(replace(job.settings, threads=None))}
        files = {"systems": list(self.files.names), "text": text}
        return {"metric": job.metric, "options": dict(job.options), **files, **how}

    def pieces(self) -> Iterator[tuple[int, Block]]:
        """Yield the pieces of the texts; see `Work`."""
        first = 0
        for block in self.files:
            for piece in _cut(block, first):
                yield first // _SEGMENTS, piece
                first += len(piece)
                say_segments(first)

    def compute(self, own: Iterator[Block]) -> Iterator[list[Statistics]]:
        """Count the statistics of the segments of pieces; see `Work`."""
        for piece in own:
            yield list(block_statistics(self.metric, piece, self._job.settings.threads))

    def facts(self) -> dict[str, Any]:
        """Return the paths; see `Work`."""
        return {"references": self.references, "hypotheses": self.hypotheses}


def _files_of(name: str) -> list[str]:
    # Files that a name stands for: itself, those of a folder, or of a glob; none if there is no such file.
    if os.path.isdir(name):
        return sorted(entry.path for entry in os.scandir(name) if entry.is_file())
    return [name] if os.path.isfile(name) else sorted(path for path in glob(name) if os.path.isfile(path))


def _cut(block: Block, first: int) -> Iterator[Block]:
    begin = 0
    while begin < len(block):
        end = min(len(block), begin + _SEGMENTS - (first + begin) % _SEGMENTS)
        yield block.part(begin, end)
        begin = end


class _StoredRows:
    """The statistics of blocks, from shards."""

    def __init__(self, records: Sequence[ShardRecord], work: TaskWork) -> None:
        self._parts = StoredParts(records, list[Statistics])  # of each system, int64 [segments, columns]
        self._columns, self._systems, self._first = len(work.metric.columns), len(work.files.names), 0

    def __call__(self, block: Block) -> list[Statistics]:
        # Statistics of each system's segments, int64 [segments, columns]; blocks come in order.
        rows: list[list[Statistics]] = []
        for piece in _cut(block, self._first):
            _, part = self._parts.take(self._first // _SEGMENTS)
            if [statistics.shape for statistics in part] != [(len(piece), self._columns)] * self._systems:
                raise ValueError("statistics")
            rows.append(part)
            self._first += len(piece)
        return [np.concatenate(own) for own in zip(*rows, strict=True)]


def merge(records: Sequence[ShardRecord], corpus: object = None) -> Systems:
    """Return the scores of systems on all segments, from all shards."""
    # records: of all shards, in order; corpus: must be None: the files are where the shards read them.
    first = records[0]
    if corpus is not None:
        raise UsageError(
            f"{first.path}: the shards of a task metric read several files: put them back, and leave out --text"
        )
    said = first.said(_Stored)
    references, hypotheses = stored_paths(said.references), stored_paths(said.hypotheses)
    work = TaskJob(said.metric, references, hypotheses, said.options, said.reading, said.settings).prepare()
    if difference(first.manifest.made_of, described(work.made_of())):
        raise InputError(f"{first.path}: the texts are not what the shards read: a file was changed")
    return score_parallel(work.metric, work.files, work.settings, rows_of=_StoredRows(records, work))


@dataclass(frozen=True)
class _Stored:
    metric: str
    options: dict[str, Any]
    reading: Reading
    settings: ComparisonSettings
    references: list[str]
    hypotheses: list[str]
