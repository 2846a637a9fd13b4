"""Systems that label segments: labels from files, and F1 of all systems compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from lmgauge.choices import Average
from lmgauge.errors import InputError
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.labels import F1, F1Score, check_labels, label_scores
from lmgauge.tasks.parallel import ParallelFiles, Path
from lmgauge.tasks.settings import ComparisonSettings, Reading
from lmgauge.tasks.texts import Integers, Texts


def read_labels(
    gold: Path, predicted: Path | Iterable[Path], reading: Reading
) -> tuple[list[str], dict[str, list[str]], Integers | None, str]:
    """Return the gold labels, those of each system, the number of each document, and what tells documents apart."""
    # A byte order mark before the first label would make it a label of its own.
    files = ParallelFiles(gold, predicted, replace(reading, keep_bom=False))
    blocks = list(files)
    right = _stripped(block.references.texts for block in blocks)
    if right and not any(right):
        raise InputError(f"all {len(right):,} gold labels are blank: there is nothing to measure against; check the file")
    outputs = {name: _stripped(block.hypotheses[k] for block in blocks) for k, name in enumerate(files.names)}
    codes = [block.documents for block in blocks if block.documents is not None]
    return right, outputs, np.concatenate(codes) if codes else None, files.documents_by


def _stripped(parts: Iterable[Texts]) -> list[str]:
    return [text.strip() for part in parts for text in part.strings()]


def compare_labels(
    gold: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    labels: Sequence[str] | None,
    average: Average,
    codes: Integers | None,
    documents_by: str,
    settings: ComparisonSettings,
) -> Systems:
    """Return F1 of all systems, with what scikit-learn says of each label."""
    for of_system in systems.values():
        check_labels(gold, of_system)
    chosen = sorted({*gold}.union(*systems.values())) if labels is None else labels
    reports = {name: label_scores(gold, of_system, labels=chosen) for name, of_system in systems.items()}
    metric = F1(tuple(chosen), average)
    rows = IndependentRows.of([metric.statistics_of(gold, of_system) for of_system in systems.values()], codes, documents_by)
    notes = [f"{name}: {note}" for name, report in reports.items() for note in report.notes]
    result = compare_systems(metric, list(systems), rows, 1, notes=notes, settings=settings)
    items = (replace(item, score=replace(cast("F1Score", item.score), labels=reports[item.system])) for item in result)
    return replace(result, items=tuple(items))
