"""The functions of `lmgauge.tasks` that score systems, in lists and in files, with intervals and tests.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PathLike
from lmgauge.base.choices import Average
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count
from lmgauge.tasks.settings import ComparisonSettings, CorrelationSettings, Reading

if TYPE_CHECKING:
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.correlation import Correlation
    from lmgauge.tasks.metrics.error_rates import EditRate
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.scoring import SegmentScores
    from lmgauge.tasks.segment_examples import SegmentChooser
    from lmgauge.tasks.texts import GivenReferences


@verb
def score_systems(
    metric: TaskMetric | str,
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
        metric: the metric; `lmgauge.tasks.BLEU()`, one of your own (see `lmgauge.tasks.metrics.protocol`), or its name.
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
    from lmgauge.tasks.metrics.protocol import metric_named
    from lmgauge.tasks.scoring import score_parallel, texts_in_memory

    metric = metric_named(metric)
    outputs = hypotheses if isinstance(hypotheses, Mapping) else {"system": hypotheses}
    texts = texts_in_memory(metric, outputs, references, sources, groups, documents)
    return score_parallel(metric, texts, settings, chooser=chooser)


@verb
def score_files(
    metric: TaskMetric | str,
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
        metric: the metric; `lmgauge.tasks.BLEU()`, or a name, as `score_systems` has it.
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
    from lmgauge.tasks.metrics.protocol import metric_named
    from lmgauge.tasks.scoring import score_parallel
    from lmgauge.tasks.transcript_files import files_to_score

    metric = metric_named(metric)
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
        threads: how many to use, all cores if None; does not change results.
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


@verb
def score_labels(
    *,
    gold: Sequence[str],
    predicted: Mapping[str, Sequence[str]] | Sequence[str],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    documents: Sequence[str] | None = None,
    settings: ComparisonSettings = ComparisonSettings(),
    **fields: Any,
) -> Systems:
    """Return precision, recall and F1 of labeled outputs, with intervals, each against the first.

    Args:
        gold: the right label of each segment.
        predicted: a list of labels by the name of each system; or one list, of a system called "system".
        labels: that count; all that occur if not given.
        average: which F1 is tested; labels alike (macro), of the sums (micro), or by how often they are gold (weighted).
        documents: the name of the document of each segment.
        settings: as `score_systems`.
        fields: those of `settings`, by name.

    Returns:
        The systems; the figures of each label are in `systems[0].score.labels`.

    Raises:
        InputError: lists of different length, or something is not a string.
        UsageError: an option is out of range.

    Example:
        >>> systems = score_labels(gold=["cat", "dog", "cat"], predicted={"a": ["cat", "cat", "cat"]})
        >>> round(systems[0].score.score, 3)
        0.4
    """
    from lmgauge.tasks.metrics.labels import compare_labels
    from lmgauge.tasks.scoring import document_codes
    from lmgauge.text.segment_metadata import BY_NAMES, UNKNOWN

    codes = None if documents is None else document_codes(documents, len(gold))
    outputs = predicted if isinstance(predicted, Mapping) else {"system": predicted}
    return compare_labels(gold, outputs, labels, average, codes, UNKNOWN if codes is None else BY_NAMES, settings)


@verb
def score_label_files(
    *,
    gold: PathLike,
    predicted: PathLike | Iterable[PathLike],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    reading: Reading = Reading(),
    settings: ComparisonSettings = ComparisonSettings(),
    **fields: Any,
) -> Systems:
    """Do what `score_labels` does with files, a label on each line (or record); white space around labels is left out.

    Args:
        gold: a file with the right label of each segment.
        predicted: a file for each system.
        labels: labels that count; all that occur if not given.
        average: which F1 is tested; labels alike (macro), of the sums (micro), or by how often they are gold (weighted).
        reading: as `score_files`; a byte order mark at the head of a file is never part of a label.
        settings: as `score_systems`.
        fields: those of `reading` and `settings`, by name.

    Raises:
        InputError: a file is missing, ends before another, holds what is not text, or all gold labels are blank.
        UsageError: as `score_labels`.

    Shell:
        lmgauge f1 gold.txt tagger-a.txt tagger-b.txt
        lmgauge f1 gold.tsv a.tsv b.tsv --field label --average micro

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, label in (("gold", "cat"), ("a", "cat")):
        ...         _ = File(folder, f"{name}.txt").write_text(label)
        ...     score_label_files(gold=f"{folder}/gold.txt", predicted=[f"{folder}/a.txt"])[0].score.score
        1.0
    """
    from lmgauge.tasks.metrics.labels import compare_labels, read_labels

    right, outputs, codes, by = read_labels(gold, predicted, reading)
    return compare_labels(right, outputs, labels, average, codes, by, settings)


@verb
def correlate_tables(
    scores: PathLike,
    perplexities: PathLike | None = None,
    *,
    model: PathLike | None = None,
    outputs: Sequence[PathLike] = (),
    rows: PathLike | None = None,
    threads: Count | None = None,
    settings: CorrelationSettings = CorrelationSettings(),
    **fields: Any,
) -> Correlation:
    """Correlate task scores of systems with perplexities: of their language models, or of their outputs under one.

    Tables of systems are TSV or CSV with a header, JSONL, or what `bleu --json`, `wer --json` and `eval --json` print. A
    system has the same name in both.

    Args:
        scores: a table with a row for each system, such as `lmgauge bleu --json` prints.
        perplexities: another one, such as `lmgauge eval --json` prints; its models, or the groups of one, are the systems.
            Without it both columns are in `scores`.
        model: a language model instead of perplexities; it scores each of `outputs`.
        outputs: with a model, the output of a system, as it was scored; may be given several times, a glob stands for
            several. A system is known by the name of its file.
        rows: also write the points; .parquet, .csv, .tsv, .jsonl, or -.
        threads: threads to use; all cores if not given. Does not change results.
        settings: names of columns, logarithm and seed.
        fields: those of `settings`, by name.

    Raises:
        InputError: a table cannot be read, lacks a column, or no system is in both.
        UsageError: the suffix of a table is unknown, a model has no outputs, or a table beside it, or the rows would replace
            what is read.

    Shell:
        lmgauge correlate bleu.json perplexity.json
        lmgauge correlate bleu.json -m kn5/ --outputs '?.txt'
        lmgauge correlate systems.tsv -x perplexity -y bleu

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path as File
        >>> rows = [{"system": name, "score": 30 - i, "perplexity": 80 + i * i} for i, name in enumerate("abcd")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "systems.json").write_text(json.dumps(rows))
        ...     correlate_tables(f"{folder}/systems.json").spearman
        -1.0
    """
    from lmgauge.api.evaluate import evaluate
    from lmgauge.base.files import refuse_replacing
    from lmgauge.models.registry import load_model
    from lmgauge.records.sources import find_sources
    from lmgauge.tasks.correlation import by_system, correlate_rows, read_table
    from lmgauge.tasks.parallel import paths_of

    if (model is None) != (not outputs):
        raise UsageError("a model (-m) and its outputs (--outputs) belong together: what is measured under the model")
    if model is not None and perplexities is not None:
        raise UsageError("perplexities come from a table or from a model (-m), not from both")
    sources = find_sources(paths_of(outputs)) if outputs else []
    read = [os.fspath(path) for path in (scores, perplexities, model) if path is not None]
    refuse_replacing({"--rows": rows}, [*read, *(source.path for source in sources)])
    x_rows = y_rows = read_table(read[0])
    x_table, name = read[-1], settings.system
    if model is not None:
        # A system may print <unk>; to the model that judges it that is a word like any other.
        judge = load_model(read[-1]).with_reserved("escape")
        x_rows = [{name: source.label} | evaluate(judge, source.path, threads=threads).to_dict() for source in sources]
        x_table = ""
    elif perplexities is not None:
        x_rows = by_system(read_table(read[-1]), name)
    result = correlate_rows(x_rows, y_rows, settings, (x_table, read[0]))
    if rows is not None:
        result.write_rows(rows)
    return result
