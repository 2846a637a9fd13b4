"""Training an n-gram model, stage after stage:

read and encode -> count (`counting`) -> adjust (`adjusted_counts`) -> discounts (`discounts`) -> probabilities and back-off
weights (`interpolation`) -> tables (`tables`), and if asked for, pruning (`pruning`).

Each stage is a file that states its input and output first. Memory is taken over from stage to stage: the tables that hold
the counts become those that hold the probabilities. `memory_needs` says how much of it each stage takes; what does not fit
into memory is trained in partitions (`partitioned`), and `train_or_within` finds out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import LmgaugeError, NotEnoughMemoryError, UsageError
from lmgauge.files import refuse_replacing
from lmgauge.memory import size_in_words
from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.counting import NgramCounts, count_ngrams, estimate_types
from lmgauge.models.ngram.discounts import Discounts, estimate_discounts
from lmgauge.models.ngram.interpolation import estimate_additive, estimate_with_discounts
from lmgauge.models.ngram.kenlm_form import KenlmForm
from lmgauge.models.ngram.memory_needs import TextSize, check_reading, check_training
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.reading import Progress, TextIds, TextReader
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.documents import Corpus
from lmgauge.threads import thread_count

_LOGGER = logging.getLogger(__name__)
_SMALLER = "a lower --order, or --cutoffs"


def train_ngram(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    *,
    threads: int | None = None,
    listed: bool = False,
    progress: Progress = lambda stage: None,
) -> NgramModel:
    """Train a model on a text."""
    # corpus: the text, read once; each segment is a sentence. Its ids, uint32 [n], are held in memory; threads: how many
    # threads share the work; the model does not depend on it; listed: True if its n-grams are then listed to write the file
    # of another program: memory must be enough for it.
    threads = thread_count(threads)
    reader = TextReader(settings)
    text = TextIds()
    for block in reader.blocks(corpus, threads=threads, progress=progress):
        text.add(block)
        check_reading(text.size)
    fitted = reader.fit()
    ids = text.whole() if fitted.new_ids is None else fitted.new_ids[text.whole()]
    del text
    sizes = estimate_types(ids, settings.order, threads) if settings.order > 1 else []
    vocabulary = fitted.vocabulary
    vocabulary_bytes = vocabulary.slots.nbytes + vocabulary.offsets.nbytes + vocabulary.bytes.nbytes
    needed = check_training(settings, TextSize(len(ids), len(vocabulary), vocabulary_bytes, sizes, listed))
    progress(f"counting n-grams of {fitted.number_of_events:,} events: {needed}")
    counts = count_ngrams(ids, settings.order, len(vocabulary), threads=threads, sizes=sizes)
    del ids
    progress(f"estimating {sum(counts.types):,} n-grams")
    tables, discounts = _estimate(settings, counts, fitted.events(settings), threads)
    record = fitted.record(corpus.report, discounts)
    model = NgramModel(tables, vocabulary, reader.tokenizer, settings.recorded(), record)
    if settings.prune is not None:
        from lmgauge.models.ngram.pruning import prune_model

        progress("pruning")
        model = prune_model(model, settings.prune)
    return model


def _estimate(
    settings: NgramTrainingSettings, counts: NgramCounts, events: NDArray[np.bool_], threads: int
) -> tuple[NgramTables, list[Discounts]]:
    # Tables of the model, in the memory of the counts, and the discounts of each order.
    if settings.additive:
        return estimate_additive(counts, settings.added, events, threads=threads), []
    adjusted = adjust_counts(counts, continuation=settings.kind in CONTINUATION, cutoffs=settings.cutoffs, threads=threads)
    discounts = [estimate_discounts(settings, order, n) for order, n in enumerate(adjusted.counts_of_counts, 1)]
    tables = estimate_with_discounts(adjusted, discounts, events, interpolate=settings.interpolate, threads=threads)
    return tables, discounts


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
            model = train_ngram(settings, corpus, threads=threads, listed=resources.writes_file, progress=progress)
        except NotEnoughMemoryError as error:
            too_large = error
        else:
            if output is not None and not scratch:
                progress(f"saving {output}")
                model.save(written or output, **vars(form or KenlmForm()))
            return model
    if too_large is not None and (refusal := _refusal(corpus, resources)):
        raise NotEnoughMemoryError(f"{too_large}; {refusal}") from too_large
    from lmgauge.models.ngram.partitioned.training import train_within

    assert output is not None  # it would have been refused
    limits = resources.limits(threads=threads)
    work = limits.work_folder(output)
    if too_large is not None:
        _LOGGER.warning("%s: training within %s, through %s", too_large, size_in_words(limits.memory), work)
    refuse_replacing({"-o": output, "--temp": work}, sources)
    limits = limits if written is None else replace(limits, model=output)
    with nullcontext() if scratch else _naming_work(work, limits.memory):
        return train_within(settings, corpus, written or output, limits, threads=threads, progress=progress)


def _refusal(corpus: Corpus, resources: TrainingResources) -> str:
    # What to do where a text that does not fit into memory cannot be trained on within it; empty where it can.
    if resources.output is None or resources.writes_file:
        return f"train into a folder, for which memory is enough (`lmgauge convert` makes a file of it), or with {_SMALLER}"
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
