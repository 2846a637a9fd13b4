"""What the functions for files of documents share: which files are read, how, and by which engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from lmgauge.api.inputs import PathLike
from lmgauge.filtering.options import FilterWork, RecordOptions
from lmgauge.filtering.scorer import Model, Scorer
from lmgauge.models.network.options import ScoringOptions
from lmgauge.stages.folder_engine import FolderEngine
from lmgauge.stages.memory_engine import MemoryEngine
from lmgauge.stages.ray_engine import RayEngine
from lmgauge.stages.stage import Engine
from lmgauge.temporaries import scratch_folder

Inputs = PathLike | Sequence[PathLike]


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
        work: threads, processes, a cluster.
        files: how many there are.
    """
    if work.ray is not None:
        with RayEngine(work.ray, workers=work.workers) as cluster:
            yield cluster
    elif work.workers is None or work.workers == 1 or files < 2:
        yield MemoryEngine()
    else:
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder())
            yield stack.enter_context(FolderEngine(f"{folder}/work", {}, workers=work.workers, processes=True))
