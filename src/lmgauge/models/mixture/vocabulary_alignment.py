"""One order of ids for models that know the same tokens: what mixtures and distances between models need.

Toolkits number the same words differently. A model seen through `aligned` speaks the ids of another one's vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy, policy_of
from lmgauge.distributions.blocks import BlockDistributions, distributions_of
from lmgauge.distributions.reductions import Columns, PairReduction, Reduction
from lmgauge.distributions.tile import Tile
from lmgauge.errors import InputError
from lmgauge.models.protocol import LanguageModel, check_context
from lmgauge.scores import ScoreBatch

if TYPE_CHECKING:
    from lmgauge.text.segments import Segments
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary

_SHOWN = 3
_UNNAMED_ROW = b"<row "  # what rows of an output layer without a token are called: see `models.network.tokens`


def aligned(model: LanguageModel, to: LanguageModel, *, names: tuple[str, str] | None = None) -> LanguageModel:
    """Return a model whose ids are those of another one.

    Args:
        model: the model.
        to: the one whose ids it shall have; same tokenizer, same set of tokens, in any order.
        names: what to call `model` and `to` in messages; their labels if not given.

    Returns:
        The model itself where the ids agree, else a view of it.

    Raises:
        InputError: tokenizer, tokens or the meaning of unseen words differ.

    Example:
        >>> import lmgauge
        >>> corpus = lmgauge.Corpus.from_strings(["a b", "a"])
        >>> models = [lmgauge.train("laplace", corpus, order=order) for order in (1, 2)]
        >>> aligned(models[0], models[1]) is models[0]  # the ids agree already
        True
    """
    name, other = names or (model.label, to.label)
    if model.tokenizer.fingerprint != to.tokenizer.fingerprint:
        raise InputError(
            f"{name} cuts text by the tokenizer {model.tokenizer.name!r}, {other} by {to.tokenizer.name!r}, whose tokens "
            "are not the same events; train both with the same --tokenizer"
        )
    if model.vocabulary.closed != to.vocabulary.closed:
        closed, opened = (name, other) if model.vocabulary.closed else (other, name)
        raise InputError(
            f"unseen words are impossible for {closed} (closed vocabulary) and one event <unk> for {opened} (open); "
            "train both with the same --vocabulary"
        )
    if model.vocabulary.fingerprint == to.vocabulary.fingerprint:
        return model
    return _Reordered(model, to.vocabulary, _own_ids(model.vocabulary, to.vocabulary, name, other))


def _own_ids(own: Vocabulary, common: Vocabulary, name: str, other: str) -> NDArray[np.uint32]:
    """Return uint32 [vocabulary], the id in `own` of each token of `common`."""
    ids = {token: i for i, token in enumerate(_strings(own))}
    wanted = _strings(common)
    if len(own) != len(common) or any(token not in ids for token in wanted):
        theirs = set(wanted)
        alone = [token for token in ids if token not in theirs], [token for token in wanted if token not in ids]
        if all(token.startswith(_UNNAMED_ROW) for tokens in alone for token in tokens):
            raise _padded(len(ids), len(wanted), name, other)
        only = [_some(tokens, one) for tokens, one in zip(alone, (name, other), strict=True)]
        raise InputError(
            f"{name} and {other} have different vocabularies: {', '.join(part for part in only if part)}; "
            "train both with the same --words, or on the same text"
        )
    return np.array([ids[token] for token in wanted], np.uint32)


def _padded(size: int, other_size: int, name: str, other: str) -> InputError:
    """Return the error for networks of one tokenizer whose output layers have different numbers of rows."""
    if size < other_size:
        size, other_size, name, other = other_size, size, other, name
    return InputError(
        f"{name} has {size - other_size:,} rows in its output layer that are no token and that {other} does not have: part "
        f"of its probability goes there; remove them (model.resize_token_embeddings in transformers), or pad both alike"
    )


def _strings(vocabulary: Vocabulary) -> list[bytes]:
    whole, bounds = vocabulary.bytes.tobytes(), vocabulary.offsets.tolist()
    return [whole[start:end] for start, end in pairwise(bounds)]


def _some(tokens: list[bytes], name: str) -> str:
    if not tokens:
        return ""
    shown = ", ".join(repr(token.decode("utf-8", "replace")) for token in tokens[:_SHOWN])
    more = ", ..." if len(tokens) > _SHOWN else ""
    return f"{len(tokens):,} {'token is' if len(tokens) == 1 else 'tokens are'} only in {name} ({shown}{more})"


class _Reordered:
    """A model seen through another order of its tokens.

    Args:
        model: what answers.
        vocabulary: the same tokens in the order to speak in.
        own_ids: uint32 [vocabulary], the model's own id of each.
    """

    def __init__(self, model: LanguageModel, vocabulary: Vocabulary, own_ids: NDArray[np.uint32]) -> None:
        self._model, self.vocabulary, self._own_ids = model, vocabulary, own_ids
        self._common_ids = np.empty_like(own_ids)
        self._common_ids[own_ids] = np.arange(len(own_ids), dtype=np.uint32)

    @property
    def label(self) -> str:
        return self._model.label

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def context_policy(self) -> ContextPolicy:
        return policy_of(self._model)

    @property
    def blocks_are_independent(self) -> bool:
        return self._model.blocks_are_independent

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield the batches of the model, in the other ids.

        Args:
            segments: blocks of text.
            spans: whether to fill the column `ends`, in bytes.
            threads: as the model takes it.

        Raises:
            InputError: the text has a reserved token that is refused.
        """
        for batch in self._model.score(segments, spans=spans, threads=threads):
            yield self._reordered(batch)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block, in the other ids.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.

        Raises:
            InputError: the text has a reserved token that is refused.
        """
        return self._reordered(self._model.score_block(block, spans=spans))

    def distributions(
        self,
        segments: Iterable[Segments],
        *,
        events: NDArray[np.int64] | None = None,
        spans: bool = True,
        threads: int | None = None,
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions of the model, in the other ids; see `lmgauge.distributions.reduce`.

        Args:
            segments: blocks of text.
            events: numbers of the events to look at; all if None.
            spans: whether the rows get byte spans.
            threads: how many to compute with.

        Raises:
            InputError: the text has a reserved token that is refused.
        """
        for block in distributions_of(self._model, segments, events=events, spans=spans, threads=threads):
            yield _ReorderedDistributions(block, self._own_ids, self._common_ids, self._reordered)

    def _reordered(self, batch: ScoreBatch) -> ScoreBatch:
        return replace(batch, token_ids=self._common_ids[batch.token_ids], strings=self.vocabulary)

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context, in the other ids.

        Args:
            context_ids: uint32 [n], in the other ids.

        Returns:
            float64 [vocabulary], nats.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self._own_ids))
        return self._model.log_distribution(self._own_ids[context])[self._own_ids]


class _ReorderedDistributions(BlockDistributions):
    """Distributions in another order of the tokens."""

    def __init__(
        self,
        block: BlockDistributions,
        own_ids: NDArray[np.uint32],
        common_ids: NDArray[np.uint32],
        reordered: Callable[[ScoreBatch], ScoreBatch],
    ) -> None:
        self._block, self._reordered, self.parallel = block, reordered, block.parallel
        self.vocabulary_size = len(own_ids)
        self._own_ids, self._common_ids = own_ids.astype(np.int64), common_ids.astype(np.int64)

    def __len__(self) -> int:
        return len(self._block)

    def tiles(self) -> Iterator[Tile]:
        for tile in self._block.tiles():
            yield Tile(lambda tile=tile: tile.logprob[:, self._own_ids], self._common_ids[tile.targets])  # type: ignore[misc]

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        # No column of ids, and no reduction that names ids, has a closed form.
        return super().closed_form(reduction, other) if other is not None else self._block.closed_form(reduction)

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        return self._reordered(self._block.finish(logprob))
