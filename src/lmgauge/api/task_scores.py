"""The functions of `lmgauge.tasks`: BLEU, chrF, TER, WER and CER of lists and of files.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import ParamSpec, TypeVar, Unpack, cast

from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.accumulator import Accumulator
from lmgauge.tasks.alignment import AlignedSegment, aligned_segments
from lmgauge.tasks.blocks import ParallelSegments, ParallelTexts
from lmgauge.tasks.comparison import Systems
from lmgauge.tasks.metrics.bleu import BLEU, BleuScore
from lmgauge.tasks.metrics.chrf import ChrF, ChrfScore
from lmgauge.tasks.metrics.error_rates import CER, WER, EditRate, ErrorRates
from lmgauge.tasks.metrics.protocol import TaskMetric, TaskScore
from lmgauge.tasks.metrics.ter import TER, TerScore
from lmgauge.tasks.parallel import ParallelFiles, Path, paths_of
from lmgauge.tasks.public_sets import find_public_set
from lmgauge.tasks.scoring import (
    GivenReferences,
    SegmentScores,
    block_of_strings,
    check_sources,
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
from lmgauge.tasks.transcript_files import TranscriptFiles
from lmgauge.tasks.utterance_ids import formats_of
from lmgauge.text.documents import Corpus
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
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    test_set: str | None = None,
    language_pair: str | None = None,
    threads: int | None = None,
    **options: Unpack[BleuOptions],
) -> BleuScore:
    """Return BLEU of one system (Papineni et al. 2002), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them; None in a list is absent. Tuples where there are as many
            lists as texts in each. (sacreBLEU has a list for each translation instead: `list(zip(*lists))` turns it round.)
        test_set: instead of references, the name of a public test set in sacreBLEU's registry, such as "wmt22".
        language_pair: of the test set, such as "en-de"; into Chinese, Japanese or Korean it also names the tokenizer, unless
            the options do.
        threads: how many to use, all cores if None; no number depends on it.
        **options: of `lmgauge.tasks.BLEU`, such as `order=3`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, there is nothing to score, or a test set
            cannot be fetched.
        UsageError: an option is out of range, something is not a string, or sacreBLEU has no such test set.
        MissingExtraError: a test set is named, and sacreBLEU is not installed.

    >>> bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3).score
    50.0
    """
    against = _references(references, test_set, language_pair)
    if references is None and "tokenizer" not in options:
        options["tokenizer"] = find_public_set(test_set, language_pair).tokenizer
    return cast(BleuScore, _score(BLEU(**options), hypotheses, against, threads))


@_texts_by_name
def chrf(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    test_set: str | None = None,
    language_pair: str | None = None,
    threads: int | None = None,
    **options: Unpack[ChrfOptions],
) -> ChrfScore:
    """Return chrF of one system (Popović 2015), with `word_order=2` chrF++ (Popović 2017), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.ChrF`.

    Returns:
        The score (0 to 100) and its parts.

    >>> chrf(hypotheses=["ab"], references=["ac"], char_order=1).score
    50.0
    """
    against = _references(references, test_set, language_pair)
    return cast(ChrfScore, _score(ChrF(**options), hypotheses, against, threads))


@_texts_by_name
def ter(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    test_set: str | None = None,
    language_pair: str | None = None,
    threads: int | None = None,
    **options: Unpack[TerOptions],
) -> TerScore:
    """Return the translation edit rate of one system (Snover et al. 2006), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.TER`.

    Returns:
        Edits for 100 words of the references (percent, and may be above 100), and their parts.

    >>> ter(hypotheses=["a b c x"], references=["a b c d"]).score
    25.0
    """
    against = _references(references, test_set, language_pair)
    return cast(TerScore, _score(TER(**options), hypotheses, against, threads))


@_texts_by_name
def wer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: int | None = None,
    **options: Unpack[NormalizationOptions],
) -> ErrorRates:
    """Return the word error rate of one system, with MER, WIL and the counts, as jiwer has them.

    Source: Morris, Maier & Green (2004).

    Args, Raises: as `bleu`; options of `lmgauge.tasks.WER`, which say how texts are normalized.

    Returns:
        The rates, as ratios (0.5 is 50 %; BLEU, chrF and TER are percent), and the counts of hits, substitutions, deletions
        and insertions.

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
    """Return the character error rate of one system, a ratio; else as `wer`.

    Args, Returns, Raises: as `wer`.

    >>> cer(hypotheses=["abxd"], references=["abcd"]).score
    0.25
    """
    return cast(ErrorRates, _score(CER(**options), hypotheses, references, threads))


def _references(references: GivenReferences | None, test_set: str | None, language_pair: str | None) -> GivenReferences:
    """Return the references that were given, or those of a public test set."""
    if references is not None:
        if test_set is not None or language_pair is not None:
            raise UsageError("give references, or a test set and its language pair: not both")
        return references
    if test_set is None and language_pair is None:
        raise UsageError("nothing to score against: give references, or a test set and its language pair")
    public = find_public_set(test_set, language_pair)
    files = [Corpus.from_files(path, group=None, format="text", keep_bom=True) for path in public.references]
    columns = [[block.text(i).decode() for block in file for i in range(len(block))] for file in files]
    return list(zip(*columns, strict=True))


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
        references: as `bleu`.
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
    files = files_to_score(metric, references, outputs, reading, sources)
    if named and len(named) != len(files.names):
        raise UsageError(f"{len(named)} names of systems for {len(files.names)} files: give each name one file")
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
    files = files_to_score(metric, references, hypotheses, reading, sources)
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
    files = files_to_score(metric, references, hypotheses, reading)
    yield from aligned_segments(metric, files)
    _say(files, notes)


def files_to_score(
    metric: TaskMetric,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    reading: Reading | None,
    sources: Path | None = None,
) -> ParallelSegments:
    """Return the files in the reader for their formats: those of speech tools are joined by ids or by time.

    Args:
        metric, references, hypotheses, reading, sources: as `score_files`.

    Raises:
        InputError, UsageError: as `score_files`.
    """
    references, hypotheses = paths_of(references), paths_of(hypotheses)
    if isinstance(metric, EditRate):
        formats = formats_of([*references, *hypotheses], reading or Reading())
        if any(formats.values()):
            return TranscriptFiles(metric, references, hypotheses, reading or Reading(), formats)
    return ParallelFiles(references, hypotheses, reading, sources)


def _say(files: ParallelSegments, notes: Callable[[str], None] | None) -> None:
    if notes is not None:
        for note in files.notes:
            notes(note)
