"""All that a report says of runs, worked out once: diagnoses, comparisons, passages of the text, an audit of one of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import plain_values
from lmgauge.evaluation.audit.audit import why_not_about
from lmgauge.evaluation.audit.checks import Audit
from lmgauge.evaluation.comparison.comparability import NOTHING, SHARED_EVENTS
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.comparison.results import Comparison, Comparisons
from lmgauge.evaluation.diagnosis.compressors import Baseline
from lmgauge.evaluation.diagnosis.diagnose import diagnose
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.evaluation.passages import IMPROVED, LOST, WORST, ChosenPassages, choose_passages
from lmgauge.evaluation.results import Evaluation, comparison_notes
from lmgauge.evaluation.runs import Run, about, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import Cuts, TrainingWords
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice, Slices
from lmgauge.numerics.lower_bound import LowerBound, marked
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Training = Callable[[Corpus], TrainingWords]
_OF_PASSAGES = ("segment", "where", "group", "why", "bits", "events", "size", "text")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All that a report says of one run, or of several beside the first; of three or more the best is the first."""

    runs: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]  # of each run; of several only the evaluation and slices
    comparisons: Comparisons | None  # of each further run with the first; None for one run
    ranked_by: Ranking  # the figure that orders three runs or more; empty where none compares all of them
    passages: ChosenPassages  # of the one run, or of the first two where their bits may be laid side by side
    shown: tuple[str, ...]  # names of the runs whose bits the passages have
    audit: Audit | None
    text_name: str  # the files of the text that the first run scored, and how much it is; empty if not known

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, full precision; of passages where they are, what they cost and why."""
        return {
            "runs": list(self.runs),
            "ranked_by": self.ranked_by,
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
) -> Overview:
    """Work out all that a report says of runs."""
    say_progress("reading the text")
    runs = with_distinct_names(runs) if len(runs) > 1 else list(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text = corpus or remembered(runs[0], *(run for run in runs[1:] if run.text_sha256 == runs[0].text_sha256))
    training = training and _once(training)
    if training is not None and text is None:
        raise UsageError("occurrences in training need the text that was scored: name it (--text)")
    alone, examples = len(runs) == 1, max(settings.examples, segments)
    chosen = replace(settings, examples=examples) if alone else replace(settings, only=("slices",), examples=0)
    examine, diagnoses = partial(diagnose, rungs=rungs, model=model), []
    for run in runs:
        own = text if text is not None and run.text_sha256 == text.report.sha256 else None
        diagnoses.append(examine(run, chosen, corpus=own, training=training if own is not None else None))
    if audit is not None:
        _check_audit(audit, runs, diagnoses)
    comparisons, ranked_by = None, _ranking(runs, diagnoses)
    if not alone:
        say_progress("comparing")
        order = _in_order(runs, diagnoses, ranked_by)
        runs, diagnoses = [runs[i] for i in order], [diagnoses[i] for i in order]
        shared = text if text is not None and all(run.text_sha256 in ("", text.report.sha256) for run in runs) else None
        words = None if shared is None else training
        comparisons = compare(
            runs,
            examples=examples,
            corpus=shared,
            documents_of_text=documents_of_text,
            training=words,
            best_first=bool(ranked_by),
        )
    say_progress("reading passages")
    choose = partial(choose_passages, segments=segments, seed=settings.seed)
    passages, shown = _passages(runs, text, choose, diagnoses, comparisons, training)
    return Overview(
        runs=tuple(run.name for run in runs),
        diagnoses=tuple(_few_examples(diagnosis, settings.examples) for diagnosis in diagnoses),
        comparisons=None
        if comparisons is None
        else replace(comparisons, items=tuple(_few_tokens(item, settings.examples) for item in comparisons)),
        ranked_by=ranked_by,
        passages=passages,
        shown=shown,
        audit=audit,
        text_name=_text_name(runs[0], diagnoses[0].evaluation),
    )


def _text_name(run: Run, result: Evaluation) -> str:
    read = run.settings.get("text", {})
    paths = [PurePath(path).name for path in read.get("paths", []) if path != "-"] if isinstance(read, dict) else []
    named = [", ".join(paths[:3]) + f" and {len(paths) - 3} more" * (len(paths) > 3)] if paths else []
    return ": ".join([*named, f"{result.segments:,} segments" + f", {result.bytes or 0:,} bytes" * bool(result.bytes)])


Ranking = Literal["", "perplexity", "bits_per_byte"]


def _ranking(runs: Sequence[Run], diagnoses: Sequence[Diagnosis]) -> Ranking:
    # Figure by which three runs or more of one text are ranked.
    if len(runs) < 3 or len({run.text_sha256 for run in runs}) > 1 or not runs[0].text_sha256:
        return ""
    notes = comparison_notes([diagnosis.evaluation for diagnosis in diagnoses])
    return "perplexity" if not notes else "" if any("nor may" in note for note in notes) else "bits_per_byte"


def _in_order(runs: Sequence[Run], diagnoses: Sequence[Diagnosis], ranked_by: Ranking) -> list[int]:
    # Numbers of the runs: the best, then the others, the better first or in the order of their steps. A lower bound or an
    # infinite figure has no rank; where no figure ranks, runs stay as they are named, or in the order of their steps.
    steps = step_numbers([run.name for run in runs]) if len(runs) > 2 else []
    values = [getattr(diagnosis.evaluation, ranked_by) if ranked_by else None for diagnosis in diagnoses]
    keys = [math.inf if value is None or isinstance(value, LowerBound) else value for value in values]
    ranks = sorted(range(len(runs)), key=keys.__getitem__)
    if not steps:
        return ranks
    by_step = sorted(ranks, key=steps.__getitem__)
    return by_step if min(keys) == math.inf else [ranks[0], *(i for i in by_step if i != ranks[0])]


_STEPS = re.compile(r"(?:step|steps|epoch|checkpoint|ckpt|iter|iteration|update)s?[-_ =.]*$", re.IGNORECASE)


def step_numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers of steps, epochs or checkpoints by which names differ; empty where they differ by anything else."""
    parts = [re.split(r"([0-9]{1,15})", name) for name in names]
    if len({len(part) for part in parts}) != 1:
        return []
    differ = [i for i, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    if len(differ) != 1 or differ[0] % 2 == 0 or not _STEPS.search(parts[0][differ[0] - 1]):
        return []
    return [int(part[differ[0]]) for part in parts]


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
        cuts = Cuts(text, words)
    else:
        own = text if text is not None and runs[0].text_sha256 == text.report.sha256 else None
        text = own
        named = {WORST: _indices(diagnoses[0].worst_segments)} if comparisons is None else {}
        cuts = Cuts(text, words, len(diagnoses[0].evaluation.events_by_matched_order))
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
class GroupMatrix:
    """Models by groups of the text: of each model its slice of each group, and that of its comparison with the first."""

    own: tuple[dict[str, Slice], ...]
    paired: tuple[dict[str, Slice], ...]  # without a difference for the first, and where the two may not be compared

    def bits(self, model: int) -> list[float | None]:
        """Return bits per byte of each group; infinite with an event of probability zero."""
        return [row.bits_per_unit[0] for row in self.own[model].values()]

    def mean_bits(self, model: int) -> float | None:
        """Return the mean over groups, each counting alike; None with an infinite one."""
        values = self.bits(model)
        known = [value for value in values if value is not None and math.isfinite(value)]
        mean = math.fsum(known) / len(known) if known and len(known) == len(values) else None
        return marked(mean, bound=any(isinstance(value, LowerBound) for value in values))

    def p_values(self, model: int) -> list[float | None]:
        """Return those of the differences, adjusted for the groups (Holm) and for the number of models (Bonferroni)."""
        adjusted = [row.p_value_holm for row in self.paired[model].values()]
        return [None if value is None else min(1.0, value * (len(self.own) - 1)) for value in adjusted]


_UNPAIRED = Slice("", segments=0, ranges=0, size=0, bits=(), bits_per_unit=())


def group_matrix(diagnoses: Sequence[Diagnosis], comparisons: Comparisons | None) -> GroupMatrix | None:
    """Return models by groups, from what was worked out of each model and of each pair."""
    # -> None where the models do not have the same two groups or more, in bytes.
    own = tuple(_groups(diagnosis.slices) for diagnosis in diagnoses)
    sizes = [{label: row.size for label, row in rows.items()} for rows in own]
    if len(sizes[0]) < 2 or any(one != sizes[0] for one in sizes):
        return None
    paired = [{}, *(_groups(comparison.slices) for comparison in comparisons or ())]
    return GroupMatrix(own, tuple({label: rows.get(label, _UNPAIRED) for label in own[0]} for rows in paired))


def _groups(ways: Sequence[Slices]) -> dict[str, Slice]:
    return {row.label: row for cut in ways if cut.name == "group" and cut.unit == "byte" for row in cut.rows}
