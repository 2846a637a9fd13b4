"""`lmgauge.baseline`: the ladder that a network must climb, from one training text and one test text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from lmgauge.api import inputs
from lmgauge.api.inputs import PATHS, Models, PathLike, Text, corpus_of, listed, opened, training_text
from lmgauge.base.declaration import settings, verb
from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import Bounds, Count
from lmgauge.settings import NgramTrainingSettings, ReadingOptions, ScoringOptions, TrainingResources

if TYPE_CHECKING:
    from lmgauge import Corpus
    from lmgauge.evaluation.baselines import Ladder, MeasuredRung
    from lmgauge.models.ngram.settings import NgramTrainingSettings


@settings
class NgramRungs:
    """The n-gram models of a ladder, and what training them may take.

    Attributes:
        order: words of the longest n-grams of the model of words.
        character_order: characters, or bytes, of the longest n-grams of the models of these.
        memory: train within this much, such as 500M or 2G; in memory where it fits, else within 80 % of what is free, if not
            given.
        threads: how many to use; all cores if not given. Does not change results.

    Example:
        >>> NgramRungs(order=4).character_order
        10
    """

    heading: ClassVar[str] = "N-gram models"
    order: Annotated[int, Bounds(1, 64)] = 5
    character_order: Annotated[int, Bounds(1, 64)] = 10
    memory: str | int | None = None
    threads: Count | None = None

    def named(self) -> Iterator[tuple[str, str, NgramTrainingSettings]]:
        """Yield each model: its name, what it is, and how it is trained."""
        from lmgauge.text.tokens import BYTES_BY_NAME

        order, how = self.character_order, "modified Kneser-Ney"
        make = partial(NgramTrainingSettings, "modified-kneser-ney", reserved="escape")
        # Words seen once stand for those never seen, or `<unk>` would have next to no probability.
        words = make(order=self.order, vocabulary="spelled", min_count=2)
        yield f"word {self.order}-gram", f"words, those not seen twice spelled ({how})", words
        spelled = make(order=order, vocabulary="spelled", tokenizer="character")
        yield f"character {order}-gram", f"characters ({how})", spelled
        every = make(order=order, vocabulary="closed", tokenizer="byte", words=(*BYTES_BY_NAME,))
        yield f"byte {order}-gram", f"bytes ({how})", every


@verb
def baseline(
    train: Text,
    test: Text,
    *,
    models: Models = (),
    output: PathLike | None = None,
    rungs: NgramRungs = NgramRungs(),
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> Ladder:
    """Set compressors and n-gram models of a training text side by side, as the ladder a network must climb.

    An n-gram model of words (unseen ones spelled), one of characters and one of bytes learn from the training text; xz and
    zstd compress the test text alone and after the training text; gzip, bzip2 and adaptive codes see the test text alone.
    All are exact, so their bits per byte can be compared with each other and with those of your model: `lmgauge baseline`.

    Args:
        train: the training text: a file, or a glob in quotes. It is read several times.
        test: the test text; no part of the training text.
        models: a model of yours, or its run on the test text (a folder of `lmgauge eval -o`, or a score table), to
            rank; may be several.
        output: folder for ladder.json and a run of each model, which compare, diagnose and report read.
        rungs: the n-gram models.
        reading: how both texts are read.
        fields: those of `rungs` and `reading`, by name.

    Returns:
        The rungs, the fewest bits first, with intervals where each segment's cost is known, and tests between neighbors.

    Raises:
        InputError: a text cannot be used, a run is of another text, or both texts are the same.
        ModelFileError: a model cannot be loaded.
        UsageError: an option is out of range, a text can be read only once, or the output would replace an input.

    Shell:
        lmgauge baseline train.txt test.txt -m run-lstm/ --html ladder.html
        lmgauge baseline 'corpus/*.jsonl.zst' test.txt --memory 4G -o ladder/

    Example:
        >>> from lmgauge import Corpus
        >>> text = Corpus.from_strings(["the cat sat on the mat", "the dog sat", "a dog ran"] * 20)
        >>> ladder = baseline(text, Corpus.from_strings(["a cat sat on the dog", "the cow ran"]))
        >>> ladder.best.name
        'word 5-gram'
    """
    from lmgauge.base.files import refuse_other_folder, writing_directory
    from lmgauge.base.json_text import plain, to_json
    from lmgauge.base.temporaries import scratch_folder
    from lmgauge.evaluation.baselines import LADDER_FILE, is_ladder_folder, ladder_of
    from lmgauge.evaluation.diagnosis.compressors import compressed

    training, scored = training_text(train, reading), corpus_of(test, reading, alone=False)
    inputs.refuse_field(reading, training, scored)
    training.without_given("training").refuse_once("the training text is read several times")
    scored.refuse_once("the test text is read several times")
    of_training = {os.path.realpath(source.path) for source in training.sources}
    for source in scored.sources:
        if os.path.exists(source.path) and os.path.realpath(source.path) in of_training:
            raise InputError(f"{source.path}: is in the training text and in the test text; name texts that share no file")
    if output is not None:
        inputs.refuse_output(output, listed(models), training, scored)
        refuse_other_folder(output, is_ours=is_ladder_folder)
    with ExitStack() as stack:
        folder = None if output is None else stack.enter_context(writing_directory(output, is_ours=is_ladder_folder))
        work = stack.enter_context(scratch_folder(folder))
        measured = list(your_rungs(models, scored, rungs, folder))  # first: what is wrong with them is known before the work
        measured += ngram_rungs(training, scored, rungs, work, folder)
        if training.report.sha256 == scored.report.sha256:
            raise InputError(
                "the test text is the training text: a model that has seen a text says nothing about other texts"
            )
        ladder = ladder_of(measured, compressed(scored, rungs.threads), training.report, scored.report)
        if folder is not None:
            (folder / LADDER_FILE).write_text(to_json(plain(ladder.to_dict())) + "\n", encoding="utf-8", newline="\n")
    return ladder


def ngram_rungs(
    training: Corpus, scored: Corpus, rungs: NgramRungs, work: str | Path, folder: Path | None = None
) -> Iterator[MeasuredRung]:
    """Train each n-gram model of a ladder, and yield what it makes of the test text; one is in memory at a time."""
    # work: room for models too large for memory; folder: gets a run of each.
    from lmgauge.base.progress import listener_for
    from lmgauge.evaluation.baselines import measure
    from lmgauge.models.combined.spelling.learn import train_model

    for name, what, chosen in rungs.named():
        began, said = time.perf_counter(), listener_for(name)
        said("training")
        room = TrainingResources(output=Path(work, name.replace(" ", "-")), memory=rungs.memory, temp=work)
        model = train_model(chosen, training, room, threads=rungs.threads, progress=said, scratch=True)
        said("scoring")
        yield measure(model, name, what, scored, folder, began=began, threads=rungs.threads, scoring=ScoringOptions())


def your_rungs(models: Models, scored: Corpus, rungs: NgramRungs, folder: Path | None) -> Iterator[MeasuredRung]:
    """Yield what models of the user make of the text, or have made of it."""
    from lmgauge.base.progress import say_progress
    from lmgauge.evaluation.baselines import measure, of_run, rung_of
    from lmgauge.evaluation.runs import EVALUATION_FILE
    from lmgauge.records.formats import format_of

    keys = list(models) if isinstance(models, Mapping) else [""] * len(listed(models))
    taken = {name for name, _, _ in rungs.named()}

    def free(name: str) -> str:
        # A name that no other rung has, which is taken then.
        while name in taken:
            name = f"{name} (another)"
        taken.add(name)
        return name

    for key, model in zip(keys, listed(models), strict=True):
        if isinstance(model, PATHS) and (Path(model, EVALUATION_FILE).is_file() or format_of(model) != "text"):
            evaluation, costs = of_run(opened(model), scored)
            yield rung_of(replace(evaluation, model=free(key or evaluation.model)), costs, "your run", own=True)
        else:
            (one,), (named,) = inputs.named_models([model], None, scored)
            name = free(key or named)
            say_progress(f"{name}: scoring")
            yield measure(one, name, "your model", scored, folder, own=True, threads=rungs.threads, scoring=ScoringOptions())
