"""What models must have in common to be mixed or compared, and the views through which they speak one order of ids.

Toolkits number the same words differently: a model seen through `aligned` speaks the ids of another one's vocabulary.

Models that know different words are mixed over the union of their words, by the rule of SRILM: a model gives probability
zero to a word that it does not know and another model does; its `<unk>` stands for words that no model knows, and keeps all
of its mass. So the distribution of each model sums to one over the union and `<unk>`, and that of the mixture, too. In a
context, a word that a model does not know is its `<unk>`.

    words a b c    p_1(a) = 0.5  p_1(b) = 0.4                p_1(<unk>) = 0.1      0.7 p_1 + 0.3 p_2: a 0.41  b 0.28
                   p_2(a) = 0.2                p_2(c) = 0.5  p_2(<unk>) = 0.3                         c 0.15  <unk> 0.16
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.custom import WrappedModel
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.models.protocol import LanguageModel, check_context
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, WrappedDistributions, distributions_of
from lmgauge.scores.distributions.reductions import Columns, PairReduction, Reduction, TopK
from lmgauge.scores.distributions.tile import LOWEST, Array, Tile
from lmgauge.scores.scoring import different_events, with_same_events
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer

_SHOWN = 3
_UNNAMED_ROW = b"<row "  # what rows of an output layer without a token are called: see `models.network.tokens`


def aligned(model: LanguageModel, to: LanguageModel, *, names: tuple[str, str] | None = None) -> LanguageModel:
    """Return a model whose ids are those of another one."""
    name, other = names or (model.label, to.label)
    _refuse_other_tokenizer(model, to, name, other)
    if model.vocabulary.closed != to.vocabulary.closed:
        closed, opened = (name, other) if model.vocabulary.closed else (other, name)
        raise InputError(
            f"unseen words are impossible for {closed} (closed vocabulary) and one event <unk> for {opened} (open); "
            "train both with the same --vocabulary"
        )
    if model.vocabulary.ids_fingerprint == to.vocabulary.ids_fingerprint:
        return model
    return Reordered(model, to.vocabulary, _own_ids(model.vocabulary, to.vocabulary, name, other))


def _refuse_other_tokenizer(model: LanguageModel, to: LanguageModel, name: str, other: str) -> None:
    if model.tokenizer.fingerprint != to.tokenizer.fingerprint:
        raise InputError(
            f"{name} cuts text by the tokenizer {model.tokenizer.name!r}, {other} by {to.tokenizer.name!r}, whose tokens "
            "are not the same events; train both with the same --tokenizer, or compare them in bits per byte "
            "(lmgauge compare)"
        )


def over_common_tokens(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> list[LanguageModel]:
    """Return models that are to be compared, all with the ids of the first, over the tokens that all of them have."""
    # Models that `aligned` takes are as it returns them. Others must be networks whose output layers have the same tokens
    # in the same rows, as forms of one checkpoint do (GGUF and transformers, with rows for padding and without): strings
    # are compared row by row, but for special tokens and rows without one. Their tokenizers may differ in all but what they
    # make of the text, and that is looked at before a block is scored: every segment must become the same tokens. A row
    # that only some of the networks have gets probability zero in all; what the others then lack of one is its mass.
    base, *others = models
    shown = list(names or (model.label for model in models))
    own_ids: list[NDArray[np.int64] | None] = []
    views: list[LanguageModel] = [base]
    for model, name in zip(others, shown[1:], strict=True):
        try:
            views.append(aligned(model, base, names=(name, shown[0])))
            own_ids.append(None)
        except InputError:
            if model.tokens is None or base.tokens is None:
                raise
            own_ids.append(_ids_by_row(model.tokens, base.tokens, (name, shown[0])))
            views.append(model)
    return _restricted(views, shown, own_ids) if any(ids is not None for ids in own_ids) else views


def _restricted(
    models: Sequence[LanguageModel], names: Sequence[str], own_ids: Sequence[NDArray[np.int64] | None]
) -> list[LanguageModel]:
    # Views over the tokens that all have; `own_ids` of all models but the first, None where they are its own.
    base = models[0]
    same = np.arange(len(base.vocabulary))
    missing = np.any([own == NO_ID for own in own_ids if own is not None], axis=0)
    views: list[LanguageModel] = []
    for model, name, own in zip(models, names, (None, *own_ids), strict=True):
        chosen = np.where(missing, NO_ID, same if own is None else own)
        view = Reordered(model, base.vocabulary, chosen, base, (name, names[0]))
        view.alignment = _in_words(view, model, name, names[0])
        views.append(model if own is None and not view.alignment else view)
    return views


def _in_words(view: Reordered, model: LanguageModel, name: str, base: str) -> str:
    # What has to be said of a view; nothing if it differs from the model in nothing.
    sentences = []
    if view.tokenizer.fingerprint != model.tokenizer.fingerprint:
        sentences.append(f"{base} and {name} have the same tokens, row by row, and split this text alike")
    tokens = model.tokens  # a model that is not a network has all that the base has
    left_out = [] if tokens is None else [i for i in view.left_out.tolist() if tokens.predicted_ids[i] != NO_ID]
    if left_out:
        rows = f"{len(left_out):,} rows" if len(left_out) > 1 else "1 row"
        more = ", ..." if len(left_out) > 1 else ""
        sentences.append(
            f"left out: {rows} of {name} that not all models have ({model.vocabulary.token(left_out[0])!r}{more})"
        )
    return "; ".join(sentences)


def _ids_by_row(own: TokenMap, common: TokenMap, names: tuple[str, str]) -> NDArray[np.int64]:
    # int64 [vocabulary], the id in `own` of each token of `common` that stands in the same row; -1 for none.
    rows = common.predicted_ids
    by_row = np.full(int(max(rows.max(), own.predicted_ids.max())) + 1, NO_ID)
    has_row = own.predicted_ids != NO_ID
    by_row[own.predicted_ids[has_row]] = np.flatnonzero(has_row)
    ids: NDArray[np.int64] = np.where(rows == NO_ID, NO_ID, by_row[np.maximum(rows, 0)])
    ours, theirs = own.vocabulary.tokens, common.vocabulary.tokens
    both = np.flatnonzero(ids != NO_ID).tolist()
    different = [i for i in both if not _same_token(ours[ids[i]], theirs[i], int(rows[i]))]
    if different:
        i = different[0]
        raise InputError(
            f"{names[0]} and {names[1]} have different tokens: {len(different):,} rows of their output layers differ, row "
            f"{rows[i]} stands for {ours[ids[i]]!r} and {theirs[i]!r}; compare forms of one checkpoint"
        )
    return ids


def _same_token(one: str, other: str, row: int) -> bool:
    # True if two names may be of one token: special tokens and rows without a token are not named by their strings.
    nameless = (*SPECIAL_TOKENS, f"<row {row}>", f"[PAD{row}]")
    one, other = (name.removesuffix(f" (id {row})") for name in (one, other))
    return one == other or one in nameless or other in nameless


def _own_ids(own: Vocabulary, common: Vocabulary, name: str, other: str) -> NDArray[np.int64]:
    # int64 [vocabulary], the id in `own` of each token of `common`.
    ids = {token: i for i, token in enumerate(strings_of(own))}
    wanted = strings_of(common)
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
    return np.array([ids[token] for token in wanted], np.int64)


def _padded(size: int, other_size: int, name: str, other: str) -> InputError:
    if size < other_size:
        size, other_size, name, other = other_size, size, other, name
    return InputError(
        f"{name} has {size - other_size:,} rows in its output layer that are no token and that {other} does not have: part "
        f"of its probability goes there; remove them (model.resize_token_embeddings in transformers), or pad both alike"
    )


def strings_of(vocabulary: Vocabulary) -> list[bytes]:
    """Return the tokens of a vocabulary by id, as UTF-8."""
    whole, bounds = vocabulary.bytes.tobytes(), vocabulary.offsets.tolist()
    return [whole[start:end] for start, end in pairwise(bounds)]


def _some(tokens: list[bytes], name: str) -> str:
    if not tokens:
        return ""
    shown = ", ".join(repr(token.decode("utf-8", "replace")) for token in tokens[:_SHOWN])
    more = ", ..." if len(tokens) > _SHOWN else ""
    return f"{len(tokens):,} {'token is' if len(tokens) == 1 else 'tokens are'} only in {name} ({shown}{more})"


class Reordered(WrappedModel):
    """A model seen through another order of its tokens."""

    alignment: str = ""

    # vocabulary: the same tokens in the order to speak in; own_ids: int64 [vocabulary], the model's own id of each; -1 for
    # what is to have probability zero; like: the model whose tokenizer must make the same tokens of a text; None where it
    # is the same.

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        own_ids: NDArray[np.int64],
        like: LanguageModel | None = None,
        names: tuple[str, str] = ("", ""),
    ) -> None:
        super().__init__(model)
        self._vocabulary, self._own_ids, self._like, self._names = vocabulary, own_ids, like, names
        self._common_ids = np.full(len(model.vocabulary), NO_ID)
        self._common_ids[: len(SPECIAL_TOKENS)] = np.arange(len(SPECIAL_TOKENS))  # as events, even where they have no row
        self._common_ids[own_ids[own_ids != NO_ID]] = np.flatnonzero(own_ids != NO_ID)

    @property
    def left_out(self) -> NDArray[np.int64]:
        """Return the model's own ids of what has probability zero here."""
        return np.setdiff1d(np.arange(len(self._common_ids)), self._own_ids)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the model, or of the one whose tokenizer must make the same tokens."""
        return (self._like or self.inner).tokenizer

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield the batches of the model, in the other ids."""
        for batch in self.inner.score(map(self._checked, segments), spans=spans, threads=threads):
            yield self._reordered(batch)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block, in the other ids."""
        return self._reordered(self.inner.score_block(self._checked(block), spans=spans))

    def distributions(
        self, segments: Iterable[Segments], *, events: Events | None = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions of the model, in the other ids; see `lmgauge.scores.distributions.reduce`."""
        blocks = map(self._checked, segments)
        for block in distributions_of(self.inner, blocks, events=events, spans=spans, threads=threads):
            yield _ReorderedDistributions(block, self._own_ids, self._common_ids, self._reordered)

    def _reordered(self, batch: ScoreBatch) -> ScoreBatch:
        ids = self._common_ids[batch.token_ids].astype(np.uint32)
        before = None if batch.before is None else batch.before.renamed(self._common_ids)
        return replace(batch, token_ids=ids, strings=self.vocabulary, before=before)

    def _checked(self, block: Segments) -> Segments:
        # Block of text, once both tokenizers are known to make the same tokens of it.
        if self._like is None:
            return block
        own, common = (_events(model, block) for model in (self.inner, self._like))
        ids = self._common_ids[own[0]]
        if not (np.array_equal(own[1], common[1]) and np.array_equal(ids, common[0])):
            raise InputError(self._difference(block, (ids, own[1]), common))
        return block

    def _difference(self, block: Segments, own: _Events, common: _Events) -> str:
        pairs = list(zip(_by_segment(own), _by_segment(common), strict=True))
        i = next(i for i, (one, other) in enumerate(pairs) if not np.array_equal(one, other))
        one, other = (ids.tolist() for ids in pairs[i])
        at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        shown = [self._shown(ids[at : at + _SHOWN]) for ids in (one, other)]
        return (
            f"{self._names[0]} and {self._names[1]} cut the text into different tokens, first in segment "
            f"{block.first + i + 1:,}: {shown[0]} and {shown[1]}; distances are defined over the same events alone"
        )

    def _shown(self, ids: Sequence[int]) -> str:
        strings = ["a token that the other lacks" if i == NO_ID else repr(self.vocabulary.token(i)) for i in ids]
        return " ".join(strings) or "no further token"

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context, in the other ids."""
        # context_ids: uint32 [n], in the other ids.
        # -> float64 [vocabulary], nats.
        ids = check_context(context_ids, len(self._own_ids))
        context = np.where(ids == BOS, BOS, self._own_ids[ids])
        if (context == NO_ID).any():
            raise UsageError(f"{self.label}: has no such token as one of the context")
        logprob = self.inner.log_distribution(context.astype(np.uint32))[self._own_ids]
        logprob[self._own_ids == NO_ID] = -np.inf
        return logprob


class _ReorderedDistributions(WrappedDistributions):
    """Distributions in another order of the tokens."""

    def __init__(
        self,
        inside: BlockDistributions,
        own_ids: NDArray[np.int64],
        common_ids: NDArray[np.int64],
        reordered: Callable[[ScoreBatch], ScoreBatch],
    ) -> None:
        super().__init__(inside, reordered)
        self.vocabulary_size = len(own_ids)
        self._own_ids, self._common_ids, self._missing = own_ids, common_ids, np.flatnonzero(own_ids == NO_ID)

    def tiles(self) -> Iterator[Tile]:
        for tile in self._inside.tiles():
            yield Tile(lambda tile=tile: self._chosen(tile), self._common_ids[tile.targets])  # type: ignore[misc]

    def _chosen(self, tile: Tile) -> Array:
        logprob = tile.logprob[:, self._own_ids]
        if len(self._missing):
            logprob[:, self._missing] = LOWEST
        return logprob

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        # The ids of the block are not the common ones. No other reduction that has or names ids has a closed form.
        return None if other is not None or isinstance(reduction, TopK) else self._inside.closed_form(reduction)


_Events = tuple[NDArray[np.int64], NDArray[np.int64]]  # ids of all events, and events of each segment


def _events(model: LanguageModel, block: Segments) -> _Events:
    # Whether a reserved word may stand in the text is for the model to say: it is a token in any case.
    ids = encode(block, model.tokenizer, model.vocabulary, bos=False, reserved="escape").ids.astype(np.int64)
    last = ids == EOS
    counts = np.diff(np.flatnonzero(last), prepend=-1)
    return (ids, counts) if model.context_policy.end == "eos" else (ids[~last], counts - 1)


def _by_segment(events: _Events) -> list[NDArray[np.int64]]:
    return np.split(events[0], np.cumsum(events[1])[:-1])


Beside = Callable[[Segments, list[ScoreBatch]], tuple[Segments, list[ScoreBatch]]]


def agreeing(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> tuple[LanguageModel, ...]:
    """Return the models, all with the ids of the first, or if they know different words, with those of the union."""
    if len(models) < 2:
        raise UsageError("a mixture needs at least two models")
    names = [model.label for model in models] if names is None else names
    for name, model in zip(names, models, strict=True):
        _refuse_other_tokenizer(model, models[0], name, names[0])
    for name, model in zip(names, models, strict=True):
        if model.is_spelled:
            raise UsageError(
                f"{name} spells unseen words, and not all of these models do so alike; spell all of them on one text that "
                "has the characters of all (lmgauge spell MODEL --train TEXT --replace), so that they have one speller"
            )
    choices = [(name, model.reserved) for name, model in zip(names, models, strict=True) if model.reserved is not None]
    for name, policy in choices[1:]:
        if policy != choices[0][1]:
            raise InputError(
                f"a <unk>, <s> or </s> in the text means {choices[0][1]!r} to {choices[0][0]} and {policy!r} to {name}; "
                "choose one for all with --reserved (with_reserved in Python)"
            )
    unscored = [not model.context_policy.counts_line_ends for model in models]
    for name, other in zip(names, unscored, strict=True):
        if other != unscored[0]:
            without, scoring = (name, names[0]) if other else (names[0], name)
            raise InputError(
                f"{without} leaves out </s>, the end of a line, and {scoring} scores it; use models trained alike (--no-eos)"
            )
    if needs_union(models):
        return over_union(models)
    return tuple(
        models[0] if i == 0 else aligned(model, models[0], names=(names[i], names[0])) for i, model in enumerate(models)
    )


# -- the union of their words -------------------------------------------------------------------------------------------
def needs_union(models: Sequence[LanguageModel]) -> bool:
    """Return True if models cut text into words alike, but do not all know the same ones.

    >>> import lmgauge
    >>> one, other = (lmgauge.train("laplace", lmgauge.Corpus.from_strings([text])) for text in ("a b", "b c"))
    >>> needs_union([one, other]), needs_union([one, one])
    (True, False)
    """
    # Networks are never asked: what they know decides how they cut text.
    if any(model.tokens is not None for model in models):
        return False
    return len({model.vocabulary.fingerprint for model in models}) > 1


def over_union(models: Sequence[LanguageModel]) -> tuple[LanguageModel, ...]:
    """Return views of models over the union of their words: those of the first in its order, then the others' new ones.

    >>> import lmgauge
    >>> models = [lmgauge.train("laplace", lmgauge.Corpus.from_strings([text]), order=1) for text in ("a b", "b c")]
    >>> [view.vocabulary.tokens[3:] for view in over_union(models)]
    [['a', 'b', 'c'], ['a', 'b', 'c']]
    """
    union = dict.fromkeys(token for model in models for token in strings_of(model.vocabulary))
    words = [token.decode() for token in union][len(SPECIAL_TOKENS) :]
    vocabulary = Vocabulary.from_tokens(words, closed=all(model.vocabulary.closed for model in models))
    views = []
    for model in models:
        own = {token: i for i, token in enumerate(strings_of(model.vocabulary))}
        own_ids = np.array([own.get(token, NO_ID) for token in union], np.int64)
        views.append(_OverUnion(model, vocabulary, own_ids))
    return tuple(views)


class _OverUnion(Reordered):
    """A model seen through the union of its words and those of others."""

    @property
    def knows(self) -> NDArray[np.bool_]:
        # Bool [union], True for what is a token of the model.
        known: NDArray[np.bool_] = self._own_ids != NO_ID
        return known

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        # context_ids: uint32 [n], ids of the union.
        ids = check_context(context_ids, len(self.vocabulary))
        return super().log_distribution(np.where(self.knows[ids], ids, UNK).astype(np.uint32))


def known_to_some(models: Sequence[LanguageModel]) -> int:
    """Return how many words some but not all of the models know, as `over_union` shows them; 0 for others."""
    views = [model for model in models if isinstance(model, _OverUnion)]
    return int(np.count_nonzero(~np.all([view.knows for view in views], axis=0))) if views else 0


def beside(models: Sequence[LanguageModel]) -> Beside:
    """Return what lays the batches of models side by side: `with_same_events`, or `over_the_union` for views of one."""
    return over_the_union if isinstance(models[0], _OverUnion) else with_same_events


def over_the_union(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, list[ScoreBatch]]:
    """Return a block and its batches over the union: the word where any model knows it, and -inf from those that do not."""
    first = batches[0]
    if any(not np.array_equal(batch.segment_events, first.segment_events) for batch in batches):
        raise different_events()
    ids, kind = (np.maximum.reduce([b.token_ids for b in batches]), np.minimum.reduce([b.kind for b in batches]))
    before = first.before
    if before is not None:
        shown = [batch.before.ids for batch in batches if batch.before is not None]
        before = replace(before, ids=np.maximum.reduce(shown))
    merged = []
    for batch in batches:
        unknown = batch.token_ids != ids
        if (batch.token_ids[unknown] != UNK).any():
            raise different_events()
        logprob = np.where(unknown, -np.inf, batch.logprob)
        merged.append(replace(batch, token_ids=ids, kind=kind, logprob=logprob, before=before))
    return block, merged
