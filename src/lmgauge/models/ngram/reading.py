"""Stage 0, reading: text to token ids, and the vocabulary they are from."""

# Input: a corpus. Output: blocks of ids, uint32 [n], with `<s>` where contexts begin; then the vocabulary, how often each
# word occurred, and the new ids of words where rare ones are left out.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.threads import map_beside
from lmgauge.models.ngram.counting import Counted
from lmgauge.models.ngram.discounts import Discounts
from lmgauge.models.ngram.links import Links
from lmgauge.models.ngram.settings import NgramTrainingSettings, TrainingRecord
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments, TextReport
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary, VocabularyBuilder, restrict
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

Progress = Callable[[str], None]
Ids = NDArray[np.uint32]
_TOKENS_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class FittedVocabulary:
    """The vocabulary of a text that was read."""

    vocabulary: Vocabulary  # without the words that are left out
    counts: NDArray[np.int64]  # int64 [vocabulary], occurrences; those of `<s>` count contexts
    # uint32, the id of each word of the text, `<unk>` for those left out; None where ids stay as they are
    new_ids: Ids | None

    @property
    def number_of_events(self) -> int:
        """Return how many tokens are predicted: all but `<s>`."""
        return int(self.counts.sum() - self.counts[BOS])

    def events(self, settings: NgramTrainingSettings) -> NDArray[np.bool_]:
        """Return which tokens can be predicted, bool [vocabulary]."""
        events = np.ones(len(self.vocabulary), bool)
        events[[UNK, BOS, EOS]] = not self.vocabulary.closed, False, settings.eos
        return events

    def record(self, report: TextReport, discounts: Sequence[Discounts]) -> TrainingRecord:
        """Return what a model remembers of its training."""
        training = {"sha256": report.sha256, "segments": report.segments}
        training |= {"events": self.number_of_events, "bytes": report.bytes}
        notes = (*report.notes(), *(d.note for d in discounts if d.note))
        return TrainingRecord(discounts=tuple(d.values for d in discounts), training=training, notes=notes)


class TextReader:
    """Read a text once, block after block."""

    def __init__(self, settings: NgramTrainingSettings) -> None:
        self.settings, self.tokenizer = settings, make_tokenizer(settings.tokenizer)
        self._vocabulary: Vocabulary | VocabularyBuilder = VocabularyBuilder()
        if settings.words is not None:
            words: Any = settings.words  # read, if it was a file
            self._vocabulary = Vocabulary.from_tokens(words, closed=settings.vocabulary == "closed")
        self._counts = np.zeros(0, np.int64)

    def blocks(self, corpus: Corpus, *, threads: int, progress: Progress = lambda stage: None) -> Iterator[Ids]:
        """Yield the ids of the text, with `<s>` where contexts begin."""
        settings, vocabulary, stream = self.settings, self._vocabulary, self.settings.context == "stream"

        def _ids(segments: Segments) -> Ids:
            encoded = encode(
                segments, self.tokenizer, vocabulary, bos=not stream, eos=settings.eos, reserved=settings.reserved
            )
            return encoded.ids.copy()  # without the spare room at its end

        if stream:
            yield self._counted(np.array([BOS], np.uint32))
        for block in map_beside(_ids, corpus, threads):  # words get their ids in the order of the text
            yield self._counted(block)
            progress(f"reading {corpus.report.bytes / 1e6:,.0f} MB")
        if not corpus.report.segments:
            raise InputError("the training text is empty: there is nothing to count")

    def _counted(self, ids: Ids) -> Ids:
        for begin in range(0, len(ids), _TOKENS_AT_A_TIME):  # NumPy makes 64-bit numbers of them first
            counts = np.bincount(ids[begin : begin + _TOKENS_AT_A_TIME], minlength=len(self._counts))
            counts[: len(self._counts)] += self._counts
            self._counts = counts
        return ids

    def fit(self) -> FittedVocabulary:
        """Return the vocabulary with rare words left out."""
        vocabulary = self._vocabulary
        if isinstance(vocabulary, VocabularyBuilder):
            vocabulary = vocabulary.finish(closed=self.settings.vocabulary == "closed")
        counts = np.zeros(len(vocabulary), np.int64)
        counts[: len(self._counts)] = self._counts
        return fit_vocabulary(self.settings, vocabulary, counts)


def fit_vocabulary(settings: NgramTrainingSettings, vocabulary: Vocabulary, counts: NDArray[np.int64]) -> FittedVocabulary:
    """Return a vocabulary with rare words left out."""
    # counts: int64 [vocabulary], occurrences of each word.
    new_ids = None
    if settings.min_count != 1 or settings.vocab_size is not None:
        vocabulary, new_ids = restrict(vocabulary, counts, min_count=settings.min_count, size=settings.vocab_size)
        before, counts = counts, np.zeros(len(vocabulary), np.int64)
        # counts [0, 1, 3, 2, 1], new_ids [0, 1, 2, 3, 0] -> [1, 1, 3, 2]: the word left out counts as `<unk>`.
        np.add.at(counts, new_ids, before)
    if vocabulary.closed and counts[UNK]:
        raise UsageError(
            "a closed vocabulary must hold every word of the training text; use an open one, where the others are <unk>"
        )
    fitted = FittedVocabulary(vocabulary, counts, new_ids)
    if not fitted.number_of_events:
        raise InputError("the training text has no words, and --no-eos leaves out the line ends: there is nothing to count")
    return fitted


_SKETCH_BITS = 14


class TypesSketch:
    """Estimate how many different n-grams a text has while it goes by, within about 1 %.

    >>> sketch = TypesSketch(2)
    >>> sketch.add(np.array([1, 3, 4, 3, 4], np.uint32))  # <s> a b a b: three bigrams
    >>> sketch.estimates()[0] < 70
    True
    """

    # Source: HyperLogLog, Flajolet et al. 2007.

    def __init__(self, order: int) -> None:
        self.order, self.tokens = order, 0
        self._registers = np.zeros((order - 1, 1 << _SKETCH_BITS), np.uint8)

    def add(self, ids: NDArray[np.uint32]) -> None:
        """Add tokens, uint32 [n], with `<s>` where a context begins; n-grams that end in others before are left out."""
        self.tokens += len(ids)
        if self.order > 1:
            _native.sketch_distinct(ids, 0, len(ids), self.order, self._registers.reshape(-1), _SKETCH_BITS)

    def estimates(self) -> list[int]:
        """Return the estimates for order 2, 3, ..., a little too large rather than too small."""
        size = self._registers.shape[1]
        estimates = []
        for row in self._registers:
            # Flajolet et al. (2007), figure 3: alpha m^2 / sum of 2^-register, with alpha = 0.7213 / (1 + 1.079 / m).
            estimate = (0.7213 / (1 + 1.079 / size)) * size * size / float(np.sum(np.exp2(-row.astype(np.float64))))
            empty = int(np.count_nonzero(row == 0))
            if estimate <= 2.5 * size and empty:
                # Few n-grams leave registers empty, whose share then tells more ("linear counting", same figure).
                estimate = size * float(np.log(size / empty))
            estimates.append(min(int(estimate * 1.03) + 64, self.tokens))
        return estimates


_OFFSETS, _BYTES, _COUNTS, _NEW_IDS = (Stored(f"words/{name}") for name in ("offsets", "bytes", "counts", "new_ids"))


@dataclass(frozen=True)
class ReadText:
    """What is known of a text whose ids an engine holds."""

    fitted: FittedVocabulary
    report: TextReport  # counts and fingerprint of the text
    types: list[int]  # n-grams of order 2, 3, ..., about
    ids: list[Stored]  # of each chunk, see `ChunkWriter`
    chunk: int  # tokens in each chunk but the last
    counted: tuple[list[Counted], Links] | None = None  # where counts of n-grams were read, and no text


def read_text(
    engine: Engine,
    settings: NgramTrainingSettings,
    corpus: Corpus,
    chunk: int,
    *,
    threads: int,
    progress: Progress = lambda stage: None,
    check: Callable[[int], None] = lambda tokens: None,
) -> ReadText:
    """Write a text as chunks of ids, unless an earlier run did, and return what is known of it."""
    # check: called with the number of tokens so far, and may raise.

    def read() -> _Known:
        reader, sketch = TextReader(settings), TypesSketch(settings.order)
        chunks = ChunkWriter(engine, settings.order, chunk)
        for ids in reader.blocks(corpus, threads=threads, progress=progress):
            sketch.add(ids)
            chunks.add(ids)
            check(sketch.tokens)
        fitted = reader.fit()
        engine.write(_OFFSETS.name, fitted.vocabulary.offsets)
        engine.write(_BYTES.name, fitted.vocabulary.bytes)
        engine.write(_COUNTS.name, fitted.counts)
        if fitted.new_ids is not None:
            engine.write(_NEW_IDS.name, fitted.new_ids)
        renumbered, closed = fitted.new_ids is not None, fitted.vocabulary.closed
        return _Known(corpus.report, sketch.estimates(), chunks.finish(), chunk, renumbered, closed)

    known = engine.once("read", _Known, read)
    ids = [Stored(f"text/{number}") for number in range(known.chunks)]
    if known.renumbered:  # rare words are left out, which is known at the end of the text
        renumbered = engine.run("renumber", _renumber, [(_NEW_IDS, chunk) for chunk in ids], NEW)
        engine.drop(ids, _NEW_IDS)
        ids = renumbered
    vocabulary = Vocabulary.from_strings(engine.read(_OFFSETS), engine.read(_BYTES), closed=known.closed)
    fitted = FittedVocabulary(vocabulary, engine.read(_COUNTS), None)
    return ReadText(fitted, known.report, known.types, ids, known.chunk)


@dataclass(frozen=True)
class _Known:
    report: TextReport
    types: list[int]
    chunks: int
    chunk: int
    renumbered: bool
    closed: bool


def _renumber(taken: tuple[Stored, Stored], read: Read) -> Iterator[Array]:
    new_ids, ids = map(read, taken)
    yield new_ids[ids]


class ChunkWriter:
    """Write the chunks, uint32 [1 + tokens + order]."""

    # The token before a chunk, its tokens, and as many as the order behind.
    # `<s>` stands before the text and behind it, beside the one that the first context of the text begins with.
    # order 2, chunks of 3 tokens, text [1, 3, 4, 5] -> [1, 1, 3, 4, 5, 1] and [4, 5, 1, 1]:
    # chunk 0 has the tokens 1, 3, 4, with `<s>` (1) before and 5, 1 behind; an n-gram that begins in it is whole in it.

    def __init__(self, engine: Engine, order: int, size: int) -> None:
        self._engine, self._order, self._size = engine, order, size
        self._waiting: list[NDArray[np.uint32]] = [np.array([BOS], np.uint32)]
        self._held, self.written = 1, 0

    def add(self, ids: NDArray[np.uint32]) -> None:
        """Add the next tokens, uint32 [n]."""
        self._waiting.append(ids)
        self._held += len(ids)
        if self._held > self._size + self._order:
            self._cut()

    def finish(self) -> int:
        """Write what is left, and return the number of chunks."""
        self.add(np.full(self._order, BOS, np.uint32))
        if self._held > 1 + self._order or not self.written:
            self._write(np.concatenate(self._waiting))
        return self.written

    def _cut(self) -> None:
        ids = np.concatenate(self._waiting)
        start, step = 0, self._size
        while len(ids) - start > step + self._order:
            self._write(ids[start : start + 1 + step + self._order])
            start += step
        # A copy, as a view would hold the memory of all that was concatenated.
        self._waiting, self._held = [ids[start:].copy()], len(ids) - start

    def _write(self, chunk: NDArray[np.uint32]) -> None:
        self._engine.write(f"text/{self.written}", chunk)
        self.written += 1
