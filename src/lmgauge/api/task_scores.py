"""The functions of `lmgauge.tasks`: BLEU, chrF, TER, WER, CER and F1 of lists and of files.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import ParamSpec, TypeVar, Unpack, cast

import numpy as np

from lmgauge.choices import Average
from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.grouped_sums import document_sums
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.accumulator import Accumulator
from lmgauge.tasks.alignment import AlignedSegment, aligned_segments
from lmgauge.tasks.blocks import ParallelTexts
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.bleu import BLEU, BleuScore
from lmgauge.tasks.metrics.chrf import ChrF, ChrfScore
from lmgauge.tasks.metrics.error_rates import CER, WER, EditRate, ErrorRates
from lmgauge.tasks.metrics.labels import F1, F1Score, check_labels, label_scores
from lmgauge.tasks.metrics.protocol import TaskMetric, TaskScore
from lmgauge.tasks.metrics.ter import TER, TerScore
from lmgauge.tasks.parallel import ParallelFiles, Path
from lmgauge.tasks.scoring import (
    GivenReferences,
    SegmentScores,
    block_of_strings,
    check_sources,
    document_codes,
    score_parallel,
    segment_scores,
)
from lmgauge.tasks.segment_examples import SegmentChooser
from lmgauge.tasks.settings import (
    BleuOptions,
    ChrfOptions,
    ComparisonSettings,
    NormalizationOptions,
    Reading,
    TerOptions,
)
from lmgauge.tasks.texts import Integers
from lmgauge.text.labels import BY_NAMES, Names

_Parameters = ParamSpec("_Parameters")
_Score = TypeVar("_Score")


def _texts_by_name(function: Callable[_Parameters, _Score]) -> Callable[_Parameters, _Score]:
    """Return the function with an error that shows the right call, for a call with texts by position."""

    @wraps(function)
    def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Score:
        if arguments:
            name = function.__name__
            raise TypeError(f"{name} takes its texts by name, not by position: {name}(hypotheses=[...], references=[...])")
        return function(*arguments, **named)

    return call


@_texts_by_name
def bleu(
    *, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Unpack[BleuOptions]
) -> BleuScore:
    """Return BLEU of one system (Papineni et al. 2002), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them; None in a list is absent.
        threads: how many to use, all cores if None; no number depends on it.
        **options: of `lmgauge.tasks.BLEU`, such as `order=3`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, or there is nothing to score.
        UsageError: an option is out of range, or something is not a string.

    >>> bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3).score
    50.0
    """
    return cast(BleuScore, _score(BLEU(**options), hypotheses, references, threads))


@_texts_by_name
def chrf(
    *, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Unpack[ChrfOptions]
) -> ChrfScore:
    """Return chrF of one system (Popović 2015), with `word_order=2` chrF++ (Popović 2017), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.ChrF`.

    Returns:
        The score (0 to 100) and its parts.

    >>> chrf(hypotheses=["ab"], references=["ac"], char_order=1).score
    50.0
    """
    return cast(ChrfScore, _score(ChrF(**options), hypotheses, references, threads))


@_texts_by_name
def ter(
    *, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Unpack[TerOptions]
) -> TerScore:
    """Return the translation edit rate of one system (Snover et al. 2006), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.TER`.

    Returns:
        Edits for 100 words of the references, and their parts.

    >>> ter(hypotheses=["a b c x"], references=["a b c d"]).score
    25.0
    """
    return cast(TerScore, _score(TER(**options), hypotheses, references, threads))


@_texts_by_name
def wer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: int | None = None,
    **options: Unpack[NormalizationOptions],
) -> ErrorRates:
    """Return the word error rate of one system, with MER, WIL and the counts, as jiwer has them.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.WER`, which say how texts are normalized.

    Returns:
        The rates, as ratios, and the counts of hits, substitutions, deletions and insertions.

    >>> wer(hypotheses=["This test"], references=["This is a test"]).score
    0.5
    """
    return cast(ErrorRates, _score(WER(**options), hypotheses, references, threads))


@_texts_by_name
def cer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: int | None = None,
    **options: Unpack[NormalizationOptions],
) -> ErrorRates:
    """Return the character error rate of one system; else as `wer`.

    Args, Returns, Raises: as `wer`.

    >>> cer(hypotheses=["abxd"], references=["abcd"]).score
    0.25
    """
    return cast(ErrorRates, _score(CER(**options), hypotheses, references, threads))


def _score(metric: TaskMetric, hypotheses: Sequence[str], references: GivenReferences, threads: int | None) -> TaskScore:
    accumulator = Accumulator(metric, keep_segments=False, threads=threads)
    accumulator.add(hypotheses=hypotheses, references=references)
    return accumulator.score()


def score_systems(
    metric: TaskMetric,
    *,
    hypotheses: Mapping[str, Sequence[str]] | Sequence[str],
    references: GivenReferences,
    sources: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    settings: ComparisonSettings | None = None,
    chooser: SegmentChooser | None = None,
) -> Systems:
    """Score systems on the same segments, with intervals, and test each against the first.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`, or one of your own: see `lmgauge.tasks.metrics.protocol`.
        hypotheses: a list of outputs by the name of each system; or one list, of a system called "system".
        references: for each segment a string, or a list of them.
        sources: the text that each segment was translated from, where the metric needs it.
        groups: the name of the group of each segment, such as its speaker or document; each group is scored too.
        documents: the name of the document of each segment; documents are then what is independent.
        settings: the test, how much is drawn, threads; None: the defaults of `lmgauge.tasks.ComparisonSettings`.
        chooser: sees all segments too, and chooses some to look at.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, or there is nothing to score.
        UsageError: an option is out of range, or something is not a string.

    >>> from lmgauge.tasks import ComparisonSettings, WER
    >>> settings = ComparisonSettings(test=None)
    >>> outputs = {"a": ["a dog barks"], "b": ["the dog barks"]}
    >>> score_systems(WER(), hypotheses=outputs, references=["the dog barks"], settings=settings).best.system
    'b'
    """
    outputs = dict(hypotheses) if isinstance(hypotheses, Mapping) else {"system": hypotheses}
    if not outputs:
        raise UsageError("no system to score: give a list of hypotheses by the name of each")
    block, of_groups = block_of_strings(metric, outputs, references, sources, documents), Names()
    if groups is not None:
        if len(groups) != len(block):
            raise InputError(f"{len(groups):,} groups for {len(block):,} segments: give one for each")
        block = replace(block, groups=of_groups.numbers(map(str, groups)))
    by = UNKNOWN if documents is None else BY_NAMES
    return score_parallel(
        metric, ParallelTexts(list(outputs), [block], of_groups.known, by), settings or ComparisonSettings(), chooser=chooser
    )


def score_files(
    metric: TaskMetric,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path] | Mapping[str, Path],
    sources: Path | None = None,
    reading: Reading | None = None,
    settings: ComparisonSettings | None = None,
    progress: Callable[[int], None] | None = None,
    chooser: SegmentChooser | None = None,
) -> Systems:
    """Score the outputs of systems in files; of any length, as texts are read in blocks.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`.
        references: a file with a segment on each line (or record), several with one more reference each, or a folder.
        hypotheses: a file for each system, or a folder with the same file names for each; by the systems' names, if they
            are not to be called as the files are.
        sources: a file with the text that each segment was translated from, where the metric needs it.
        reading: fields, groups, documents, formats; None: the defaults of `lmgauge.tasks.Reading`.
        settings: as `score_systems`.
        progress: called with the number of segments done.
        chooser: as `score_systems`.

    Raises:
        InputError: a file is missing, ends before another, or holds what is not text; or there is nothing to score.
        UsageError: options that contradict each other.

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> from lmgauge.tasks import WER
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "ref.txt").write_text("the dog barks"), File(folder, "a.txt").write_text("a dog barks")
        ...     systems = score_files(WER(), references=f"{folder}/ref.txt", hypotheses=[f"{folder}/a.txt"])
        >>> systems[0].system, round(systems[0].score.score, 4)
        ('a', 0.3333)
    """
    check_sources(metric, sources is not None)
    named = list(hypotheses) if isinstance(hypotheses, Mapping) else None
    outputs = hypotheses.values() if isinstance(hypotheses, Mapping) else hypotheses
    files = ParallelFiles(references, outputs, reading, sources)
    files.names = named or files.names
    return score_parallel(metric, files, settings or ComparisonSettings(), progress, chooser)


def score_segments(
    metric: TaskMetric,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    sources: Path | None = None,
    reading: Reading | None = None,
    threads: int | None = None,
    notes: Callable[[str], None] | None = None,
) -> Iterator[SegmentScores]:
    """Score each segment of files on its own, a block of segments at a time.

    Args:
        metric, references, hypotheses, sources, reading: as `score_files`.
        threads: how many to use, all cores if None; no number depends on it.
        notes: called at the end with each thing that reading has to say.

    Raises:
        InputError, UsageError: as `score_files`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> from lmgauge.tasks import WER
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "ref.txt").write_text("the dog barks"), File(folder, "a.txt").write_text("a dog barks")
        ...     blocks = list(score_segments(WER(), references=f"{folder}/ref.txt", hypotheses=[f"{folder}/a.txt"]))
        >>> blocks[0].scores[0].round(4).tolist()
        [0.3333]
    """
    check_sources(metric, sources is not None)
    files = ParallelFiles(references, hypotheses, reading, sources)
    yield from segment_scores(metric, files, threads)
    _say(files, notes)


def align_files(
    metric: EditRate,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    reading: Reading | None = None,
    notes: Callable[[str], None] | None = None,
) -> Iterator[AlignedSegment]:
    """Align the segments of files with their references, in order, the systems of each segment one after the other.

    Args:
        metric: `lmgauge.tasks.WER(...)` or `lmgauge.tasks.CER(...)`; says the unit and how texts are normalized.
        references: a file; one reference for each segment.
        hypotheses: a file for each system.
        reading: as `score_files`.
        notes: called at the end with each thing that reading has to say.

    Raises:
        InputError: as `score_files`.
        UsageError: a segment has several references.

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> from lmgauge.tasks import WER
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "ref.txt").write_text("the dog barks"), File(folder, "a.txt").write_text("a dog barks")
        ...     aligned = list(align_files(WER(), references=f"{folder}/ref.txt", hypotheses=[f"{folder}/a.txt"]))
        >>> aligned[0]
        <AlignedSegment: segment 1 of a: 1 substituted, 0 deleted, 0 inserted, 2 right>
    """
    files = ParallelFiles(references, hypotheses, reading)
    yield from aligned_segments(metric, files)
    _say(files, notes)


def _say(files: ParallelFiles, notes: Callable[[str], None] | None) -> None:
    if notes is not None:
        for note in files.notes:
            notes(note)


def score_labels(
    *,
    gold: Sequence[str],
    predicted: Mapping[str, Sequence[str]] | Sequence[str],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    documents: Sequence[str] | None = None,
    settings: ComparisonSettings | None = None,
) -> Systems:
    """Return precision, recall and F1 of labeled outputs through scikit-learn, with intervals, each against the first.

    Args:
        gold: the right label of each segment.
        predicted: a list of labels by the name of each system; or one list, of a system called "system".
        labels: that count; None: all that occur.
        average: which F1 is tested: "macro", "micro" or "weighted".
        documents: the name of the document of each segment.
        settings: as `score_systems`.

    Returns:
        The systems; the figures of each label are in `systems[0].score.labels`.

    Raises:
        InputError: lists of different length, or something is not a string.
        UsageError: an option is out of range.
        MissingExtraError: scikit-learn is not installed.

    Example:
        >>> systems = score_labels(gold=["cat", "dog", "cat"], predicted={"a": ["cat", "cat", "cat"]})
        >>> round(systems[0].score.score, 3)
        0.4
    """
    known = (None, UNKNOWN) if documents is None else (document_codes(documents, len(gold)), BY_NAMES)
    return _label_systems(gold, predicted, labels, average, known, settings)


def score_label_files(
    *,
    gold: Path,
    predicted: Path | Iterable[Path],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    reading: Reading | None = None,
    settings: ComparisonSettings | None = None,
) -> Systems:
    """Do what `score_labels` does with files, a label on each line (or record); white space around labels is left out.

    Args:
        gold: a file with the right label of each segment.
        predicted: a file for each system.
        labels, average, settings: as `score_labels`.
        reading: as `score_files`; a byte order mark at the head of a file is never part of a label.

    Raises:
        InputError: a file is missing, ends before another, holds what is not text, or all gold labels are blank.
        UsageError, MissingExtraError: as `score_labels`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, label in (("gold", "cat"), ("a", "cat")):
        ...         _ = File(folder, f"{name}.txt").write_text(label)
        ...     score_label_files(gold=f"{folder}/gold.txt", predicted=[f"{folder}/a.txt"])[0].score.score
        1.0
    """
    # A mark before the first label would make it a label of its own.
    files = ParallelFiles(gold, predicted, replace(reading or Reading(), keep_bom=False))
    right: list[str] = []
    of_systems: list[list[str]] = [[] for _ in files.names]
    documents: list[Integers] = []
    for block in files:
        documents += [] if block.documents is None else [block.documents]
        right.extend(text.strip() for text in block.references.texts.strings())
        for of_system, texts in zip(of_systems, block.hypotheses, strict=True):
            of_system.extend(text.strip() for text in texts.strings())
    if right and not any(right):
        raise InputError(f"all {len(right):,} gold labels are blank: there is nothing to measure against; check the file")
    by_name = dict(zip(files.names, of_systems, strict=True))
    numbers = np.concatenate(documents) if documents else None
    return _label_systems(right, by_name, labels, average, (numbers, files.documents_by), settings)


def _label_systems(
    gold: Sequence[str],
    predicted: Mapping[str, Sequence[str]] | Sequence[str],
    labels: Sequence[str] | None,
    average: Average,
    documents: tuple[Integers | None, str],
    settings: ComparisonSettings | None,
) -> Systems:
    systems = dict(predicted) if isinstance(predicted, Mapping) else {"system": predicted}
    for of_system in systems.values():
        check_labels(gold, of_system)
    chosen = sorted({*gold}.union(*systems.values())) if labels is None else labels
    reports = {name: label_scores(gold, of_system, labels=chosen) for name, of_system in systems.items()}
    metric = F1(tuple(chosen), average)
    numbers, documents_by = documents
    statistics = [metric.statistics_of(gold, of_system) for of_system in systems.values()]
    rows = IndependentRows(statistics, documents_by=documents_by)
    if numbers is not None:
        rows = rows.with_documents(document_sums(statistics, numbers))
    notes = [f"{name}: {note}" for name, report in reports.items() for note in report.notes]
    result = compare_systems(metric, list(systems), rows, 1, notes=notes, settings=settings)
    items = (replace(item, score=replace(cast(F1Score, item.score), labels=reports[item.system])) for item in result)
    return replace(result, items=tuple(items))
