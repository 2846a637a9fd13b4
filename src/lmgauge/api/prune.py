"""`lmgauge.prune`: a smaller n-gram model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmgauge.api.types import Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count, Positive
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.ngram.pruning import PrunedModel


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
    from lmgauge.api.inputs import corpus_of, loaded, refuse_output, saved
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.ngram.pruning import PrunedModel, prune_model
    from lmgauge.models.spelling.model import parted
    from lmgauge.progress import say_progress

    if (threshold is None) == (to_size is None):
        raise UsageError("prune by a threshold, such as 1e-8, or to a number of n-grams (--threshold or --to-size)")
    corpus = None if text is None else corpus_of(text, reading)
    refuse_output(output, [model], corpus)
    whole = loaded(model)
    inner, around = parted(whole)
    if not isinstance(inner, NgramModel):
        raise UsageError(f"{whole.label}: only n-gram models can be pruned")
    say_progress(f"pruning {sum(inner.types):,} n-grams")
    pruned = prune_model(inner, threshold, size=to_size)
    smaller = saved(around(pruned), output)
    measured: dict[str, Any] = {}
    if corpus is not None:
        before, after = (evaluate(one, corpus, threads=threads) for one in (whole, smaller))
        measured = {"perplexity_before": before.perplexity, "perplexity": after.perplexity, "events": after.events}
    assert pruned.settings.prune is not None  # it was just pruned
    return PrunedModel(smaller, pruned.settings.prune, tuple(inner.types), tuple(pruned.types), **measured)
