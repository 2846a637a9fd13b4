"""Training an n-gram model, stage after stage:

read and encode -> count (`counting`) -> adjust (`adjusted_counts`) -> discounts (`discounts`) -> probabilities and back-off
weights (`interpolation`) -> tables (`tables`), and if asked for, pruning (`pruning`).

Each stage is a file that states its input and output first. Memory is taken over from stage to stage: the tables that hold
the counts become those that hold the probabilities. `memory_needs` says how much of it each stage takes; what does not fit
into memory is trained in partitions (`partitioned`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.counting import NgramCounts, count_ngrams, count_tokens, estimate_types
from lmgauge.models.ngram.discounts import Discounts, estimate_discounts
from lmgauge.models.ngram.interpolation import estimate_additive, estimate_with_discounts
from lmgauge.models.ngram.memory_needs import TextSize, check_reading, check_training
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings, TrainingRecord
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary, VocabularyBuilder, restrict
from lmgauge.threads import map_beside, thread_count

Progress = Callable[[str], None]
_PIECE = 1 << 24


def train_ngram(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    *,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
) -> NgramModel:
    """Train a model on a text.

    Args:
        settings: all decisions about the model.
        corpus: the text, read once; each segment is a sentence. Its ids, uint32 [n], are held in memory.
        threads: how many threads share the work; the model does not depend on it.
        progress: called with a few words when a stage begins.

    Raises:
        InputError: the text is empty or contains a reserved token.
        NotEnoughMemoryError: more memory is needed than is free.
        UsageError: a closed vocabulary does not hold all words, or the text is too long to count.

    Example:
        >>> corpus = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> train_ngram(NgramTrainingSettings("witten-bell", order=2), corpus)
        NgramModel(witten-bell, order 2, 6 + 6 n-grams)
    """
    threads = thread_count(threads)
    tokenizer = make_tokenizer(settings.tokenizer)
    ids, vocabulary = _fit_vocabulary(settings, *_read(settings, corpus, tokenizer, threads, progress))
    number_of_events = int(np.count_nonzero(ids != BOS))
    sizes = estimate_types(ids, settings.order, threads) if settings.order > 1 else []
    vocabulary_bytes = vocabulary.slots.nbytes + vocabulary.offsets.nbytes + vocabulary.bytes.nbytes
    needed = check_training(settings, TextSize(len(ids), len(vocabulary), vocabulary_bytes, sizes))
    progress(f"counting n-grams of {number_of_events:,} events: {needed}")
    counts = count_ngrams(ids, settings.order, len(vocabulary), threads=threads, sizes=sizes)
    del ids
    progress(f"estimating {sum(counts.types):,} n-grams")
    events = np.ones(len(vocabulary), bool)
    events[[UNK, BOS, EOS]] = not vocabulary.closed, False, settings.eos
    tables, discounts = _estimate(settings, counts, events, threads)
    report = corpus.report
    record = TrainingRecord(
        discounts=tuple(d.values for d in discounts),
        training={
            "sha256": report.sha256,
            "segments": report.segments,
            "events": number_of_events,
            "bytes": report.bytes,
        },
        notes=(*report.notes(), *(d.note for d in discounts if d.note)),
    )
    model = NgramModel(tables, vocabulary, tokenizer, settings.recorded(), record)
    if settings.prune is not None:
        from lmgauge.models.ngram.pruning import prune_model

        progress("pruning")
        model = prune_model(model, settings.prune)
    return model


def _estimate(
    settings: NgramTrainingSettings, counts: NgramCounts, events: NDArray[np.bool_], threads: int
) -> tuple[NgramTables, list[Discounts]]:
    """Return the tables of the model, in the memory of the counts, and the discounts of each order."""
    if settings.additive:
        return estimate_additive(counts, settings.added, events, threads=threads), []
    adjusted = adjust_counts(counts, continuation=settings.kind in CONTINUATION, cutoffs=settings.cutoffs, threads=threads)
    discounts = [estimate_discounts(settings, order, n) for order, n in enumerate(adjusted.counts_of_counts, 1)]
    tables = estimate_with_discounts(adjusted, discounts, events, interpolate=settings.interpolate, threads=threads)
    return tables, discounts


def _read(
    settings: NgramTrainingSettings, corpus: Corpus, tokenizer: Tokenizer, threads: int, progress: Progress
) -> tuple[NDArray[np.uint32], Vocabulary]:
    """Return the ids of the whole text with `<s>` where contexts begin, and the vocabulary they are from."""
    closed, stream = settings.vocabulary == "closed", settings.context == "stream"
    vocabulary: Vocabulary | VocabularyBuilder = VocabularyBuilder()
    if settings.words is not None:
        vocabulary = Vocabulary.from_tokens(settings.words, closed=closed)
    text = _Ids()
    if stream:
        text.add(np.array([BOS], np.uint32))

    def _ids(segments: Segments) -> NDArray[np.uint32]:
        encoded = encode(segments, tokenizer, vocabulary, bos=not stream, eos=settings.eos, reserved=settings.reserved)
        return encoded.ids.copy()  # without the spare room at its end

    for block in map_beside(_ids, corpus, threads):  # words get their ids in the order of the text
        text.add(block)
        check_reading(text.size)
        progress(f"reading {corpus.report.bytes / 1e6:,.0f} MB")
    if not corpus.report.segments:
        raise InputError("the training text is empty: there is nothing to count")
    return text.whole(), vocabulary if isinstance(vocabulary, Vocabulary) else vocabulary.finish(closed=closed)


class _Ids:
    """The ids of a text, which grow block by block.

    They lie in pieces so large that the system takes each back as soon as it is free; the room of many small arrays would
    stay with this process while it counts.
    """

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[NDArray[np.uint32]] = []

    def add(self, block: NDArray[np.uint32]) -> None:
        """Add the ids of the next block."""
        while len(block):
            at = self.size % _PIECE
            if not at:
                self._pieces.append(np.empty(_PIECE, np.uint32))
            part, block = block[: _PIECE - at], block[_PIECE - at :]
            self._pieces[-1][at : at + len(part)] = part
            self.size += len(part)

    def whole(self) -> NDArray[np.uint32]:
        """Return all ids, uint32 [n]."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)[: self.size]]
        return self._pieces[0][: self.size] if self._pieces else np.zeros(0, np.uint32)


def _fit_vocabulary(
    settings: NgramTrainingSettings, ids: NDArray[np.uint32], vocabulary: Vocabulary
) -> tuple[NDArray[np.uint32], Vocabulary]:
    """Return the ids and the vocabulary with rare words left out; refuse a text that they cannot be counted for."""
    if settings.min_count != 1 or settings.vocab_size is not None:
        counts = count_tokens(ids, len(vocabulary))
        vocabulary, new_ids = restrict(vocabulary, counts, min_count=settings.min_count, size=settings.vocab_size)
        ids = new_ids[ids]
    if vocabulary.closed and bool(np.any(ids == UNK)):
        raise UsageError(
            "a closed vocabulary must hold every word of the training text; use an open one, where the others are <unk>"
        )
    if not np.any(ids != BOS):
        raise InputError("the training text has no words, and --no-eos leaves out the line ends: there is nothing to count")
    return ids, vocabulary


def read_word_list(path: str | Path) -> list[str]:
    """Return the words of a file, one per line, as `words` of `lmgauge.train`; blank lines and special tokens are left out.

    Raises:
        InputError: the file cannot be read or is not valid UTF-8.
    """
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not valid UTF-8; a word list is UTF-8 text with one word per line"
        ) from error
    words = [line.strip() for line in lines]
    return [word for word in words if word and word not in SPECIAL_TOKENS]
