"""`lmgauge.baseline`: the ladder that a network must climb, from one training text and one test text."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmgauge.api import train as training_door
from lmgauge.api.inputs import PATHS, Models, PathLike, Text, corpus_of, listed, named_models
from lmgauge.api.output_files import evaluated
from lmgauge.api.outputs import Outputs
from lmgauge.choices import LADDER_CHARACTER_ORDER, LADDER_WORD_ORDER
from lmgauge.context_policy import policy_of
from lmgauge.errors import InputError, NotEnoughMemoryError, UsageError
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.diagnosis.baselines import PRIMER_BYTES, Baseline, Baselines, bytes_of
from lmgauge.evaluation.evaluate import evaluate_scores, sum_block
from lmgauge.evaluation.ladder import Ladder, MeasuredRung, SegmentCosts, ladder_of, rung_of
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.run_folder import EVALUATION_FILE
from lmgauge.evaluation.runs import about, lockstep, open_run
from lmgauge.files import folder_named, refuse_other_folder, refuse_replacing, writing_directory
from lmgauge.json_text import plain, to_json
from lmgauge.models.protocol import LanguageModel
from lmgauge.option_numbers import check_whole
from lmgauge.progress import listener, say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.temporaries import scratch_folder
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

LADDER_FILE = "ladder.json"
_SMOOTHING = "modified-kneser-ney"
_BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
_TABLES = (".parquet", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class NgramRungs:
    """The n-gram models of a ladder, and what training them may take.

    Attributes:
        order: of words.
        character_order: of characters, and of bytes.
        memory: as `lmgauge.train`; None: what is free.
        threads: how many; no number depends on it.
    """

    order: int = LADDER_WORD_ORDER
    character_order: int = LADDER_CHARACTER_ORDER
    memory: str | int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("order", "character_order"):
            check_whole(name, getattr(self, name), 1, 64)

    def named(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield each model: its name, what it is, and the keywords of `lmgauge.train` that make it."""
        characters, smoothing = self.character_order, "modified Kneser-Ney"
        # Words seen once stand for those never seen, or `<unk>` would have next to no probability.
        words = {"order": self.order, "vocabulary": "spelled", "min_count": 2}
        yield f"word {self.order}-gram", f"words, those not seen twice spelled ({smoothing})", words
        spelled = {"order": characters, "vocabulary": "spelled", "tokenizer": "character"}
        yield f"character {characters}-gram", f"characters ({smoothing})", spelled
        every = {"order": characters, "tokenizer": "byte", "words": _BYTES, "vocabulary": "closed"}
        yield f"byte {characters}-gram", f"bytes ({smoothing})", every


def baseline(
    train: Text,
    test: Text,
    *,
    models: Models = (),
    order: int = LADDER_WORD_ORDER,
    character_order: int = LADDER_CHARACTER_ORDER,
    output: PathLike | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
) -> Ladder:
    """Set compressors and n-gram models of a training text side by side, as the ladder a network must climb.

    All of it is in bits per byte of the test text, exact and comparable: `lmgauge baseline`.

    Args:
        train: the training text: a path, several, or a `Corpus`. It is read several times.
        test: the test text; no part of the training text.
        models: models of yours, one, a list or a dict that names them; or runs of theirs on the same text (folders of
            `evaluate(..., output=...)`, score tables).
        order: of the n-grams of words; unseen words are spelled.
        character_order: of the n-grams of characters, and of bytes.
        output: a folder for a run of each model, which `compare` and `report` read, and for `ladder.json`.
        memory: train within this much, such as "2G"; None: in memory where it fits, else within 80 % of what is free.
        threads: how many; no number depends on it.

    Returns:
        The rungs, the fewest bits first, with intervals where each segment's cost is known, and tests between neighbors.

    Raises:
        InputError: a text cannot be used, a run is of another text, or both texts are the same.
        ModelFileError: a model cannot be loaded.
        UsageError: an option is out of range, a text can be read only once, or the output would replace an input.

    Example:
        >>> from lmgauge import Corpus
        >>> text = Corpus.from_strings(["the cat sat on the mat", "the dog sat", "a dog ran"] * 20)
        >>> ladder = baseline(text, Corpus.from_strings(["a cat sat on the dog", "the cow ran"]))
        >>> ladder.best.name
        'word 5-gram'
    """
    settings = NgramRungs(order=order, character_order=character_order, memory=memory, threads=threads)
    training, scored = corpus_of(train).without_given("training"), corpus_of(test)
    _refuse_texts(training, scored)
    yours = listed(models)
    paths = [os.fspath(one) for one in yours if isinstance(one, PATHS)]
    sources = [source.path for corpus in (training, scored) for source in corpus.sources]
    if output is not None:
        refuse_replacing({"-o": output}, [*paths, *sources])
        refuse_other_folder(output, is_ours=is_ladder_folder)
    with ExitStack() as stack:
        folder = None if output is None else stack.enter_context(writing_directory(output, is_ours=is_ladder_folder))
        work = _Workplace(stack.enter_context(scratch_folder(folder)), folder)
        measured = list(_yours(models, scored, settings, work))  # first: what is wrong with them is known before the work
        measured += ngram_rungs(training, scored, settings, work)
        _refuse_same(training, scored)
        compressed = _compressed(training, scored, threads)
        ladder = ladder_of(measured, compressed, training.report, scored.report)
        if folder is not None:
            (folder / LADDER_FILE).write_text(to_json(plain(ladder.to_dict())) + "\n", encoding="utf-8", newline="\n")
    return ladder


def is_ladder_folder(path: Path) -> bool:
    """Return True if a folder was written by `baseline`, so that it may be replaced by one.

    Args:
        path: the folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(is_ladder_folder(Path(folder)))
        False
    """
    return (path / LADDER_FILE).is_file()


@dataclass(frozen=True)
class _Workplace:
    """Where files go: what is removed afterwards, and what is kept."""

    work: Path
    folder: Path | None = None

    def run(self, name: str) -> Path | None:
        """Return the folder of a model's run; None where none is kept."""
        return None if self.folder is None else self.folder / _in_path(name)


def _refuse_texts(training: Corpus, scored: Corpus) -> None:
    """Refuse texts that can be read only once, and files that are in both.

    Raises:
        InputError: a file is in both texts.
        UsageError: a text can be read only once.
    """
    for what, corpus in (("training", training), ("test", scored)):
        if not corpus.rereadable:
            raise UsageError(
                f"the {what} text is read several times, and this can be read only once: save it to a file first"
            )
    of_training = {os.path.realpath(source.path) for source in training.sources}
    for source in scored.sources:
        if os.path.exists(source.path) and os.path.realpath(source.path) in of_training:
            raise InputError(f"{source.path}: is in the training text and in the test text; name texts that share no file")


def _refuse_same(training: Corpus, scored: Corpus) -> None:
    if training.report.sha256 == scored.report.sha256:
        raise InputError("the test text is the training text: a model that has seen a text says nothing about other texts")


# -- models --------------------------------------------------------------------------------------------------------------
def ngram_rungs(
    training: Corpus, scored: Corpus, settings: NgramRungs, work: _Workplace | None = None
) -> Iterator[MeasuredRung]:
    """Train each n-gram model of a ladder, and yield what it makes of the test text; one is in memory at a time.

    Args:
        training: the training text.
        scored: the test text.
        settings: orders, memory and threads.
        work: where files go; None: nothing is kept, and work beyond memory is done where the system has room for it.

    Yields:
        The rungs, in bits per byte of the test text, with what each segment costs, nats, float64 [segments].

    Raises:
        InputError: a text cannot be used.

    Example:
        >>> text = Corpus.from_strings(["a b", "ab c"])
        >>> test = Corpus.from_strings(["b a"])
        >>> [one.rung.name for one in ngram_rungs(text, test, NgramRungs(order=2, character_order=2))]
        ['word 2-gram', 'character 2-gram', 'byte 2-gram']
    """
    with ExitStack() as stack:
        if work is None:
            work = _Workplace(stack.enter_context(scratch_folder()))
        for name, what, keywords in settings.named():
            began = time.perf_counter()
            model = _trained(name, keywords, training, settings, work)
            say_progress(f"{name}: scoring")
            yield _measured(model, name, what, scored, work, settings.threads, began=began)


def _trained(name: str, keywords: dict[str, Any], training: Corpus, settings: NgramRungs, work: _Workplace) -> LanguageModel:
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
    work: _Workplace,
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
    (result,) = evaluated([model], [name], scored, Outputs(work.run(name)), threads=threads, watch=watch)
    return rung_of(result, costs.finish(), what, seconds=time.perf_counter() - began, own=own)


def _yours(models: Models, scored: Corpus, settings: NgramRungs, work: _Workplace) -> Iterator[MeasuredRung]:
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
def _compressed(training: Corpus, scored: Corpus, threads: int | None) -> tuple[Baseline, ...]:
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
