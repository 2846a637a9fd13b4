"""`lmgauge.diagnose`: where a model fails."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from lmgauge.api.run_text import RunText, refuse_without_model
from lmgauge.api.types import Model, PathLike
from lmgauge.declaration import verb
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.models.network.options import ScoringOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.diagnosis.baselines import Baseline
    from lmgauge.evaluation.diagnosis.results import Diagnosis
    from lmgauge.evaluation.slicing.cuts import TrainingWords
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments


@verb
def diagnose(
    run: PathLike,
    *,
    model: Model | None = None,
    about: RunText = RunText(),
    settings: DiagnosisSettings = DiagnosisSettings(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Diagnosis:
    """Show where a model fails (slices of the text, worst tokens, calibration, memory, baselines): `lmgauge diagnose`.

    Args:
        run: a run folder (of `evaluate(..., output=...)` or `lmgauge eval -o`) or a score table (Parquet, JSONL).
        model: the model behind the run; adds calibration and text sampled from it.
        about: the text that was scored, and the training text, which also gives n-gram models among the baselines.
        settings: what is worked out, and how much of it.
        scoring: how a model named by its path scores.
        fields: those of `about`, `settings` and `scoring`, by name.

    Raises:
        InputError: the run is damaged or was changed, or text or model are not those behind it.
        UsageError: a section is not known, `train` is given but the text that was scored is not at hand, or an option needs
            the model.

    Shell:
        lmgauge eval -m kn5/ test.txt -o run-kn5/
        lmgauge diagnose run-kn5/ --train train.txt -m kn5/

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
    from lmgauge.api.inputs import opened
    from lmgauge.evaluation.diagnosis import diagnose as diagnosis

    examined = opened(run)
    corpus = about.of([examined])["corpus"]
    return diagnosis.diagnose(examined, settings, corpus=corpus, **behind(model, about, settings, scoring))


def behind(model: Model | None, about: RunText, settings: DiagnosisSettings, scoring: ScoringOptions) -> dict[str, Any]:
    """Return what a diagnosis asks besides the run: its model, its training text.

    Raises:
        UsageError: an option is about the model, and there is none.
    """
    from lmgauge.api.inputs import loaded
    from lmgauge.models.sampling import sample_ids
    from lmgauge.progress import say_progress

    if model is None:
        refuse_without_model(scoring, settings)
    opened = None if model is None else loaded(model, scoring)
    return {
        "training": about.trained(training_words, settings.threads),
        "rungs": about.trained(training_rungs, settings.threads),
        "model": opened,
        "sample": None if opened is None else partial(sample_ids, opened, seed=settings.seed, threads=settings.threads),
        "progress": say_progress,
    }


def training_words(train: Corpus, threads: int | None, scored: Iterable[Segments]) -> TrainingWords:
    """Return what of the words of a text was seen in a training text, for slices."""
    from lmgauge.text.training_coverage import find_training_coverage

    seen = find_training_coverage(train, scored, threads=threads)
    return lambda block: seen.of(block)[:2]


def training_rungs(train: Corpus, threads: int | None, scored: Corpus) -> list[Baseline]:
    """Return the rungs of n-gram models of a training text, in bits per byte; none if a text can be read only once."""
    from lmgauge.api.baseline import NgramRungs, ngram_rungs
    from lmgauge.temporaries import scratch_folder

    if not (train.rereadable and scored.rereadable):
        return []
    with scratch_folder() as work:
        rungs = ngram_rungs(train.without_given("training"), scored, NgramRungs(threads=threads), work)
        return [one.rung for one in rungs]
