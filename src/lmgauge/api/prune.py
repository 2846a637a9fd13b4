"""`lmgauge.prune`: a smaller n-gram model."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from lmgauge.api.evaluate import evaluate
from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.pruning import prune_model
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.models.spelling.storage import refuse_file
from lmgauge.option_numbers import check_whole
from lmgauge.progress import say_progress
from lmgauge.shown import Shown


@dataclass(frozen=True, repr=False)
class PrunedModel(Shown):
    """A pruned model, and what is lost.

    Attributes:
        model: the smaller model, one like any other; spelled if the one before was.
        threshold: n-grams with a smaller loss went, as a relative rise of the perplexity.
        ngrams_before: n-grams of order 1, 2, ... before.
        ngrams: n-grams of order 1, 2, ... after.
        perplexity_before: of the model before, on the text; None without a text.
        perplexity: of the smaller model, on the same text.
        events: of the text.

    Example:
        >>> import lmgauge
        >>> text = ["the cat sat", "the dog sat", "the cat ran"]
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(text), order=2)
        >>> lmgauge.prune(model, to_size=12, text=lmgauge.Corpus.from_strings(text))
        <PrunedModel: 12 of 15 n-grams, perplexity 1.88 to 2.383>
    """

    model: NgramModel | SpelledModel = field(repr=False)
    threshold: float
    ngrams_before: tuple[int, ...]
    ngrams: tuple[int, ...]
    perplexity_before: float | None = None
    perplexity: float | None = None
    events: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge prune --json` prints them, without the model."""
        return {
            "label": self.model.label,
            "fingerprint": self.model.fingerprint,
            "threshold": self.threshold,
            "ngrams_before": list(self.ngrams_before),
            "ngrams": list(self.ngrams),
            "perplexity_before": self.perplexity_before,
            "perplexity": self.perplexity,
            "events": self.events,
        }

    def _in_brief(self) -> str:
        brief = f"{sum(self.ngrams):,} of {sum(self.ngrams_before):,} n-grams"
        if self.perplexity is None:
            return brief
        return f"{brief}, perplexity {self.perplexity_before:.4g} to {self.perplexity:.4g}"


def prune(
    model: Model,
    *,
    threshold: float | None = None,
    to_size: int | None = None,
    text: Text | None = None,
    output: PathLike | None = None,
    threads: int | None = None,
) -> PrunedModel:
    """Drop the n-grams of a model that it needs least (entropy pruning, Stolcke 1998): `lmgauge prune`.

    Unigrams stay, and so does an n-gram as long as a longer one begins with it. The back-off weights are made anew, so that
    every distribution sums to one.

    Args:
        model: an n-gram model that backs off, or the path of one: a model folder or an ARPA file.
        threshold: n-grams whose loss would raise the perplexity by less than this share, such as 1e-8, are dropped.
        to_size: or how many n-grams of all orders may stay; exactly as many do, if there are more.
        text: on which the perplexity is measured before and after: a path, several, or a `Corpus`.
        output: where to save the smaller model: a folder, or by its ending (.arpa, .arpa.gz, .binary) an ARPA file or a
            binary file of KenLM.
        threads: how many score the text; no number depends on it.

    Returns:
        The model in `model`, and what is lost.

    Raises:
        InputError: the text cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: the model is not an n-gram model that backs off, neither or both of threshold and size, one out of range,
            or an output that would replace an input.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["a b c", "a b", "b a c"]), order=2)
        >>> pruned = prune(model, to_size=9)
        >>> pruned.model.types, round(pruned.threshold, 4)
        ([5, 4], 0.0573)
    """
    if (threshold is None) == (to_size is None):
        raise UsageError("prune by a threshold, such as 1e-8, or to a number of n-grams (--threshold or --to-size)")
    if threshold is not None and not 0 < threshold < math.inf:
        raise UsageError(f"threshold must be a number above 0, such as 1e-8; got {threshold!r}")
    if to_size is not None:
        check_whole("to_size", to_size, 1)
    corpus = None if text is None else corpus_of(text)
    if output is not None:
        read = [os.fspath(model)] if isinstance(model, PATHS) else []
        refuse_replacing({"-o": output}, [*read, *(source.path for source in (corpus.sources if corpus else ()))])
    whole = loaded(model)
    inner = whole.inner if isinstance(whole, SpelledModel) else whole
    if not isinstance(inner, NgramModel):
        raise UsageError(f"{whole.label}: only n-gram models can be pruned")
    if output is not None and isinstance(whole, SpelledModel):
        refuse_file(output)
    say_progress(f"pruning {sum(inner.types):,} n-grams")
    pruned = prune_model(inner, threshold, size=to_size)
    smaller = whole.around(pruned) if isinstance(whole, SpelledModel) else pruned
    if output is not None:
        say_progress(f"saving {output}")
        smaller.save(os.fspath(output))
    measured: dict[str, Any] = {}
    if corpus is not None:
        before, after = (evaluate(one, corpus, threads=threads) for one in (whole, smaller))
        measured = {"perplexity_before": before.perplexity, "perplexity": after.perplexity, "events": after.events}
    assert pruned.settings.prune is not None  # it was just pruned
    return PrunedModel(smaller, pruned.settings.prune, tuple(inner.types), tuple(pruned.types), **measured)
