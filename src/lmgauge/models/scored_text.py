"""Strings as a model scores them: each token with its log-probability, for people who hand over a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import tee
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, cast, overload

import numpy as np

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.paths import refuse_file_names
from lmgauge.base.result_list import ResultList, Tabled, data_frame
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.models.ngram.decoder_state import ScoredMany, StepsWords
from lmgauge.models.protocol import Traits
from lmgauge.numerics.units import perplexity_from_nats
from lmgauge.scores import KINDS, OOV, SPELLED, ScoreBatch
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmgauge.models.protocol import LanguageModel


@dataclass(frozen=True, repr=False)
class ScoredText(Tabled):
    """One string, and what a model makes of it; prints as a small table.

    Attributes:
        text: the string.
        tokens: n token strings, as the model sees them; `</s>` last where the model predicts the end.
        logprobs: n natural logs of the conditional probabilities; -inf where the model rules a token out.
        kinds: n of "token", "oov" (an unknown word), "spelled" (one letter by letter) and "eos" (the end).
        spans: n pairs (start, end) of bytes in the UTF-8 text; they tile it: `</s>` has what is left behind the last token.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> scored = model.score_text("a c")
        >>> scored.tokens, scored.kinds, scored.spans
        (('a', '<unk>', '</s>'), ('token', 'oov', 'eos'), ((0, 1), (1, 3), (3, 3)))
        >>> round(scored.perplexity, 4)
        3.6342
    """

    text: str
    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    kinds: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    _total: ClassVar[float | None] = None  # or the instance's own: the sum of its logarithms

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # What was left for the first who asks: tokens, kinds and spans; of many strings the logarithms, too.
            here = self.__dict__
            if name == "logprobs" and "_rows" in here:
                here["logprobs"] = tuple(here["_rows"][here["_begin"] : here["_end"]].tolist())
            elif name in _LATER and "_model" in here:
                scored = _the_long_way(here["_model"], [self.text])[0]
                here.update({later: getattr(scored, later) for later in _LATER})
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return here[name]

        def __getstate__(self) -> dict[str, Any]:
            return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.logprobs)

    @property
    def log_probability(self) -> float:
        """Return the natural log of the probability of the whole string: the sum of `logprobs`."""
        return math.fsum(self.logprobs) if self._total is None else self._total

    @property
    def cross_entropy(self) -> float | None:
        """Return nats per event; None where the model scores no event, as for an empty string without `</s>`."""
        return -self.log_probability / len(self) if self.logprobs else None

    @property
    def perplexity(self) -> float | None:
        """Return exp of the cross-entropy; inf where a token has probability zero, None where there is no event."""
        return None if self.cross_entropy is None else perplexity_from_nats(self.cross_entropy)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict a token: token, logprob (nats), kind, start and end (bytes)."""
        columns = zip(self.tokens, self.logprobs, self.kinds, self.spans, strict=True)
        return [
            {"token": token, "logprob": logprob, "kind": kind, "start": span[0], "end": span[1]}
            for token, logprob, kind, span in columns
        ]

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the whole string, a row of the data frame of several."""
        return {
            "text": self.text,
            "events": len(self),
            "log_probability": self.log_probability,
            "cross_entropy": self.cross_entropy,
            "perplexity": self.perplexity,
            "oov": self.kinds.count(KINDS[OOV]) + self.kinds.count(KINDS[SPELLED]),
            "zero_probability_events": sum(logprob == -math.inf for logprob in self.logprobs),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, the tokens as a list of dicts; infinities stay floats."""
        return self.summary() | {"tokens": self.to_rows()}

    def _in_brief(self) -> str:
        perplexity = "" if self.perplexity is None else f", perplexity {self.perplexity:.4f}"
        return f"{len(self)} events, {self.log_probability:.4f} nats{perplexity}"


@dataclass(frozen=True, repr=False)
class ScoredTexts(ResultList[ScoredText]):
    """Several strings with their scores, in order; prints a line a string, and becomes a data frame.

    Attributes:
        items: the strings with their scores.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> scored = model.score_text(["a b", "b"])
        >>> [round(one.log_probability, 4) for one in scored], scored.log_probabilities.round(4).tolist()
        ([-2.7081, -2.7081], [-2.7081, -2.7081])
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "items" or "_many" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.__dict__[name] = items = tuple(_of_many(*self.__dict__["_many"]))
            return items

        def __getstate__(self) -> dict[str, Any]:
            return {"items": self.items}

    @property
    def log_probabilities(self) -> NDArray[np.float64]:
        """Return `log_probability` of each string, float64 [strings], nats: the fast way to have nothing but these."""
        if "_many" in self.__dict__:
            totals: NDArray[np.float64] = self.__dict__["_many"][2].totals.copy()
            return totals
        return np.array([item.log_probability for item in self.items], np.float64)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the summary of each string."""
        return [item.summary() for item in self.items]

    def tokens_to_pandas(self) -> pd.DataFrame:
        """Return one row per token of all strings; the column `segment` says of which, from 0.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame({"segment": i, **row} for i, item in enumerate(self.items) for row in item.to_rows())


@overload
def score_text(  # type: ignore[overload-overlap]  # a str is an Iterable of str
    model: LanguageModel, text: str
) -> ScoredText: ...
@overload
def score_text(model: LanguageModel, text: Iterable[str]) -> ScoredTexts: ...
def score_text(model: LanguageModel, text: str | Iterable[str]) -> ScoredText | ScoredTexts:
    """Score one string or several, token by token.

    Each string is one segment: the model begins anew at its start (a model with a running context continues from the string
    before) and predicts its end where it predicts ends at all. A newline within a string is a character like any other:
    text whose lines are segments is better cut with `splitlines()`.

    Args:
        model: scores.
        text: a string, or strings: a list, a generator, a column of a data frame.

    Returns:
        The tokens with their natural logs, spans, and totals; for several strings a list of them.

    Raises:
        InputError: a string holds NUL or a lone surrogate, or a reserved token that the model refuses.
        UsageError: something else than strings, or the names of files.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> score_text(model, "a b")
        <ScoredText: 3 events, -2.7081 nats, perplexity 2.4662>
    """
    if isinstance(text, bytes) or not isinstance(text, Iterable):
        raise UsageError(f'score_text takes a string or strings, not {type(text).__name__}: model.score_text("the cat sat")')
    refuse_file_names(text, "lmgauge.evaluate(model, {})", one_in_list=True)
    if isinstance(text, str):
        scored = _at_once(model, text)
        return _the_long_way(model, [text])[0] if scored is None else scored
    if not isinstance(model, StepsWords) or not model.blocks_are_independent:
        return ScoredTexts(tuple(_the_long_way(model, text)))
    texts = list(text)
    many = model.score_many(texts)
    if many is None:
        return ScoredTexts(tuple(_the_long_way(model, texts)))
    scored_texts = object.__new__(ScoredTexts)
    scored_texts.__dict__["_many"] = model, texts, many
    return scored_texts


_score_text = score_text


class ScoresStrings(Traits):
    """Gives a model `score_text`, and `score` or `score_block` by the other; pickles one as the place it was loaded from."""

    loaded_by: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    score_text = _score_text

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order: those of `score_block`.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the column `ends`, in bytes.
            threads: blocks scored at a time; does not change results.

        Raises:
            InputError: the text cannot be scored.
        """
        return map_in_order(lambda block: self.score_block(block, spans=spans), segments, thread_count(threads))

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments: what `score` says of it alone.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.
        """
        return next(self.score([block], spans=spans))

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self.loaded_by is None:
            return super().__reduce_ex__(protocol)
        return _load_again, (*self.loaded_by, cast("LanguageModel", self).fingerprint)

    def made_from(self, loaded: ScoresStrings, change: Callable[..., LanguageModel], *arguments: Any) -> Self:
        """Return this model, which pickles as the change of a loaded one that it is.

        Args:
            loaded: the model that was changed.
            change: made this one of it.
            arguments: of the change.
        """
        if loaded.loaded_by is not None:
            self.loaded_by = change, (loaded, *arguments)
        return self

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = made = object.__new__(type(self))
        made.__dict__.update(deepcopy(self.__getstate__(), memo))
        return made

    def __getstate__(self) -> dict[str, Any]:
        cached = {name for kind in type(self).mro() for name, of in vars(kind).items() if isinstance(of, cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}  # which are found out anew


def _load_again(load: Callable[..., LanguageModel], arguments: tuple[Any, ...], fingerprint: str) -> LanguageModel:
    # Model that was pickled, once what is in its place now is seen to be the same.
    model = load(*arguments)
    if model.fingerprint != fingerprint:
        raise ModelFileError(
            f"{arguments[0]}: is not the model that was pickled, of which only the place and a digest were kept; pickle the "
            "model again"
        )
    return model


_LATER = ("tokens", "kinds", "spans")


def _at_once(model: LanguageModel, text: str) -> ScoredText | None:
    # String scored in one call, without what can be found out later; None where that takes more.
    # It does for long texts, those with characters that need care, and other models than n-gram models.
    logprobs = model.score_short(text) if isinstance(model, StepsWords) else None
    if logprobs is None:
        return None
    scored = object.__new__(ScoredText)
    scored.__dict__.update(text=text, logprobs=logprobs, _model=model)
    return scored


def _of_many(model: LanguageModel, texts: list[str], many: ScoredMany) -> Iterator[ScoredText]:
    # Strings that were scored together; what few ask for is left where it is.
    new, put = object.__new__, object.__setattr__  # not by __dict__: an object without one costs half
    rows, begin = many.logprobs, 0
    for text, end, total in zip(texts, many.ends.tolist(), many.totals.tolist(), strict=True):
        scored = new(ScoredText)
        put(scored, "text", text)
        put(scored, "_total", total)
        put(scored, "_model", model)
        put(scored, "_rows", rows)
        put(scored, "_begin", begin)
        put(scored, "_end", end)
        yield scored
        begin = end


def _the_long_way(model: LanguageModel, texts: Iterable[str]) -> list[ScoredText]:
    from lmgauge.text.documents import Corpus

    return score_segments(model, Corpus.from_strings(texts))


def score_segments(model: LanguageModel, corpus: Iterable[Segments]) -> list[ScoredText]:
    """Score each segment of a text, token by token."""
    blocks, scored = tee(corpus)
    batches = model.score(scored, spans=True)
    return [item for block, batch in zip(blocks, batches, strict=True) for item in _items(block, batch)]


def _items(block: Segments, batch: ScoreBatch) -> Iterator[ScoredText]:
    events = np.zeros(len(block), np.int64)
    events[batch.segments - block.first] = batch.segment_events
    names, starts = batch.strings.tokens, batch.starts()
    begin = 0
    for segment, count in enumerate(events.tolist()):
        rows = slice(begin, begin := begin + count)
        yield ScoredText(
            text=block.text(segment).decode(),
            tokens=tuple(names[token] for token in batch.token_ids[rows].tolist()),
            logprobs=tuple(batch.logprob[rows].tolist()),
            kinds=tuple(KINDS[kind] for kind in batch.kind[rows].tolist()),
            spans=tuple(zip(starts[rows].tolist(), batch.ends[rows].tolist(), strict=True)),
        )
