"""Static mixtures after Stolcke 2002, n-gram by n-gram: all n-grams of all models, mixed, with new back-off weights."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.pruning import BackOffModel, Gram


def probability(model: BackOffModel, gram: Gram) -> float:
    """What a model gives to the last word; words it does not know are its `<unk>` before, and impossible as the last."""
    known = tuple(word if (word,) in model.probability else "<unk>" for word in gram)
    return model.p(known[-1], known[:-1][-(model.order - 1) :] if model.order > 1 else ()) if known[-1] == gram[-1] else 0.0


def static_mixture(models: Sequence[BackOffModel], weights: Sequence[float]) -> BackOffModel:
    """The model with the n-grams of all, each as probable as in the mixture; weights are of `BackOffModel.weighted`."""
    grams = dict.fromkeys(gram for model in models for gram in model.probability)
    mixed = {
        gram: 0.0 if gram == ("<s>",) else sum(w * probability(m, gram) for m, w in zip(models, weights, strict=True))
        for gram in grams
    }
    return BackOffModel(mixed, {}).weighted()
