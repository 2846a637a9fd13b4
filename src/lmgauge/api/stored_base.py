"""`lmgauge.save_base`: what a model predicts, stored once to compare others with."""

from __future__ import annotations

from dataclasses import replace

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, load_models
from lmgauge.choices import DEFAULT_BASE_SAMPLES, DEFAULT_BASE_TOP, DEFAULT_SEED, BaseType
from lmgauge.distributions.blocks import of_events
from lmgauge.distributions.stored_rows import StoringSettings
from lmgauge.evaluation.divergence.base_results import SavedBase
from lmgauge.evaluation.divergence.divergence import DEFAULT_EVENTS, DivergenceSettings, spelled_notes
from lmgauge.evaluation.divergence.from_base import save_base as _save_base
from lmgauge.files import refuse_replacing
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.registry import model_names
from lmgauge.progress import say_progress


def save_base(
    base: Model,
    text: Text,
    output: PathLike,
    *,
    events: int | None = DEFAULT_EVENTS,
    top: int = DEFAULT_BASE_TOP,
    samples: int = DEFAULT_BASE_SAMPLES,
    exact: BaseType | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    scoring: ScoringOptions | None = None,
) -> SavedBase:
    """Store what a model predicts in the contexts of a text, to compare others with: `lmgauge divergence --save-base`.

    Of each event the most probable tokens are stored as they are, and tokens drawn from the rest: far less
    than whole distributions. `divergence` takes the file in place of the base.

    Args:
        base: the model to compare with, for example before quantization.
        text: a path, several, or a `Corpus`.
        output: the file to write, Parquet.
        events: how many events to store, about, in whole segments drawn at random; None for all.
        top: how many most probable tokens of each event to store.
        samples: how many tokens to draw from the rest for each unit of its probability; more narrow the bounds.
        exact: store whole distributions instead, in this type.
        seed: of both draws.
        threads: how many.
        scoring: how a model named by a path scores.

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
    DivergenceSettings(events=events, seed=seed)  # refuses what is out of range
    settings = StoringSettings(top, samples, seed, exact)
    corpus = corpus_of(text)
    inputs = [base] if isinstance(base, PATHS) else []
    refuse_replacing({"the base file": output}, [*inputs, *(source.path for source in corpus.sources)])
    models = load_models([base], scoring)
    name = model_names([base], models)[0]
    say_progress("storing")
    saved = _save_base(
        of_events(models[0]),
        corpus,
        output,
        settings,
        events=events,
        name=name,
        threads=threads,
        progress=_say,
    )
    return replace(saved, notes=(*saved.notes, *spelled_notes(models, [name])))


def _say(done: int, total: int | None) -> None:
    say_progress(f"stored {done:,} events" if total is None else f"stored {done:,} of {total:,} events")
