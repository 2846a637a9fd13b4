"""The functions of `lmgauge.tasks` that score systems, in lists and in files, with intervals and tests.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count
from lmgauge.tasks.settings import ComparisonSettings, Reading

if TYPE_CHECKING:
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.error_rates import EditRate
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.scoring import SegmentScores
    from lmgauge.tasks.segment_examples import SegmentChooser
    from lmgauge.tasks.texts import GivenReferences


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
    from lmgauge.tasks.scoring import score_parallel, texts_in_memory

    outputs = hypotheses if isinstance(hypotheses, Mapping) else {"system": hypotheses}
    texts = texts_in_memory(metric, outputs, references, sources, groups, documents)
    return score_parallel(metric, texts, settings, chooser=chooser)


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
    from lmgauge.tasks.scoring import score_parallel
    from lmgauge.tasks.transcript_files import files_to_score

    named = list(hypotheses) if isinstance(hypotheses, Mapping) else None
    outputs = hypotheses.values() if isinstance(hypotheses, Mapping) else hypotheses
    files = files_to_score(metric, references, outputs, reading, sources)
    if named and len(named) != len(files.names):
        raise UsageError(f"{len(named)} names of systems for {len(files.names)} files: give each name one file")
    files.names = named or files.names
    return score_parallel(metric, files, settings, progress, chooser)


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
    from lmgauge.tasks.scoring import segment_scores
    from lmgauge.tasks.transcript_files import files_to_score

    files = files_to_score(metric, references, hypotheses, reading, sources)
    yield from segment_scores(metric, files, threads)
    if notes is not None:
        for note in files.notes:
            notes(note)


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
    from lmgauge.tasks.transcript_files import files_to_score

    files = files_to_score(metric, references, hypotheses, reading)
    yield from aligned_segments(metric, files)
    if notes is not None:
        for note in files.notes:
            notes(note)
