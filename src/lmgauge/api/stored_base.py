"""`lmgauge.save_base`: what a model predicts, stored once to compare others with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.evaluation.options import DEFAULT_EVENTS, StoringSettings
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.base_results import SavedBase


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
        storing: how much is stored of each event.
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
    from lmgauge.api.inputs import corpus_of, named_models
    from lmgauge.distributions.blocks import of_events
    from lmgauge.evaluation.divergence.divergence import spelled_notes
    from lmgauge.evaluation.divergence.from_base import save_base as _save_base
    from lmgauge.files import refuse_replacing
    from lmgauge.progress import say_progress

    corpus = corpus_of(text, reading)
    inputs = [base] if isinstance(base, PATHS) else []
    refuse_replacing({"--save-base": base_file}, [*inputs, *(source.path for source in corpus.sources)])
    (model,), (name,) = named_models([base], scoring)
    say_progress("storing")
    notes, chosen = spelled_notes([model], [name]), None if exhaustive else events
    return _save_base(of_events(model), corpus, base_file, storing, events=chosen, name=name, notes=notes, threads=threads)
