"""`lmgauge.divergence`: how far the predictions of two models are apart."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lmgauge.api.inputs import PATHS, Model, Text, corpus_of, load_models
from lmgauge.choices import DEFAULT_SEED
from lmgauge.evaluation.divergence.divergence import DEFAULT_EVENTS, DEFAULT_TOP_K, Divergence, DivergenceSettings
from lmgauge.evaluation.divergence.divergence import divergence as _divergence
from lmgauge.models.mixture.vocabulary_alignment import aligned
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.registry import model_names
from lmgauge.progress import say_progress


def divergence(
    a: Model,
    b: Model,
    text: Text,
    *,
    events: int | None = DEFAULT_EVENTS,
    top_k: int | Sequence[int] = DEFAULT_TOP_K,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    scoring: ScoringOptions | None = None,
) -> Divergence:
    """Measure how far the predictions of two models are apart in the contexts of a text: `lmgauge divergence`.

    Args:
        a: the model to stay close to, for example before pruning or quantization.
        b: the other one, over the same tokens.
        text: a path, several, or a `Corpus`.
        events: how many events to look at, about, in whole segments drawn at random; None for all.
        top_k: for how many most probable tokens to count the agreement; one number or several, each 1 or more.
        seed: of the draw and of the bootstrap.
        threads: how many; no number depends on it.
        scoring: how models named by a path score.

    Returns:
        The divergences (nats and bits per event) with their intervals.

    Raises:
        InputError: the vocabularies or tokenizers differ, or the text is empty.
        ModelFileError: a model cannot be loaded.
        UsageError: the same path twice, or numbers out of range.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (train("witten-bell", text, order=order) for order in (1, 2))
        >>> result = divergence(large, small, text)
        >>> round(result.kl_ab_bits.value, 3), round(result.top_1_agreement.value, 3)
        (0.633, 0.25)
    """
    ranks = [top_k] if isinstance(top_k, int) else top_k
    settings = DivergenceSettings(events=events, top_k=ranks, seed=seed, threads=threads)
    corpus = corpus_of(text)
    first, second = load_models([a, b], scoring)
    own = [os.fspath(model) if isinstance(model, PATHS) else "" for model in (b, a)]
    second = aligned(second, first, names=(own[0], own[1])) if all(own) else aligned(second, first)
    names = model_names((a, b), (first, second))
    say_progress("scoring")
    return _divergence(
        first,
        second,
        corpus,
        settings,
        names=(names[0], names[1]),
        progress=lambda done, total: say_progress(f"compared {done:,} of {total:,} events"),
    )
