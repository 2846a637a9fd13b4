"""Training an n-gram model, stage after stage:

read and encode -> count (`counting`) -> adjust (`adjusted_counts`) -> discounts (`discounts`) -> probabilities and back-off
weights (`interpolation`) -> tables (`tables`), and if asked for, pruning (`pruning`).

Each stage is a file that states its input and output first. Memory is taken over from stage to stage: the tables that hold
the counts become those that hold the probabilities. `memory_needs` says how much of it each stage takes; what does not fit
into memory is trained in partitions (`partitioned`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.counting import NgramCounts, count_ngrams, estimate_types
from lmgauge.models.ngram.discounts import Discounts, estimate_discounts
from lmgauge.models.ngram.interpolation import estimate_additive, estimate_with_discounts
from lmgauge.models.ngram.memory_needs import TextSize, check_reading, check_training
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.reading import FittedVocabulary, Progress, TextIds, TextReader
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings, TrainingRecord
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import TextReport
from lmgauge.threads import thread_count


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
    record = training_record(corpus.report, fitted, discounts)
    model = NgramModel(tables, vocabulary, reader.tokenizer, settings.recorded(), record)
    if settings.prune is not None:
        from lmgauge.models.ngram.pruning import prune_model

        progress("pruning")
        model = prune_model(model, settings.prune)
    return model


def training_record(report: TextReport, fitted: FittedVocabulary, discounts: Sequence[Discounts]) -> TrainingRecord:
    """Return what a model remembers of its training."""
    training = {
        "sha256": report.sha256,
        "segments": report.segments,
        "events": fitted.number_of_events,
        "bytes": report.bytes,
    }
    notes = (*report.notes(), *(d.note for d in discounts if d.note))
    return TrainingRecord(discounts=tuple(d.values for d in discounts), training=training, notes=notes)


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
