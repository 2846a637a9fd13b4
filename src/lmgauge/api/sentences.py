"""`lmgauge.perplexity` and `lmgauge.score_text`: hand over a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from lmgauge.api.evaluate import evaluate
from lmgauge.api.inputs import Model, loaded, strings
from lmgauge.models.scored_text import ScoredText, ScoredTexts
from lmgauge.models.scored_text import score_text as _score_text


def perplexity(model: Model, texts: Iterable[str] | str) -> float:
    """Return the perplexity of strings: exp of the mean cross-entropy over all events of all strings together.

    This is the corpus figure, not the mean over strings. Every token is an event, and so is the end of each string (`</s>`)
    where the model predicts ends; an unknown word counts as `<unk>`. `evaluate(model, texts=...)` has the other figures:
    without ends, without unknown words, the mean over strings, bits per byte. Source: Jelinek, Mercer, Bahl & Baker (1977),
    "Perplexity: a measure of the difficulty of speech recognition tasks".

    Args:
        model: a model, or the path of one.
        texts: strings: one, a list, a generator, a column of a data frame; each is a segment of its own.

    Returns:
        The perplexity; inf where an event has probability zero.

    Raises:
        InputError: there is nothing to score, or a string cannot be used as text.
        ModelFileError: the model cannot be loaded.
        UsageError: something else than a model or strings, or strings that are the names of files.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> round(perplexity(model, ["a b", "b"]), 4)
        2.9542
    """
    return evaluate(model, texts=texts).perplexity


@overload
def score_text(model: Model, text: str) -> ScoredText: ...  # type: ignore[overload-overlap]  # a str is an Iterable
@overload
def score_text(model: Model, text: Iterable[str]) -> ScoredTexts: ...
def score_text(model: Model, text: str | Iterable[str]) -> ScoredText | ScoredTexts:
    """Score one string or several, token by token; see `ScoredText`.

    Each string is one segment; a newline within it is a character like any other.

    Args:
        model: a model, or the path of one.
        text: a string, or strings: a list, a generator, a column of a data frame.

    Returns:
        Tokens with natural logs, byte spans and totals; for several strings a list that becomes a data frame.

    Raises:
        InputError: a string cannot be used as text.
        ModelFileError: the model cannot be loaded.
        UsageError: something else than a model or strings, or strings that are the names of files.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> [round(item.perplexity, 4) for item in score_text(model, ["a b", "b"])]
        [2.4662, 3.873]
    """
    strings(text)  # refuses what is not text, in words
    return _score_text(loaded(model), text)
