"""Training an n-gram model, stage after stage, over partitions that lie in memory, on disk or on other machines:

read and encode (`text`) -> count (`counting`) -> adjust (`adjusted_counts`) -> discounts (`discounts`) -> probabilities and
back-off weights (`interpolation`) -> if asked for, prune (`pruning`) -> tables (`packing`).

Each stage is a file that states its input and output first. The arrays between the stages lie where the engine has them.
Within a given memory, `plan` says how many partitions there are; a run that was stopped is resumed after the last finished
task.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lmgauge.digests import digest
from lmgauge.errors import UsageError
from lmgauge.files import refuse_other_folder
from lmgauge.memory import resident_bytes, size_in_words
from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.discounts import estimate_discounts
from lmgauge.models.ngram.interpolation import estimate
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.packed_tables import most_entries
from lmgauge.models.ngram.partitioned.counting import Counted, count_text
from lmgauge.models.ngram.partitioned.limits import MemoryLimits
from lmgauge.models.ngram.partitioned.links import Links, Shape
from lmgauge.models.ngram.partitioned.packing import Packing, pack_partitions, packed_model
from lmgauge.models.ngram.partitioned.plan import CHUNKS_SHARE, least_memory, number_of_partitions, tokens_of_chunk
from lmgauge.models.ngram.partitioned.pruning import prune_partitions
from lmgauge.models.ngram.partitioned.text import ReadText, read_text
from lmgauge.models.ngram.reading import Progress
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.models.ngram.storage import is_ngram_folder
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.progress import listening
from lmgauge.records.sources import Source
from lmgauge.text.documents import Corpus
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS
from lmgauge.threads import thread_count
from lmgauge.work.engine import Engine

_PROCESS_BYTES = 64 << 20  # of a process of its own, before it does anything
_STORE = 0.4  # of the memory: arrays between tasks, where a cluster holds them
_LEAST_STORE = 100 << 20  # of Ray
_SURELY = 1.1  # estimates are a little too large
_SPARE = 0.95  # of the memory asked for: what is not planned stays within the rest


@dataclass(frozen=True)
class _Plan:
    partitions: int
    memory: int  # of a task, in bytes


def train_within(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    output: Path,
    limits: MemoryLimits,
    *,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
) -> NgramModel:
    """Train a model within a given memory, and write its folder: the model that `train_ngram` makes, to the bit."""
    # corpus: the text, read once; each segment is a sentence.
    refuse_other_folder(output, is_ours=is_ngram_folder)
    # A program that trains may hold other things; the memory asked for is of training.
    before = max(0, resident_bytes() - _PROCESS_BYTES)  # of whatever else the program does
    with listening(progress), _open_engine(limits, output, _described(settings, corpus)) as engine:
        chunk = tokens_of_chunk(limits.memory // limits.workers)
        text = read_text(engine, settings, corpus, chunk, threads=thread_count(threads), progress=progress)
        plan = engine.once("plan", _Plan, lambda: _planned(settings, text, limits, before))
        return train_partitions(engine, settings, text, output, **vars(plan))


def train_partitions(
    engine: Engine, settings: NgramTrainingSettings, text: ReadText, output: Path | None, *, partitions: int, memory: int
) -> NgramModel:
    """Train on a text that was read, on any engine; the model is written to a folder, or in memory without one."""
    fitted, order = text.fitted, settings.order
    shape = Shape(order, partitions, len(text.ids), len(fitted.vocabulary), order > 2 and not settings.additive)
    counted, links = list[Counted](), Links(shape, text.ids, [], {})
    if order > 1:
        # Dealing by hash is even: 2 % more than the mean is seldom passed, and a table that is too small grows.
        expected = [int(1.02 * n / partitions) + 64 for n in text.types]
        counted, links = count_text(engine, shape, expected, text.ids)
    counts = fitted.counts.copy()
    counts[BOS] = 0
    continuation = settings.kind in CONTINUATION
    adjusted = adjust_counts(engine, links, counted, counts, continuation=continuation, cutoffs=settings.cutoffs)
    by_order = () if settings.additive else enumerate(adjusted.counts_of_counts, 1)
    discounts = [estimate_discounts(settings, k, n) for k, n in by_order]
    estimated = estimate(engine, links, counted, adjusted, discounts, settings, fitted.events(settings))
    recorded, record = settings.recorded(), fitted.record(text.report, discounts)
    unigrams, grams, entries = estimated.unigrams, estimated.grams, estimated.entries
    if settings.prune is not None:
        pruned = prune_partitions(engine, links, grams, unigrams, settings.prune)
        unigrams, grams, entries = pruned.unigrams, pruned.grams, pruned.entries
        recorded, record = replace(recorded, prune=settings.prune), replace(record, notes=(*record.notes, pruned.note))
    engine.drop(links)
    tables = NgramTables(unigrams, [], full_context=settings.additive, unseen=estimated.unseen)
    model = NgramModel(tables, fitted.vocabulary, make_tokenizer(settings.tokenizer), recorded, record)
    packed = pack_partitions(engine, Packing(order, shape.vocabulary, memory), grams, entries)
    return packed_model(engine, packed, model, output)


def _described(settings: NgramTrainingSettings, corpus: Corpus) -> dict[str, Any]:
    files = [(source.stored_path, *_stamp(source)) for source in corpus.sources]
    words: Any = settings.words  # read, if it was a file
    words = None if words is None else digest("\n".join(words))
    values = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name != "normalizer"}
    return values | {"tokenizer": make_tokenizer(settings.tokenizer).settings(), "words": words, "files": files}


def _stamp(source: Source) -> tuple[int | None, int | str]:
    if source.state is not None:
        return source.state.size, source.state.version
    with suppress(OSError, ValueError):
        state = os.stat(source.path)
        return state.st_size, state.st_mtime_ns
    return -1, -1


def _for_a_task(limits: MemoryLimits, before: int, text: ReadText, vocabulary: int) -> int:
    share = _SPARE * (1 - _STORE if limits.ray is not None else 1.0)
    held = max(0, resident_bytes() - before)
    process = _PROCESS_BYTES if limits.processes or limits.ray is not None else 0
    memory = (int(share * limits.memory) - held) // limits.workers - process
    least = least_memory(text.types, chunk=text.chunk, vocabulary=vocabulary)
    if memory >= least:
        return memory
    # Chunks grow with the memory, to this part of it.
    enough = ((least + process) * limits.workers + held) / (share - 1 / CHUNKS_SHARE)
    again = "" if limits.ray is not None else " with --resume"
    workers = "" if limits.workers == 1 else f" for {limits.workers} workers"
    raise UsageError(
        f"{size_in_words(limits.memory)} of memory do not hold a vocabulary of {vocabulary:,} words{workers}: give --memory "
        f"{math.ceil(enough / 1e7)}0M or more{again}, {'fewer --workers, ' * bool(workers)}or leave rare words out by "
        "--min-count"
    )


def _planned(settings: NgramTrainingSettings, text: ReadText, limits: MemoryLimits, before: int) -> _Plan:
    if not settings.cutoffs and settings.prune is None:  # else it is known at the end how many there are
        for k, n in enumerate(text.types, 2):
            most = most_entries(last=k == settings.order)
            if n > _SURELY * most:
                raise UsageError(
                    f"about {n:,} n-grams of order {k} are more than a model can have, {most:,}; use --cutoffs or a lower "
                    "order"
                )
    size = len(text.fitted.vocabulary)
    memory = _for_a_task(limits, before, text, size)
    partitions = number_of_partitions(text.types, chunk=text.chunk, vocabulary=size, memory=memory)
    return _Plan(partitions, memory)


@contextmanager
def _open_engine(limits: MemoryLimits, output: Path, work: dict[str, Any]) -> Iterator[Engine]:
    # What runs the tasks; what is in a folder is removed if the block came to its end.
    if limits.ray is not None:
        from lmgauge.work.ray_engine import RayEngine

        with RayEngine(
            limits.ray, workers=limits.workers, store_bytes=max(_LEAST_STORE, int(_STORE * limits.memory))
        ) as cluster:
            yield cluster
        return
    from lmgauge.work.folder_engine import FolderEngine

    folder = limits.work_folder(output)
    with FolderEngine(folder, work, workers=limits.workers, processes=limits.processes, resume=limits.resume) as engine:
        try:
            yield engine
        except BaseException:
            if not engine.is_finished("read"):  # there is nothing to go on with
                engine.remove()
            raise
        engine.remove()
