"""What a folder of outputs remembers: what is done in it, and what became of each file that is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.filtering.layout import RECORDS
from lmgauge.filtering.plan import FileJob, FilterPlan, PlanSummary
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.filtering.tally import StoredTally, Tally
from lmgauge.json_text import plain
from lmgauge.places import exists, file_state, make_folder, read_json, write_json
from lmgauge.readable import first_few
from lmgauge.remote.addresses import base_name, joined
from lmgauge.version import __version__

_WORK = "work.json"
_OF_FOLDER = "what is remembered of filtered documents", "choose another folder"


@dataclass(frozen=True)
class FinishedFile:
    """What is remembered of a file whose outputs are complete."""

    job: FileJob
    tally: Tally
    before: bool  # True if an earlier run did it


def begin_folder(folder: str, plan: FilterPlan, jobs: Sequence[FileJob]) -> None:
    """Make a folder of outputs, or continue in one in which the same is done."""
    place, work = joined(folder, RECORDS, _WORK), plain(_description(plan, jobs))
    if not exists(place):
        make_folder(joined(folder, RECORDS))
        write_json(place, work)
        return
    stored = read_json(place, dict[str, Any], *_OF_FOLDER)
    different = next((name for name in work if stored.get(name) != work[name]), None)
    if different is not None:
        raise UsageError(f"{folder}: holds documents that were filtered with other {different}; choose another folder")


def _description(plan: FilterPlan, jobs: Sequence[FileJob]) -> dict[str, Any]:
    files = {job.name: base_name(job.record) for job in jobs if job.record is not None}
    return {**plan.described(), "summary": asdict(plan.summary()), "files": files}


def read_folder(folder: str) -> FilteredDocuments:
    """Return what became of the documents of all files of a folder, whichever shard filtered them."""
    # Raises UsageError: a file is not complete yet.
    work = read_json(joined(folder, RECORDS, _WORK), _StoredWork, *_OF_FOLDER)
    records = {name: joined(folder, RECORDS, "files", record) for name, record in work.files.items()}
    stored = {name: _remembered(record) if exists(record) else None for name, record in records.items()}
    missing = [name for name, own in stored.items() if own is None]
    if missing:
        raise UsageError(
            f"{folder}: {len(missing)} of {len(records)} files are not complete: {first_few(missing)}; run all shards first"
        )
    tallies = [Tally.of_stored(own.tally) for own in stored.values() if own is not None and own.tally is not None]
    return FilteredDocuments.of(work.summary, tallies, folder)


def is_output_folder(folder: str) -> bool:
    """Return True if a folder holds documents that were filtered."""
    return exists(joined(folder, RECORDS, _WORK))


@dataclass
class _StoredFile:
    source: dict[str, Any] | None
    outputs: dict[str, int | None] | None
    tally: StoredTally | None


@dataclass
class _StoredWork:
    summary: PlanSummary
    files: dict[str, str]


def _remembered(record: str) -> _StoredFile | None:
    # What is remembered of a file; None while it is worked on.
    stored = read_json(record, _StoredFile, "what is remembered of a file", "remove it to filter the file again")
    return None if stored.tally is None else stored


def finished(job: FileJob) -> FinishedFile | None:
    """Return what is remembered of a file, if its outputs are complete and it has not changed since."""
    if job.record is None or not exists(job.record):
        return None
    stored = _remembered(job.record)
    if stored is None or stored.tally is None:
        return None
    complete = all(map(exists, job.outputs.values())) and stored.outputs == _sizes(job)
    return (
        FinishedFile(job, Tally.of_stored(stored.tally), True) if complete and stored.source == source_state(job) else None
    )


def begin(job: FileJob) -> None:
    """Remember that a file is worked on: what a run that is killed leaves of its outputs may be replaced."""
    if job.record is not None:
        write_json(job.record, {"source": None, "outputs": None, "tally": None, "version": __version__})


def remember(job: FileJob, before: Mapping[str, Any] | None, tally: Mapping[str, Any]) -> None:
    """Remember a file whose outputs are complete."""
    if job.record is not None:
        write_json(job.record, {"source": before, "outputs": _sizes(job), "tally": tally, "version": __version__})


def source_state(job: FileJob) -> Mapping[str, Any] | None:
    """Return the size in bytes and the version of a file, which tell a changed one."""
    # None for a file that is read only once.
    if job.source.one_shot:
        return None
    state = file_state(job.source.path)
    return {"size": state.size, "version": state.version}


def _sizes(job: FileJob) -> dict[str, int | None]:
    return {bucket: file_state(path).size for bucket, path in job.outputs.items()}


def refuse_others(job: FileJob) -> None:
    """Refuse to replace a file of a folder that no earlier run is known to have made."""
    if job.record is None or exists(job.record):
        return
    for path in job.outputs.values():
        if exists(path):
            raise UsageError(f"{path}: is there already, and is not the output of an earlier run; choose another folder")
