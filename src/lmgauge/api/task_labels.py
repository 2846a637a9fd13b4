"""The functions of `lmgauge.tasks` for labels: F1 of lists and of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lmgauge.api.types import PathLike
from lmgauge.choices import Average
from lmgauge.declaration import verb
from lmgauge.errors import InputError
from lmgauge.tasks.settings import ComparisonSettings, Reading

if TYPE_CHECKING:
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.labels import F1Score
    from lmgauge.tasks.texts import Integers


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
    """Return precision, recall and F1 of labeled outputs through scikit-learn, with intervals, each against the first.

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
        MissingExtraError: scikit-learn is not installed.

    Example:
        >>> systems = score_labels(gold=["cat", "dog", "cat"], predicted={"a": ["cat", "cat", "cat"]})
        >>> round(systems[0].score.score, 3)
        0.4
    """
    from lmgauge.numerics.intervals import UNKNOWN
    from lmgauge.tasks.scoring import document_codes
    from lmgauge.text.labels import BY_NAMES

    known = (None, UNKNOWN) if documents is None else (document_codes(documents, len(gold)), BY_NAMES)
    return _label_systems(gold, predicted, labels, average, known, settings)


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
        UsageError, MissingExtraError: as `score_labels`.

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
    import numpy as np

    from lmgauge.tasks.parallel import ParallelFiles

    # A mark before the first label would make it a label of its own.
    files = ParallelFiles(gold, predicted, replace(reading, keep_bom=False))
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
    settings: ComparisonSettings,
) -> Systems:
    from lmgauge.numerics.grouped_sums import document_sums
    from lmgauge.tasks.comparison import compare_systems
    from lmgauge.tasks.draws import IndependentRows
    from lmgauge.tasks.metrics.labels import F1, check_labels, label_scores

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
    items = (replace(item, score=replace(cast("F1Score", item.score), labels=reports[item.system])) for item in result)
    return replace(result, items=tuple(items))
