"""Models of words, characters and bytes seen as models of bytes, so that they can be mixed with each other."""

# A model that gives every text a probability gives one to every beginning of a text, and so to the next byte. The view has a
# row for each byte and for the end of each segment; the rows of a segment sum to what the rows of the model sum to.

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.base.threads import OfProcess
from lmgauge.models.combined.spelling.byte_view_characters import AFTER_IMPOSSIBLE, END, CharacterBytes, Floats, log_of
from lmgauge.models.combined.spelling.byte_view_words import WordBytes
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.custom import WrappedModel
from lmgauge.models.protocol import LanguageModel, check_context
from lmgauge.scores import EOS_KIND, OOV, TOKEN, ScoreBatch
from lmgauge.scores.context_policy import last_sentence
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import token_bytes
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary

_FIRST_BYTE = len(SPECIAL_TOKENS)
_NUL = 0
_READING = OfProcess(threading.Lock)


class ByteView(WrappedModel):
    """A model seen as one of bytes; all 256 are its vocabulary, and NUL, which no text has, is impossible."""

    # Its probabilities are those of the model to the last digit: where the model's own sum to one but for rounding (1e-8,
    # where tables hold 32 bits), so do those of the view.

    tokenizer = make_tokenizer("byte")
    vocabulary = Vocabulary.from_tokens([f"<0x{byte:02X}>" for byte in range(256)], closed=True)

    def __init__(self, model: LanguageModel, name: str | None = None) -> None:
        problem = why_not_readable(model)
        if problem:
            raise UsageError(f"{name or model.label} cannot be read as bytes: {problem}")
        super().__init__(model)
        self._inside = model.inner if isinstance(model, SpelledModel) else model

    def _reader(self) -> _Reader:
        with _READING.value:  # one thread makes it: it may be as large as the model
            return self._own_reader

    @cached_property
    def _own_reader(self) -> _Reader:
        if isinstance(self.inner, SpelledModel) and self.inner.speller is not None:
            return WordBytes(self.inner)
        if self.inner.tokenizer.unit == "character":
            return CharacterBytes(
                self._inside, self.inner.unseen_characters if isinstance(self.inner, SpelledModel) else None
            )
        return _Bytes(self.inner)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block: a row for each byte, and for each end of a segment."""
        # -> its rows, with `logprob`, float64 [bytes and ends], nats.
        if block.given_starts is not None:
            raise UsageError(f"{self.label}: a model that is read as bytes takes no given text before a segment")
        batch = self._inside.score_block(block, spans=True)
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=False, spans=spans)
        return ScoreBatch(
            np.arange(block.first, block.first + len(block), dtype=np.int64),
            block.ends - block.starts + 1,
            encoded.ids,
            self.vocabulary,
            self._reader().logprobs(block, batch),
            np.where(encoded.ids == EOS, EOS_KIND, TOKEN).astype(np.uint8),
            encoded.span_ends,
            lossy=encoded.lossy,
        )

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all bytes after a context."""
        # -> float64 [259], nats; after bytes that the model holds impossible, such as those that are not UTF-8, all bytes
        # are alike.
        ids = last_sentence(check_context(context_ids, len(self.vocabulary)), BOS, EOS)
        logprobs = np.full(len(self.vocabulary), -np.inf)
        following = np.zeros(0)
        if UNK not in ids and _FIRST_BYTE + _NUL not in ids:
            text = (ids[ids >= _FIRST_BYTE] - _FIRST_BYTE).astype(np.uint8).tobytes()
            following = self._reader().next_bytes(text)
        if not following.any():
            logprobs[_FIRST_BYTE + 1 :] = logprobs[EOS] = AFTER_IMPOSSIBLE
            return logprobs
        following = log_of(following)
        logprobs[_FIRST_BYTE:], logprobs[EOS] = following[:END], following[END]
        return logprobs


class _Bytes:
    """Reads the bytes of a model of bytes, whose `<unk>` is shared out evenly among the bytes that it does not know."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        own = token_bytes(model.tokenizer, model.vocabulary.tokens)
        self._ids = np.full(256, UNK)
        for i, byte in enumerate(own[_FIRST_BYTE:], _FIRST_BYTE):
            if len(byte) == 1:
                self._ids[byte[0]] = i
        self._unknown = self._ids == UNK
        self._share = 1.0 / max(1, int(np.count_nonzero(self._unknown)))

    def logprobs(self, block: Segments, batch: ScoreBatch) -> Floats:
        # Log-probability of each byte and each end of a segment, float64 [bytes and ends], nats.
        return batch.logprob + np.where(batch.kind == OOV, np.log(self._share), 0.0)

    def next_bytes(self, text: bytes) -> Floats:
        # Probabilities of what follows a text, float64 [257] by byte; zeros where the text is impossible.
        ids = np.append(BOS, self._ids[np.frombuffer(text, np.uint8)]).astype(np.uint32)
        p = np.exp(self._model.log_distribution(ids))
        return np.append(np.where(self._unknown, p[UNK] * self._share, p[self._ids]), p[EOS])


_Reader = WordBytes | CharacterBytes | _Bytes
"""What a kind of model says of bytes."""


def byte_views(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> list[ByteView]:
    """Return models as they are read byte by byte."""
    shown = [model.label for model in models] if names is None else names
    return [ByteView(model, name) for model, name in zip(models, shown, strict=True)]


def is_readable(model: LanguageModel) -> bool:
    """Return True if a model can be read as bytes."""
    return not why_not_readable(model)


def why_not_readable(model: LanguageModel) -> str:
    """Return why a model does not say how probable each byte of a text is, and what to do; empty if it does."""
    policy, unit, spelled = model.context_policy, model.tokenizer.unit, isinstance(model, SpelledModel)
    if policy.line_ends != "event" or not policy.scores_first_tokens:
        return "it does not predict the ends of lines; train it with </s>"
    if not model.blocks_are_independent:
        return "only n-gram models whose contexts end with the line are (--context sentence), and mixtures of such"
    if isinstance(model, SpelledModel) and model.separators is not None and not model.separators.divided:
        return (
            f"the white space of {model.tokenizer.name!r} words depends on the word behind it; use words that white space "
            "divides (--tokenizer whitespace), or characters"
        )
    if unit == "subword":
        return "its tokens are subwords, and one text has many sequences of them; mix models of words, characters and bytes"
    if unit == "byte" and not model.vocabulary.closed and len(model.vocabulary) == _FIRST_BYTE + 256:
        return "it knows all bytes, and has <unk> besides, whose probability no byte gets; train it with a closed vocabulary"
    if not spelled and (unit == "word" or (unit == "character" and not model.vocabulary.closed)):
        return f"it gives all unseen {unit}s one probability together; spell them (lmgauge spell MODEL --train TEXT)"
    return ""
