"""All that a report says of runs, worked out once: diagnoses, comparisons, passages of the text, an audit of one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.audit.results import Audit
from lmgauge.evaluation.audit.runs import why_not_about
from lmgauge.evaluation.comparison.comparability import NOTHING, SHARED_EVENTS
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.comparison.results import Comparison, Comparisons
from lmgauge.evaluation.diagnosis.baselines import Baseline
from lmgauge.evaluation.diagnosis.diagnose import diagnose
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.evaluation.passages import IMPROVED, LOST, WORST, ChosenPassages, choose_passages
from lmgauge.evaluation.runs import Run, about, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import EventCuts, SpanCuts, TrainingWords, WordCounts
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice
from lmgauge.numerics.lower_bound import LowerBound, marked
from lmgauge.result_columns import plain_values
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Training = Callable[[Corpus], TrainingWords]
_OF_PASSAGES = ("segment", "where", "group", "why", "bits", "events", "size", "text")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All that a report says of one run, or of several beside the first."""

    runs: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]  # of each run; of several only the evaluation and slices
    comparisons: Comparisons | None  # of each further run with the first; None for one run
    passages: ChosenPassages  # of the one run, or of the first two where their bits may be laid side by side
    shown: tuple[str, ...]  # names of the runs whose bits the passages have
    audit: Audit | None
    text_at_hand: bool  # the text that was scored could be read

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, full precision; of passages where they are, what they cost and why."""
        return {
            "runs": list(self.runs),
            "diagnoses": [diagnosis.to_dict() for diagnosis in self.diagnoses],
            "comparisons": None if self.comparisons is None else self.comparisons.to_dict(),
            "segment_scores": plain_values(self.passages.scores),
            "passages": [{name: getattr(passage, name) for name in _OF_PASSAGES} for passage in self.passages.items],
            "passages_of": list(self.shown),
            "audit": None if self.audit is None else self.audit.to_dict(),
        }


def overview(
    runs: Sequence[Run],
    settings: DiagnosisSettings,
    *,
    segments: int,
    corpus: Corpus | None = None,
    documents_of_text: bool = False,
    training: Training | None = None,
    rungs: Callable[[Corpus], Sequence[Baseline]] | None = None,
    model: LanguageModel | None = None,
    audit: Audit | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Overview:
    """Work out all that a report says of runs."""
    progress("reading the text")
    runs = with_distinct_names(runs) if len(runs) > 1 else list(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text = corpus or remembered(runs[0], *(run for run in runs[1:] if run.text_sha256 == runs[0].text_sha256))
    training = training and _once(training)
    if training is not None and text is None:
        raise UsageError("occurrences in training need the text that was scored: name it (--text)")
    alone, examples = len(runs) == 1, max(settings.examples, segments)
    chosen = replace(settings, examples=examples) if alone else replace(settings, only=("slices",), examples=0)
    examine, diagnoses = partial(diagnose, rungs=rungs, model=model, progress=progress), []
    for run in runs:
        own = text if text is not None and run.text_sha256 == text.report.sha256 else None
        diagnoses.append(examine(run, chosen, corpus=own, training=training if own is not None else None))
    if audit is not None:
        _check_audit(audit, runs, diagnoses)
    comparisons = None
    if not alone:
        progress("comparing")
        shared = text if text is not None and all(run.text_sha256 in ("", text.report.sha256) for run in runs) else None
        counts = None if training is None or shared is None else lambda scored: _counts_of(training(scored))
        comparisons = compare(runs, examples=examples, corpus=shared, documents_of_text=documents_of_text, training=counts)
    progress("reading passages")
    choose = partial(choose_passages, segments=segments, seed=settings.seed)
    passages, shown = _passages(runs, text, choose, diagnoses, comparisons, training)
    return Overview(
        runs=tuple(run.name for run in runs),
        diagnoses=tuple(_few_examples(diagnosis, settings.examples) for diagnosis in diagnoses),
        comparisons=None
        if comparisons is None
        else replace(comparisons, items=tuple(_few_tokens(item, settings.examples) for item in comparisons)),
        passages=passages,
        shown=shown,
        audit=audit,
        text_at_hand=text is not None,
    )


def _check_audit(audit: Audit, runs: Sequence[Run], diagnoses: Sequence[Diagnosis]) -> None:
    reasons = [why_not_about(audit, diagnosis.evaluation) for diagnosis in diagnoses]
    if all(reasons):
        of = runs[0].path if len(runs) == 1 else f"any of these {len(runs)} runs"
        raise InputError(f"the audit is not of {of}: {reasons[0]}")


def _once(training: Training) -> Training:
    seen: dict[int, TrainingWords] = {}

    def read(text: Corpus) -> TrainingWords:
        if id(text) not in seen:
            seen[id(text)] = training(text)
        return seen[id(text)]

    return read


def _counts_of(words: TrainingWords) -> WordCounts:
    return lambda block: np.asarray(words(block)[0], np.int64)


def _passages(
    runs: Sequence[Run],
    text: Corpus | None,
    choose: Callable[..., ChosenPassages],
    diagnoses: Sequence[Diagnosis],
    comparisons: Comparisons | None,
    training: Training | None,
) -> tuple[ChosenPassages, tuple[str, ...]]:
    # Passages of the first two runs where their bits may be laid side by side, else of the first; and of which.
    pair = comparisons is not None and _side_by_side(comparisons[0], runs, text)
    shown = list(runs[: 1 + pair])
    averages = [_average(diagnosis) for diagnosis in diagnoses[: len(shown)]]
    words = None if training is None or text is None else training(text)
    if pair and comparisons is not None:
        first = comparisons[0]
        named = {LOST: _indices(first.segments_lost), IMPROVED: _indices(first.segments_won)}
        cuts: EventCuts | SpanCuts = SpanCuts(text, None if words is None else _counts_of(words))
    else:
        own = text if text is not None and runs[0].text_sha256 == text.report.sha256 else None
        text = own
        named = {WORST: _indices(diagnoses[0].worst_segments)} if comparisons is None else {}
        cuts = EventCuts(text, words, len(diagnoses[0].evaluation.events_by_matched_order))
    return choose(shown, text, cuts=cuts, averages=averages, named=named), tuple(run.name for run in shown)


def _side_by_side(comparison: Comparison, runs: Sequence[Run], text: Corpus | None) -> bool:
    if comparison.part in (NOTHING, SHARED_EVENTS):
        return False
    return text is None or all(run.text_sha256 in ("", text.report.sha256) for run in runs[:2])


def _indices(examples: Sequence[Example]) -> list[int]:
    return [example.segment for example in examples]


def _average(diagnosis: Diagnosis) -> float:
    # Bits per byte of a run without its events of probability zero; 0 without the text.
    evaluation = diagnosis.evaluation
    return finite_bits(evaluation) / evaluation.bytes if evaluation.bytes else 0.0


def _few_examples(diagnosis: Diagnosis, count: int) -> Diagnosis:
    # Diagnosis with as many examples as it has if nobody asks; of segments all, which lead to passages.
    return replace(
        diagnosis,
        costly_tokens=diagnosis.costly_tokens[:count],
        worst_tokens=diagnosis.worst_tokens[:count],
        impossible_tokens=diagnosis.impossible_tokens[:count],
        unseen_words=diagnosis.unseen_words[:count],
    )


def _few_tokens(comparison: Comparison, count: int) -> Comparison:
    return replace(comparison, tokens_lost=comparison.tokens_lost[:count], tokens_won=comparison.tokens_won[:count])


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
