"""`lmgauge.prune`: a smaller n-gram model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count, Positive
from lmgauge.shown import Shown
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.spelling.model import SpelledModel


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


@verb
def prune(
    model: Model,
    *,
    threshold: Positive | None = None,
    to_size: Count | None = None,
    text: Text | None = None,
    output: PathLike | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> PrunedModel:
    """Drop the n-grams of a model that it needs least (entropy pruning, Stolcke 1998): `lmgauge prune`.

    Unigrams stay, and so does an n-gram as long as a longer one begins with it. The back-off weights are made anew, so that
    every distribution sums to one.

    Args:
        model: an n-gram model that backs off, or the path of one: a model folder or an ARPA file.
        threshold: drop n-grams that lose less than this; the share by which perplexity rises, such as 1e-8.
        to_size: how many n-grams of all orders stay; those with the largest losses: 250000, 500k or 1M.
        text: measure perplexity before and after on it; a path, several, or from Python a `Corpus`.
        output: folder, ARPA or KenLM file to write; by its ending: .arpa, .arpa.gz, .binary.
        threads: how many; all cores if not given. No number depends on it.
        reading: how the text is read.
        fields: those of `reading`, by name.

    Returns:
        The model in `model`, and what is lost.

    Raises:
        InputError: the text cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: the model is not an n-gram model that backs off, neither or both of threshold and size, one out of range,
            or an output that would replace an input.

    Shell:
        lmgauge prune kn5/ --threshold 1e-8 -o small/
        lmgauge prune theirs.arpa --to-size 1M --text valid.txt -o small.arpa

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["a b c", "a b", "b a c"]), order=2)
        >>> pruned = prune(model, to_size=9)
        >>> pruned.model.types, round(pruned.threshold, 4)
        ([5, 4], 0.0573)
    """
    from lmgauge.api.evaluate import evaluate
    from lmgauge.api.inputs import corpus_of, loaded, refuse_output
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.ngram.pruning import prune_model
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.models.spelling.storage import refuse_file
    from lmgauge.progress import say_progress

    if (threshold is None) == (to_size is None):
        raise UsageError("prune by a threshold, such as 1e-8, or to a number of n-grams (--threshold or --to-size)")
    corpus = None if text is None else corpus_of(text, reading)
    refuse_output(output, [model], corpus)
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
