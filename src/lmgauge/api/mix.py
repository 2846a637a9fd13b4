"""`lmgauge.mix`: one model from several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, load_models, refuse_twice
from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing
from lmgauge.models.mixture.model import MixtureModel
from lmgauge.models.mixture.weights import estimate_weights, measure_weights
from lmgauge.models.network.options import ScoringOptions
from lmgauge.progress import say_progress


def mix(
    models: Sequence[Model],
    held_out: Text | None = None,
    *,
    weights: Sequence[float] | None = None,
    threads: int | None = None,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
) -> MixtureModel:
    """Mix models over one vocabulary by linear interpolation, weights given or by EM on held-out text: `lmgauge mix`.

    Args:
        models: two or more, or the paths of them.
        held_out: text that no component was trained on: a path, several, or a `Corpus`.
        weights: one a model, summing to 1, instead of estimating them; the text, if given, then only measures them.
        threads: how many; no weight depends on it.
        output: a folder to save the mixture to.
        scoring: how models named by a path score.

    Returns:
        A model like any other, with `weights`, and how they were found and what they are worth in `estimation`.

    Raises:
        InputError: the vocabularies or tokenizers differ, or the text is empty.
        UsageError: fewer than two models, weights that are not shares of 1, neither weights nor text, or an output that
            would replace an input.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["a b", "a"])
        >>> mix([train("laplace", text, order=n) for n in (1, 2)], weights=[0.25, 0.75]).weights
        (0.25, 0.75)
    """
    if isinstance(models, PATHS):
        raise UsageError("a mixture needs a list of two models or more, not one path")
    if len(models) < 2:
        raise UsageError("a mixture needs at least two models; name each (-m)")
    if held_out is None and weights is None:
        raise UsageError("a mixture needs held-out text to estimate its weights on, or the weights themselves")
    corpus = None if held_out is None else corpus_of(held_out)
    paths = refuse_twice(models)
    if output is not None:
        if os.fspath(output).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
            raise UsageError(f"-o {output}: only n-gram models have an ARPA or KenLM form; a mixture is a folder")
        refuse_replacing({"-o": output}, [*paths, *(source.path for source in (corpus.sources if corpus else ()))])
    components = load_models(models, scoring)
    shared: dict[str, Any] = {"names": paths} if len(paths) == len(models) else {}
    if corpus is None:
        mixture = MixtureModel(components, weights or (), **shared)
    else:
        how = {"threads": threads, "progress": say_progress, **shared}
        fit = (
            estimate_weights(components, corpus, **how)
            if weights is None
            else measure_weights(components, weights, corpus, **how)
        )
        mixture = MixtureModel(components, fit.weights, estimation=fit.to_dict(), **shared)
    if output is not None:
        say_progress(f"saving {output}")
        mixture.save(os.fspath(output))
    return mixture
