"""`lmgauge.diagnose`: where a model fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from lmgauge.api.baseline import NgramRungs
from lmgauge.api.inputs import Model, PathLike, Text, corpus_of, loaded, opened, text_of
from lmgauge.api.rungs import ngram_rungs
from lmgauge.choices import DEFAULT_SEED
from lmgauge.evaluation.diagnosis.baselines import Baseline
from lmgauge.evaluation.diagnosis.calibration import DEFAULT_CONTEXTS
from lmgauge.evaluation.diagnosis.diagnose import SECTIONS, DiagnosisSettings
from lmgauge.evaluation.diagnosis.diagnose import diagnose as _diagnose
from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.slicing.cuts import TrainingWords
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.sampling import sample_ids
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.training_coverage import find_training_coverage


def diagnose(
    run: PathLike,
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    contexts: int = DEFAULT_CONTEXTS,
    exhaustive: bool = False,
    sample_tokens: int | None = None,
    examples: int = 10,
    only: Collection[str] = SECTIONS,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    scoring: ScoringOptions | None = None,
) -> Diagnosis:
    """Show where a model fails (slices of the text, worst tokens, calibration, memory, baselines): `lmgauge diagnose`.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table.
        text: what it scored; if not given, where the run remembers it.
        train: training text, for slices by how often words, and how long n-grams, occur in it, and for n-gram models of it
            among the baselines.
        model: the model behind the run, for calibration and for text sampled from it.
        contexts: how many contexts to draw for calibration.
        exhaustive: all of them.
        sample_tokens: how many tokens to sample for the mutual-information curve; what takes seconds if None.
        examples: how many tokens, segments and words to keep of each kind.
        only: which sections to work out: baselines, slices, tokens, segments, unseen, calibration, information.
        seed: of whatever is drawn.
        threads: how many; no number depends on it.
        scoring: how a model named by its path scores.

    Raises:
        InputError: the run is damaged or was changed, or text or model are not those behind it.
        UsageError: a section is not known, or `train` is given but the text that was scored is not at hand.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     result = diagnose(f"{folder}/run", text=text, only=["tokens"])
        >>> [(token.token, token.events) for token in result.costly_tokens[:2]]
        [('the', 2), ('a', 1)]
    """
    settings = DiagnosisSettings(
        only=[only] if isinstance(only, str) else only,
        contexts=None if exhaustive else contexts,
        sample_tokens=sample_tokens,
        examples=examples,
        seed=seed,
        threads=threads,
    )
    examined = opened(run)
    sample = behind = None
    if model is not None:
        behind = loaded(model, scoring)
        sample = partial(sample_ids, behind, seed=seed, threads=threads)
    return _diagnose(
        examined,
        settings,
        corpus=None if text is None else text_of([examined], text),
        training=None if train is None else partial(training_words, corpus_of(train), threads),
        rungs=None if train is None else partial(training_rungs, corpus_of(train), threads),
        model=behind,
        sample=sample,
        progress=say_progress,
    )


def training_words(train: Corpus, threads: int | None, scored: Iterable[Segments]) -> TrainingWords:
    """Return what of the words of a text was seen in a training text, for slices.

    Args:
        train: the training text.
        threads: how many.
        scored: the text.

    Raises:
        InputError: a text has no words, or cannot be used.
    """
    seen = find_training_coverage(train, scored, threads=threads)
    return lambda block: seen.of(block)[:2]


def training_rungs(train: Corpus, threads: int | None, scored: Corpus) -> list[Baseline]:
    """Return what n-gram models of a training text make of a text, for the ladder of baselines.

    Args:
        train: the training text.
        threads: how many.
        scored: the text.

    Returns:
        The rungs, in bits per byte of the text; none if either text can be read only once.

    Raises:
        InputError: a text cannot be used.
    """
    if not (train.rereadable and scored.rereadable):
        return []
    training = train.without_given("training")
    return [one.rung for one in ngram_rungs(training, scored, NgramRungs(threads=threads))]
