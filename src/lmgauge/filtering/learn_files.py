"""Percentiles learned on files: a sample of each, several files at a time, merged into the sample of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.documents import Documents
from lmgauge.filtering.filter_file import figures_of, groups_of, score_records
from lmgauge.filtering.groups import Groups
from lmgauge.filtering.percentile_sample import Floats, Keys, PercentileSample, SampleSettings
from lmgauge.filtering.percentiles import LEAST_DOCUMENTS, Percentiles
from lmgauge.filtering.plan import FilterPlan, column_signatures, keys_of
from lmgauge.progress import say_progress
from lmgauge.records.formats import reader_of
from lmgauge.records.records import BLOCK_BYTES, RawBlock
from lmgauge.records.sources import Source
from lmgauge.stages.memory_engine import MemoryEngine
from lmgauge.stages.stage import Array, Engine, Read, Stage
from lmgauge.threads import map_in_order, thread_count

_ARRAYS = 5  # of a sample, see `PercentileSample.arrays`


class _Settings(NamedTuple):
    """What all tasks know."""

    plan: FilterPlan
    sample: SampleSettings
    sources: Sequence[Source]
    threads: int | None


class _Candidates(NamedTuple):
    """Documents of a block that may be in the sample, with their perplexities, and what is wrong with bad records."""

    keys: Keys
    groups: Groups
    values: Floats
    problems: list[str]
    bad_records: int
    size: int


def learn_files(
    plan: FilterPlan, sources: Sequence[Source], sample: SampleSettings, engine: Engine, *, threads: int | None = None
) -> Percentiles:
    """Return the percentiles of the documents of files; no figure depends on the order of files, tasks or threads."""
    plan.options.check_groups()
    if isinstance(engine, MemoryEngine):  # one file after the other: what came before says which documents to score
        whole = PercentileSample(len(plan.names), sample)
        for source in sources:
            sample_file(plan, source, whole, threads=threads)
    else:
        whole = _in_parts(_Settings(plan, sample, sources, threads), engine)
    # With a model for each group, none has another's percentiles to stand in for its own.
    least = LEAST_DOCUMENTS if plan.options.by is None else 1
    return Percentiles.learn(whole, column_signatures(plan.scorer), plan.options.scored_by(), least)


def _in_parts(settings: _Settings, engine: Engine) -> PercentileSample:
    sources, sample = settings.sources, settings.sample
    engine.run(Stage("learn", len(sources), _work, settings, _needs, _makes, title="sampling documents"))
    return reduce(_merged, (_collected(engine, number, sample) for number in range(len(sources))))


def sample_file(
    plan: FilterPlan, source: Source, sample: PercentileSample, *, threads: int | None = None
) -> PercentileSample:
    """Add the documents of a file to a sample, and return it: only those that may be in it are scored."""
    # A bad record is left out; where it cannot be scored although its text is fine, it has its place without a score.
    reader = reader_of(source, plan.fields())
    lock, seed = Lock(), sample.settings.seed

    def candidates(block: RawBlock) -> _Candidates:
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
        return _Candidates(keys[wanted], groups.where(wanted), perplexity[wanted], said, bad, block.size)

    total = 0
    for batch in map_in_order(candidates, reader.blocks(BLOCK_BYTES), thread_count(threads)):
        if batch.problems and plan.options.errors == "fail":
            raise InputError(batch.problems[0])
        with lock:
            sample.add(batch.keys, batch.groups, batch.values)
        sample.bad_records += batch.bad_records
        total += batch.size
        say_progress(f"sampling {source.name}: {total / 1e6:,.0f} MB")
    return sample


def _needs(number: int) -> list[str]:
    return []


def _makes(number: int) -> list[str]:
    return [f"sample/{number}/{part}" for part in range(_ARRAYS)]


def _work(read: Read, number: int, settings: _Settings) -> Iterator[Array]:
    plan, source = settings.plan, settings.sources[number]
    yield from sample_file(
        plan, source, PercentileSample(len(plan.names), settings.sample), threads=settings.threads
    ).arrays()


def _collected(engine: Engine, number: int, settings: SampleSettings) -> PercentileSample:
    arrays: list[NDArray[np.generic]] = [engine.read(name) for name in _makes(number)]
    sample = PercentileSample.from_arrays(arrays, settings)
    engine.drop(_makes(number))
    return sample


def _merged(first: PercentileSample, other: PercentileSample) -> PercentileSample:
    first.merge(other)
    return first
