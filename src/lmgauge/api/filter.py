"""`lmgauge.filter_documents` and `lmgauge.score_documents`: files of documents, filtered by what models make of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from lmgauge.api.inputs import PATHS, PathLike
from lmgauge.choices import BadRecordPolicy, Format
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing, writing
from lmgauge.filtering.filter_files import begin_folder, filter_files
from lmgauge.filtering.layout import jobs_of
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.plan import FileJob, FilterPlan, RecordOptions
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.filtering.rules import FilterRules
from lmgauge.filtering.scorer import Model, Scorer
from lmgauge.models.network.options import ScoringOptions
from lmgauge.stages.folder_engine import FolderEngine
from lmgauge.stages.memory_engine import MemoryEngine
from lmgauge.stages.ray_engine import RayEngine
from lmgauge.stages.stage import Engine
from lmgauge.text.streams import find_sources

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


class RuleKeywords(TypedDict, total=False):
    """The fields of `FilterRules`, each of which may be left out."""

    max_perplexity: float | None
    min_perplexity: float | None
    keep: str | None
    min_bytes: int | None
    max_bytes: int | None
    min_tokens: int | None
    max_unseen: float | None
    buckets: str | None
    judged_by: str | None


class FilterKeywords(RecordKeywords, RuleKeywords, total=False):
    """How records are read, and which documents stay."""


@dataclass(frozen=True)
class FilterWork:
    """How files are worked off.

    Attributes:
        threads: blocks of a file parsed and scored at a time, in each process.
        workers: processes, each with a file at a time; None for this one alone.
        ray: address of a cluster of Ray, or `local`, whose tasks take a file each.
        shard: number of a share of the files, from 0, and how many shares there are; None for all files.
    """

    threads: int | None = None
    workers: int | None = None
    ray: str | None = None
    shard: tuple[int, int] | None = None


def filter_documents(
    model: Model | Mapping[str, Model],
    inputs: Inputs,
    output: PathLike,
    *,
    percentiles: Percentiles | PathLike | None = None,
    rejects: PathLike | None = None,
    scoring: ScoringOptions | None = None,
    work: FilterWork | None = None,
    **options: Unpack[FilterKeywords],
) -> FilteredDocuments:
    """Write the documents that stay, in the form they had, with columns that say what the models make of them.

    JSONL, Parquet and lines of text, packed or not, are streamed in constant memory. A record keeps every field it has. A
    bad record is counted and put aside, and ends nothing. Where the output is a folder, it gets a file for each that is
    read; a file appears when it is complete, and running the same again goes on with those that are not.

    Args:
        model: a model or its path; a mapping from names to several, each of which has columns of its own; with `by` from
            values of that field, "*" for all others.
        inputs: files, globs, addresses; `-` is standard input.
        output: a file for one, a folder for several.
        percentiles: those that `keep` and `buckets` refer to, or their file; see `learn_percentiles`.
        rejects: JSONL file for bad records, with what is wrong with each.
        scoring: how networks score.
        work: threads, processes, a cluster, a shard.
        options: how records are read (see `RecordOptions`: `field`, `lines`, `by`, `group`, `id`, `format`, `errors`), and
            which documents stay (see `FilterRules`: `max_perplexity`, `min_perplexity`, `keep`, `min_bytes`, `max_bytes`,
            `min_tokens`, `max_unseen`, `buckets`, `judged_by`).

    Returns:
        What became of the documents: counts by reason and group, histograms, examples.

    Raises:
        InputError: a file cannot be read; a record is bad, and errors are to "fail".
        UsageError: options contradict each other, or the folder holds documents that were filtered otherwise.
        OutputError: something cannot be written; nothing half-written is left.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.jsonl").write_text('{"text": "a b", "id": 1}\\n{"text": "x y z", "id": 2}\\n')
        ...     _ = filter_documents({"m": model}, f"{folder}/in.jsonl", f"{folder}/out.jsonl", max_perplexity=3)
        ...     print(Path(folder, "out.jsonl").read_text()[:55])
        {"text": "a b", "id": 1, "m_bits": 3.906890531115025, "
    """
    chosen: dict[str, Any] = dict(options)
    rules = FilterRules(**{name: chosen.pop(name) for name in list(chosen) if name in RuleKeywords.__annotations__})
    records = RecordOptions(**chosen)
    frozen = Percentiles.load(percentiles) if isinstance(percentiles, PATHS) else percentiles
    plan = FilterPlan(_scorer(model, records, scoring), records, rules, frozen)
    return run_plan(plan, inputs, output, columns=False, rejects=rejects, work=work or FilterWork())


def score_documents(
    model: Model | Mapping[str, Model],
    inputs: Inputs,
    output: PathLike,
    *,
    rejects: PathLike | None = None,
    scoring: ScoringOptions | None = None,
    work: FilterWork | None = None,
    **options: Unpack[RecordKeywords],
) -> FilteredDocuments:
    """Write all documents with columns that say what the models make of them: `filter_documents` without a rule.

    Lines of text, which have no columns, are written as JSONL.

    Args:
        model, inputs, output, rejects, scoring, work: as in `filter_documents`.
        options: how records are read; see `RecordOptions`.

    Raises:
        InputError, UsageError, OutputError: as in `filter_documents`.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\nx y z\\n")
        ...     score_documents({"m": model}, f"{folder}/in.txt", f"{folder}/out.jsonl").documents
        2
    """
    records = RecordOptions(**options)
    plan = FilterPlan(_scorer(model, records, scoring), records)
    return run_plan(plan, inputs, output, columns=True, rejects=rejects, work=work or FilterWork())


def _scorer(model: Model | Mapping[str, Model], records: RecordOptions, scoring: ScoringOptions | None) -> Scorer:
    return Scorer(model, field=records.field, lines=records.lines, by=records.by, scoring=scoring, threads=1)


def run_plan(
    plan: FilterPlan, inputs: Inputs, output: PathLike, *, columns: bool, rejects: PathLike | None, work: FilterWork
) -> FilteredDocuments:
    """Filter files, and return what became of their documents.

    Args:
        plan: what is decided about documents.
        inputs: files.
        output: a file or a folder.
        columns: whether the scores must be in what is written.
        rejects: file for bad records.
        work: how files are worked off.

    Raises:
        InputError, UsageError, OutputError: as in `filter_documents`.
    """
    plan.check()
    sources = find_sources(inputs, plan.options.format)
    target = os.fspath(output)
    jobs, is_folder = jobs_of(
        sources, target, buckets=plan.buckets, columns=columns, rejects=None if rejects is None else os.fspath(rejects)
    )
    named = {"-o": target, "--rejects": rejects}
    refuse_replacing(named, [source.path for source in sources])
    if work.shard is not None:
        rank, count = work.shard
        if not is_folder:
            raise UsageError("a shard has a share of the files: give -o a folder")
        jobs = jobs[rank::count]
    if is_folder:
        begin_folder(target, plan)
    with _engine(work, len(jobs)) as engine:
        done = filter_files(plan, jobs, engine, threads=work.threads)
    if is_folder and rejects is not None:
        _join_rejects(jobs, os.fspath(rejects))
    return FilteredDocuments.of(plan, done, target)


@contextmanager
def _engine(work: FilterWork, files: int) -> Iterator[Engine]:
    """Open what runs the tasks: this process, several, or a cluster."""
    if work.ray is not None:
        with RayEngine(work.ray, workers=work.workers) as cluster:
            yield cluster
    elif work.workers is None or work.workers == 1 or files < 2:
        yield MemoryEngine()
    else:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lmgauge-"))
            yield stack.enter_context(FolderEngine(f"{folder}/work", {}, workers=work.workers, processes=True))


def _join_rejects(jobs: Sequence[FileJob], path: str) -> None:
    """Write the bad records of all files as one file, in the order of the files."""
    from lmgauge.places import open_reading

    with writing(path) as joined:
        for job in jobs:
            if job.rejects is not None:
                with open_reading(job.rejects) as own:
                    shutil.copyfileobj(own, joined)
