"""Precision, recall and F1 of labeled outputs, from counts of each label: right, predicted, gold.

Source: van Rijsbergen (1979), "Information Retrieval", 2nd ed., chapter 7; the digits are those of scikit-learn's
`precision_recall_fscore_support`, with 0 for a quotient without a denominator.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from lmgauge.base.choices import Average
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.paths import refuse_file_names
from lmgauge.base.result_list import Result, Tabled
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.metrics.protocol import Floats, ScoredSums, Statistics
from lmgauge.tasks.parallel import ParallelFiles, Path
from lmgauge.tasks.settings import ComparisonSettings, Reading
from lmgauge.tasks.significance import IndependentRows
from lmgauge.tasks.texts import Integers, Texts

LARGEST_TABLE = 1 << 30
"""Bytes of statistics that are made at once."""
_TAKES_FILES = "lmgauge.tasks.score_label_files(gold=..., predicted=...)"


def precisions_recalls_f1(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return TP / predicted, TP / gold and F1 = 2 TP / (predicted + gold), 0 to 1; 0 where the denominator is."""
    # counts: float64 [..., 3]: true positives, times predicted and times gold -> float64 [...] each.
    # precisions_recalls_f1([[1.0, 1.0, 2.0]]) -> [1.0], [0.5], [2 / 3]
    right, predicted, gold = np.moveaxis(np.asarray(counts), -1, 0)
    pairs = ((right, predicted), (right, gold), (2 * right, predicted + gold))
    precision, recall, f1 = (np.divide(a, b, out=np.zeros(np.shape(b)), where=b > 0) for a, b in pairs)
    return precision, recall, f1


def f1_scores(sums: Floats, *, weighted: bool = False) -> Floats:
    """Return the mean of the labels' F1, 0 to 1: all alike, or weighted by how often each is gold."""
    # sums: float64 [rows, 3 * labels]: true positives, times predicted and times gold, of each label.
    # -> float64 [rows].
    # float(f1_scores([[1.0, 1.0, 2.0, 1.0, 2.0, 1.0]])[0]) == 2 / 3 -> True
    counts = np.reshape(sums, (len(sums), np.shape(sums)[1] // 3, 3))
    weights = _weights(counts[..., 2]) if weighted else np.ones(counts.shape[:2])
    mean: Floats = (weights * precisions_recalls_f1(counts)[2]).sum(axis=1) / weights.sum(axis=1)
    return mean


def _weights(gold: Floats) -> Floats:
    return np.where(gold.any(axis=-1, keepdims=True), gold, 1.0)  # of nothing that is gold all alike, as in scikit-learn


@dataclass(frozen=True, repr=False)
class LabelScores(Tabled):
    """Precision, recall and F1 of each label and over all, 0 to 1, as scikit-learn has them."""

    labels: tuple[str, ...]  # that count, in this order in what follows
    precision: tuple[float, ...]  # of each label: how often it is right where it is predicted
    recall: tuple[float, ...]  # of each label: how often it is predicted where it is right
    f1: tuple[float, ...]  # of each label: their harmonic mean
    support: tuple[int, ...]  # how often each label is gold
    predicted: tuple[int, ...]  # how often each label is predicted
    macro: tuple[float, float, float]  # precision, recall and F1 averaged over labels, all alike
    micro: tuple[float, float, float]  # the same of the sums over labels
    weighted: tuple[float, float, float]  # averaged over labels, each as often as it is gold
    accuracy: float  # share of segments whose label is right, whatever `labels` counts
    segments: int
    notes: tuple[str, ...]  # where a quotient had no denominator and what stands for it
    signature: str  # all choices that move the numbers

    def _in_brief(self) -> str:
        f1 = f"{self.macro[2]:.4f} macro, {self.micro[2]:.4f} micro, {self.weighted[2]:.4f} weighted"
        return f"F1 {f1}, accuracy {self.accuracy:.4f}"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each label: label, precision, recall, f1, support, predicted."""
        columns = ("label", "precision", "recall", "f1", "support", "predicted")
        parts = (self.labels, self.precision, self.recall, self.f1, self.support, self.predicted)
        return [dict(zip(columns, row, strict=True)) for row in zip(*parts, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, the averages flat ("macro_f1"), the labels as rows."""
        averages = {"macro": self.macro, "micro": self.micro, "weighted": self.weighted}
        flat = {
            f"{average}_{name}": value
            for average, values in averages.items()
            for name, value in zip(("precision", "recall", "f1"), values, strict=True)
        }
        counts = {"accuracy": self.accuracy, "segments": self.segments}
        return flat | counts | {"notes": list(self.notes), "signature": self.signature, "labels": self.to_rows()}


def label_scores(gold: Sequence[str], predicted: Sequence[str], *, labels: Sequence[str] | None = None) -> LabelScores:
    """Return precision, recall and F1, as scikit-learn does.

    Source: van Rijsbergen (1979), "Information Retrieval", chapter 7.

    Args:
        gold: the right label of each segment.
        predicted: a system's label of each segment.
        labels: that count (others are then neither right nor wrong, such as "O" of tagged words); None: all there are.

    Raises:
        InputError: the lists differ in length, are empty, or hold something that is not a string.
        UsageError: labels are repeated or none.

    Example:
        >>> scores = label_scores(["cat", "dog", "cat"], ["cat", "cat", "cat"])
        >>> scores.labels, scores.recall, round(scores.accuracy, 3)
        (('cat', 'dog'), (1.0, 0.0), 0.667)
    """
    check_labels(gold, predicted)
    counted = tuple(sorted({*gold, *predicted})) if labels is None else tuple(labels)
    _check_counted(counted)
    matches = (where[where >= 0] for where in _places(gold, predicted, counted))
    counts = np.stack([np.bincount(where, minlength=len(counted)) for where in matches], axis=1)
    sums = counts.astype(np.float64)
    figures = precision, recall, f1 = precisions_recalls_f1(sums)
    weights = _weights(sums[:, 2])
    return LabelScores(
        labels=counted,
        precision=tuple(precision.tolist()),
        recall=tuple(recall.tolist()),
        f1=tuple(f1.tolist()),
        support=tuple(counts[:, 2].tolist()),
        predicted=tuple(counts[:, 1].tolist()),
        macro=_three(values.mean() for values in figures),
        micro=_three(precisions_recalls_f1(sums.sum(axis=0))),
        weighted=_three((weights * values).sum() / weights.sum() for values in figures),
        accuracy=sum(map(operator.eq, gold, predicted)) / len(gold),
        segments=len(gold),
        notes=_notes(counted, Counter(gold), Counter(predicted)),
        signature=_signature(counted),
    )


def _three(values: Iterable[Any]) -> tuple[float, float, float]:
    precision, recall, f1 = map(float, values)
    return precision, recall, f1


def _places(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> list[Integers]:
    # Of each segment which label is right and predicted, predicted, and gold, as its number; -1: none that counts.
    codes = {label: code for code, label in enumerate(labels)}
    right, answers = (np.fromiter((codes.get(one, -1) for one in given), np.int64, len(gold)) for given in (gold, predicted))
    return [np.where(right == answers, right, -1), answers, right]


@dataclass(frozen=True, repr=False)
class F1Score(Result):
    """One F1 of one system, with all figures of its labels where they were made."""

    metric: str  # F1 and the kind of average
    score: float  # 0 to 1
    signature: str  # all choices that move the number
    labels: LabelScores | None = None  # precision, recall and F1 of each label, and all averages

    def __str__(self) -> str:
        return f"{self.metric}|{self.signature} = {self.score:.4f}"

    def _in_brief(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the score, and the figures of the report, flat."""
        labels = {} if self.labels is None else self.labels.to_dict()
        return labels | {"metric": self.metric, "score": self.score, "signature": self.signature}


@dataclass(frozen=True)
class F1(ScoredSums):
    """F1 of labeled outputs as counts that add up, for intervals and tests of several systems from the same resamples.

    Attributes:
        labels: that count.
        average: "macro" (all labels alike), "weighted" (each as often as it is gold) or "micro" (of the sums over labels).
    """

    labels: tuple[str, ...]
    average: Average = "macro"

    percent: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reference_columns: ClassVar[slice] = slice(2, None, 3)

    def __post_init__(self) -> None:
        if self.average not in get_args(Average):
            raise UsageError(f"average {self.average!r}: give macro, micro or weighted")
        _check_counted(self.labels)

    @property
    def name(self) -> str:
        return f"{self.average} F1"

    @property
    def columns(self) -> tuple[str, ...]:
        of = [""] if self.average == "micro" else [f"{label}: " for label in self.labels]
        return tuple(f"{label}{count}" for label in of for count in ("true positives", "predicted", "gold"))

    def signature(self, choices: Mapping[str, str] | None = None) -> str:
        """Return all choices that move the number, after those of the caller."""
        # F1(("a", "b")).signature({"seed": "1"}).rpartition("|")[0] -> 'seed:1|average:macro|labels:2|zero:0'
        keys = "".join(f"{key}:{value}|" for key, value in (choices or {}).items())
        return f"{keys}average:{self.average}|{_signature(self.labels)}"

    def statistics_of(self, gold: Sequence[str], predicted: Sequence[str]) -> Statistics:
        """Count true positives, times predicted and times gold, of each label in each segment."""
        # -> int64 [segments, columns], columns as `columns`.
        # F1(("a", "b")).statistics_of(["a", "b"], ["a", "a"]) -> [[1, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1]]
        check_labels(gold, predicted)
        columns = len(self.columns)
        if 8 * len(gold) * columns > LARGEST_TABLE:
            raise UsageError(
                f"{self.average} F1 of {len(self.labels):,} labels over {len(gold):,} segments needs a table of "
                f"{8 * len(gold) * columns / 2**30:,.1f} GiB: count fewer labels, take the micro average, which needs three "
                "columns, or `label_scores`, which has no interval"
            )
        out = np.zeros((len(gold), columns), dtype=np.int64)
        for column, matches in enumerate(_places(gold, predicted, self.labels)):
            at = np.flatnonzero(matches >= 0)
            label = np.zeros_like(at) if self.average == "micro" else matches[at]
            out[at, 3 * label + column] = 1
        return out

    def scores(self, sums: Floats) -> Floats:
        return f1_scores(sums, weighted=self.average == "weighted")

    def score(self, sums: Statistics, references: int | None = 1, choices: Mapping[str, str] | None = None) -> F1Score:
        value = float(self.scores(np.asarray(sums, dtype=np.float64)[None])[0])
        return F1Score(self.name, value, self.signature(choices))


def check_labels(gold: Sequence[str], predicted: Sequence[str]) -> None:
    """Refuse what are not two lists of labels, as many in both.

    >>> check_labels(["noun", "verb"], ["noun", "noun"])
    """
    for name, labels in (("gold", gold), ("predicted", predicted)):
        if isinstance(labels, str):
            refuse_file_names(labels, _TAKES_FILES)
            raise InputError(f"{name} is one string: give a list with a label for each segment")
        if not isinstance(labels, Sized):
            raise InputError(f"{name} is {type(labels).__name__}, not a list with a label for each segment")
        odd = next((i for i, label in enumerate(labels) if not isinstance(label, str)), None)
        if odd is not None:
            kind = type(labels[odd]).__name__
            raise InputError(f"{name} label {odd + 1} is {labels[odd]!r} ({kind}), not a string: convert labels with str()")
    if len(gold) != len(predicted):
        raise InputError(
            f"{len(gold):,} gold labels and {len(predicted):,} predicted ones: there must be one of each a segment"
        )
    if not len(gold):
        raise InputError("there are no labels: nothing can be measured")
    refuse_file_names([*gold, *predicted], _TAKES_FILES)


def _check_counted(labels: tuple[str, ...]) -> None:
    if isinstance(labels, str) or not labels:
        raise UsageError(f"labels {labels!r}: give a list of one label or more")
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise UsageError(f"label {repeated[0]!r} is given twice; give each once")


def _notes(labels: tuple[str, ...], gold: Counter[str], predicted: Counter[str]) -> tuple[str, ...]:
    unpredicted = [label for label in labels if not predicted[label]]
    absent = [label for label in labels if not gold[label]]
    neither = [label for label in absent if not predicted[label]]
    ignored = sorted((gold.keys() | predicted.keys()) - set(labels))
    remarks = [
        (unpredicted, "never predicted, precision set to 0"),
        (absent, "never gold, recall set to 0"),
        (neither, "neither gold nor predicted, F1 set to 0"),
        (ignored, "not counted"),
    ]
    notes = [f"{what}: {first_few(these)}" for these, what in remarks if these]
    if gold[""] or predicted[""]:
        notes.append(f"nothing is a label too: gold {gold['']:,} times, predicted {predicted['']:,} times")
    return tuple(notes)


def _signature(labels: tuple[str, ...]) -> str:
    return f"labels:{len(labels)}|zero:0|lmgauge:{NUMBERS_VERSION}"


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
    """Return F1 of all systems, with the figures of each label."""
    for of_system in systems.values():
        check_labels(gold, of_system)
    chosen = sorted({*gold}.union(*systems.values())) if labels is None else labels
    reports = {name: label_scores(gold, of_system, labels=chosen) for name, of_system in systems.items()}
    metric = F1(tuple(chosen), average)
    rows = IndependentRows.of([metric.statistics_of(gold, of_system) for of_system in systems.values()], codes, documents_by)
    notes = [f"{name}: {note}" for name, report in reports.items() for note in report.notes]
    result = compare_systems(metric, list(systems), rows, 1, notes=notes, settings=settings)
    items = (
        replace(item, score=F1Score(metric.name, item.score.score, item.score.signature, reports[item.system]))
        for item in result
    )
    return replace(result, items=tuple(items))
