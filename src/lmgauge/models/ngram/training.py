"""Training an n-gram model, stage after stage, over partitions of the n-grams in memory or on disk.

The n-grams that begin with the same two words are a partition, so that all followers of a context of two words or more are
together. Each partition is counted, and its probabilities are estimated.
What one partition has to know of another belongs to suffixes: how many tokens precede an n-gram, and the probability of its
shorter form. This travels in the order of the text: an n-gram that is new at position s has its suffix at position s + 1, so
one walk over the ids deals what every partition has to say, in its own order, to those that wait for it, in theirs.

    text -> ids in chunks (`reading`)
    count     partition   a trie of its n-grams: parents, words, counts; n-grams are numbered as they first occur (rows)
    route     chunk       for each new n-gram a request for its suffix: the row of the suffix in its own partition
    adjust    partition   tokens that precede an n-gram = requests for its row; counts of counts (`adjusted_counts`)
    estimate  partition   order by order: contexts summed, probabilities; answers to the requests (`interpolation`)
    deal      chunk       the answers, back to those who asked (`links`)
    prune     partition   if asked for: upward the losses, downward what stays, upward the weights (`partition_pruning`)
    pack      bucket      the tables of the model (`packing`)

Each stage is a file that states its input and output first. Sums are of integers, so the model is the same, to the bit, for
any number of partitions, chunks and workers. In memory, the partitions stand there, a few for each thread, and
`memory_needs` says how much each stage takes; within a given memory, it says how many partitions there are, and a run that
was stopped is resumed after the last finished task. `train_or_within` finds out which.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lmgauge.base.errors import LmgaugeError, NotEnoughMemoryError, UsageError
from lmgauge.base.files import digest, refuse_other_folder, refuse_replacing
from lmgauge.base.memory import format_bytes, resident_bytes
from lmgauge.base.progress import listening
from lmgauge.base.threads import thread_count
from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.counting import count_text
from lmgauge.models.ngram.discounts import estimate_discounts
from lmgauge.models.ngram.interpolation import estimate
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.limits import MemoryLimits, TrainingResources
from lmgauge.models.ngram.links import Shape
from lmgauge.models.ngram.memory_needs import (
    CHUNKS_SHARE,
    TextSize,
    check_reading,
    check_training,
    least_memory,
    number_of_partitions,
    tokens_of_chunk,
)
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.packed_tables import most_entries
from lmgauge.models.ngram.packing import ALL_MEMORY, Packing, pack_partitions, packed_model
from lmgauge.models.ngram.partition_pruning import prune_partitions
from lmgauge.models.ngram.reading import Progress, ReadText, read_text
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.models.ngram.storage import is_ngram_folder
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.records.sources import Source
from lmgauge.text.documents import Corpus
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import Engine

_LOGGER = logging.getLogger(__name__)
_SMALLER = "a lower --order, or --cutoffs"
_CHUNK = 1 << 22  # tokens
_PARTITIONS, _LEAST_PARTITION = 2, 1 << 17  # of a thread, so that their tables lie nearer to it; tokens


def train_ngram(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    *,
    threads: int | None = None,
    listed: bool = False,
    progress: Progress = lambda stage: None,
    finish: Callable[..., Any] | None = None,
) -> Any:
    """Train a model on a text in memory."""
    # corpus: the text, read once; each segment is a sentence; threads: how many threads share the work; the model does not
    # depend on it; listed: True if its n-grams are then listed to write the file of another program: memory must be enough
    # for it; finish: what is done in place of `train_partitions` with the text when it is read.
    engine = Engine(thread_count(threads))
    with listening(progress):
        text = read_text(engine, settings, corpus, _CHUNK, threads=engine.workers, progress=progress, check=check_reading)
        tokens, vocabulary = int(text.fitted.counts.sum()), text.fitted.vocabulary
        partitions = min(_PARTITIONS * engine.workers, 1 + tokens // _LEAST_PARTITION)
        vocabulary_bytes = vocabulary.slots.nbytes + vocabulary.offsets.nbytes + vocabulary.bytes.nbytes
        cut = partitions, min(engine.workers, partitions)
        size = TextSize(tokens, len(vocabulary), vocabulary_bytes, text.types, *cut, listed=listed)
        needed = check_training(settings, size)
        progress(f"counting n-grams of {text.fitted.number_of_events:,} events: {needed}")
        return (finish or train_partitions)(engine, settings, text, None, partitions=partitions, memory=ALL_MEMORY)


# -- in memory, or within a part of it ----------------------------------------------------------------------------------
def train_or_within(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    resources: TrainingResources,
    form: KenlmForm | None = None,
    *,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
    written: Path | None = None,
    scratch: bool = False,
) -> NgramModel:
    """Train in memory, or within the memory asked for, or, where a model does not fit, within most of what is free."""
    # written: the folder to write; None: the output. scratch: True where the output is only room for a model too large for
    # memory, which goes when the work is done.
    output = None if resources.output is None else Path(resources.output)
    sources = [source.path for source in corpus.sources]
    refuse_replacing({"-o": output}, sources)
    too_large = None
    if output is None or not resources.asked:
        try:
            model: NgramModel = train_ngram(
                settings, corpus, threads=threads, listed=resources.writes_file, progress=progress
            )
        except NotEnoughMemoryError as error:
            too_large = error
        else:
            if output is not None and not scratch:
                progress(f"saving {output}")
                model.save(written or output, **vars(form or KenlmForm()))
            return model
    if too_large is not None and (refusal := _refusal(corpus, resources)):
        raise NotEnoughMemoryError(f"{too_large}; {refusal}") from too_large
    assert output is not None  # it would have been refused
    limits = resources.limits(threads=threads)
    work = limits.work_folder(output)
    if too_large is not None:
        _LOGGER.warning("%s: training within %s, through %s", too_large, format_bytes(limits.memory), work)
    refuse_replacing({"-o": output, "--temp": work}, sources)
    limits = limits if written is None else replace(limits, model=output)
    with nullcontext() if scratch else _naming_work(work, limits.memory):
        trained: NgramModel = train_within(settings, corpus, written or output, limits, threads=threads, progress=progress)
        return trained


def _refusal(corpus: Corpus, resources: TrainingResources) -> str:
    # What to do where a text that does not fit into memory cannot be trained on within it; empty where it can.
    if resources.output is None or resources.writes_file:
        return f"train into a folder, which needs less memory (`lmgauge convert` makes a file from it), or with {_SMALLER}"
    if not corpus.rereadable:
        memory = _in_option(resources.limits().memory)
        return f"the text can be read only once, and has been: give --memory {memory} from the beginning, {_SMALLER}"
    return ""


@contextmanager
def _naming_work(work: Path, memory: int) -> Iterator[None]:
    # Says where the work of a training lies that did not come to its end, and how it can go on.
    hint = f"the same command with --memory {_in_option(memory)} --resume continues from {work}"
    try:
        yield
    except UsageError:
        raise  # what is to be said of it, it says
    except LmgaugeError as error:
        if work.is_dir() and "--resume" not in str(error):
            error.args = (f"{error}; then {hint}", *error.args[1:])
        raise
    except (KeyboardInterrupt, SystemExit):
        if work.is_dir():
            _LOGGER.warning("stopped; %s", hint)
        raise


def _in_option(memory: int) -> str:
    # Bytes as --memory takes them, exactly.
    return f"{memory >> 20}M" if memory % (1 << 20) == 0 else str(memory)


_PROCESS_BYTES = 64 << 20  # of a process of its own, before it does anything
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
    finish: Callable[..., Any] | None = None,
) -> Any:
    """Train a model within a given memory, and write its folder: the model that `train_ngram` makes, to the bit."""
    # corpus: the text, read once; each segment is a sentence; finish: see `train_ngram`.
    if finish is None:
        refuse_other_folder(output, is_ours=is_ngram_folder)
    # A program that trains may hold other things; the memory asked for is of training.
    before = max(0, resident_bytes() - _PROCESS_BYTES)  # of whatever else the program does
    with listening(progress), _open_engine(limits, output, _described(settings, corpus)) as engine:
        chunk = tokens_of_chunk(limits.memory // limits.workers)
        text = read_text(engine, settings, corpus, chunk, threads=thread_count(threads), progress=progress)
        plan = engine.once("plan", _Plan, lambda: _planned(settings, text, limits, before))
        return (finish or train_partitions)(engine, settings, text, output, **vars(plan))


def train_partitions(
    engine: Engine, settings: NgramTrainingSettings, text: ReadText, output: Path | None, *, partitions: int, memory: int
) -> NgramModel:
    """Train on a text that was read, on any engine; the model is written to a folder, or in memory without one."""
    fitted, order = text.fitted, settings.order
    shape = Shape(order, partitions, len(text.ids), len(fitted.vocabulary), order > 2 and not settings.additive)
    counted, links = text.counted or count_text(engine, shape, text.types, text.ids)
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
    held = max(0, resident_bytes() - before)
    process = _PROCESS_BYTES if limits.processes else 0
    memory = (int(_SPARE * limits.memory) - held) // limits.workers - process
    least = least_memory(text.types, chunk=text.chunk, vocabulary=vocabulary)
    if memory >= least:
        return memory
    # Chunks grow with the memory, to this part of it.
    enough = ((least + process) * limits.workers + held) / (_SPARE - 1 / CHUNKS_SHARE)
    workers = "" if limits.workers == 1 else f" for {limits.workers} workers"
    raise UsageError(
        f"{format_bytes(limits.memory)} of memory do not hold a vocabulary of {vocabulary:,} words{workers}: give --memory "
        f"{math.ceil(enough / 1e7)}0M or more with --resume, {'fewer --workers, ' * bool(workers)}or leave rare words out "
        "by --min-count"
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
    from lmgauge.work.engine import FolderEngine

    folder = limits.work_folder(output)
    with FolderEngine(folder, work, workers=limits.workers, processes=limits.processes, resume=limits.resume) as engine:
        try:
            yield engine
        except BaseException:
            if not engine.is_finished("read"):  # there is nothing to go on with
                engine.remove()
            raise
        engine.remove()
