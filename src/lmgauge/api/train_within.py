"""Whether an n-gram model is trained in memory or within a part of it, and what is said of work that was left."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.errors import LmgaugeError, NotEnoughMemoryError, UsageError
from lmgauge.files import refuse_replacing
from lmgauge.memory import size_in_words
from lmgauge.models.ngram.kenlm_form import KenlmForm
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.partitioned.limits import MemoryLimits, TrainingResources
from lmgauge.models.ngram.reading import Progress
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.storage import is_ngram_folder
from lmgauge.models.ngram.training import train_ngram
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.spelling.model import SpelledModel

_LOGGER = logging.getLogger(__name__)
_SMALLER = "a lower --order, or --cutoffs"


def train_or_within(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    resources: TrainingResources,
    form: KenlmForm,
    *,
    threads: int | None,
    progress: Progress,
    written: Path | None = None,
) -> NgramModel:
    """Train in memory, or within the memory that was asked for, or, where a model does not fit, within most of what is free.

    Args:
        settings: all decisions about the model.
        corpus: the text.
        resources: what training may take, and where the model goes.
        threads: how many share the work.
        progress: called with a few words when a stage begins.
        written: the folder to write; None: the output.

    Raises:
        NotEnoughMemoryError: it does not fit into memory, and cannot be trained within a part of it.
        LmgaugeError: whatever `train_ngram` and `train_within` raise.
    """
    output = resources.output
    refuse_replacing({"-o": output}, [source.path for source in corpus.sources])
    within = partial(_within, settings, corpus, written=written, threads=threads, progress=progress)
    if output is not None and resources.asked:
        return within(Path(output), resources.limits(threads=threads))
    try:
        model = train_ngram(settings, corpus, threads=threads, listed=resources.writes_file, progress=progress)
    except NotEnoughMemoryError as error:
        refusal = _refusal(corpus, resources)
        if output is None or refusal:
            raise NotEnoughMemoryError(f"{error}; {refusal}") from error
        limits = resources.limits(threads=threads)
        _LOGGER.warning("%s", f"{error}: training within {size_in_words(limits.memory)}, through {_work(limits, output)}")
        return within(Path(output), limits)
    if output is not None:
        progress(f"saving {os.fspath(output)}")
        model.save(os.fspath(written or output), **vars(form))
    return model


def train_spelled(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    resources: TrainingResources,
    form: KenlmForm,
    *,
    threads: int | None,
    progress: Progress,
) -> SpelledModel:
    """Train as `train_or_within` does, then read the text once more for the spelling of unseen words.

    Args:
        settings: all decisions about the model inside.
        corpus: the text.
        resources: what training may take, and where the model goes.
        threads: how many share the work.
        progress: called with a few words when a stage begins.

    Raises:
        UsageError: the text can be read only once, or the output is not a folder, or the model cannot be spelled.
        LmgaugeError: whatever `train_or_within` raises.
    """
    from lmgauge.models.spelling.learn import learn_spelling, refuse_once
    from lmgauge.models.spelling.storage import add_spelling, refuse_file, writing_around

    refuse_once(corpus)
    train = partial(train_or_within, settings, corpus, resources, form, threads=threads, progress=progress)
    if resources.output is None:
        return learn_spelling(train(), corpus, threads=threads, progress=progress)
    refuse_file(resources.output)
    refuse_replacing({"-o": resources.output}, [source.path for source in corpus.sources])
    output = Path(resources.output)
    with writing_around(output, is_ours=is_ngram_folder) as (folder, inside):
        inner = train(written=inside)
        model = learn_spelling(inner, corpus, threads=threads, progress=progress)
        add_spelling(model, folder)
    if inner.tables.mapped is None:
        return model
    return model.around(load_ngram_model(output, just_written=True))  # the mapped file has moved


def _refusal(corpus: Corpus, resources: TrainingResources) -> str:
    """Return what to do where a text that does not fit into memory cannot be trained on within it; empty where it can."""
    if resources.output is None or resources.writes_file:
        return f"train into a folder, for which memory is enough (`lmgauge convert` makes a file of it), or with {_SMALLER}"
    if not corpus.rereadable:
        memory = _in_option(resources.limits().memory)
        return f"the text can be read only once, and has been: give --memory {memory} from the beginning, {_SMALLER}"
    return ""


def _within(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    output: Path,
    limits: MemoryLimits,
    *,
    written: Path | None,
    threads: int | None,
    progress: Progress,
) -> NgramModel:
    from lmgauge.models.ngram.partitioned.training import train_within

    work = limits.work_folder(output)
    limits = limits if written is None else replace(limits, model=output)
    refuse_replacing({"-o": output, "--temp": work}, [source.path for source in corpus.sources])
    with _naming_work(work, limits):
        return train_within(settings, corpus, written or output, limits, threads=threads, progress=progress)


@contextmanager
def _naming_work(work: Path, limits: MemoryLimits) -> Iterator[None]:
    """Say where the work of a training lies that did not come to its end, and how it can go on."""
    hint = f"the same command with --memory {_in_option(limits.memory)} --resume continues from {work}"
    try:
        yield
    except UsageError:
        raise  # what is to be said of it, it says
    except LmgaugeError as error:
        if work.is_dir() and "--resume" not in str(error):
            error.args = (f"{error}; then {hint}", *error.args[1:])
        raise
    except (KeyboardInterrupt, SystemExit):
        if work.is_dir():
            _LOGGER.warning("stopped; %s", hint)
        raise


def _work(limits: MemoryLimits, output: str | os.PathLike[str]) -> Path:
    return limits.work_folder(Path(output))


def _in_option(memory: int) -> str:
    """Return bytes as --memory takes them, exactly."""
    return f"{memory >> 20}M" if memory % (1 << 20) == 0 else str(memory)
