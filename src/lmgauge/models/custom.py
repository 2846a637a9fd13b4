"""Models of one's own: from a function over token ids to what evaluation and audits take; and models around models.

>>> import numpy as np
>>> from lmgauge.text.documents import Corpus
>>> class Uniform(CustomModel):
...     label = "uniform"
...     def log_distribution(self, context_ids):
...         logprob = np.full(len(self.vocabulary), -np.log(len(self.vocabulary) - 1))
...         logprob[1] = -np.inf  # <s> is never predicted
...         return logprob
>>> model = Uniform(["a", "b"])
>>> [batch.logprob.round(4).tolist() for batch in model.score(Corpus.from_strings(["a b"]))]
[[-1.3863, -1.3863, -1.3863]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import EOS_KIND, OOV, TOKEN, GivenTokens, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.encoding import Encoded, ReservedPolicy, encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary


def targets_only(batch: ScoreBatch, encoded: Encoded, block: Segments) -> ScoreBatch:
    """Return the rows of the segments, without those of the text given before them, which the batch then remembers.

    >>> import lmgauge
    >>> text = lmgauge.Corpus.from_strings([" sat"], given=["the cat"])
    >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["the cat sat"]), order=2)
    >>> batch = next(model.score(text))
    >>> batch.token_ids.tolist(), batch.before.ids.tolist()
    ([5, 2], [3, 4])
    """
    if block.given_starts is None:
        return batch

    events = encoded.ids != BOS
    if np.count_nonzero(events) > len(batch):
        events &= encoded.ids != EOS
    is_given = encoded.is_given[events]
    owner = np.repeat(np.arange(len(block)), batch.segment_events)
    counts = np.bincount(owner[is_given], minlength=len(block))
    before = GivenTokens(batch.token_ids[is_given], counts, block.given_lengths(), encoded.crossing)
    return with_given(batch.of_rows(np.flatnonzero(~is_given)), before, block)


def with_given(batch: ScoreBatch, before: GivenTokens, block: Segments) -> ScoreBatch:
    """Return the rows of segments, with what was given before them."""
    empty = np.flatnonzero((batch.segment_events == 0) & (before.lengths > 0))
    if len(empty):
        raise InputError(f"{block.place(int(empty[0]))}: no token of the text ends behind the given text: nothing to score")
    return replace(batch, before=before)


def alone(segments: Iterable[Segments], label: str) -> Iterator[Segments]:
    """Hand on blocks of text to a model whose context runs on, which no text can be given."""
    for block in segments:
        if block.given_starts is not None:
            raise UsageError(
                f"{label}: its context continues across segments, and given text needs segments that are contexts of "
                "their own (--context sentence)"
            )
        yield block


ScoreIds = Callable[[NDArray[np.uint32]], NDArray[np.float64]]


def score_segments(
    segments: Iterable[Segments],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    score_ids: ScoreIds,
    *,
    reserved: ReservedPolicy = "refuse",
    spans: bool = True,
) -> Iterator[ScoreBatch]:
    """Yield the score table of a model that is a function over token ids: spans, kinds and strings come from here."""
    # score_ids: from the ids of a segment, uint32 [n], `<s>` first, then those of the text that is given before it, and
    # `</s>` last, to the natural log-probabilities of all but the first, each given those before it: float64 [n - 1].
    for block in segments:
        encoded = encode(block, tokenizer, vocabulary, bos=True, reserved=reserved, spans=spans)
        firsts = np.flatnonzero(encoded.ids == BOS)
        parts = [_scored(score_ids, ids) for ids in np.split(encoded.ids, firsts[1:])] if len(firsts) else []
        yield rows_of_block(block, encoded, vocabulary, np.concatenate(parts) if parts else np.zeros(0, np.float64))


def kinds_of(ids: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the kind of each event, uint8 [n], where a segment ends with `</s>`."""
    kind = np.full(len(ids), TOKEN, np.uint8)
    kind[ids == UNK] = OOV
    kind[ids == EOS] = EOS_KIND
    return kind


def rows_of_block(block: Segments, encoded: Encoded, vocabulary: Vocabulary, logprob: NDArray[np.float64]) -> ScoreBatch:
    """Return the batch of a block, from the log-probabilities of its ids."""
    # logprob: float64 [events], nats, of all ids but `<s>`.
    scored = encoded.ids != BOS
    ids = encoded.ids[scored]
    batch = ScoreBatch(
        segments=np.arange(block.first, block.first + len(block), dtype=np.int64),
        segment_events=np.diff(np.flatnonzero(~scored), append=len(scored)) - 1,
        token_ids=ids,
        strings=vocabulary,
        logprob=logprob,
        kind=kinds_of(ids),
        ends=encoded.span_ends[scored] if len(encoded.span_ends) else encoded.span_ends,
        lossy=encoded.lossy,
    )
    return targets_only(batch, encoded, block)


def _scored(score_ids: ScoreIds, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
    logprob = np.asarray(score_ids(ids), np.float64)
    if logprob.shape != (len(ids) - 1,):
        raise UsageError(
            f"the scores of {len(ids)} ids have shape {logprob.shape}; there must be one for each id but the first, <s>"
        )
    return logprob


class CustomModel(ScoresStrings):
    """A base for models of one's own: give `log_distribution`, and what is faster than one call of it an event.

    Args:
        vocabulary: the tokens, or a ready `Vocabulary`.
        tokenizer: a name as in `lmgauge.train`, or a tokenizer.
        reserved: what a `<unk>`, `<s>` or `</s>` in the text means (see `lmgauge.train`).

    Attributes:
        label: short name for signatures.
        fingerprint: hexadecimal digest of all that determines the probabilities, if there is one.
        context_policy: segments are contexts of their own; a class may say another as text, such as "stream".
        tolerance: by how many nats rows may differ when they are scored again, for models that compute in float32.

    Example:
        >>> import numpy as np
        >>> class Coin(CustomModel):
        ...     label = "coin"
        ...     def log_distribution(self, context_ids):  # of <unk>, <s>, </s>, a, b
        ...         return np.array([-np.inf, -np.inf, *np.log([0.2, 0.4, 0.4])])
        >>> Coin(["a", "b"]).score_text("a b")
        <ScoredText: 3 events, -3.4420 nats, perplexity 3.1498>
    """

    label = "custom"
    fingerprint = "custom"
    context_policy = ContextPolicy()
    reserved: ReservedPolicy

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(policy := vars(cls).get("context_policy"), str):
            cls.context_policy = ContextPolicy.parse(policy)

    def __init__(
        self,
        vocabulary: Vocabulary | Iterable[str],
        tokenizer: str | Tokenizer = "whitespace",
        *,
        reserved: ReservedPolicy = "refuse",
    ) -> None:
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary.from_tokens(vocabulary)
        self.tokenizer = make_tokenizer(tokenizer)
        self.reserved = reserved

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context.

        Args:
            context_ids: uint32 [n], ids before the event, `<s>` first.

        Returns:
            float64 [vocabulary], nats; -inf for what cannot come.

        Raises:
            UsageError: a model does not say.
        """
        raise UsageError(f"{type(self).__name__} has no log_distribution of its own")

    def score_ids(self, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of the tokens of a segment, each given those before it.

        Args:
            ids: uint32 [n], `<s>` first and `</s>` last.

        Returns:
            float64 [n - 1], nats: of all ids but the first.

        Raises:
            UsageError: the model has no `log_distribution`.
        """
        logprobs = [self.log_distribution(ids[:i])[ids[i]] for i in range(1, len(ids))]
        return np.array(logprobs, np.float64)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the column `ends`, in bytes.
            threads: not used: blocks are scored one after another.

        Raises:
            InputError: the text has a reserved token that is refused.
            UsageError: `score_ids` returns an array of another length.
        """
        return score_segments(segments, self.tokenizer, self.vocabulary, self.score_ids, reserved=self.reserved, spans=spans)

    @property
    def blocks_are_independent(self) -> bool:
        """False: blocks are scored one after another, as a model of one's own need not be safe to call from threads."""
        return False


def _of_inner(name: str) -> Any:
    return property(attrgetter(f"inner.{name}"), doc="That of the model inside.")


class WrappedModel(ScoresStrings):
    """A model with another one inside, whose events are the same; it says `score`, `score_block` and what it changes."""

    def __init__(self, inner: LanguageModel) -> None:
        self.inner = completed(inner)

    label = _of_inner("label")
    vocabulary = _of_inner("vocabulary")
    tokenizer = _of_inner("tokenizer")
    fingerprint = _of_inner("fingerprint")
    context_policy = _of_inner("context_policy")
    blocks_are_independent = _of_inner("blocks_are_independent")
    tolerance = _of_inner("tolerance")
    notes = _of_inner("notes")
    options = _of_inner("options")
    takes = _of_inner("takes")
    keep_journal = _of_inner("keep_journal")
    log_distribution = _of_inner("log_distribution")
    progress = _of_inner("progress").setter(lambda self, listener: setattr(self.inner, "progress", listener))
