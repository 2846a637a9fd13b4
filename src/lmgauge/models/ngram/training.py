"""Training an n-gram model in memory, or where it does not fit, within a part of it: `train_or_within` finds out.

Both are the same stages over partitions of the n-grams (`partitioned.training`); in memory, the partitions stand there, a
few for each thread. `memory_needs` says how much each stage then takes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from lmgauge.errors import LmgaugeError, NotEnoughMemoryError, UsageError
from lmgauge.files import refuse_replacing
from lmgauge.memory import size_in_words
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.memory_needs import TextSize, check_reading, check_training
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.partitioned.packing import ALL_MEMORY
from lmgauge.models.ngram.partitioned.text import read_text
from lmgauge.models.ngram.partitioned.training import train_partitions
from lmgauge.models.ngram.reading import Progress
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.progress import listening
from lmgauge.text.documents import Corpus
from lmgauge.threads import thread_count
from lmgauge.work.engine import Engine

_LOGGER = logging.getLogger(__name__)
_SMALLER = "a lower --order, or --cutoffs"
_CHUNK = 1 << 22  # tokens
_PARTITIONS, _LEAST_PARTITION = 2, 1 << 17  # of a thread, so that their tables lie nearer to it; tokens


def train_ngram(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    *,
    threads: int | None = None,
    listed: bool = False,
    progress: Progress = lambda stage: None,
) -> NgramModel:
    """Train a model on a text in memory."""
    # corpus: the text, read once; each segment is a sentence; threads: how many threads share the work; the model does not
    # depend on it; listed: True if its n-grams are then listed to write the file of another program: memory must be enough
    # for it.
    engine = Engine(thread_count(threads))
    with listening(progress):
        text = read_text(engine, settings, corpus, _CHUNK, threads=engine.workers, progress=progress, check=check_reading)
        tokens, vocabulary = int(text.fitted.counts.sum()), text.fitted.vocabulary
        partitions = min(_PARTITIONS * engine.workers, 1 + tokens // _LEAST_PARTITION)
        vocabulary_bytes = vocabulary.slots.nbytes + vocabulary.offsets.nbytes + vocabulary.bytes.nbytes
        cut = partitions, min(engine.workers, partitions)
        size = TextSize(tokens, len(vocabulary), vocabulary_bytes, text.types, *cut, listed=listed)
        needed = check_training(settings, size)
        progress(f"counting n-grams of {text.fitted.number_of_events:,} events: {needed}")
        return train_partitions(engine, settings, text, None, partitions=partitions, memory=ALL_MEMORY)


# -- in memory, or within a part of it ----------------------------------------------------------------------------------
def train_or_within(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    resources: TrainingResources,
    form: KenlmForm | None = None,
    *,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
    written: Path | None = None,
    scratch: bool = False,
) -> NgramModel:
    """Train in memory, or within the memory asked for, or, where a model does not fit, within most of what is free."""
    # written: the folder to write; None: the output. scratch: True where the output is only room for a model too large for
    # memory, which goes when the work is done.
    output = None if resources.output is None else Path(resources.output)
    sources = [source.path for source in corpus.sources]
    refuse_replacing({"-o": output}, sources)
    too_large = None
    if output is None or not resources.asked:
        try:
            model = train_ngram(settings, corpus, threads=threads, listed=resources.writes_file, progress=progress)
        except NotEnoughMemoryError as error:
            too_large = error
        else:
            if output is not None and not scratch:
                progress(f"saving {output}")
                model.save(written or output, **vars(form or KenlmForm()))
            return model
    if too_large is not None and (refusal := _refusal(corpus, resources)):
        raise NotEnoughMemoryError(f"{too_large}; {refusal}") from too_large
    from lmgauge.models.ngram.partitioned.training import train_within

    assert output is not None  # it would have been refused
    limits = resources.limits(threads=threads)
    work = limits.work_folder(output)
    if too_large is not None:
        _LOGGER.warning("%s: training within %s, through %s", too_large, size_in_words(limits.memory), work)
    refuse_replacing({"-o": output, "--temp": work}, sources)
    limits = limits if written is None else replace(limits, model=output)
    with nullcontext() if scratch else _naming_work(work, limits.memory):
        return train_within(settings, corpus, written or output, limits, threads=threads, progress=progress)


def _refusal(corpus: Corpus, resources: TrainingResources) -> str:
    # What to do where a text that does not fit into memory cannot be trained on within it; empty where it can.
    if resources.output is None or resources.writes_file:
        return f"train into a folder, for which memory is enough (`lmgauge convert` makes a file of it), or with {_SMALLER}"
    if not corpus.rereadable:
        memory = _in_option(resources.limits().memory)
        return f"the text can be read only once, and has been: give --memory {memory} from the beginning, {_SMALLER}"
    return ""


@contextmanager
def _naming_work(work: Path, memory: int) -> Iterator[None]:
    # Says where the work of a training lies that did not come to its end, and how it can go on.
    hint = f"the same command with --memory {_in_option(memory)} --resume continues from {work}"
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


def _in_option(memory: int) -> str:
    # Bytes as --memory takes them, exactly.
    return f"{memory >> 20}M" if memory % (1 << 20) == 0 else str(memory)
