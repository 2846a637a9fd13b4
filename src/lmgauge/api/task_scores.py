"""BLEU, chrF, TER, WER and CER in Python: the words and the defaults of the command line.

    lmgauge.tasks.bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"]).score
    lmgauge.tasks.score_systems(lmgauge.tasks.ChrF(word_order=2), hypotheses={"a": [...], "b": [...]}, references=[...])
    lmgauge.tasks.score_files(lmgauge.tasks.WER(lowercase=True), references="ref.txt", hypotheses=["a.txt", "b.txt"])

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.accumulator import Accumulator, check_lengths, document_codes
from lmgauge.tasks.comparison import RANDOMIZATION_TEST, Systems, compare_systems
from lmgauge.tasks.metrics.protocol import TaskMetric, TaskScore
from lmgauge.tasks.parallel import Block, ParallelFiles, Reading, paths_of
from lmgauge.tasks.segment_scoring import Rows, SegmentScores, measure, segment_scores
from lmgauge.tasks.texts import Integers, References, Texts
from lmgauge.text.labels import BY_NAMES

if TYPE_CHECKING:
    from lmgauge.choices import Average
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.correlation import Correlation
    from lmgauge.tasks.metrics.bleu import BleuScore
    from lmgauge.tasks.metrics.chrf import ChrfScore
    from lmgauge.tasks.metrics.error_rates import EditRate, ErrorRates
    from lmgauge.tasks.metrics.labels import F1Score
    from lmgauge.tasks.metrics.ter import TerScore

GivenReferences = Sequence[str | Sequence[str | None]]
Path = str | os.PathLike[str]


def bleu(*, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Any) -> BleuScore:
    """BLEU of one system (Papineni et al. 2002), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them; None in a list is absent.
        threads: how many; all cores if None. No number depends on it.
        **options: of `BLEU`: order, weights, smoothing, smoothing_value, effective_order, lowercase, tokenizer,
            reference_length.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError: lengths differ, a segment has no reference, a text is none, or there is nothing to score.
        UsageError: an option is out of range.

    >>> bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3).score
    50.0
    """
    from lmgauge.tasks.metrics.bleu import BLEU

    return cast("BleuScore", _score(BLEU(**options), hypotheses, references, threads))


def chrf(*, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Any) -> ChrfScore:
    """chrF of one system (Popović 2015), with `word_order=2` chrF++ (Popović 2017), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `ChrF`: char_order, word_order, beta, lowercase, whitespace, eps_smoothing.

    Returns:
        The score (0 to 100) and its parts.
    """
    from lmgauge.tasks.metrics.chrf import ChrF

    return cast("ChrfScore", _score(ChrF(**options), hypotheses, references, threads))


def ter(*, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Any) -> TerScore:
    """Translation edit rate of one system (Snover et al. 2006), digit for digit as sacreBLEU.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.TER`: normalized, no_punct, asian_support, case_sensitive.

    Returns:
        Edits for 100 words of the references, and their parts.
    """
    from lmgauge.tasks.metrics.ter import TER

    return cast("TerScore", _score(TER(**options), hypotheses, references, threads))


def wer(*, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Any) -> ErrorRates:
    """Word error rate of one system, with MER, WIL and the counts, as jiwer has them.

    Args, Raises: as `bleu`; options of `lmgauge.tasks.WER`, which say how texts are normalised.

    Returns:
        The rates, as ratios, and the counts of hits, substitutions, deletions and insertions.

    >>> wer(hypotheses=["This test"], references=["This is a test"]).score
    0.5
    """
    from lmgauge.tasks.metrics.error_rates import WER

    return cast("ErrorRates", _score(WER(**options), hypotheses, references, threads))


def cer(*, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None, **options: Any) -> ErrorRates:
    """Character error rate of one system; else as `wer`."""
    from lmgauge.tasks.metrics.error_rates import CER

    return cast("ErrorRates", _score(CER(**options), hypotheses, references, threads))


def _score(metric: TaskMetric, hypotheses: Sequence[str], references: GivenReferences, threads: int | None) -> TaskScore:
    accumulator = Accumulator(metric, keep_segments=False, threads=threads)
    accumulator.add(hypotheses=hypotheses, references=references)
    return accumulator.score()


def score_systems(
    metric: TaskMetric,
    *,
    hypotheses: Mapping[str, Sequence[str]] | Sequence[str],
    references: GivenReferences,
    groups: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Systems:
    """Score systems on the same segments, with intervals, and test each against the first.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`.
        hypotheses: a list of outputs by the name of each system; or one list, of a system called "system".
        references: for each segment a string, or a list of them.
        groups: the name of the group of each segment, such as its speaker or document; each group is scored too.
        documents: the name of the document of each segment; documents are then what is independent.
        test: "bootstrap" (paired), "randomization" (approximate), or None to draw nothing.
        resamples: of the test; 1,000 and 10,000 if None.
        seed: same seed, same draws, which are sacreBLEU's.
        threads: how many; no number depends on it.

    Raises:
        InputError: lengths differ, a segment has no reference, a text is none, or there is nothing to score.
        UsageError: an option is out of range.
    """
    systems = dict(hypotheses) if isinstance(hypotheses, Mapping) else {"system": hypotheses}
    if not systems:
        raise UsageError("no system to score: give a list of hypotheses by the name of each")
    against = References.of_lists(references)
    outputs = []
    for name, lines in systems.items():
        texts = Texts.of_strings(lines, "hypothesis" if len(systems) == 1 else f"{name}: hypothesis")
        check_lengths(len(texts), len(against))
        outputs.append(texts)
    names: dict[str, int] = {}
    codes = None
    if groups is not None:
        if len(groups) != len(against):
            raise InputError(f"{len(groups):,} groups for {len(against):,} segments: give the name of a group for each")
        codes = np.array([names.setdefault(str(name), len(names)) for name in groups], dtype=np.int32)
    numbers = None if documents is None else document_codes(documents, len(against))
    blocks = [Block(against, tuple(outputs), codes, numbers)] if len(against) else []
    return measure(
        metric,
        list(systems),
        blocks,
        group_names=list(names),
        documents_by=UNKNOWN if documents is None else BY_NAMES,
        test=test,
        resamples=resamples,
        seed=seed,
        threads=threads,
    )


def score_files(
    metric: TaskMetric,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path] | Mapping[str, Path],
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    **reading: Any,
) -> Systems:
    """Score the outputs of systems in files; of any length, as texts are read in blocks.

    Args:
        metric: such as `lmgauge.tasks.BLEU()`.
        references: a file with a segment on each line (or record), several with one more reference each, or a folder.
        hypotheses: a file for each system, or a folder with the same file names for each; by the systems' names, if they
            are not to be called as the files are.
        test, resamples, seed, threads: as `score_systems`.
        progress: told how many segments are done.
        **reading: field, reference_fields, id_field, by, document, unit, format, errors, keep_bom; see
            `lmgauge.tasks.parallel.Reading`.

    Raises:
        InputError: a file is missing, ends before another, or holds what is not text; or there is nothing to score.
        UsageError: options that contradict each other.
    """
    named = list(hypotheses) if isinstance(hypotheses, Mapping) else None
    paths = paths_of(hypotheses.values() if isinstance(hypotheses, Mapping) else hypotheses)
    files = ParallelFiles(paths_of(references), paths, Reading.of(reading))
    return measure(
        metric,
        files.names if named is None else named,
        files,
        group_names=files.group_names,
        documents_by=files.documents_by,
        notes=files.notes,
        test=test,
        resamples=resamples,
        seed=seed,
        threads=threads,
        progress=progress,
    )


def score_segments(
    metric: TaskMetric,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    threads: int | None = None,
    notes: Callable[[str], None] | None = None,
    **reading: Any,
) -> Iterator[SegmentScores]:
    """Score each segment of files on its own, a block of segments at a time.

    Args:
        metric, references, hypotheses, threads: as `score_files`.
        notes: called at the end with each thing that reading has to say.
        **reading: as `score_files`.
    """
    files = ParallelFiles(paths_of(references), paths_of(hypotheses), Reading.of(reading))
    yield from segment_scores(metric, files.names, files, group_names=files.group_names, threads=threads)
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
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Systems:
    """Precision, recall and F1 of labelled outputs through scikit-learn, with intervals, each system against the first.

    Args:
        gold: the right label of each segment.
        predicted: a list of labels by the name of each system; or one list, of a system called "system".
        labels: that count; None: all that occur.
        average: which F1 is tested: "macro", "micro" or "weighted".
        documents: the name of the document of each segment.
        test, resamples, seed: as `score_systems`.

    Returns:
        The systems; the figures of each label are in `systems[0].score.report`.

    Raises:
        InputError: lists of different length, or what is no string.
        MissingExtraError: scikit-learn is not installed.
    """
    numbers = None if documents is None else document_codes(documents, len(gold))
    by = UNKNOWN if documents is None else BY_NAMES
    return _label_systems(gold, predicted, labels, average, numbers, by, test=test, resamples=resamples, seed=seed)


def _label_systems(
    gold: Sequence[str],
    predicted: Mapping[str, Sequence[str]] | Sequence[str],
    labels: Sequence[str] | None,
    average: Average,
    documents: Integers | None,
    documents_by: str,
    **drawing: Any,
) -> Systems:
    from lmgauge.tasks.metrics.labels import F1, check_labels, label_scores

    systems = dict(predicted) if isinstance(predicted, Mapping) else {"system": predicted}
    for given in systems.values():
        check_labels(gold, given)
    chosen = sorted({*gold}.union(*systems.values())) if labels is None else labels
    reports = {name: label_scores(gold, given, labels=chosen) for name, given in systems.items()}
    metric = F1(tuple(chosen), average)
    rows = Rows.of_segments([metric.statistics_of(gold, given) for given in systems.values()], documents, documents_by)
    found = compare_systems(
        metric,
        list(systems),
        rows.statistics,
        1,
        segments=len(gold),
        documents_by=rows.documents_by,
        by_document=rows.by_document,
        notes=[f"{name}: {note}" for name, report in reports.items() for note in report.notes],
        **drawing,
    )
    items = (replace(item, score=replace(cast("F1Score", item.score), report=reports[item.system])) for item in found.items)
    return replace(found, items=tuple(items))


def score_label_files(
    *,
    gold: Path,
    predicted: Path | Iterable[Path],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
    **reading: Any,
) -> Systems:
    """`score_labels` of files, a label on each line (or record); white space around labels is left out."""
    # A mark before the first label would make it a label of its own.
    files = ParallelFiles([os.fspath(gold)], paths_of(predicted), Reading.of({"keep_bom": False, **reading}))
    right: list[str] = []
    given: list[list[str]] = [[] for _ in files.names]
    documents: list[Integers] = []
    for block in files:
        documents += [] if block.documents is None else [block.documents]
        right.extend(text.strip() for text in block.references.texts.strings())
        for into, texts in zip(given, block.hypotheses, strict=True):
            into.extend(text.strip() for text in texts.strings())
    if right and not any(right):
        raise InputError(f"all {len(right):,} gold labels are blank: there is nothing to measure against; check the file")
    return _label_systems(
        right,
        dict(zip(files.names, given, strict=True)),
        labels,
        average,
        np.concatenate(documents) if documents else None,
        files.documents_by,
        test=test,
        resamples=resamples,
        seed=seed,
    )


def correlate_tables(
    scores: Path,
    perplexities: Path | None = None,
    *,
    model: Path | None = None,
    outputs: Sequence[Path] = (),
    x: str = "perplexity",
    y: str = "score",
    system: str = "system",
    log_x: bool | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Correlation:
    """Correlate task scores of systems with perplexities: of their language models, or of their outputs under one.

    Args:
        scores: a table (TSV, CSV, JSON, JSONL) with a row for each system, such as `lmgauge bleu --json` prints.
        perplexities: another one, such as `lmgauge eval --json` prints; its models, or the groups of one, are the systems.
            None: the numbers are in `scores` too.
        model: a language model instead; the perplexity of each of `outputs` under it.
        outputs: with `model`: the file of each system, by whose name it is known.
        x: column with perplexities.
        y: column of `scores`.
        system: column with the names of systems.
        log_x: whether Pearson's r is against the logarithm of x; None: if x is a perplexity by its name.
        seed: of the random permutations.
        threads: how many; no number depends on it.

    Raises:
        InputError: a table cannot be read, lacks a column, or no system is in both.
    """
    from lmgauge.tasks.correlation import correlate, paired_columns, read_table

    y_rows = read_table(os.fspath(scores))
    if model is not None:
        x_rows = _perplexities(model, paths_of(outputs), system, threads)
    else:
        x_rows = y_rows if perplexities is None else _by_system(read_table(os.fspath(perplexities)), system)
    tables = (os.fspath(perplexities or scores) if model is None else "", os.fspath(scores))
    names, xs, ys, notes = paired_columns(x_rows, y_rows, x, y, system=system, tables=tables)
    found = correlate(names, xs, ys, x_name=x, y_name=y, log_x=log_x, seed=seed)
    return replace(found, notes=(*notes, *found.notes))


def _by_system(rows: list[dict[str, Any]], system: str) -> list[dict[str, Any]]:
    """Rows of `eval --json` with their groups or, without, their models as systems; other rows as they are."""
    if any(system in row or "model" not in row for row in rows):
        return rows
    grouped = [row | {system: row["group"]} for row in rows if row.get("group") is not None]
    return grouped or [row | {system: row["model"]} for row in rows]


def _perplexities(model: Path, outputs: list[str], system: str, threads: int | None) -> list[dict[str, Any]]:
    from lmgauge.api.evaluate import evaluate
    from lmgauge.models.mixture.model import with_reserved
    from lmgauge.models.registry import load_model
    from lmgauge.text.streams import find_sources

    # A system may print <unk>; to the model that judges it that is a word like any other.
    (judge,) = with_reserved([load_model(os.fspath(model))], "escape")
    found = []
    for source in find_sources(outputs):
        result = evaluate(judge, source.path, threads=threads)
        found.append({system: source.label} | result.to_dict())
    return found


def align_files(
    metric: EditRate,
    *,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    notes: Callable[[str], None] | None = None,
    **reading: Any,
) -> Iterator[AlignedSegment]:
    """Align the segments of files with their references, in order, the systems of each segment one after the other.

    Args:
        metric: `lmgauge.tasks.WER(...)` or `lmgauge.tasks.CER(...)`; says the unit and how texts are normalised.
        references: a file; one reference for each segment.
        hypotheses: a file for each system.
        notes: called at the end with each thing that reading has to say.
        **reading: as `score_files`.

    Raises:
        UsageError: a segment has several references.
    """
    from lmgauge.tasks.alignment import aligned_segments

    files = ParallelFiles(paths_of(references), paths_of(hypotheses), Reading.of(reading))
    yield from aligned_segments(metric, files.names, files)
    if notes is not None:
        for note in files.notes:
            notes(note)
