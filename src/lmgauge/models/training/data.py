"""Text to ids, and ids to the windows a model is trained on."""

# Each token of the text is a target once in every epoch, `<s>` never; padding is not a target.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmgauge.base.errors import InputError
from lmgauge.models.training.networks import IGNORED
from lmgauge.models.training.settings import NeuralTrainingSettings
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import ReservedPolicy, encode
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, Vocabulary, VocabularyBuilder, restrict

# Sentences are sorted by length within this number of batches: little padding, and still another order each epoch.
_POOL = 50


@dataclass(frozen=True)
class TrainingText:
    """A text as ids."""

    ids: NDArray[np.int64]  # int64 [n]; one `<s>` at the beginning (stream), or one before each segment (sentence)
    segments: int
    bytes: int
    sha256: str
    unknown: int
    notes: tuple[str, ...] = ()

    @property
    def events(self) -> int:
        """Return the number of tokens to predict."""
        return int(np.count_nonzero(self.ids != BOS))


@dataclass(frozen=True)
class Window:
    """What one update sees."""

    inputs: Tensor  # int64 [batch, time]
    targets: Tensor  # int64 [batch, time], the token after each input; -100 is none
    fresh: bool  # whether the sequences begin here; otherwise they continue the window before


def read_text(
    corpus: Corpus,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary | None,
    *,
    context: str,
    reserved: ReservedPolicy,
    min_count: int = 1,
    vocab_size: int | None = None,
    name: str = "training",
) -> tuple[TrainingText, Vocabulary]:
    """Read a text; its own vocabulary is counted if none is given."""
    target: Vocabulary | VocabularyBuilder = VocabularyBuilder() if vocabulary is None else vocabulary
    stream = context == "stream"
    blocks = [np.array([BOS], np.uint32)] if stream else []
    for segments in corpus:
        blocks.append(encode(segments, tokenizer, target, bos=not stream, reserved=reserved).ids.copy())
    report = corpus.report
    ids = np.concatenate(blocks) if blocks else np.zeros(0, np.uint32)
    if not np.any(ids > EOS) and not np.any(ids == 0):
        raise InputError(f"the {name} text is empty: there is no token to learn from")
    if isinstance(target, VocabularyBuilder):
        words = target.finish()
        if min_count != 1 or vocab_size is not None:
            counts = np.bincount(ids, minlength=len(words)).astype(np.int64)
            words, new_ids = restrict(words, counts, min_count=min_count, size=vocab_size)
            ids = new_ids[ids]
    else:
        words = target
    unknown = int(np.count_nonzero(ids == 0))
    text = TrainingText(ids.astype(np.int64), report.segments, report.bytes, report.sha256, unknown, tuple(report.notes()))
    return text, words


class WindowSource:
    """The windows of an epoch, the same for the same seed and epoch: pieces of the text, batch after batch."""

    # Where the model carries a state, a long piece is read in several windows. A running text of such a model is a single
    # batch of `batch_size` equal pieces, in order; other pieces (sentences, or a Transformer's windows) come in random
    # order, those of about the same length side by side.

    def __init__(self, ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> None:
        self.ids, self.settings = torch.from_numpy(ids), settings
        self._carries, self._sentences = settings.kind != "transformer", settings.context == "sentence"
        starts = np.flatnonzero(ids == BOS) if self._sentences else np.zeros(1, np.int64)
        self._starts, self._ends = starts, np.append(starts[1:], len(ids)) - 1  # the last of a piece is a target only

    def count(self, epoch: int) -> int:
        """Return how many windows an epoch has."""
        # epoch: from 0; each shows all tokens once.
        return sum(self._windows_of(batch) for batch in self._batches(epoch))

    def _order(self, count: int, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + epoch)
        return torch.randperm(count, generator=generator)

    def _pieces(self, epoch: int) -> NDArray[np.int64]:
        # Begin and end of each piece's inputs, int64 [pieces, 2].
        steps = self.settings.steps
        if self._sentences and self._carries:
            return np.stack((self._starts, self._ends), axis=1)
        # A running text is cut at another place each epoch, so that each token is seen with different contexts.
        shift = 0 if self._sentences else int(self._order(steps, epoch)[0])
        pieces = []
        for start, end in zip(self._starts.tolist(), self._ends.tolist(), strict=True):
            cuts = [start, *range(start + shift if shift else start + steps, end, steps), end]
            pieces += list(pairwise(cuts))
        return np.array(pieces, np.int64).reshape(-1, 2)

    def _batches(self, epoch: int) -> list[NDArray[np.int64]]:
        batch = self.settings.batch_size
        if self._carries and not self._sentences:
            events = len(self.ids) - 1
            width = -(-events // batch)
            return [np.minimum(np.stack((np.arange(batch), np.arange(1, batch + 1)), axis=1) * width, events)]
        pieces = self._pieces(epoch)
        pieces = pieces[self._order(len(pieces), epoch).numpy()]
        pooled = []
        for begin in range(0, len(pieces), batch * _POOL):
            pool = pieces[begin : begin + batch * _POOL]
            pooled.append(pool[np.argsort(pool[:, 0] - pool[:, 1], kind="stable")])
        ordered = np.concatenate(pooled)
        batches = [ordered[begin : begin + batch] for begin in range(0, len(ordered), batch)]
        order = self._order(len(batches), epoch + 500_009)
        return [batches[i] for i in order.tolist()]

    def _windows_of(self, batch: NDArray[np.int64]) -> int:
        return -(-_longest(batch) // self.settings.steps)

    def windows(self, epoch: int, begin: int = 0) -> Iterator[Window]:
        """Yield the windows of an epoch from number `begin` on."""
        # -> int64 [batch, time] each.
        steps, seen = self.settings.steps, 0
        for batch in self._batches(epoch):
            count = self._windows_of(batch)
            if seen + count > begin:
                inputs, targets = self._padded(batch)
                for index in range(count):
                    if seen + index >= begin:
                        part = slice(index * steps, (index + 1) * steps)
                        yield Window(inputs[:, part], targets[:, part], fresh=index == 0)
            seen += count

    def _padded(self, pieces: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        shape = len(pieces), _longest(pieces)
        inputs, targets = torch.full(shape, EOS), torch.full(shape, IGNORED)
        for row, (start, end) in enumerate(pieces.tolist()):
            inputs[row, : end - start] = self.ids[start:end]
            targets[row, : end - start] = self.ids[start + 1 : end + 1]
        return inputs, targets


def _longest(batch: NDArray[np.int64]) -> int:
    return int((batch[:, 1] - batch[:, 0]).max())


def make_source(ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> WindowSource:
    """Return the windows of a training text that is long enough for them."""
    # ids: int64 [n], the events of the text and `<s>` where contexts begin.
    events = int(np.count_nonzero(ids != BOS))
    if events < settings.batch_size:
        raise InputError(
            f"the training text has {events:,} tokens, less than one for each of the {settings.batch_size} sequences of a "
            "batch; use a longer text or a smaller --batch-size"
        )
    return WindowSource(ids, settings)
