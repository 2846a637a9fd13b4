"""`lmgauge.mix`: models mixed by linear interpolation, or made into one n-gram model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.shown import Shown
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.mixture.together import Mixture
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.text.documents import Corpus


@dataclass(frozen=True, repr=False)
class StaticMixture(Shown):
    """An n-gram model in place of a mixture, and what it loses.

    Attributes:
        model: the n-gram model, one like any other.
        mixture: the mixture that it stands for.
        perplexity_of_mixture: of the mixture, on the text; None without a text.
        perplexity: of the n-gram model, on the same text.
        events: of the text.

    Example:
        >>> import lmgauge
        >>> texts = ["the cat sat", "the cat ran"], ["the dog sat", "a dog ran"]
        >>> parts = [lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(text), order=2) for text in texts]
        >>> held_out = lmgauge.Corpus.from_strings(["a cat sat", "the dog ran"])
        >>> lmgauge.mix(parts, held_out, weights=[0.5, 0.5], static=True)
        <StaticMixture: mix(wb2+wb2,union): 19 n-grams, perplexity 3.541, of the mixture 3.431>
    """

    model: NgramModel | SpelledModel = field(repr=False)
    mixture: Mixture = field(repr=False)
    perplexity_of_mixture: float | None = None
    perplexity: float | None = None
    events: int = 0

    @property
    def ngrams(self) -> tuple[int, ...]:
        """N-grams of order 1, 2, ..."""
        return tuple(self.model.types)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge mix --static --json` prints them, without the models."""
        return {
            **self.mixture.to_dict(),
            "model_type": self.model.to_dict()["model_type"],
            "static": True,
            "label": self.model.label,
            "fingerprint": self.model.fingerprint,
            "ngrams": list(self.ngrams),
            "perplexity_of_mixture": self.perplexity_of_mixture,
            "perplexity": self.perplexity,
            "events": self.events,
        }

    def _in_brief(self) -> str:
        brief = f"{self.mixture.label}: {sum(self.ngrams):,} n-grams"
        if self.perplexity is None:
            return brief
        return f"{brief}, perplexity {self.perplexity:.4g}, of the mixture {self.perplexity_of_mixture:.4g}"


@overload
def mix(
    models: Sequence[Model], held_out: Text | None = None, *, static: Literal[False] = False, **options: Any
) -> Mixture: ...
@overload
def mix(
    models: Sequence[Model], held_out: Text | None = None, *, static: Literal[True], **options: Any
) -> StaticMixture: ...
@verb
def mix(
    models: Sequence[Model],
    held_out: Text | None = None,
    *,
    weights: Sequence[float] | None = None,
    static: bool = False,
    threads: Count | None = None,
    output: PathLike | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Mixture | StaticMixture:
    """Mix models by linear interpolation, weights given or by EM on held-out text: `lmgauge mix`.

    Models over different words are mixed over the union of their words: a model gives probability zero to a word that it
    does not know and another does, and its `<unk>` is for words that no model knows. Spelled models with the same speller
    get it around their mixture. Models that cut text differently are mixed byte by byte, if each of them gives every text a
    probability: spelled words, spelled characters, bytes.

    Args:
        models: model folder, ARPA or KenLM file; two or more, from Python also models.
        held_out: text that no component was trained on; a path, several, or from Python a `Corpus`.
        weights: one a model, summing to 1, instead of estimating them; the text, if given, then only measures them.
        static: make one n-gram model of them; with the n-grams of all, each as probable as in the mixture, and new back-off
            weights (Stolcke 2002). For n-gram models that back off; or for one mixture of such, whose weights stay.
        threads: how many; all cores if not given. No weight depends on it.
        output: folder to write; with `static` also an ARPA file or a binary file of KenLM, by its ending.
        reading: how the text is read.
        scoring: how models named by a path score.
        fields: those of `reading` and `scoring`, by name.

    Returns:
        A model like any other, with `weights`, and how they were found and what they are worth in `estimation`; of spelled
        models with one speller, what is estimated and measured is the mixture of the models inside. With
        `static`, an n-gram model in `model`, and the perplexity lost on the text.

    Raises:
        InputError: the tokenizers differ, or the vocabularies of networks, or the text is empty.
        UsageError: some models are spelled and another one cannot be read as bytes, fewer than two models, weights that are
            not shares of 1, neither weights nor text, an output that would replace an input, or `static` for models that do
            not back off.

    Shell:
        lmgauge mix -m kn3/ -m wb3/ valid.txt -o mixed/
        lmgauge mix -m kn3/ -m wb3/ --weights 0.7,0.3 -o mixed/
        lmgauge mix -m theirs.arpa -m kn3/ --reserved unk valid.txt --static -o m.arpa

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["a b", "a"])
        >>> mix([train("laplace", text, order=n) for n in (1, 2)], weights=[0.25, 0.75]).weights
        (0.25, 0.75)
    """
    from lmgauge.api.inputs import corpus_of, load_models, refuse_output, refuse_twice
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.mixture.together import together
    from lmgauge.models.mixture.weights import find_weights
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.progress import say_progress

    if isinstance(models, PATHS):
        raise UsageError("a mixture needs a list of two models or more, not one path")
    if len(models) < 2 and not static:
        raise UsageError("a mixture needs at least two models; name each (-m)")
    corpus = None if held_out is None else corpus_of(held_out, reading)
    if len(models) > 1 and corpus is None and weights is None:
        raise UsageError("a mixture needs held-out text to estimate its weights on, or the weights themselves")
    paths = refuse_twice(models)
    if output is not None and os.fspath(output).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)) and not static:
        raise UsageError(f"-o {output}: a mixture is a folder; an ARPA or KenLM file can hold a static one (--static)")
    refuse_output(output, models, corpus)
    components = load_models(models, scoring)
    if len(components) < 2:
        mixture: Any = components[0] if components else None
        if weights is not None and isinstance(mixture, MixtureModel | SpelledModel):
            raise UsageError("a mixture has its weights; for others, mix its components again")
    else:
        parts = together(components, paths if len(paths) == len(models) else None)
        if corpus is None:
            mixture = parts.mixed(weights or ())
        else:
            fit = find_weights(parts.views, weights, corpus, threads=threads, progress=say_progress, names=parts.names)
            mixture = parts.mixed(fit.weights, fit.to_dict())
    result: Any = _static(mixture, corpus, threads) if static else mixture
    if output is not None:
        say_progress(f"saving {output}")
        (result.model if static else result).save(os.fspath(output))
    return result  # type: ignore[no-any-return]


def _static(mixture: Mixture, corpus: Corpus | None, threads: int | None) -> StaticMixture:
    from lmgauge.api.evaluate import evaluate
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.mixture.static import static_mixture
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.progress import say_progress

    inside = mixture.inner if isinstance(mixture, SpelledModel) else mixture
    if not isinstance(inside, MixtureModel):
        raise UsageError("a static mixture needs at least two models, or one mixture; name each (-m)")
    say_progress("merging n-grams")
    model: NgramModel | SpelledModel = static_mixture(inside)
    if isinstance(mixture, SpelledModel):
        model = SpelledModel(model, mixture.speller, mixture.separators)
    if corpus is None:
        return StaticMixture(model, mixture)
    exact, mine = (evaluate(one, corpus, threads=threads) for one in (mixture, model))
    return StaticMixture(model, mixture, exact.perplexity, mine.perplexity, mine.events)
