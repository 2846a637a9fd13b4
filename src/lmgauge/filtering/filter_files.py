"""Many files of records, as tasks of an engine, and what a folder of outputs remembers, so that a later run goes on."""

from __future__ import annotations

import logging
import os
import posixpath
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from threading import Lock
from typing import Any

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.files import digest, refuse_replacing, writing
from lmgauge.base.paths import exists, file_state, make_folder, open_reading
from lmgauge.base.progress import say_progress
from lmgauge.base.remote.addresses import is_remote, joined, shown_name
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.filtering.documents import Documents, Groups
from lmgauge.filtering.filter_file import FileJob, FilterPlan, filter_file, refuse_nothing
from lmgauge.filtering.options import FilterWork
from lmgauge.filtering.percentile_sample import Floats, Keys, PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.percentiles import LEAST_DOCUMENTS, Percentiles
from lmgauge.filtering.results import FilteredDocuments, PlanSummary, Tally
from lmgauge.filtering.rules import BUCKETS
from lmgauge.records.formats import format_of, reader_of, split_compression
from lmgauge.records.records import BLOCK_BYTES, RawBlock
from lmgauge.records.sources import STDIN, Source, find_sources
from lmgauge.work.executor import task_results
from lmgauge.work.manifest import decode_facts, described, difference, read_manifest, refuse_other, write_manifest

_LOG = logging.getLogger(__name__)
RECORDS = "_lmgauge"
"""Folder within the outputs for what is remembered of them; other programs skip names that begin with an underscore."""
_LONGEST_NAME = 200
"""Bytes: most systems allow 255, and what is added takes some."""
_WORK = "work.json"
Path = str | os.PathLike[str]


def filter_all(
    plan: FilterPlan, inputs: Path | Sequence[Path], output: Path, work: FilterWork, rejects: Path | None, *, columns: bool
) -> FilteredDocuments:
    """Filter files, and return what became of their documents; `columns` if the scores must be in what is written."""
    plan.check()
    sources, target = find_sources(inputs, plan.options.format), os.fspath(output)
    aside = None if rejects is None else os.fspath(rejects)
    buckets = () if plan.bucket_column is None else BUCKETS
    jobs = jobs_of(sources, target, buckets=buckets, columns=columns, rejects=aside)
    is_folder = jobs[0].record is not None
    refuse_replacing({"-o": target, "--rejects": aside}, [source.path for source in sources])
    if work.shard is not None and not is_folder:
        raise UsageError("a shard has a share of the files: give -o a folder")
    if work.shard is not None and aside is not None:
        place = shown_name(joined(target, RECORDS, "rejects"))
        raise UsageError(f"all shards would write --rejects {aside}: leave it out; their bad records are in {place}")
    if is_folder:
        begin_folder(target, plan, jobs)
    jobs = work.share(jobs)
    tallies, before = filter_files(plan, jobs, work)
    if not any(tally.reasons for tally in tallies):
        for tally in tallies:
            refuse_nothing(tally)
    if is_folder and aside is not None:
        with writing(aside) as whole:  # the bad records of all files, in their order
            for path in [job.rejects for job in jobs if job.rejects is not None]:
                with open_reading(path) as own:
                    shutil.copyfileobj(own, whole)
    return FilteredDocuments.of(plan.summary(), tallies, shown_name(target), before=before)


def filter_files(plan: FilterPlan, jobs: Sequence[FileJob], work: FilterWork) -> tuple[list[Tally], int]:
    """Filter files, several at a time, but for those that are complete; return what became of each, and how many were."""
    # Raises InputError: some files cannot be read; all others are complete then. A record is bad, and errors are to "fail".
    done = {job.name: tally for job in jobs if (tally := finished(job)) is not None}
    before, rest = len(done), [job for job in jobs if job.name not in done]
    problems: dict[str, str] = {}
    try:
        settings = plan, rest, work.threads
        made = task_results("filter", "filtering files", _filter, settings, len(rest), workers=work.workers or 1)
        for job, answer in zip(rest, made, strict=True):
            if isinstance(answer, str):
                problems[job.source.name] = answer
            else:
                done[job.name] = answer
    except (KeyboardInterrupt, SystemExit):
        if jobs[0].record is not None:
            complete = sum(finished(job) is not None for job in jobs)
            _LOG.warning("%s of %s files are complete; the same command goes on with the others", complete, len(jobs))
        raise
    if problems:
        _, *others = problems
        more = f"; neither could {first_few(others)} be filtered" if others else ""
        of_all = f" ({len(done):,} of {len(jobs):,} files are complete)" if len(jobs) > 1 else ""
        raise InputError(f"{next(iter(problems.values()))}{more}{of_all}")
    return [done[job.name] for job in jobs], before


def _filter(number: int, settings: tuple[FilterPlan, Sequence[FileJob], int | None]) -> Tally | str:
    # What became of the records of a file, or its problem: one that cannot be read keeps no other from being filtered.
    plan, jobs, threads = settings
    job, done = jobs[number], 0
    for path in (*job.outputs.values(), job.rejects, job.record) if job.record is not None else ():
        if path is not None and not is_remote(path):
            make_folder(os.path.dirname(path))
    remember(job, {}, None)

    def watch(size: int) -> None:
        nonlocal done
        done += size
        of = f" of {before['size'] / 1e6:,.0f}" if before.get("size") else ""
        say_progress(f"filtering {job.source.name}: {done / 1e6:,.0f}{of} MB, file {number + 1} of {len(jobs)}")

    try:
        before = source_state(job)
        tally = filter_file(plan, job, threads=threads, progress=watch)
        remember(job, before, tally)
        return tally
    except InputError as error:
        if plan.options.errors == "fail":
            raise
        return str(error)


# -- what a folder of outputs remembers ---------------------------------------------------------------------------------
def begin_folder(folder: str, plan: FilterPlan, jobs: Sequence[FileJob]) -> None:
    """Make a folder of outputs, or continue in one in which the same is done."""
    files = {job.name: os.path.basename(shown_name(job.record)) for job in jobs if job.record is not None}
    made_of, place = {**plan.described(), "files": files}, joined(folder, RECORDS, _WORK)
    if exists(place):
        refuse_other(folder, read_manifest(place).made_of, described(made_of))
        return
    if there := [path for job in jobs for path in job.outputs.values() if exists(path)]:
        raise UsageError(f"{there[0]}: already exists and is not the output of an earlier run; choose another folder")
    make_folder(joined(folder, RECORDS))
    write_manifest(place, "filter", made_of, asdict(plan.summary()))


def read_folder(folder: str) -> FilteredDocuments:
    """Return what happened to the documents of all files of a folder, whichever shard filtered them."""
    # Raises UsageError: a file is not complete yet.
    place = joined(folder, RECORDS, _WORK)
    work = read_manifest(place)
    files = decode_facts(work.made_of.get("files"), dict[str, str], place)
    records = {name: joined(folder, RECORDS, "files", record) for name, record in files.items()}
    facts = {name: read_manifest(record).facts for name, record in records.items() if exists(record)}
    if missing := [name for name in files if facts.get(name) is None]:
        raise UsageError(
            f"{folder}: {len(missing)} of {len(records)} files are not complete: {first_few(missing)}; run all shards first"
        )
    tallies = [decode_facts(own, Tally, records[name]) for name, own in facts.items()]
    return FilteredDocuments.of(decode_facts(work.facts, PlanSummary, place), tallies, folder)


def is_output_folder(folder: str) -> bool:
    """Return True if a folder holds documents that were filtered."""
    return exists(joined(folder, RECORDS, _WORK))


def finished(job: FileJob) -> Tally | None:
    """Return what is remembered of a file, if its outputs are complete and it has not changed since."""
    if job.record is None or not all(map(exists, (job.record, *job.outputs.values()))):
        return None
    stored = read_manifest(job.record)
    here = described(source_state(job) | {"outputs": _sizes(job)})
    return None if difference(stored.made_of, here) else decode_facts(stored.facts, Tally, job.record)


def remember(job: FileJob, before: Mapping[str, Any], tally: Tally | None) -> None:
    """Remember what became of a file whose outputs are complete; without a tally, that it is worked on."""
    # before: its state before it was read.
    if job.record is not None:
        made_of = before if tally is None else {**before, "outputs": _sizes(job)}
        write_manifest(job.record, "file", made_of, None if tally is None else tally.to_dict())


def source_state(job: FileJob) -> dict[str, Any]:
    """Return the size in bytes and the version of a file, which tell a changed one; nothing of one that is read once."""
    return {} if job.source.one_shot else file_state(job.source.path)._asdict()


def _sizes(job: FileJob) -> dict[str, int | None]:
    return {bucket: file_state(path).size for bucket, path in job.outputs.items()}


# -- percentiles of files ---------------------------------------------------------------------------------------------------
def learn_files(plan: FilterPlan, sources: Sequence[Source], sample: SampleSettings, work: FilterWork) -> Percentiles:
    """Return the percentiles of the documents of files; no figure depends on the order of files, tasks or threads."""
    plan.options.check_groups()
    whole = PercentileSample(len(plan.scorer.names), sample)
    if min(work.workers or 1, len(sources)) < 2:
        for source in sources:  # one after the other: what came before says which documents to score
            sample_file(plan, source, whole, threads=work.threads)
    else:
        settings = plan, sample, sources, work.threads
        for own in task_results("learn", "sampling documents", _sample, settings, len(sources), workers=work.workers or 1):
            whole.merge(own)
    # With a model for each group, none has another's percentiles to stand in for its own.
    least = LEAST_DOCUMENTS if plan.options.by is None else 1
    return Percentiles.learn(whole, plan.signatures, plan.options.scored_by(), least)


def _sample(number: int, settings: tuple[FilterPlan, SampleSettings, Sequence[Source], int | None]) -> PercentileSample:
    plan, sample, sources, threads = settings
    return sample_file(plan, sources[number], PercentileSample(len(plan.scorer.names), sample), threads=threads)


def sample_file(
    plan: FilterPlan, source: Source, sample: PercentileSample, *, threads: int | None = None
) -> PercentileSample:
    """Add the documents of a file to a sample, and return it: only those that may be in it are scored."""
    # A bad record is left out; where it cannot be scored although its text is fine, it has its place without a score.
    reader = reader_of(source, plan.fields())
    lock, seed = Lock(), sample.settings.seed

    def candidates(block: RawBlock) -> tuple[Keys, Groups, Floats, list[str], int, int]:
        # Documents that may be in the sample, with perplexities; what is wrong with records, bad ones, and bytes read.
        records = reader.parse(block)
        documents = Documents.of_records(records)
        rows, bad = documents.rows, len(records) - len(documents.rows)
        keys, groups = document_keys(source.label, records.numbers[rows], seed), plan.groups_of(documents).where(rows)
        with lock:  # which documents are wanted depends on what came before, and what is sampled in the end does not
            wanted = sample.wanted(keys, groups)
        scores = plan.score(documents.only(wanted))
        problems = {**documents.problems, **scores.problems}
        said = [f"{records.identifier(row)}: {problems[row][1]}" for row in sorted(problems)]
        perplexity = scores.perplexity[rows[wanted]]
        return keys[wanted], groups.where(wanted), perplexity, said, bad, block.size

    total = 0
    blocks = reader.blocks(BLOCK_BYTES)
    for keys, groups, values, problems, bad, size in map_in_order(candidates, blocks, thread_count(threads)):
        if problems and plan.options.errors == "fail":
            raise InputError(problems[0])
        with lock:
            sample.add(keys, groups, values)
        sample.bad_records += bad
        total += size
        say_progress(f"sampling {source.name}: {total / 1e6:,.0f} MB")
    return sample


# -- where the records of files go: one file, or a folder with a file for each that is read -----------------------------
def jobs_of(
    sources: Sequence[Source], output: str, *, buckets: Sequence[str] = (), columns: bool, rejects: str | None = None
) -> list[FileJob]:
    """Return what is to be done to each file."""
    # A file that is alone goes into the file that the output names; everything else goes into a folder, a file each, and
    # is remembered there.
    # columns: True if the scores of a document must be in what is written: lines of text then become JSONL.
    is_folder = output.endswith(("/", os.sep)) or os.path.isdir(output) or len(sources) > 1 or bool(buckets)
    if not is_folder:
        form: Format = format_of(output, _form(sources[0], columns))
        if columns and form == "text":
            raise UsageError(f"-o {output}: lines of text have no place for scores; give it a name that ends in .jsonl")
        return [FileJob(sources[0], "", {"": output}, form, rejects)]
    if output == STDIN or (exists(output) and not os.path.isdir(output)):
        raise UsageError(f"-o {output}: several files are written, into a folder; name one, with a slash at its end")
    if any(source.path == STDIN for source in sources):
        raise UsageError("standard input has no name for its file in a folder: give -o a file")
    jobs: dict[str, FileJob] = {}  # by the name of the output
    for source, name in zip(sources, _names(sources), strict=True):
        job = _job(source, name, output, buckets, columns)
        if (other := jobs.setdefault(job.name, job)) is not job:
            both = f"{other.source.name} and {source.name}: the documents of both would be written to {job.name}"
            raise UsageError(f"{both}; name a file once, and give files of one name folders of their own")
    return list(jobs.values())


def _job(source: Source, name: str, output: str, buckets: Sequence[str], columns: bool) -> FileJob:
    form = _form(source, columns)
    if form != source.format:
        bare, packed = split_compression(name)
        name = os.path.splitext(bare)[0] + f".{form}" + packed
    outputs = {bucket: joined(output, *([bucket] * bool(bucket)), name) for bucket in buckets or [""]}
    flat = _flat(name)
    # Not a name of JSONL: nobody who reads all JSONL files of a folder is to read these.
    rejects, record = joined(output, RECORDS, "rejects", f"{flat}.rejects"), joined(output, RECORDS, "files", f"{flat}.json")
    return FileJob(source, name, outputs, form, rejects, record)


def _flat(name: str) -> str:
    flat = name.replace("%", "%25").replace("/", "%2F")
    if len(os.fsencode(flat)) <= _LONGEST_NAME:
        return flat
    return f"{flat[-_LONGEST_NAME // 8 :]}-{digest(os.fsencode(name))[:32]}"


def _form(source: Source, columns: bool) -> Format:
    return "jsonl" if columns and source.format == "text" else source.format


def _names(sources: Sequence[Source]) -> list[str]:
    # Name of the output of each file: its path below the folder that all of them are in.
    paths = [_absolute(source.name) for source in sources]
    roots = {source.name.partition("://")[0] if is_remote(source.name) else "" for source in sources}
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if len(roots) == 1 else ""
    return [path[len(folder) :].lstrip("/") for path in paths]


def _absolute(path: str) -> str:
    if is_remote(path):
        return posixpath.normpath("/" + path.partition("://")[2])
    return os.path.abspath(path).replace(os.sep, "/")
