"""What the functions for files of documents have in common: what is read, how, and who works it off."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypedDict

from lmgauge.api.inputs import PathLike
from lmgauge.choices import BadRecordPolicy, Format
from lmgauge.filtering.plan import RecordOptions
from lmgauge.filtering.scorer import Model, Scorer
from lmgauge.models.network.options import ScoringOptions
from lmgauge.stages.folder_engine import FolderEngine
from lmgauge.stages.memory_engine import MemoryEngine
from lmgauge.stages.ray_engine import RayEngine
from lmgauge.stages.stage import Engine

Inputs = PathLike | Sequence[PathLike]


class RecordKeywords(TypedDict, total=False):
    """The fields of `RecordOptions`, each of which may be left out."""

    field: str
    lines: bool
    by: str | None
    group: str | None
    id: str | None
    format: Format | None
    errors: BadRecordPolicy


@dataclass(frozen=True)
class FilterWork:
    """How files are worked off.

    Attributes:
        threads: blocks of a file parsed and scored at a time, in each process.
        workers: processes, each with a file at a time; None for this one alone.
        ray: address of a cluster of Ray, or `local`, whose tasks take a file each.
        shard: number of a share of the files, from 0, and how many shares there are; None for all files.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("one", "two"):
        ...         _ = Path(folder, f"{name}.txt").write_text("a b\\nx y z\\n")
        ...     inputs, half = f"{folder}/*.txt", FilterWork(threads=1, shard=(0, 2))
        ...     lmgauge.filter_documents({"m": model}, inputs, f"{folder}/out/", max_perplexity=3, work=half).files
        1
    """

    threads: int | None = None
    workers: int | None = None
    ray: str | None = None
    shard: tuple[int, int] | None = None


def scorer_of(model: Model | Mapping[str, Model], records: RecordOptions, scoring: ScoringOptions | None) -> Scorer:
    """Return what scores the documents of files; each block is scored by one thread.

    Args:
        model: one or several.
        records: how they are read.
        scoring: how networks score.
    """
    return Scorer(model, field=records.field, lines=records.lines, by=records.by, scoring=scoring, threads=1)


@contextmanager
def opened_engine(work: FilterWork, files: int) -> Iterator[Engine]:
    """Open what runs the tasks: this process, several, or a cluster.

    Args:
        work: how files are worked off.
        files: how many there are.
    """
    if work.ray is not None:
        with RayEngine(work.ray, workers=work.workers) as cluster:
            yield cluster
    elif work.workers is None or work.workers == 1 or files < 2:
        yield MemoryEngine()
    else:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lmgauge-"))
            yield stack.enter_context(FolderEngine(f"{folder}/work", {}, workers=work.workers, processes=True))
