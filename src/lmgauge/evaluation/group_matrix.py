"""Models by groups of the text: what each costs in each group, how sure that is, and how far it is from a chosen model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmgauge.evaluation.comparison.results import Comparisons
from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.slicing.sums import Slice
from lmgauge.numerics.lower_bound import LowerBound, marked


@dataclass(frozen=True)
class GroupCell:
    """A model in a group."""

    # per byte; infinite with an event of probability zero; a `LowerBound` where the model meets unseen words
    bits: float | None
    interval: tuple[float, float] | None
    # from the first model, bits per byte; None for the first, and where the two may not be compared
    difference: float | None = None
    difference_interval: tuple[float, float] | None = None  # 95 %, low and high, of the difference
    p_value: float | None = None  # two-sided, adjusted for the groups (Holm) and for the number of models (Bonferroni)


@dataclass(frozen=True)
class GroupMatrix:
    """Models by groups."""

    runs: tuple[str, ...]  # names of the models; the others are compared with the first
    groups: tuple[str, ...]
    sizes: tuple[int, ...]  # bytes of each group
    cells: tuple[tuple[GroupCell, ...], ...]  # of each model, of each group
    macro: tuple[float | None, ...]  # of each model the mean over groups, each counting alike; None with an infinite one
    weighted: tuple[float | None, ...]  # of each model bits per byte of the whole text: groups count by their bytes
    weighted_intervals: tuple[tuple[float, float] | None, ...]


def group_matrix(runs: Sequence[str], diagnoses: Sequence[Diagnosis], comparisons: Comparisons | None) -> GroupMatrix | None:
    """Return models by groups, from what was worked out of each model and of each pair."""
    # -> None where the models do not have the same two groups or more, in bytes.
    of_runs = [_groups(diagnosis) for diagnosis in diagnoses]
    sizes = {label: row.size for label, row in of_runs[0].items()}
    if len(sizes) < 2 or any({label: row.size for label, row in rows.items()} != sizes for rows in of_runs):
        return None
    differences: list[dict[str, Slice]] = [{}]
    for comparison in comparisons or ():
        slices = next((cut for cut in comparison.slices if cut.name == "group" and cut.unit == "byte"), None)
        differences.append({row.label: row for row in slices.rows} if slices is not None else {})
    cells = tuple(
        tuple(_cell(rows[label], gaps.get(label), max(1, len(runs) - 1)) for label in sizes)
        for rows, gaps in zip(of_runs, differences, strict=True)
    )
    return GroupMatrix(
        runs=tuple(runs),
        groups=tuple(sizes),
        sizes=tuple(sizes.values()),
        cells=cells,
        macro=tuple(_mean([cell.bits for cell in own]) for own in cells),
        weighted=tuple(diagnosis.evaluation.bits_per_byte for diagnosis in diagnoses),
        weighted_intervals=tuple(diagnosis.interval for diagnosis in diagnoses),
    )


def _groups(diagnosis: Diagnosis) -> dict[str, Slice]:
    slices = next((cut for cut in diagnosis.slices if cut.name == "group" and cut.unit == "byte"), None)
    return {} if slices is None else {row.label: row for row in slices.rows}


def _cell(own: Slice, gap: Slice | None, comparisons: int) -> GroupCell:
    bits = own.bits_per_unit[0]
    if gap is None:
        return GroupCell(bits, own.interval)
    p_value = None if gap.p_value_holm is None else min(1.0, gap.p_value_holm * comparisons)
    return GroupCell(bits, own.interval, gap.difference, gap.interval, p_value)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    mean = math.fsum(known) / len(known) if known and len(known) == len(values) else None
    return marked(mean, bound=any(isinstance(value, LowerBound) for value in values))
