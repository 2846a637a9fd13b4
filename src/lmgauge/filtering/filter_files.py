"""Many files of records, as tasks of an engine. What is remembered of a finished file lets a later run leave it alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.filtering.filter_file import filter_file
from lmgauge.filtering.layout import RECORDS
from lmgauge.filtering.plan import FileJob, FilterPlan
from lmgauge.filtering.tally import Tally
from lmgauge.json_text import plain, to_json
from lmgauge.places import exists, file_state, make_folder, read_json, write_json
from lmgauge.progress import say_progress
from lmgauge.remote.addresses import is_remote, joined
from lmgauge.stages.stage import Array, Engine, Read, Stage
from lmgauge.version import __version__

_WORK = "work.json"


@dataclass(frozen=True)
class FinishedFile:
    """What is remembered of a file whose outputs are complete.

    Attributes:
        job: what was done to it.
        tally: what became of its records.
        before: whether an earlier run did it.
    """

    job: FileJob
    tally: Tally
    before: bool


def filter_files(
    plan: FilterPlan, jobs: Sequence[FileJob], engine: Engine, *, threads: int | None = None
) -> list[FinishedFile]:
    """Filter files, several at a time, but for those that are complete.

    Args:
        plan: all decisions.
        jobs: the files.
        engine: what runs the tasks, one a file.
        threads: of each task.

    Returns:
        What became of each, in the order of the jobs.

    Raises:
        UsageError: the folder holds files that were filtered otherwise, or that nobody remembers.
        LmgaugeError: what filtering raises.
    """
    done = {number: found for number, job in enumerate(jobs) if (found := finished(job)) is not None}
    rest = [number for number in range(len(jobs)) if number not in done]
    for number in rest:
        _refuse_others(jobs[number])
    if rest:
        tasks = [jobs[number] for number in rest]
        stage = Stage("filter", len(tasks), _work, (plan, tasks, threads), _needs, _makes, title="filtering files")
        engine.run(stage)
        for place, number in enumerate(rest):
            (name,) = _makes(place)
            done[number] = FinishedFile(jobs[number], Tally.from_dict(json.loads(engine.read(name).tobytes())), False)
            engine.drop([name])
    return [done[number] for number in range(len(jobs))]


def _needs(number: int) -> list[str]:
    return []


def _makes(number: int) -> list[str]:
    return [f"filtered/{number}"]


def _work(read: Read, number: int, settings: tuple[FilterPlan, Sequence[FileJob], int | None]) -> Iterator[Array]:
    """Filter a file, and remember it."""
    plan, jobs, threads = settings
    job = jobs[number]
    before = _state(job)
    for path in (*job.outputs.values(), job.rejects, job.record) if job.record is not None else ():
        if path is not None and not is_remote(path):
            make_folder(os.path.dirname(path))
    total = 0

    def watch(size: int) -> None:
        nonlocal total
        total += size
        say_progress(f"filtering {job.source.name}: {total / 1e6:,.0f} MB")

    tally = filter_file(plan, job, threads=threads, progress=watch).to_dict()
    if job.record is not None:
        write_json(job.record, {"source": before, "outputs": _sizes(job), "tally": tally, "version": __version__})
    yield np.frombuffer(to_json(tally, indent=None).encode(), np.uint8)


def finished(job: FileJob) -> FinishedFile | None:
    """Return what is remembered of a file, if its outputs are complete and it has not changed since.

    Args:
        job: what is to be done to it.

    Raises:
        InputError: what is remembered was damaged.
    """
    if job.record is None or not exists(job.record):
        return None
    stored = read_json(job.record)
    if not isinstance(stored, dict) or not {"source", "outputs", "tally"} <= stored.keys():
        raise InputError(f"{job.record}: is not what lmgauge remembers of a file; remove it to filter the file again")
    if stored["source"] != _state(job) or not all(map(exists, job.outputs.values())) or stored["outputs"] != _sizes(job):
        return None
    try:
        return FinishedFile(job, Tally.from_dict(stored["tally"]), True)
    except InputError as error:
        raise InputError(f"{job.record}: {error}; remove it to filter the file again") from error


def _state(job: FileJob) -> Mapping[str, Any] | None:
    """Return what tells whether a file has changed."""
    if job.source.one_shot:
        return None
    state = file_state(job.source.path)
    return {"size": state.size, "version": state.version}


def _sizes(job: FileJob) -> dict[str, int | None]:
    return {bucket: file_state(path).size for bucket, path in job.outputs.items()}


def _refuse_others(job: FileJob) -> None:
    """Refuse to replace a file of a folder that no earlier run is known to have made.

    Raises:
        UsageError: there is one.
    """
    if job.record is None or exists(job.record):
        return
    for path in job.outputs.values():
        if exists(path):
            raise UsageError(f"{path}: is there already, and is not the output of an earlier run; choose another folder")


def begin_folder(folder: str, plan: FilterPlan) -> None:
    """Make a folder of outputs, or go on with one in which the same is done.

    Args:
        folder: of all outputs.
        plan: what is done.

    Raises:
        UsageError: something else is done in it.
        OutputError: it cannot be made.
    """
    place, work = joined(folder, RECORDS, _WORK), plain(plan.described())
    if not exists(place):
        make_folder(joined(folder, RECORDS))
        write_json(place, work)
        return
    stored = read_json(place)
    stored = stored if isinstance(stored, dict) else {}
    different = next((name for name in work if stored.get(name) != work[name]), None)
    if different is not None:
        raise UsageError(f"{folder}: holds documents that were filtered with other {different}; choose another folder")
