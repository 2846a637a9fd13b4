"""The functions of `lmgauge.tasks` for labels: F1 of lists and of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from lmgauge.choices import Average
from lmgauge.errors import InputError
from lmgauge.numerics.grouped_sums import document_sums
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.labels import F1, F1Score, check_labels, label_scores
from lmgauge.tasks.parallel import ParallelFiles, Path
from lmgauge.tasks.scoring import document_codes
from lmgauge.tasks.settings import ComparisonSettings, Reading
from lmgauge.tasks.texts import Integers
from lmgauge.text.labels import BY_NAMES


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
