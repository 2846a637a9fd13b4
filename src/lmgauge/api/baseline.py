"""`lmgauge.baseline`: the ladder that a network must climb, from one training text and one test text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from lmgauge.api.types import Models, PathLike, Text
from lmgauge.declaration import settings, verb
from lmgauge.errors import InputError, UsageError
from lmgauge.option_numbers import Bounds, Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.ladder import Ladder
    from lmgauge.text.documents import Corpus

LADDER_FILE = "ladder.json"
_BYTES = tuple(f"<0x{value:02X}>" for value in range(256))


@settings
class NgramRungs:
    """The n-gram models of a ladder, and what training them may take.

    Attributes:
        order: words of the longest n-grams of the model of words.
        character_order: characters, or bytes, of the longest n-grams of the models of these.
        memory: train within this much, such as 500M or 2G; in memory where it fits, else within 80 % of what is free, if not
            given.
        threads: how many to use; no number depends on it; all cores if not given.

    Example:
        >>> NgramRungs(order=4).character_order
        10
    """

    heading: ClassVar[str] = "N-gram models"
    order: Annotated[int, Bounds(1, 64)] = 5
    character_order: Annotated[int, Bounds(1, 64)] = 10
    memory: str | int | None = None
    threads: Count | None = None

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
    All are exact, so that their bits per byte stand in one column, with yours: `lmgauge baseline`.

    Args:
        train: the training text: a file, or a glob in quotes. It is read several times.
        test: the test text; no part of the training text.
        models: a model of yours, or its run on the test text (a folder of `lmgauge eval -o`, or a score table), set among
            the rungs; may be several.
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
    from lmgauge.api.inputs import corpus_of, listed, refuse_field, refuse_output
    from lmgauge.api.rungs import Workplace, compressed, ngram_rungs, your_rungs
    from lmgauge.evaluation.ladder import ladder_of
    from lmgauge.files import refuse_other_folder, writing_directory
    from lmgauge.json_text import plain, to_json
    from lmgauge.temporaries import scratch_folder

    training, scored = (corpus_of(text, reading, alone=False) for text in (train, test))
    refuse_field(reading, training, scored)
    _refuse_texts(training.without_given("training"), scored)
    if output is not None:
        refuse_output(output, listed(models), training, scored)
        refuse_other_folder(output, is_ours=is_ladder_folder)
    with ExitStack() as stack:
        folder = None if output is None else stack.enter_context(writing_directory(output, is_ours=is_ladder_folder))
        work = Workplace(stack.enter_context(scratch_folder(folder)), folder)
        measured = list(your_rungs(models, scored, rungs, work))  # first: what is wrong with them is known before the work
        measured += ngram_rungs(training, scored, rungs, work)
        if training.report.sha256 == scored.report.sha256:
            raise InputError(
                "the test text is the training text: a model that has seen a text says nothing about other texts"
            )
        ladder = ladder_of(measured, compressed(training, scored, rungs.threads), training.report, scored.report)
        if folder is not None:
            (folder / LADDER_FILE).write_text(to_json(plain(ladder.to_dict())) + "\n", encoding="utf-8", newline="\n")
    return ladder


def is_ladder_folder(path: Path) -> bool:
    """Return True if a folder was written by `baseline`, so that it may be replaced by one."""
    return (path / LADDER_FILE).is_file()


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
