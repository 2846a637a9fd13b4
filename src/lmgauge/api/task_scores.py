"""The functions of `lmgauge.tasks`: BLEU, chrF, TER, WER and CER of lists and of files.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from lmgauge.api.types import PathLike
from lmgauge.declaration import verb
from lmgauge.errors import InputError, UsageError
from lmgauge.option_numbers import Count
from lmgauge.progress import say_progress
from lmgauge.tasks.settings import (
    BleuOptions,
    ChrfOptions,
    ComparisonSettings,
    NormalizationOptions,
    PublicTest,
    Reading,
    TerOptions,
)

if TYPE_CHECKING:
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.blocks import ParallelSegments
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.bleu import BleuScore
    from lmgauge.tasks.metrics.chrf import ChrfScore
    from lmgauge.tasks.metrics.error_rates import EditRate, ErrorRates
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.metrics.ter import TerScore
    from lmgauge.tasks.scoring import GivenReferences, SegmentScores
    from lmgauge.tasks.segment_examples import SegmentChooser

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
@verb
def bleu(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: BleuOptions = BleuOptions(),
    **fields: Any,
) -> BleuScore:
    """Return BLEU of one system (Papineni et al. 2002), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them; None in a list is absent. Tuples where there are as many
            lists as texts in each. (sacreBLEU has a list for each translation instead: `list(zip(*lists))` turns it round.)
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. No number depends on it.
        options: of `lmgauge.tasks.BLEU`.
        fields: those of `public` and `options`, by name, such as `order=3`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, there is nothing to score, or a test set
            cannot be fetched.
        UsageError: an option is out of range, something is not a string, or sacreBLEU has no such test set.
        MissingExtraError: a test set is named, and sacreBLEU is not installed.

    Shell:
        lmgauge bleu ref.txt baseline.txt better.txt
        lmgauge bleu -t wmt22 -l en-de hyp.txt
        lmgauge bleu ref1.txt -r ref2.txt hyp.txt --tokenizer intl

    Example:
        >>> bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3).score
        50.0
    """
    from lmgauge.tasks.metrics.bleu import BLEU
    from lmgauge.tasks.public_sets import tokenizer_for

    chosen = vars(options) | {"tokenizer": options.tokenizer or tokenizer_for(public.language_pair)}
    return cast("BleuScore", _score(BLEU(**chosen), hypotheses, _references(references, public), threads))


@_texts_by_name
@verb
def chrf(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: ChrfOptions = ChrfOptions(),
    **fields: Any,
) -> ChrfScore:
    """Return chrF of one system (Popović 2015), or chrF++ (Popović 2017), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. No number depends on it.
        options: of `lmgauge.tasks.ChrF`.
        fields: those of `public` and `options`, by name, such as `plus_plus=True`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge chrf ref.txt hyp.txt
        lmgauge chrf ref.txt baseline.txt better.txt --plus-plus

    Example:
        >>> chrf(hypotheses=["ab"], references=["ac"], char_order=1).score
        50.0
    """
    from lmgauge.tasks.metrics.chrf import ChrF

    return cast("ChrfScore", _score(ChrF(**vars(options)), hypotheses, _references(references, public), threads))


@_texts_by_name
@verb
def ter(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: TerOptions = TerOptions(),
    **fields: Any,
) -> TerScore:
    """Return the translation edit rate of one system (Snover et al. 2006), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. No number depends on it.
        options: of `lmgauge.tasks.TER`.
        fields: those of `public` and `options`, by name, such as `normalized=True`.

    Returns:
        Edits and shifts for 100 words of the references (percent, and may be above 100), and their parts.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge ter ref.txt hyp.txt
        lmgauge ter ref.txt baseline.txt better.txt --normalized

    Example:
        >>> ter(hypotheses=["a b c x"], references=["a b c d"]).score
        25.0
    """
    from lmgauge.tasks.metrics.ter import TER

    return cast("TerScore", _score(TER(**vars(options)), hypotheses, _references(references, public), threads))


@_texts_by_name
@verb
def wer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: Count | None = None,
    options: NormalizationOptions = NormalizationOptions(),
    **fields: Any,
) -> ErrorRates:
    """Return the word error rate of one system, with MER, WIL and the counts, as jiwer has them.

    White space of any kind splits words; in jiwer a single tab or no-break space does not. Source: Morris, Maier &
    Green (2004).

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        threads: how many to use; all cores if not given. No number depends on it.
        options: of `lmgauge.tasks.WER`.
        fields: those of `options`, by name, such as `lowercase=True`.

    Returns:
        The rates, as ratios (0.5 is 50 %; BLEU, chrF and TER are percent), and the counts of hits, substitutions, deletions
        and insertions.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge wer ref.txt hyp.txt --lowercase --remove-punctuation
        lmgauge wer ref.txt hyp.txt --align | less
        lmgauge wer ref.tsv a.tsv b.tsv --field text --id utterance --group speaker
        lmgauge wer ref.stm hyp.ctm --group speaker
        lmgauge wer data/test/text exp/decode/hyp.txt --format kaldi

    Example:
        >>> wer(hypotheses=["This test"], references=["This is a test"]).score
        0.5
    """
    from lmgauge.tasks.metrics.error_rates import WER

    return cast("ErrorRates", _score(WER(**vars(options)), hypotheses, references, threads))


@_texts_by_name
@verb
def cer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: Count | None = None,
    options: NormalizationOptions = NormalizationOptions(),
    **fields: Any,
) -> ErrorRates:
    """Return the character error rate of one system, a ratio, as jiwer has it.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        threads: how many to use; all cores if not given. No number depends on it.
        options: of `lmgauge.tasks.CER`.
        fields: those of `options`, by name, such as `lowercase=True`.

    Returns:
        The rates, as ratios, and the counts, as `wer`.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge cer ref.txt hyp.txt --unicode-form NFKC

    Example:
        >>> cer(hypotheses=["abxd"], references=["abcd"]).score
        0.25
    """
    from lmgauge.tasks.metrics.error_rates import CER

    return cast("ErrorRates", _score(CER(**vars(options)), hypotheses, references, threads))


def _references(references: GivenReferences | None, public: PublicTest) -> GivenReferences:
    """Return the references that were given, or those of a public test set."""
    from lmgauge.tasks.public_sets import find_public_set
    from lmgauge.text.documents import Corpus

    if references is not None:
        if public != PublicTest():
            raise UsageError("give references, or a test set and its language pair: not both")
        return references
    if public == PublicTest():
        raise UsageError("nothing to score against: give references, or a test set and its language pair")
    paths = find_public_set(public.test_set, public.language_pair).references
    files = [Corpus.from_files(path, group=None, format="text", keep_bom=True) for path in paths]
    columns = [[block.text(i).decode() for block in file for i in range(len(block))] for file in files]
    return list(zip(*columns, strict=True))


def _score(metric: TaskMetric, hypotheses: Sequence[str], references: GivenReferences, threads: int | None) -> object:
    from lmgauge.tasks.accumulator import Accumulator

    accumulator = Accumulator(metric, keep_segments=False, threads=threads)
    accumulator.add(hypotheses=hypotheses, references=references)
    return accumulator.score()


@verb
def score_systems(
    metric: TaskMetric,
    *,
    hypotheses: Mapping[str, Sequence[str]] | Sequence[str],
    references: GivenReferences,
    sources: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    settings: ComparisonSettings = ComparisonSettings(),
    chooser: SegmentChooser | None = None,
    **fields: Any,
) -> Systems:
    """Score systems on the same segments, with intervals, and test each against the first.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`, or one of your own: see `lmgauge.tasks.metrics.protocol`.
        hypotheses: a list of outputs by the name of each system; or one list, of a system called "system".
        references: as `bleu`.
        sources: the text that each segment was translated from, where the metric needs it.
        groups: the name of the group of each segment, such as its speaker or document; each group is scored too.
        documents: the name of the document of each segment; documents are then what is independent.
        settings: the test, how much is drawn, threads.
        chooser: sees all segments too, and chooses some to look at.
        fields: those of `settings`, by name.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, or there is nothing to score.
        UsageError: an option is out of range, or something is not a string.

    Example:
        >>> from lmgauge.tasks import WER
        >>> outputs = {"a": ["a dog barks"], "b": ["the dog barks"]}
        >>> score_systems(WER(), hypotheses=outputs, references=["the dog barks"], significance="none").best.system
        'b'
    """
    from lmgauge.numerics.intervals import UNKNOWN
    from lmgauge.tasks.blocks import ParallelTexts
    from lmgauge.tasks.scoring import block_of_strings, score_parallel
    from lmgauge.text.labels import BY_NAMES, Names

    outputs = dict(hypotheses) if isinstance(hypotheses, Mapping) else {"system": hypotheses}
    if not outputs:
        raise UsageError("no system to score: give a list of hypotheses by the name of each")
    block, of_groups = block_of_strings(metric, outputs, references, sources, documents), Names()
    if groups is not None:
        if len(groups) != len(block):
            raise InputError(f"{len(groups):,} groups for {len(block):,} segments: give one for each")
        block = replace(block, groups=of_groups.numbers(map(str, groups)))
    by = UNKNOWN if documents is None else BY_NAMES
    return score_parallel(metric, ParallelTexts(list(outputs), [block], of_groups.known, by), settings, chooser=chooser)


@verb
def score_files(
    metric: TaskMetric,
    *,
    references: PathLike | Iterable[PathLike],
    hypotheses: PathLike | Iterable[PathLike] | Mapping[str, PathLike],
    sources: PathLike | None = None,
    reading: Reading = Reading(),
    settings: ComparisonSettings = ComparisonSettings(),
    progress: Callable[[int], None] | None = None,
    chooser: SegmentChooser | None = None,
    **fields: Any,
) -> Systems:
    """Score the outputs of systems in files; of any length, as texts are read in blocks.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`.
        references: a file with a segment on each line (or record), several with one more reference each, or a folder.
        hypotheses: a file for each system, or a folder with the same file names for each; by the systems' names, if they
            are not to be called as the files are.
        sources: a file with the text that each segment was translated from, where the metric needs it.
        reading: fields, groups, documents, formats.
        settings: as `score_systems`.
        progress: called with the number of segments done.
        chooser: as `score_systems`.
        fields: those of `reading` and `settings`, by name.

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
    from lmgauge.tasks.scoring import check_sources, score_parallel

    check_sources(metric, sources is not None)
    named = list(hypotheses) if isinstance(hypotheses, Mapping) else None
    outputs = hypotheses.values() if isinstance(hypotheses, Mapping) else hypotheses
    files = files_to_score(metric, references, outputs, reading, sources)
    if named and len(named) != len(files.names):
        raise UsageError(f"{len(named)} names of systems for {len(files.names)} files: give each name one file")
    files.names = named or files.names
    return score_parallel(metric, files, settings, progress or _say_segments, chooser)


@verb
def score_segments(
    metric: TaskMetric,
    *,
    references: PathLike | Iterable[PathLike],
    hypotheses: PathLike | Iterable[PathLike],
    sources: PathLike | None = None,
    reading: Reading = Reading(),
    threads: Count | None = None,
    notes: Callable[[str], None] | None = None,
    **fields: Any,
) -> Iterator[SegmentScores]:
    """Score each segment of files on its own, a block of segments at a time.

    Args:
        metric, references, hypotheses, sources, reading: as `score_files`.
        threads: how many to use, all cores if None; no number depends on it.
        notes: called at the end with each thing that reading has to say.
        fields: those of `reading`, by name.

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
    from lmgauge.tasks.scoring import check_sources, segment_scores

    check_sources(metric, sources is not None)
    files = files_to_score(metric, references, hypotheses, reading, sources)
    yield from segment_scores(metric, files, threads)
    _say(files, notes)


@verb
def align_files(
    metric: EditRate,
    *,
    references: PathLike | Iterable[PathLike],
    hypotheses: PathLike | Iterable[PathLike],
    reading: Reading = Reading(),
    notes: Callable[[str], None] | None = None,
    **fields: Any,
) -> Iterator[AlignedSegment]:
    """Align the segments of files with their references, in order, the systems of each segment one after the other.

    Args:
        metric: `lmgauge.tasks.WER(...)` or `lmgauge.tasks.CER(...)`; says the unit and how texts are normalized.
        references: a file; one reference for each segment.
        hypotheses: a file for each system.
        reading: as `score_files`.
        notes: called at the end with each thing that reading has to say.
        fields: those of `reading`, by name.

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
    from lmgauge.tasks.alignment import aligned_segments

    files = files_to_score(metric, references, hypotheses, reading)
    yield from aligned_segments(metric, files)
    _say(files, notes)


def files_to_score(
    metric: TaskMetric,
    references: PathLike | Iterable[PathLike],
    hypotheses: PathLike | Iterable[PathLike],
    reading: Reading,
    sources: PathLike | None = None,
) -> ParallelSegments:
    """Return the files in the reader for their formats: those of speech tools are joined by ids or by time."""
    from lmgauge.tasks.metrics.error_rates import EditRate
    from lmgauge.tasks.parallel import ParallelFiles, paths_of
    from lmgauge.tasks.transcript_files import TranscriptFiles
    from lmgauge.tasks.utterance_ids import formats_of

    references, hypotheses = paths_of(references), paths_of(hypotheses)
    if isinstance(metric, EditRate):
        formats = formats_of([*references, *hypotheses], reading)
        if any(formats.values()):
            return TranscriptFiles(metric, references, hypotheses, reading, formats)
    return ParallelFiles(references, hypotheses, reading, sources)


def _say(files: ParallelSegments, notes: Callable[[str], None] | None) -> None:
    if notes is not None:
        for note in files.notes:
            notes(note)


def _say_segments(done: int) -> None:
    say_progress(f"{done:,} segments")
