"""What a training may take: memory, room for its work, workers; as asked for, and as decided."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lmgauge.base.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.base.declaration import settings
from lmgauge.base.errors import NotEnoughMemoryError, UsageError
from lmgauge.base.memory import format_bytes, free_memory, parse_size
from lmgauge.base.option_numbers import Count

if TYPE_CHECKING:
    from pathlib import Path

WORK_ENDING = ".parts"
_LEAST = 16 << 20  # less cannot hold what a program needs to begin with
_SHARE = 0.8  # of what is free, where nobody says how much to take
_STEP = 1 << 20


@dataclass(frozen=True)
class MemoryLimits:
    """How a training stays within a given memory.

    Attributes:
        memory: bytes that all of its processes may take together, beside what a program that calls it held before.
        temp: folder for its work; None: beside the model.
        resume: True continues from the last finished stage of a run that was stopped; begins where there is none.
        workers: how many tasks are done at a time.
        processes: True gives each worker a process of its own; False makes them threads of this one.
        model: the folder after which that of the work is named, where another one is written first; None: the one written.
    """

    memory: int
    temp: Path | None = None
    resume: bool = False
    workers: int = 1
    processes: bool = False
    model: Path | None = None

    def work_folder(self, output: Path) -> Path:
        """Return the folder that holds the arrays of a training until its model is written."""
        output = self.model or output
        return (output.parent if self.temp is None else self.temp) / f"{output.name}{WORK_ENDING}"


@settings
class TrainingResources:
    """What a training may take.

    Attributes:
        output: the model's folder or file.
        memory: stay within this much, such as 500M, 2G (of 1024^3 bytes) or from Python a number of bytes: the same model,
            made in parts on disk. In memory where it fits if not given; else, given an output, within 80 % of what is free.
        temp: existing folder for those parts, in OUTPUT.parts; beside the output if not given.
        resume: resume a training that was stopped, or begin one: within memory, from the last finished stage; of a neural
            model (on a CPU, with the same threads, the model is the one of a run that was never stopped).
        workers: processes that share the work within memory; the threads of this one if not given.

    Example:
        >>> TrainingResources("kn5", memory="2G").memory
        '2G'
    """

    heading: ClassVar[str] = "Large texts"
    output: str | os.PathLike[str] | None = None
    memory: str | int | None = None
    temp: str | os.PathLike[str] | None = None
    resume: bool = False
    workers: Count | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and parse_size(self.memory) < _LEAST:
            raise UsageError(
                f"memory: {format_bytes(parse_size(self.memory))} is too little to train in; give {format_bytes(_LEAST)} or "
                "more, such as 2G"
            )
        if self.resume and not self.asked:
            raise UsageError(
                "resume: training in memory has no stages to resume; give --memory as in the run that was stopped"
            )
        if self.asked and self.output is None:
            raise UsageError("memory and workers need an output, the folder that the model is written to as it is made")
        if self.asked and self.writes_file:
            raise UsageError(
                f"{self.output}: training within a given memory writes a model folder; train into a folder, then "
                f"`lmgauge convert` it"
            )
        if self.temp is not None and not (os.path.isdir(self.temp) and os.access(self.temp, os.W_OK | os.X_OK)):
            problem = "cannot be written to" if os.path.isdir(self.temp) else "is not a folder"
            raise UsageError(f"temp: {os.fspath(self.temp)} {problem}; name a folder that is there, on a disk with room")

    @property
    def asked(self) -> bool:
        """Return True if the work is to be done in partitions, however small it is."""
        return self.memory is not None or self.workers is not None

    @property
    def writes_file(self) -> bool:
        """Return True if the output is one file, of another program's format."""
        return self.output is not None and os.fspath(self.output).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS))

    def limits(self, *, threads: int | None = None) -> MemoryLimits:
        """Return the limits; without a number for memory, most of what is free."""
        # threads: how many workers there are where nobody says so, as threads.
        from pathlib import Path

        from lmgauge.base.threads import thread_count

        return MemoryLimits(
            _most_of_free() if self.memory is None else parse_size(self.memory),
            None if self.temp is None else Path(self.temp),
            self.resume,
            thread_count(threads) if self.workers is None else self.workers,
            self.workers is not None,
        )


def _most_of_free() -> int:
    free = free_memory()
    if free is None:
        raise UsageError("the system does not say how much memory is free; say how much to take, such as --memory 2G")
    memory = int(_SHARE * free) // _STEP * _STEP
    if memory < _LEAST:
        raise NotEnoughMemoryError(f"{format_bytes(free)} of memory are free, too little to train in; end other programs")
    return memory
