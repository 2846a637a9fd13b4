"""`lmgauge.divergence` and `lmgauge.save_base`: how far the predictions of models are from those of a base."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api import inputs
from lmgauge.api.inputs import PATHS, Model, Models, PathLike, Text
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import Count, Positive
from lmgauge.evaluation.options import DEFAULT_EVENTS, StoringSettings
from lmgauge.settings import DivergenceSettings, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge import Corpus, LanguageModel
    from lmgauge.evaluation.divergence.base_file import BaseFile
    from lmgauge.results import CandidateDivergences, Decision, Divergence, SavedBase
    from lmgauge.scores.distributions.stored_rows import LastLayer


@overload
def divergence(base: Model, candidate: Models, text: Text, *, until: Literal["decided"], **fields: Any) -> Decision: ...
@overload
def divergence(base: Model | BaseFile, candidate: Model, text: Text, **fields: Any) -> Divergence: ...
@overload
def divergence(
    base: Model | BaseFile, candidate: Sequence[Model] | Mapping[str, Model], text: Text, **fields: Any
) -> CandidateDivergences: ...
@verb
def divergence(
    base: Model | BaseFile,
    candidate: Models,
    text: Text,
    *,
    train: Text | None = None,
    output: PathLike | None = None,
    model: Model | None = None,
    until: Literal["decided"] | None = None,
    margin: Positive | None = None,
    settings: DivergenceSettings = DivergenceSettings(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Divergence | CandidateDivergences | Decision:
    """Measure how far the predictions of models are from those of a base in the contexts of a text: `lmgauge divergence`.

    Base and candidates have the same tokens, as before and after quantizing. At each event of the text the distributions
    over the whole vocabulary are compared.

    Sources: Kullback & Leibler (1951); Lin (1991) for Jensen-Shannon.

    Args:
        base: the model to stay close to, for example before pruning or quantization; or the file that `save_base` wrote.
        candidate: the model that is compared with it; or a list of them, or a dict that names them.
        text: a path, several, or a `Corpus`.
        train: training text, for slices by how often words occur in it; may be several.
        output: with all events: a folder for the candidate's run, as of eval; several: one each in it. Rows have KL from the
            base and its log-probability, nats, in the columns `kl` and `base_logprob`. With `until` a file of the totals of
            documents as they become known; the same command goes on from there.
        model: the model of a base that was stored as hidden states, if it is not where it was; only its output layer is
            used.
        until: score documents in random order until it is decided which of two candidates is nearer to the base, by mean KL;
            or whether one is within `margin`; or the text is used up. The test holds at all looks together.
        margin: with `until`, nats per token: of one candidate the limit; of two also stop where they are alike within it.
        settings: which events are looked at, and what is kept.
        reading: how the text is read.
        scoring: how models named by a path score.
        fields: those of `settings`, `reading` and `scoring`, by name.

    Returns:
        The divergence of one candidate (nats and bits per event) with its intervals; of several a list of them, with tests
        of which is worse. With `until` the decision, also where it is interrupted (Ctrl-C).

    Raises:
        InputError: the tokens differ, of the models or of the text to them, or the text is empty; a stored base is damaged
            or of another text.
        ModelFileError: a model cannot be loaded.
        UsageError: the same path twice, no candidate, numbers out of range, or an output without all events; with `until`
            documents that are not known, fewer than seven, or a stored base.

    Shell:
        lmgauge divergence base.gguf q8.gguf q4.gguf test.txt
        lmgauge divergence base/ test.txt --save-base base.parquet
        lmgauge divergence base.parquet q8/ q4/ test.txt
        lmgauge divergence base/ q8/ texts/*.txt --until decided --margin 0.01
        lmgauge divergence base/ test.txt --save-base base.parquet --exact states
        lmgauge divergence kn5/ kn5-pruned/ test.txt --exhaustive --json | jq .[0].kl_ab_nats

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (train("witten-bell", text, order=order) for order in (1, 2))
        >>> result = divergence(large, small, text)
        >>> round(result.kl_ab_bits.value, 3), round(result.top_1_agreement.value, 3)
        (0.633, 0.25)
    """
    from lmgauge.api.verdicts import training_words
    from lmgauge.evaluation.divergence import divergence as of_models
    from lmgauge.evaluation.divergence.base_file import BaseFile
    from lmgauge.evaluation.divergence.bases import AskedBase, StoredBase, settled
    from lmgauge.evaluation.divergence.candidates import CandidateRuns
    from lmgauge.records.parquet import is_parquet

    candidates = inputs.listed(candidate)
    if model is not None and not (isinstance(base, BaseFile) or is_parquet(base)):
        raise UsageError("model: is for a stored base of hidden states, and the base is a model itself; leave it out")
    if not candidates:
        raise UsageError("there is no candidate in the list: lmgauge.divergence(base, [candidate, ...], text)")
    corpus, training = inputs.corpus_of(text, reading), None if train is None else inputs.corpus_of(train)
    stored = base if isinstance(base, BaseFile) else BaseFile(base) if is_parquet(base) else None
    if until is None and margin is not None:
        raise UsageError("margin says when to stop: add --until decided, or leave it out")
    with stored or nullcontext():
        own: list[Model] = [] if stored is not None or isinstance(base, BaseFile) else [base]
        models = [*own, *candidates]
        inputs.refuse_twice(models)
        inputs.refuse_output(output, models, corpus, None if stored is None else stored.path)
        if until is not None:
            options = chosen(settings) + ["train"] * (train is not None)
            _refuse_undecidable(stored, len(candidates), margin, options, corpus)
            return _decided(models, candidate, corpus, output, margin, settings, scoring)
        if stored is not None:
            settings = settled(stored.header, settings)
        if output is not None and settings.events is not None:
            again = "add --exhaustive" + ("" if stored is None else " where the base is stored")
            raise UsageError(f"a run has all events of a text: with -o (output) {again}")
        layer = None if stored is None else _last_layer(stored, model, scoring)
        views, loaded, names, notes = _beside(models, candidate, corpus, scoring, same_ids=stored is None)
        against = AskedBase(views.pop(0), names.pop(0), loaded.pop(0)) if stored is None else StoredBase(stored, layer)
        words = None if training is None else partial(training_words, training, settings.threads)
        writing = nullcontext() if output is None else CandidateRuns(output, loaded, names, corpus)
        with writing as runs:
            watch = None if runs is None else runs.add
            result = of_models.divergence(
                against, views, corpus, settings, names=names, training=words, notes=notes, watch=watch
            )
            if runs is not None:
                runs.evaluate(scoring)
    several = isinstance(candidate, (Sequence, Mapping)) and not isinstance(candidate, str)
    return result if several else result[0]


def _beside(
    models: Sequence[Model], candidate: Models, corpus: Corpus, scoring: ScoringOptions, *, same_ids: bool
) -> tuple[list[LanguageModel], list[LanguageModel], list[str], tuple[str, ...]]:
    # Models as they are compared, with the same ids for the same tokens if asked, and as they were loaded; their names, and
    # what has to be said of them.
    from lmgauge.base.progress import say_progress
    from lmgauge.evaluation.divergence.divergence import spelled_notes
    from lmgauge.models.combined.mixture.compatibility import over_common_tokens
    from lmgauge.models.registry import model_names
    from lmgauge.scores.distributions.blocks import of_events

    loaded = inputs.load_models(models, scoring, corpus)
    names = model_names(models, loaded)
    notes = spelled_notes(loaded, names)
    loaded = list(map(of_events, loaded))
    if isinstance(candidate, Mapping):
        names[-len(candidate) :] = map(str, candidate)
    say_progress("comparing")
    called = [os.fspath(one) if isinstance(one, PATHS) else one.label for one in models]
    views = over_common_tokens(loaded, called) if same_ids else list(loaded)  # messages name paths, where there are any
    return views, loaded, names, notes


def _decided(
    models: Sequence[Model],
    candidate: Models,
    corpus: Corpus,
    output: PathLike | None,
    margin: float | None,
    settings: DivergenceSettings,
    scoring: ScoringOptions,
) -> Decision:
    from lmgauge.evaluation.comparison.until import decide, noted
    from lmgauge.evaluation.divergence.divergence import Nearness

    limit, within = (margin, None) if len(models) == 2 else (None, margin)
    with noted(output) as totals:
        views, _, names, notes = _beside(models, candidate, corpus, scoring, same_ids=True)
        question = Nearness(views, names, corpus, limit=limit, notes=notes, threads=settings.threads)
        return decide(question, totals, margin=within, seed=settings.seed)


def _refuse_undecidable(
    stored: BaseFile | None, candidates: int, margin: float | None, options: Sequence[str], corpus: Corpus
) -> None:
    # options: what was chosen beside.
    if stored is not None:
        raise UsageError(
            f"{stored.path}: is a stored base, which has the events of its own text in their order; until decided takes "
            "documents at random: name the model itself"
        )
    for name in reversed(options):  # exhaustive before events, which it sets
        if name not in ("seed", "threads"):
            raise UsageError(f"{name.replace('_', '-')} does not go with until decided: leave one of the two out")
    if candidates > 2 or (candidates == 1 and margin is None):
        what = "one candidate needs a limit (--margin NATS)" if candidates == 1 else f"there are {candidates} candidates"
        raise UsageError(f"until decided asks which of two candidates is nearer, or if one is within a limit: {what}")
    corpus.refuse_once("documents are drawn from all of the text before they are scored")


def _last_layer(stored: BaseFile, model: Model | None, scoring: ScoringOptions) -> LastLayer | None:
    # What makes distributions of the hidden states of a stored base; None where it has distributions.
    states, path, base = stored.header.states, stored.path, stored.header.model
    if states is None:
        if model is not None:
            raise UsageError(f"model: {path} has no hidden states, so it needs no model; leave it out")
        return None
    if model is None and not os.path.isdir(states.folder):  # a file is not to say what is fetched from elsewhere
        where = f"its folder {states.folder} is not here" if states.folder else "it was in memory, or came from a hub"
        raise InputError(f"{path}: needs the output layer of {base}, and {where}; name the model (--model)")
    named = states.folder if model is None else model
    trusted = scoring.trust_remote_code and model is not None  # nor whose code runs
    options = replace(scoring, dtype=states.dtype, trust_remote_code=trusted) if isinstance(named, PATHS) else None
    layer = inputs.loaded(named, options).last_layer
    if layer is None or (layer.digest, layer.width) != (states.output_layer, states.width):
        raise InputError(
            f"{path}: needs the output layer of {base} in {states.dtype}, and that of "
            f"{named if isinstance(named, PATHS) else named.label} is another; name the model that was stored (--model)"
        )
    return layer


@verb
def save_base(
    base: Model,
    text: Text,
    base_file: PathLike,
    *,
    events: Count | None = DEFAULT_EVENTS,
    exhaustive: bool = False,
    threads: Count | None = None,
    storing: StoringSettings = StoringSettings(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> SavedBase:
    """Store what a model predicts in the contexts of a text, to compare others with: `lmgauge divergence --save-base`.

    Of each event the most probable tokens are stored as they are, and tokens drawn from the rest: far less
    than whole distributions. `divergence` takes the file in place of the base.

    Args:
        base: the model to compare with, for example before quantization.
        text: a path, several, or a `Corpus`.
        base_file: store what BASE predicts in this file, and compare nothing; BASE TEXT... --save-base FILE.
        events: about how many events to store, in whole segments drawn at random; all if None.
        exhaustive: store every event of the text.
        threads: how many; all cores if not given.
        storing: how much is stored for each event.
        reading: how the text is read.
        scoring: how a model named by a path scores.
        fields: those of `storing`, `reading` and `scoring`, by name.

    Returns:
        What was stored, and how long the file is.

    Raises:
        InputError: the text is empty or cannot be scored.
        ModelFileError: the model cannot be loaded.
        OutputError: the file cannot be written.
        UsageError: numbers out of range, or a model that gives no whole distributions.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = save_base(large, text, f"{folder}/wb2.base")
        ...     result = lmgauge.divergence(f"{folder}/wb2.base", small, text)
        >>> saved.top, round(result.kl_ab_bits.value, 3)
        (9, 0.633)
    """
    from lmgauge.base.progress import say_progress
    from lmgauge.evaluation.divergence.bases import save_base as _save_base
    from lmgauge.evaluation.divergence.divergence import spelled_notes
    from lmgauge.scores.distributions.blocks import of_events

    corpus = inputs.corpus_of(text, reading)
    inputs.refuse_output(base_file, [base], corpus, option="--save-base")
    (model,), (name,) = inputs.named_models([base], scoring, corpus)
    say_progress("storing")
    notes, chosen = spelled_notes([model], [name]), None if exhaustive else events
    folder = os.path.abspath(base) if isinstance(base, PATHS) and os.path.isdir(base) else ""
    return _save_base(
        of_events(model), corpus, base_file, storing, events=chosen, name=name, folder=folder, notes=notes, threads=threads
    )
