"""What does the work on many files, a task for each: this process, several, or a cluster; and what each task answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from lmgauge.filtering.options import FilterWork
from lmgauge.stages.folder_engine import FolderEngine
from lmgauge.stages.memory_engine import MemoryEngine
from lmgauge.stages.ray_engine import RayEngine
from lmgauge.stages.stage import Array, Engine, Read, Stage
from lmgauge.temporaries import scratch_folder

Work = Callable[[Read, int, Any], Iterator[Array]]
"""Called with what reads arrays, which it needs not, the number of the file, and the settings; see `Stage`."""


@contextmanager
def open_engine(work: FilterWork, files: int) -> Iterator[Engine]:
    """Open what runs the tasks on this number of files."""
    with ExitStack() as stack:
        if work.ray is not None:
            yield stack.enter_context(RayEngine(work.ray, workers=work.workers))
        elif work.workers in (None, 1) or files < 2:
            yield MemoryEngine()
        else:
            folder = stack.enter_context(scratch_folder())
            yield stack.enter_context(FolderEngine(f"{folder}/work", {}, workers=work.workers, processes=True))


def answers(
    engine: Engine, stage: str, title: str, work: Work, settings: Any, files: int, arrays: int = 1
) -> Iterator[list[Array]]:
    """Run a task for each file, and yield the arrays that each makes, in order of the files, when all tasks are done."""
    engine.run(Stage(stage, files, work, settings, _nothing, partial(_names, arrays), title=title))
    for number in range(files):
        names = _names(arrays, number)
        yield [engine.read(name) for name in names]
        engine.drop(names)


def _nothing(number: int) -> list[str]:
    return []


def _names(arrays: int, number: int) -> list[str]:
    return [f"answer/{number}/{part}" for part in range(arrays)]
