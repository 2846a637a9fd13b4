"""The rungs of a ladder: n-gram models of a training text, models of the user or their runs, and compressors."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.api import train as training_door
from lmgauge.api.inputs import PATHS, Models, PathLike, listed, named_models
from lmgauge.context_policy import policy_of
from lmgauge.errors import NotEnoughMemoryError
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.diagnosis.baselines import PRIMER_BYTES, Baseline, Baselines, bytes_of
from lmgauge.evaluation.evaluate import evaluate_scores, sum_block
from lmgauge.evaluation.ladder import MeasuredRung, SegmentCosts, rung_of
from lmgauge.evaluation.options import Outputs
from lmgauge.evaluation.output_files import evaluated
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.run_folder import EVALUATION_FILE
from lmgauge.evaluation.runs import about, lockstep, open_run
from lmgauge.files import folder_named
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.progress import listener, say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.temporaries import scratch_folder
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.api.baseline import NgramRungs

_SMOOTHING = "modified-kneser-ney"
_TABLES = (".parquet", ".jsonl")


@dataclass(frozen=True)
class Workplace:
    """Where files go: what is removed afterwards, and what is kept."""

    work: Path
    folder: Path | None = None

    def run(self, name: str) -> Path | None:
        """Return the folder of a model's run; None where none is kept."""
        return None if self.folder is None else self.folder / _in_path(name)


# -- models --------------------------------------------------------------------------------------------------------------
def ngram_rungs(
    training: Corpus, scored: Corpus, settings: NgramRungs, work: Workplace | None = None
) -> Iterator[MeasuredRung]:
    """Train each n-gram model of a ladder, and yield what it makes of the test text; one is in memory at a time.

    >>> from lmgauge.api.baseline import NgramRungs
    >>> text = Corpus.from_strings(["a b", "ab c"])
    >>> test = Corpus.from_strings(["b a"])
    >>> [one.rung.name for one in ngram_rungs(text, test, NgramRungs(order=2, character_order=2))]
    ['word 2-gram', 'character 2-gram', 'byte 2-gram']
    """
    with ExitStack() as stack:
        if work is None:
            work = Workplace(stack.enter_context(scratch_folder()))
        for name, what, keywords in settings.named():
            began = time.perf_counter()
            model = _trained(name, keywords, training, settings, work)
            say_progress(f"{name}: scoring")
            yield _measured(model, name, what, scored, work, settings.threads, began=began)


def _trained(name: str, keywords: dict[str, Any], training: Corpus, settings: NgramRungs, work: Workplace) -> LanguageModel:
    """Train one model, in memory where it fits."""

    listens = listener()  # not who listens then: training within memory makes what it is given the listener

    def progress(stage: str) -> None:
        listens(f"{name}: {stage}")

    progress("training")
    keywords = {**keywords, "threads": settings.threads, "reserved": "escape", "progress": progress}
    elsewhere = work.work / _in_path(name)
    make: Callable[..., LanguageModel] = training_door.train
    if settings.memory is not None:
        return make(_SMOOTHING, training, output=elsewhere, memory=settings.memory, temp=work.work, **keywords)
    try:
        return make(_SMOOTHING, training, **keywords)
    except NotEnoughMemoryError:
        return make(_SMOOTHING, training, output=elsewhere, **keywords)


def _in_path(name: str) -> str:
    return folder_named(name.replace(" ", "-"))


def _measured(
    model: LanguageModel,
    name: str,
    what: str,
    scored: Corpus,
    work: Workplace,
    threads: int | None,
    *,
    began: float | None = None,
    own: bool = False,
) -> MeasuredRung:
    """Score a text with a model, and keep its run where that is asked for."""
    costs = SegmentCosts()

    def watch(index: int, block: Segments, batch: ScoreBatch, tally: object) -> None:
        costs.add(scored_text(block, [policy_of(model)]), sum_block(batch).total.per_segment())

    began = time.perf_counter() if began is None else began
    how: dict[str, Any] = {"threads": threads, "scoring": ScoringOptions(), "watch": watch}
    (result,) = evaluated([model], [name], scored, Outputs(work.run(name)), **how)
    return rung_of(result, costs.finish(), what, seconds=time.perf_counter() - began, own=own)


def your_rungs(models: Models, scored: Corpus, settings: NgramRungs, work: Workplace) -> Iterator[MeasuredRung]:
    """Yield what models of the user make of the text, or have made of it."""
    asked = list(models) if isinstance(models, Mapping) else [None] * len(listed(models))
    taken = {name for name, _, _ in settings.named()}
    for key, model in zip(asked, listed(models), strict=True):
        if isinstance(model, PATHS) and _is_run(model):
            evaluation, costs = _of_run(model, scored)
            name = _free_name(key or evaluation.model, taken)
            yield rung_of(replace(evaluation, model=name), costs.finish(), "your run", own=True)
        else:
            (opened,), (own_name,) = named_models([model])
            name = _free_name(key or own_name, taken)
            say_progress(f"{name}: scoring")
            yield _measured(opened, name, "your model", scored, work, settings.threads, own=True)


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name for a rung that no other rung has, and take it."""
    while name in taken:
        name = f"{name} (another)"
    taken.add(name)
    return name


def _is_run(path: PathLike) -> bool:
    return os.path.isfile(os.path.join(path, EVALUATION_FILE)) or os.fspath(path).endswith(_TABLES)


def _of_run(path: PathLike, scored: Corpus) -> tuple[Evaluation, SegmentCosts]:
    """Evaluate a run's scores together with the text.

    Raises:
        InputError: the run is damaged, was changed, or is of another text.
    """
    run, costs = about(open_run(os.fspath(path)), scored), SegmentCosts()
    evaluation = evaluate_scores(run.batches(), origin=run.origin, corpus=scored)
    for block, (table,) in lockstep([run.batches()], scored, [run.name]):
        if block is not None:
            costs.add(scored_text(block, [run.origin.policy]), sum_block(table).total.per_segment())
    return evaluation, costs


# -- compressors ---------------------------------------------------------------------------------------------------------
def compressed(training: Corpus, scored: Corpus, threads: int | None) -> tuple[Baseline, ...]:
    """Return what compressors make of the test text, alone and after the training text."""
    baselines = Baselines(scored.report.bytes or None, threads, primer=_end_of(training))
    done = 0
    say_progress("compressors, after the training text")
    for block in scored:
        baselines.add(block)
        done += block.byte_count()
        say_progress(f"compressors: {done / 1e6:,.0f} MB")
    return baselines.finish()


def _end_of(corpus: Corpus) -> bytes:
    """Return the last bytes of a text, no more than a compressor is shown."""
    parts: deque[bytes] = deque()
    size = 0
    for block in corpus:
        parts.append(bytes_of(block))
        size += len(parts[-1])
        while size - len(parts[0]) >= PRIMER_BYTES:
            size -= len(parts.popleft())
    return b"".join(parts)[-PRIMER_BYTES:]
