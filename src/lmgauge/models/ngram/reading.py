"""Stage 0, reading: text to token ids, and the vocabulary they are from."""

# Input: a corpus. Output: blocks of ids, uint32 [n], with `<s>` where contexts begin; then the vocabulary, how often each
# word occurred, and the new ids of words where rare ones are left out.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.models.ngram.discounts import Discounts
from lmgauge.models.ngram.settings import NgramTrainingSettings, TrainingRecord
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments, TextReport
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary, VocabularyBuilder, restrict
from lmgauge.threads import map_beside

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
        settings, vocabulary = self.settings, self._vocabulary
        if isinstance(vocabulary, VocabularyBuilder):
            vocabulary = vocabulary.finish(closed=settings.vocabulary == "closed")
        counts = np.zeros(len(vocabulary), np.int64)
        counts[: len(self._counts)] = self._counts
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
            raise InputError(
                "the training text has no words, and --no-eos leaves out the line ends: there is nothing to count"
            )
        return fitted
