"""`lmgauge.filter_documents` and `lmgauge.score_documents`: files of documents, filtered by what models make of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from lmgauge.api.documents import Inputs, opened_engine, scorer_of
from lmgauge.api.inputs import PATHS, PathLike
from lmgauge.api.percentiles import learn_percentiles
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing, writing
from lmgauge.filtering.filter_file import refuse_nothing
from lmgauge.filtering.filter_files import filter_files
from lmgauge.filtering.folder import begin_folder
from lmgauge.filtering.layout import RECORDS, jobs_of
from lmgauge.filtering.options import FilterKeywords, FilterWork, RecordKeywords, RecordOptions, RuleKeywords
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.plan import FileJob, FilterPlan
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.filtering.rules import FilterRules
from lmgauge.filtering.scorer import Model
from lmgauge.models.network.options import ScoringOptions
from lmgauge.places import exists, joined, shown_name
from lmgauge.text.streams import find_sources


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
    """Write the documents that stay, in the form they had, with columns of their bits, bits per byte, perplexity and so on.

    JSONL, TSV, Parquet and lines of text, packed or not, are streamed in constant memory. A record keeps every field it has.
    A bad record is counted and put aside, and ends nothing. Where the output is a folder, it gets a file for each that is
    read; a file appears when it is complete, and running the same again continues with those that are not.

    Args:
        model: a model or its path; a mapping from names to several, each of which has columns of its own; with `by` from
            values of that field, "*" for all others.
        inputs: files, globs, addresses; `-` is standard input.
        output: a file for one, a folder for several.
        percentiles: those that `keep` and `buckets` refer to, or their file; where there is none yet, they are learned on a
            sample of the inputs and saved there; see `learn_percentiles`.
        rejects: JSONL file for bad records, with what is wrong with each.
        scoring: how networks score.
        work: threads, processes, a cluster, a shard.
        options: how records are read (see `RecordOptions`: `field`, `lines`, `by`, `group`, `id`, `format`, `errors`), and
            which documents stay (see `FilterRules`: `max_perplexity`, `min_perplexity`, `keep`, `min_bytes`, `max_bytes`,
            `min_tokens`, `max_unseen`, `buckets`, `judged_by`).

    Returns:
        What became of the documents: counts by reason and group, histograms, examples.

    Raises:
        InputError: a file cannot be read; no record can be used; a record is bad, and errors are to "fail".
        UsageError: options contradict each other, percentiles are to be learned on what can be read only once, or the folder
            holds documents that were filtered otherwise.
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
    work = work or FilterWork()
    if isinstance(percentiles, PATHS) and rules.needs_percentiles and not exists(percentiles):
        if work.shard is not None:
            raise UsageError(f"{percentiles}: no such file; learn it once for all shards, with 'lmgauge percentiles'")
        once = next((source.name for source in find_sources(inputs, records.format) if source.one_shot), None)
        if once is not None:
            raise UsageError(
                f"{once} can be read only once, and learning {percentiles} takes it: save the text in a file first"
            )
        learn_percentiles(model, inputs, output=percentiles, scoring=scoring, work=work, **vars(records))
    frozen = Percentiles.load(percentiles) if isinstance(percentiles, PATHS) else percentiles
    plan = FilterPlan(scorer_of(model, records, scoring), records, rules, frozen)
    return run_plan(plan, inputs, output, columns=False, rejects=rejects, work=work)


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
    plan = FilterPlan(scorer_of(model, records, scoring), records)
    return run_plan(plan, inputs, output, columns=True, rejects=rejects, work=work or FilterWork())


def run_plan(
    plan: FilterPlan, inputs: Inputs, output: PathLike, *, columns: bool, rejects: PathLike | None, work: FilterWork
) -> FilteredDocuments:
    """Filter files, and return what became of their documents.

    Args:
        plan: what is decided about documents.
        inputs: files.
        output: a file or a folder.
        columns: True if the scores must be in what is written.
        rejects: file for bad records.
        work: threads, processes, a cluster, a shard.

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
    if work.shard is not None and not 0 <= work.shard[0] < work.shard[1]:
        raise UsageError(f"shard {work.shard}: the number of a share, from 0, and how many there are, such as (0, 2)")
    if work.shard is not None and not is_folder:
        raise UsageError("a shard has a share of the files: give -o a folder")
    if work.shard is not None and rejects is not None:
        place = joined(target, RECORDS, "rejects")
        raise UsageError(
            f"all shards would write --rejects {rejects}: leave it out; their bad records are in {shown_name(place)}"
        )
    if is_folder:
        begin_folder(target, plan, jobs)
    if work.shard is not None:
        rank, count = work.shard
        jobs = jobs[rank::count]
    with opened_engine(work, len(jobs)) as engine:
        done = filter_files(plan, jobs, engine, threads=work.threads)
    if not any(file.tally.reasons for file in done):
        for file in done:
            refuse_nothing(file.tally)
    if is_folder and rejects is not None:
        _join_rejects(jobs, os.fspath(rejects))
    before = sum(file.before for file in done)
    return FilteredDocuments.of(plan.summary(), [file.tally for file in done], shown_name(target), before=before)


def _join_rejects(jobs: Sequence[FileJob], path: str) -> None:
    """Write the bad records of all files as one file, in the order of the files."""
    from lmgauge.places import open_reading

    with writing(path) as whole:
        for job in jobs:
            if job.rejects is not None:
                with open_reading(job.rejects) as own:
                    shutil.copyfileobj(own, whole)
