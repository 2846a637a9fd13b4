"""Percentiles learned on files: a sample of each, several files at a time, merged into the sample of all."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from lmgauge.errors import InputError
from lmgauge.filtering.documents import Documents
from lmgauge.filtering.filter_file import figures_of, groups_of, score_records
from lmgauge.filtering.groups import Groups
from lmgauge.filtering.options import FilterWork
from lmgauge.filtering.percentile_sample import Floats, Keys, PercentileSample, SampleSettings
from lmgauge.filtering.percentiles import LEAST_DOCUMENTS, Percentiles
from lmgauge.filtering.plan import FilterPlan, column_signatures, keys_of
from lmgauge.progress import say_progress
from lmgauge.records.formats import reader_of
from lmgauge.records.records import BLOCK_BYTES, RawBlock
from lmgauge.records.sources import Source
from lmgauge.threads import map_in_order, thread_count
from lmgauge.work.executor import run_tasks


def learn_files(plan: FilterPlan, sources: Sequence[Source], sample: SampleSettings, work: FilterWork) -> Percentiles:
    """Return the percentiles of the documents of files; no figure depends on the order of files, tasks or threads."""
    plan.options.check_groups()
    whole = PercentileSample(len(plan.names), sample)
    if work.ray is None and min(work.workers or 1, len(sources)) < 2:
        for source in sources:  # one after the other: what came before says which documents to score
            sample_file(plan, source, whole, threads=work.threads)
    else:
        settings = plan, sample, sources, work.threads
        how: dict[str, Any] = {"workers": work.workers, "ray": work.ray}
        for own in run_tasks("learn", "sampling documents", _sample, settings, len(sources), **how):
            whole.merge(own)
    # With a model for each group, none has another's percentiles to stand in for its own.
    least = LEAST_DOCUMENTS if plan.options.by is None else 1
    return Percentiles.learn(whole, column_signatures(plan.scorer), plan.options.scored_by(), least)


def _sample(number: int, settings: tuple[FilterPlan, SampleSettings, Sequence[Source], int | None]) -> PercentileSample:
    plan, sample, sources, threads = settings
    return sample_file(plan, sources[number], PercentileSample(len(plan.names), sample), threads=threads)


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
        usable = np.zeros(len(records), bool)
        usable[documents.rows] = True
        keys, groups = keys_of(records, source.label, seed), groups_of(plan, documents)
        wanted = np.zeros(len(records), bool)
        with lock:  # which documents are wanted depends on what came before, and what is sampled in the end does not
            wanted[usable] = sample.wanted(keys[usable], groups.where(usable))
        scores = score_records(plan, documents, wanted)
        problems = {**documents.problems, **scores.problems}
        said = [f"{records.identifier(row)}: {problems[row][1]}" for row in sorted(problems)]
        bad = len(records) - int(np.count_nonzero(usable))
        perplexity = figures_of(plan.names, scores).perplexity
        return keys[wanted], groups.where(wanted), perplexity[wanted], said, bad, block.size

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
