"""`lmgauge.divergence`: how far the predictions of models are from those of a base."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypedDict, Unpack, overload

from lmgauge.api.diagnose import training_words
from lmgauge.api.inputs import PATHS, Model, Models, PathLike, Text, corpus_of, listed, load_models, refuse_twice
from lmgauge.choices import DEFAULT_SEED
from lmgauge.distributions.blocks import of_events
from lmgauge.errors import UsageError
from lmgauge.evaluation.divergence.base_file import BaseFile, is_base_file
from lmgauge.evaluation.divergence.divergence import (
    DEFAULT_EVENTS,
    DEFAULT_EXAMPLES,
    DEFAULT_TOP_K,
    DivergenceSettings,
    spelled_notes,
)
from lmgauge.evaluation.divergence.divergence import divergence as _divergence
from lmgauge.evaluation.divergence.from_base import divergence_from
from lmgauge.evaluation.divergence.results import CandidateDivergences, Divergence
from lmgauge.evaluation.divergence.runs import CandidateRuns
from lmgauge.files import refuse_replacing
from lmgauge.models.mixture.vocabulary_alignment import over_common_tokens
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import model_names
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus


class _Options(TypedDict, total=False):
    """What every form of `divergence` takes besides models and a text."""

    events: int | None
    top_k: int | Sequence[int]
    train: Text | None
    examples: int
    seed: int
    threads: int | None
    output: PathLike | None
    scoring: ScoringOptions | None


@overload
def divergence(  # type: ignore[overload-overlap]  # a str is a Sequence, but of no models
    base: Model | BaseFile, candidate: Model, text: Text, **options: Unpack[_Options]
) -> Divergence: ...
@overload
def divergence(
    base: Model | BaseFile, candidate: Sequence[Model] | Mapping[str, Model], text: Text, **options: Unpack[_Options]
) -> CandidateDivergences: ...
def divergence(
    base: Model | BaseFile,
    candidate: Models,
    text: Text,
    *,
    events: int | None = DEFAULT_EVENTS,
    top_k: int | Sequence[int] = DEFAULT_TOP_K,
    train: Text | None = None,
    examples: int = DEFAULT_EXAMPLES,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
) -> Divergence | CandidateDivergences:
    """Measure how far the predictions of models are from those of a base in the contexts of a text: `lmgauge divergence`.

    Sources: Kullback & Leibler (1951); Lin (1991) for Jensen-Shannon.

    Args:
        base: the model to stay close to, for example before pruning or quantization; or the file that `save_base` wrote.
        candidate: the model that is compared with it, over the same tokens; or a list of them, or a dict that names them.
        text: a path, several, or a `Corpus`.
        events: how many events to look at, about, in whole segments drawn at random; None for all. Of a stored base those
            that were stored.
        top_k: for how many most probable tokens to count the agreement; one number or several, each 1 or more.
        train: training text, for slices by how often words occur in it.
        examples: how many tokens to keep of each kind: those that suffer most.
        seed: of the draw, and of the tests of several candidates; of a stored base its own.
        threads: how many; no number depends on it.
        output: a folder for the run of the candidate (several: a folder for each in it), as `evaluate` writes it, with the
            columns `kl` and `base_logprob`, nats; needs `events=None`.
        scoring: how models named by a path score.

    Returns:
        The divergence of one candidate (nats and bits per event) with its intervals; of several a list of them, with tests
        of which is worse.

    Raises:
        InputError: the tokens differ, of the models or of the text to them, or the text is empty; a stored base is damaged
            or of another text.
        ModelFileError: a model cannot be loaded.
        UsageError: the same path twice, no candidate, numbers out of range, or an output without all events.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (train("witten-bell", text, order=order) for order in (1, 2))
        >>> result = divergence(large, small, text)
        >>> round(result.kl_ab_bits.value, 3), round(result.top_1_agreement.value, 3)
        (0.633, 0.25)
    """
    ranks = [top_k] if isinstance(top_k, int) else top_k
    settings = DivergenceSettings(events=events, top_k=ranks, examples=examples, seed=seed, threads=threads)
    if not listed(candidate):
        raise UsageError("there is no candidate in the list: lmgauge.divergence(base, [candidate, ...], text)")
    with _opened(base) as stored:
        result = _compared(base if stored is None else stored, candidate, corpus_of(text), settings, train, output, scoring)
    several = isinstance(candidate, (Sequence, Mapping)) and not isinstance(candidate, str)
    return result if several else result[0]


@contextmanager
def _opened(base: Model | BaseFile) -> Iterator[BaseFile | None]:
    """Open a stored base, given by its path or open; None where the base is a model."""
    if isinstance(base, BaseFile):
        with base:
            yield base
    elif is_base_file(base):
        with BaseFile(base) as stored:
            yield stored
    else:
        yield None


def _compared(
    base: Model | BaseFile,
    candidate: Models,
    corpus: Corpus,
    settings: DivergenceSettings,
    train: Text | None,
    output: PathLike | None,
    scoring: ScoringOptions | None,
) -> CandidateDivergences:
    candidates = listed(candidate)
    stored, own = (base, []) if isinstance(base, BaseFile) else (None, [base])
    models = [*own, *candidates]
    paths = [*refuse_twice(models), *([] if stored is None else [str(stored.path)])]
    if output is not None:
        if (settings.events if stored is None else stored.header.asked_events) is not None:
            again = "add --exhaustive (events=None)" + ("" if stored is None else " where the base is stored")
            raise UsageError(f"a run has all events of a text: with -o (output) {again}")
        refuse_replacing({"-o": output}, [*paths, *(source.path for source in corpus.sources)])
    loaded = load_models(models, scoring)
    names = model_names(models, loaded)
    spelled = spelled_notes(loaded, names)
    loaded = list(map(of_events, loaded))
    if isinstance(candidate, Mapping):
        names[len(own) :] = [str(name) for name in candidate]
    say_progress("comparing")
    training = None if train is None else partial(training_words, corpus_of(train), settings.threads)
    if stored is None:
        first, *views = _over_common_tokens(models, loaded)
        measure = partial(_divergence, first)
    else:
        views, measure = loaded, partial(divergence_from, stored)
    compare = partial(measure, views, corpus, settings, names=names, training=training, progress=_say)
    if output is None:
        return _with_notes(compare(), spelled)
    with CandidateRuns(os.fspath(output), loaded[len(own) :], names[len(own) :], corpus) as runs:
        result = compare(watch=runs.write)
        runs.finish(scoring or ScoringOptions())
    return _with_notes(result, spelled)


def _with_notes(result: CandidateDivergences, notes: Sequence[str]) -> CandidateDivergences:
    """Return divergences with further notes."""
    return CandidateDivergences(tuple(replace(item, notes=(*item.notes, *notes)) for item in result)) if notes else result


def _over_common_tokens(named: Sequence[Model], models: Sequence[LanguageModel]) -> list[LanguageModel]:
    """Return models with the ids of the first; messages name paths, where there are any."""
    shown = [os.fspath(one) if isinstance(one, PATHS) else model.label for one, model in zip(named, models, strict=True)]
    return over_common_tokens(models, shown)


def _say(done: int, total: int | None) -> None:
    say_progress(f"compared {done:,} events" if total is None else f"compared {done:,} of {total:,} events")
