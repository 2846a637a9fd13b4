"""Many files of records, as tasks of an engine. What is remembered of a finished file lets a later run leave it alone."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmgauge.decoding import decode
from lmgauge.errors import InputError
from lmgauge.filtering.filter_file import filter_file
from lmgauge.filtering.folder import FinishedFile, begin, finished, refuse_others, remember, source_state
from lmgauge.filtering.plan import FileJob, FilterPlan
from lmgauge.filtering.tally import StoredTally, Tally
from lmgauge.json_text import to_json
from lmgauge.places import file_state, make_folder
from lmgauge.progress import say_progress
from lmgauge.readable import first_few
from lmgauge.remote.addresses import is_remote
from lmgauge.stages.countdown import rounded_time
from lmgauge.stages.stage import Array, Engine, Read, Stage

_LOG = logging.getLogger(__name__)


def filter_files(
    plan: FilterPlan, jobs: Sequence[FileJob], engine: Engine, *, threads: int | None = None
) -> list[FinishedFile]:
    """Filter files, several at a time, but for those that are complete."""
    # -> what became of each, in the order of the jobs.
    # Raises InputError: some files cannot be read; all others are complete then. A record is bad, and errors are to "fail".
    done = {number: found for number, job in enumerate(jobs) if (found := finished(job)) is not None}
    rest = [number for number in range(len(jobs)) if number not in done]
    for number in rest:
        refuse_others(jobs[number])
    if rest:
        tasks = [jobs[number] for number in rest]
        settings = _Settings(plan, tasks, threads, _sizes(tasks), time.monotonic())
        stage = Stage("filter", len(tasks), _work, settings, _needs, _makes, title="filtering files")
        try:
            engine.run(stage)
        except (KeyboardInterrupt, SystemExit):
            if jobs[0].record is not None:
                complete = sum(finished(job) is not None for job in jobs)
                _LOG.warning("%s of %s files are complete; the same command goes on with the others", complete, len(jobs))
            raise
        problems = {}
        for place, number in enumerate(rest):
            (name,) = _makes(place)
            answer = decode(engine.read(name).tobytes(), _Answer, name, "the answer of a task", "try again")
            engine.drop([name])
            if answer.tally is None:
                problems[jobs[number].source.name] = answer.error
            else:
                done[number] = FinishedFile(jobs[number], Tally.of_stored(answer.tally), False)
        if problems:
            raise InputError(_of_all(problems, len(jobs)))
    return [done[number] for number in range(len(jobs))]


def _of_all(problems: dict[str, str], files: int) -> str:
    names, first = list(problems), next(iter(problems.values()))
    if files == 1:
        return first
    more = f"; neither could {first_few(names[1:])} be filtered" if names[1:] else ""
    return f"{first}{more} ({files - len(names):,} of {files:,} files are complete)"


def _needs(number: int) -> list[str]:
    return []


def _makes(number: int) -> list[str]:
    return [f"filtered/{number}"]


@dataclass
class _Answer:
    tally: StoredTally | None = None
    error: str = ""  # why there is none


@dataclass(frozen=True)
class _Settings:
    """What all tasks know.

    Attributes:
        plan, jobs, threads: as in `filter_files`.
        sizes: bytes of each file, as it is packed.
        began: when the first task did, in the clock of the program that waits for them.
    """

    plan: FilterPlan
    jobs: Sequence[FileJob]
    threads: int | None
    sizes: Sequence[int]
    began: float

    def say(self, number: int, done: int) -> None:
        read = min(done, self.sizes[number] or done)  # of a packed file more comes out than there is
        before, total, seconds = sum(self.sizes[:number]) + read, sum(self.sizes), time.monotonic() - self.began
        left = f", about {rounded_time(seconds / before * (total - before))} left" if 0 < before < total else ""
        say_progress(f"filtering, {before / 1e6:,.0f} of {total / 1e6:,.0f} MB, file {number + 1} of {len(self.jobs)}{left}")


def _sizes(jobs: Sequence[FileJob]) -> list[int]:
    return [0 if job.source.one_shot else file_state(job.source.path).size or 0 for job in jobs]


def _work(read: Read, number: int, settings: _Settings) -> Iterator[Array]:
    job, done = settings.jobs[number], 0
    for path in (*job.outputs.values(), job.rejects, job.record) if job.record is not None else ():
        if path is not None and not is_remote(path):
            make_folder(os.path.dirname(path))
    begin(job)

    def watch(size: int) -> None:
        nonlocal done
        done += size
        settings.say(number, done)

    try:
        before = source_state(job)
        tally = filter_file(settings.plan, job, threads=settings.threads, progress=watch).to_dict()
    except InputError as error:
        if settings.plan.options.errors == "fail":
            raise
        yield _packed({"error": str(error)})  # a file that cannot be read keeps no other from being filtered
        return
    remember(job, before, tally)
    yield _packed({"tally": tally})


def _packed(answer: Mapping[str, Any]) -> Array:
    return np.frombuffer(to_json(answer, indent=None).encode(), np.uint8)
