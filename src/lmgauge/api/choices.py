"""`lmgauge.pairs` and `lmgauge.multiple_choice`: which of several texts models prefer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from lmgauge.api.inputs import PATHS, Models, PathLike, listed, named_models, refuse_output, written
from lmgauge.base.choices import Boundary, Format
from lmgauge.base.declaration import settings, verb
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import Count
from lmgauge.settings import ScoringOptions

if TYPE_CHECKING:
    from lmgauge import Corpus, LanguageModel
    from lmgauge.results import Choices

NO_FIELD = "none"
"""In place of a field: there is none."""
_HEADER = ("good", "sentence_good", "acceptable", "grammatical", "correct")


@settings
class PairFields:
    """Which fields or columns of a file hold pairs: if not named those of BLiMP, or in TSV without them columns 1, 2 and 3.

    Attributes:
        good: field or column of the good text; sentence_good, or column 1.
        bad: field or column of the bad text; sentence_bad, or column 2.
        by: the phenomenon; linguistics_term, or column 3. none: no groups.

    Example:
        >>> PairFields(good="right", bad="wrong", by="none").good
        'right'
    """

    heading: ClassVar[str] = "Text"
    good: str | None = None
    bad: str | None = None
    by: str | None = None


@settings
class QuestionFields:
    """Which fields of a file hold questions and their answers.

    Attributes:
        given: what is shown before each answer and not scored; none: nothing.
        choices: the answers to choose from, a list.
        answer: the right one; its number from 0, its letter from A, or the answer itself.
        by: what groups questions; no groups if not given.
        boundary: how question and answer are cut into tokens; as one text (joint), or each alone (apart).

    Example:
        >>> QuestionFields(given="ctx", choices="endings", answer="label").boundary
        'joint'
    """

    heading: ClassVar[str] = "Text"
    given: str = "question"
    choices: str = "choices"
    answer: str = "answer"
    by: str | None = None
    boundary: Boundary = "joint"


@verb
def pairs(
    model: Models,
    texts: PathLike | Sequence[Sequence[str]],
    bad_texts: PathLike | None = None,
    *,
    output: PathLike | None = None,
    threads: Count | None = None,
    fields: PairFields = PairFields(),
    scoring: ScoringOptions = ScoringOptions(),
    **others: Any,
) -> Choices:
    """Say how often models prefer the good text of minimal pairs: `lmgauge pairs`.

    Pairs are in one file, one per record, as in BLiMP; or in two files, line by line.

    Args:
        model: folder, ARPA or GGUF file, hub name, or address of a server; several are tested against each other.
        texts: a file of pairs (JSONL, CSV, TSV, Parquet), or of the good texts. In Python also pairs of strings: (good, bad)
            or (good, bad, phenomenon).
        bad_texts: a file of the bad texts, where `texts` has the good ones.
        output: one row per item and model; .parquet, .csv, .tsv or .jsonl.
        threads: threads to use; all cores if not given. Does not change results, except by rounding.
        fields: which fields or columns of a file hold what.
        scoring: how models named by their path score.
        others: the fields of `fields` and `scoring`, by name.

    Returns:
        Accuracies by phenomenon with Wilson's intervals, raw and by byte, ties told; models tested against each other.

    Raises:
        InputError: a file cannot be used, a text is empty, or the two sides do not have the same number of texts.
        ModelFileError: a model cannot be loaded.
        UsageError: arguments that contradict each other.

    Shell:
        lmgauge pairs -m kn5/ -m model/ blimp.jsonl --by UID
        lmgauge pairs -m kn5/ good.txt bad.txt

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sits", "the cats sit", "the dog sits", "the dogs sit"])
        >>> model = lmgauge.train("witten-bell", text, order=3)
        >>> result = pairs(model, [("the cat sits", "the cat sit", "number"), ("the dogs sit", "the dogs sits", "number")])
        >>> result.accuracy().right, round(result.accuracy(group="number").interval.low, 4)
        (2, 0.3424)
    """
    from lmgauge.evaluation.choices.multiple_choice import prefer_pairs

    opened, names = _ready(model, output, scoring, texts, bad_texts)
    with _own_options({"--field": "--good, --bad", "--group": "--by"}):
        if isinstance(texts, PATHS):
            good, bad = _pairs_of_files(texts, bad_texts, fields)
        elif bad_texts is not None or fields != PairFields():
            raise UsageError("bad_texts and fields are for files; pairs of strings are (good, bad) or (good, bad, group)")
        else:
            good, bad = _pairs_of_strings(texts)
        return written(prefer_pairs(opened, good, bad, names, threads), output)


@verb
def multiple_choice(
    model: Models,
    text: PathLike,
    *,
    output: PathLike | None = None,
    threads: Count | None = None,
    fields: QuestionFields = QuestionFields(),
    scoring: ScoringOptions = ScoringOptions(),
    **others: Any,
) -> Choices:
    """Say how often models prefer the right answer of questions: `lmgauge multiple-choice`.

    Each answer is scored after its question, which is shown and not scored.

    Args:
        model: folder, ARPA or GGUF file, hub name, or address of a server; several are tested against each other.
        text: a JSONL or Parquet file, one question per record (a cell of CSV or TSV cannot hold a list of choices).
        output: one row per question and model; .parquet, .csv, .tsv or .jsonl.
        threads: threads to use; all cores if not given. Does not change results, except by rounding.
        fields: which fields hold what.
        scoring: how models named by their path score.
        others: the fields of `fields` and `scoring`, by name.

    Returns:
        Accuracies by group with Wilson's intervals, raw and by byte, ties told; models tested against each other.

    Raises:
        InputError: the file cannot be used, an answer is empty, or the right one is not among them.
        ModelFileError: a model cannot be loaded.
        UsageError: `output` would replace an input, or has another ending.

    Shell:
        lmgauge multiple-choice -m model/ arc.jsonl
        lmgauge multiple-choice -m model/ q.jsonl --given ctx --choices endings

    Example:
        >>> import lmgauge, tempfile
        >>> from pathlib import Path
        >>> seen = lmgauge.Corpus.from_strings(["a cat says miau", "a dog says wuff"])
        >>> model = lmgauge.train("witten-bell", seen, order=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "sounds.jsonl")
        ...     _ = file.write_text('{"question": "a dog says", "choices": [" miau", " wuff"], "answer": 1}')
        ...     multiple_choice(model, file)
        <Choices: 1 question; wb3: accuracy 1.0000>
    """
    from lmgauge.evaluation.choices.multiple_choice import prefer_answers
    from lmgauge.text.documents import Corpus

    opened, names = _ready(model, output, scoring, text)
    answers = Corpus.from_files(
        text,
        field=fields.choices,
        lists=True,
        group=fields.by,
        keep=fields.answer,
        given=None if fields.given == NO_FIELD else fields.given,
        boundary=fields.boundary,
    )
    with _own_options({"--field": "--choices", "--keep": "--answer", "--group": "--by"}):
        return written(prefer_answers(opened, answers, names, threads), output)


@contextmanager
def _own_options(names: Mapping[str, str]) -> Iterator[None]:
    """Call options as these commands do where reading names those of others."""
    try:
        yield
    except InputError as error:
        words = str(error)
        for name, own in names.items():
            words = words.replace(f"({name})", f"({own})")
        raise InputError(words) from error


def _ready(
    model: Models, output: PathLike | None, scoring: ScoringOptions, *inputs: Any
) -> tuple[list[LanguageModel], list[str]]:
    """Return the models and their names, once the output is known to be one."""
    from lmgauge.base.progress import say_progress

    refuse_output(output, listed(model), *inputs, rows=True)
    ready = named_models(model, scoring)
    say_progress("scoring")
    return ready


def _pairs_of_files(texts: PathLike, bad_texts: PathLike | None, fields: PairFields) -> tuple[Corpus, Corpus]:
    """Return both sides of pairs that stand in files."""
    from lmgauge.records.formats import RECORD_ENDINGS
    from lmgauge.records.lines import text_lines
    from lmgauge.text.documents import Corpus

    if bad_texts is not None:
        if fields != PairFields():
            raise UsageError("two files hold a text a line, good ones and bad ones; fields are for one file with both")
        return Corpus.from_files(texts, group=None), Corpus.from_files(bad_texts, group=None)
    source = Corpus.from_files(texts, group=None).sources[0]
    if source.format == "text":
        raise UsageError(f"{os.fspath(texts)}: pairs need {RECORD_ENDINGS}, or a second file of bad texts")
    usual = ("sentence_good", "sentence_bad", "linguistics_term")
    if source.format == "tsv" and usual[0] not in next(text_lines(source), (1, ""))[1].split("\t"):
        usual = ("1", "2", "3")
    by = fields.by or usual[2]
    good = Corpus.from_files(texts, field=fields.good or usual[0], group=None if by == NO_FIELD else by)
    bad = Corpus.from_files(texts, field=fields.bad or usual[1], group=None)
    good.refuse_once("pairs are read twice, one side after the other")
    _check_first(good, source.format, fields)
    return good, bad


def _check_first(good: Corpus, kind: Format, fields: PairFields) -> None:
    """Look at the first pair.

    Raises:
        InputError: there is no column for groups, and none was named; or what was read is a header.
    """
    try:
        first = next(iter(good), None)
    except InputError as error:
        if fields.by is not None:
            raise
        raise InputError(f"{error}; by {NO_FIELD} is for pairs without a phenomenon") from error
    if kind == "tsv" and first is not None and first.text(0).decode().strip().lower() in _HEADER:
        raise InputError(f"{first.source}: its first line looks like a header: name the columns good, bad and by")


def _pairs_of_strings(texts: Sequence[Sequence[str]]) -> tuple[Corpus, Corpus]:
    """Return both sides of pairs of strings."""
    from lmgauge.base.paths import refuse_file_names
    from lmgauge.text.documents import Corpus

    sizes = {2, 3} if isinstance(texts, (str, bytes)) else {len(pair) for pair in texts}
    if len(sizes) != 1 or not sizes <= {2, 3} or isinstance(texts[0], str):
        raise UsageError('pairs are (good, bad) or all (good, bad, group): [("the cat sits", "the cat sit")]')
    refuse_file_names([text for pair in texts for text in pair[:2]], "lmgauge.pairs(model, GOOD, BAD)")
    groups = [pair[2] for pair in texts] if sizes == {3} else None
    good = Corpus.from_strings([pair[0] for pair in texts], groups=groups)
    return good, Corpus.from_strings([pair[1] for pair in texts])
