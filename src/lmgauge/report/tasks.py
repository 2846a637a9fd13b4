"""Systems scored on a task: the scores, how sure they are, their parts, groups; alignments, n-best lists, correlations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from lmgauge.base.choices import Average
from lmgauge.numerics.intervals import Interval
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, listed, p_equals, percent
from lmgauge.tasks.alignment import AlignedSegment, Alignment, ErrorCounts
from lmgauge.tasks.comparison import Systems
from lmgauge.tasks.correlation import PERMUTATIONS, Correlation
from lmgauge.tasks.metrics.error_rates import ErrorRates
from lmgauge.tasks.metrics.labels import F1Score, LabelScores
from lmgauge.tasks.metrics.protocol import TaskScore
from lmgauge.tasks.nbest.rescoring import Rescored
from lmgauge.tasks.significance import SIGNIFICANT, STUDENT


def aligned_blocks(segments: Iterable[AlignedSegment]) -> Iterator[doc.Block]:
    """Yield the segments that have an error, one after the other."""
    for segment in segments:
        counts = segment.alignment
        if counts.substitutions + counts.deletions + counts.insertions:
            yield doc.Text(
                f"segment {segment.segment + 1:,} of {segment.system}: {counts.substitutions} substituted, "
                f"{counts.deletions} deleted, {counts.insertions} inserted, {counts.hits} right"
            )
            yield doc.Aligned(counts)


def alignment_blocks(alignment: Alignment) -> doc.Document:
    """Return one alignment."""
    return (doc.Aligned(alignment),)


def error_blocks_of_one(errors: ErrorCounts) -> doc.Document:
    """Return all errors, the most frequent of each kind first."""
    return tuple(_errors("Errors, most frequent first", errors.most_frequent()))


def error_blocks(by_system: Mapping[str, ErrorCounts], count: int) -> doc.Document:
    """Return the most frequent errors of each system."""
    return tuple(
        block
        for system, counts in by_system.items()
        for block in _errors(f"Most frequent errors of {system}", counts.most_frequent(count))
    )


def _errors(title: str, rows: list[tuple[int, str, str]]) -> Iterator[doc.Block]:
    if not rows:
        yield from (doc.Heading(title), doc.Text("none"))
        return
    times, kinds, units = zip(*rows, strict=True)
    columns = (doc.numbers("times", times, form="count"), doc.labels("error", kinds), doc.labels("what", units))
    yield doc.Table(columns, title)


# Parts of a score in the order of the columns: the key in the score's dict, title, rule, digits and drop priority.
_PARTS: tuple[tuple[str, str, doc.Form, int, int], ...] = (
    ("brevity_penalty", "BP", "number", 3, 3),
    ("ratio", "ratio", "number", 3, 2),
    ("precision", "precision", "number", 2, 1),
    ("recall", "recall", "number", 2, 2),
    ("macro_precision", "precision (macro)", "percent", 2, 2),
    ("macro_recall", "recall (macro)", "percent", 2, 1),
    ("accuracy", "accuracy", "percent", 2, 4),
    ("num_edits", "edits", "count", 0, 2),
    ("ref_length", "ref. words", "count", 0, 1),
    ("substitutions", "subs", "count", 0, 6),
    ("deletions", "dels", "count", 0, 5),
    ("insertions", "ins", "count", 0, 4),
    ("mer", "MER", "percent", 2, 3),
    ("wil", "WIL", "percent", 2, 2),
)


def blocks(systems: Systems, *, width: int = 2) -> doc.Document:
    """Return a row for each system, a table of groups, what a reader must know, and the signature."""
    better = "" if systems.higher_is_better else "; lower is better"
    bold = (systems.items.index(systems.best),) if len(systems) > 1 else ()
    columns = (
        doc.labels("system", [item.system for item in systems]),
        doc.numbers(_title(systems), [systems.scale * item.score.score for item in systems], width),
        *_drawn_columns(systems, width),
        *_part_columns([item.score for item in systems]),
    )
    table = doc.Table(columns, f"{systems.metric}, {counted(systems.segments, 'segment')}{better}", bold)
    signature = doc.Signature(f"{systems.metric}|{systems.signature}")
    return (
        table,
        *_charts(systems),
        *_groups(systems, width),
        *_labels(systems),
        *doc.notes(_footnotes(systems)),
        signature,
    )


def blocks_of_several(several: Sequence[Systems], *, width: int = 2) -> doc.Document:
    """Return one table of systems scored by several metrics, what a reader must know, and the signatures."""
    columns = [doc.labels("system", [item.system for item in several[0]])]
    for i, systems in enumerate(several):
        columns.append(doc.numbers(_title(systems), [systems.scale * item.score.score for item in systems], width))
        drawn = (column for column in _drawn_columns(systems, width) if column.title != "difference")
        # Where there is no room, what the last metric has goes before the same of the first.
        titled = [replace(column, title=f"{systems.metric}, {column.title}") for column in drawn]
        columns += [replace(column, drop=len(several) * column.drop - i) for column in titled]
    lower = [systems.metric for systems in several if not systems.higher_is_better]
    title = counted(several[0].segments, "segment") + (f"; lower is better for {listed(lower)}" if lower else "")
    notes = [(systems.metric, note) for systems in several for note in _footnotes(systems)]
    shared = {note for _, note in notes if sum(note == other for _, other in notes) == len(several)}
    said = dict.fromkeys(note if note in shared else f"{metric}: {note}" for metric, note in notes)
    lines = (doc.Signature(f"{systems.metric}|{systems.signature}") for systems in several)
    return (doc.Table(tuple(columns), title), *doc.notes(said), *lines)


def _charts(systems: Systems) -> Iterator[doc.ChartData]:
    items, scale = systems.items, systems.scale
    if len(items) < 2:
        return
    names = [item.system + " (best)" * (item is systems.best) for item in items]
    better, unit = _better(systems), _unit(systems)
    ends = [_ends(item.interval, scale) for item in items]
    scores = doc.series(systems.metric, names, [scale * item.score.score for item in items], ends)
    title = f"{systems.metric} of the systems"
    yield doc.ChartData("systems", title, "system", systems.metric, unit, (scores,), kind="intervals", better=better)
    others = [(name, item) for name, item in zip(names, items, strict=True) if item.difference is not None]
    if not any(item.difference_interval is not None for _, item in others):
        return
    tested = [(item.system, item.p_value_holm) for _, item in others if item.p_value_holm is not None]
    gaps = [None if item.difference is None else scale * item.difference for _, item in others]
    ends = [_ends(item.difference_interval, scale) for _, item in others]
    adjusted = " (Holm)" if len(tested) > 1 else ""
    series = doc.series("difference", [name for name, _ in others], gaps, ends)
    note = ", ".join(f"{name}: {p_equals(p)}" for name, p in tested) + adjusted
    title, y = f"Difference from {items[0].system}", f"difference of {systems.metric}"
    yield doc.differences("differences", title, "system", y, unit, [series], better=better, note=note)


def _ends(interval: Interval | None, scale: float) -> tuple[float, float] | None:
    return None if interval is None else (scale * interval.low, scale * interval.high)


def score_blocks(score: TaskScore) -> doc.Document:
    """Return one score and its parts, and the signature."""
    ratio = isinstance(score, ErrorRates | F1Score)
    name, value = (f"{score.metric} %", 100 * score.score) if ratio else (score.metric, score.score)
    report = getattr(score, "labels", None)
    labels = () if report is None else (_label_table(report, "Labels"),)
    table = doc.Table((doc.numbers(name, [value], 2), *_part_columns([score])))
    return (table, *labels, doc.Signature(f"{score.metric}|{score.signature}"))


def label_blocks(scores: LabelScores) -> doc.Document:
    """Return the averages, a row for each label, notes, and the signature."""
    names = get_args(Average)
    columns = [doc.labels("average", names)]
    for i, title in enumerate(("precision", "recall", "F1")):
        columns.append(doc.numbers(title, [getattr(scores, name)[i] for name in names], 2, "percent"))
    summary = doc.Table(tuple(columns), f"F1, {counted(scores.segments, 'segment')}; accuracy {percent(scores.accuracy)}")
    labels = _label_table(scores, "Labels")
    return (summary, labels, *doc.notes(scores.notes), doc.Signature(f"F1|{scores.signature}"))


def _labels(systems: Systems) -> doc.Document:
    reports = [(item.system, report) for item in systems if (report := getattr(item.score, "labels", None)) is not None]
    return tuple(_label_table(report, f"Labels of {system}") for system, report in reports)


def _label_table(scores: LabelScores, title: str) -> doc.Table:
    columns = (
        doc.labels("label", scores.labels),
        doc.numbers("precision", scores.precision, 2, "percent"),
        doc.numbers("recall", scores.recall, 2, "percent"),
        doc.numbers("F1", scores.f1, 2, "percent"),
        doc.numbers("gold", scores.support, form="count", drop=2),
        doc.numbers("predicted", scores.predicted, form="count", drop=1),
    )
    return doc.Table(columns, title)


def _title(systems: Systems) -> str:
    return f"{systems.metric} %" if systems.percent else systems.metric


def _drawn_columns(systems: Systems, width: int) -> Iterator[doc.Column]:
    items, scale = systems.items, systems.scale
    if any(item.interval is not None for item in items):
        yield doc.Column("95 % interval", [doc.between(item.interval, width, scale=scale) for item in items], 7)
    if len(items) > 1:
        differences = [None if item.difference is None else scale * item.difference for item in items]
        yield doc.numbers("difference", differences, width, "signed", drop=8)
    if any(item.p_value_holm is not None for item in items):
        tested = sum(item.p_value_holm is not None for item in items)
        cells = [doc.Number(item.p_value_holm, form="p", significant=bool(item.significant)) for item in items]
        yield doc.Column("p (Holm)" if tested > 1 else "p", cells, 9)


def _part_columns(scores: Sequence[TaskScore]) -> Iterator[doc.Column]:
    parts = [score.to_dict() for score in scores]
    precisions = [_precisions(part) for part in parts]
    if all(precisions):
        yield doc.Column("precisions", precisions, 1)
    for key, title, form, digits, drop in _PARTS:
        values = [part.get(key) for part in parts]
        if None not in values:
            yield doc.numbers(title, values, digits, form, drop=drop)


def _precisions(parts: dict[str, Any]) -> str:
    # Precisions of n-grams of order 1, 2, ...; empty for metrics without.
    orders = [value for name, value in parts.items() if name.removeprefix("precision_").isdigit()]
    return "/".join(f"{value:.1f}" for value in orders)


def _groups(systems: Systems, width: int) -> doc.Document:
    groups = list(systems.items[0].groups)
    if not groups:
        return ()
    scores = [[item.groups[group] for group in groups] for item in systems]
    scaled = [[systems.scale * score.score for score in mine] for mine in scores]
    names = doc.labels("group", groups)
    if len(systems) == 1:
        table = doc.Table((names, doc.numbers(_title(systems), scaled[0], width), *_part_columns(scores[0])), "by group")
        return (table, *_group_chart(systems, groups, scaled))
    columns = [
        doc.numbers(item.system, values, width, drop=len(systems) - i if i else 0)
        for i, (item, values) in enumerate(zip(systems, scaled, strict=True))
    ]
    return (doc.Table((names, *columns), f"{_title(systems)} by group"), *_group_chart(systems, groups, scaled))


def _group_chart(systems: Systems, groups: Sequence[str], scores: Sequence[Sequence[float]]) -> Iterator[doc.ChartData]:
    if len(groups) < 2:
        return
    shown = groups[: doc.MOST_CHART_ROWS]
    series = tuple(doc.series(item.system, shown, mine[: len(shown)]) for item, mine in zip(systems, scores, strict=True))
    title, unit = f"{systems.metric} by group", _unit(systems)
    note = (
        f"the first {doc.MOST_CHART_ROWS} of {len(groups):,}; the table has all" if len(groups) > doc.MOST_CHART_ROWS else ""
    )
    better = _better(systems)
    yield doc.ChartData("groups", title, "group", systems.metric, unit, series, kind="intervals", better=better, note=note)


def _better(systems: Systems) -> Literal["higher", "lower"]:
    return "higher" if systems.higher_is_better else "lower"


def _unit(systems: Systems) -> str:
    return "%" if systems.percent else ""


def _footnotes(systems: Systems) -> Iterator[str]:
    tested = [item for item in systems if item.p_value_holm is not None]
    if tested:
        how = "paired, Student's t"
        if systems.test != STUDENT:
            randomized = f"approximate randomization, {systems.trials or 0:,} trials"
            how = f"paired bootstrap, {systems.resamples:,} resamples" if systems.trials is None else randomized
        adjusted = f", p adjusted for {len(tested)} comparisons (Holm)" if len(tested) > 1 else ""
        differs = "* differs" if any(item.significant for item in tested) else "none differs"
        yield f"{differs} from {systems.items[0].system} at {100 * SIGNIFICANT:.0f} % ({how}{adjusted})."
    yield from systems.notes
    if systems.independence:
        yield f"{systems.independence}."


# -- n-best lists rescored ----------------------------------------------------------------------------------------------
def rescored_blocks(rescored: Rescored) -> Iterator[doc.Block]:
    """Yield the answer, error rates, weights, how they were tuned, notes and the signature."""
    yield doc.Heading("N-best lists rescored")
    yield doc.Verdict(*_answer(rescored))
    if rescored.systems is not None:
        yield from blocks(rescored.systems)
    if rescored.oracle is not None and rescored.worst is not None:
        yield _choices("What the lists allow", {"fewest errors (oracle)": rescored.oracle, "most errors": rescored.worst})
    yield _weights(rescored)
    if (tuning := rescored.tuning) is not None:
        title = f"On the {counted(tuning.lists, 'list')} that the weights were tuned on"
        rows = {"first of the list": tuning.first, "tuned": tuning.best, "fewest errors (oracle)": tuning.oracle}
        yield _choices(title, rows, "The weights were chosen on these lists, so other lists have a higher rate.")
    yield from doc.notes(_notes(rescored))
    yield doc.Signature(rescored.signature)


def _answer(rescored: Rescored) -> tuple[doc.Level, str]:
    says = f"Another hypothesis is the best in {rescored.changed:,} of {counted(len(rescored.lists), 'list')}"
    if rescored.systems is None:
        return "fact", f"{says}."
    before, after = rescored.systems
    name = rescored.systems.metric
    rates = " to ".join(in_words(doc.Number(one.score.score, 2, "percent")) for one in (before, after))
    p = "not tested" if after.p_value is None else p_equals(after.p_value)
    if not after.significant:
        return "unknown", f"{says}; {name} goes from {rates}: no sure difference ({p})."
    better = (after.difference or 0.0) < 0
    return ("good" if better else "bad"), f"{says}; {name} {'falls' if better else 'rises'} from {rates} ({p})."


def _choices(title: str, rows: Mapping[str, ErrorRates], *footnotes: str) -> doc.Table:
    # What hypotheses cost that are chosen in some ways.
    rates = list(rows.values())
    columns = (
        doc.labels("choice", list(rows)),
        doc.numbers(f"{rates[0].metric} %", [100 * one.score for one in rates], 2),
        doc.numbers("errors", [one.errors for one in rates], form="count"),
    )
    return doc.Table(columns, title, footnotes=footnotes)


def _weights(rescored: Rescored) -> doc.Table:
    unknown = {one.model: one.unknown / max(one.words, 1) for one in rescored.unknown}
    kinds = [*["recognizer"] * len(rescored.lists.score_names), *["model"] * len(rescored.models), "length"]
    columns = (
        doc.labels("weight of", list(rescored.weights)),
        doc.labels("kind", kinds, drop=1),
        doc.numbers("weight", list(rescored.weights.values()), 4),
        doc.numbers("unknown words", [unknown.get(name) for name in rescored.weights], 2, "percent", drop=2),
    )
    return doc.Table(columns, "Weights" if rescored.tuning is None else "Weights, tuned")


def _notes(rescored: Rescored) -> Iterator[str]:
    lists = rescored.lists
    yield (
        f"{counted(len(lists), 'list')}, hypotheses in all: {len(lists.texts):,}; before is the first of each list, as the "
        "recognizer has it."
    )
    if rescored.tuning is not None:
        places = f"{rescored.tuning.places} places, {rescored.tuning.lines:,} lines"
        yield f"Weights by exact line search ({places}, seed {rescored.tuning.seed}); only their ratios matter."
    for one in rescored.unknown:
        if one.unknown > one.words / 4:
            share = percent(one.unknown / one.words, 0)
            yield f"{one.model} does not know {share} of the words: do case and punctuation match its training text?"
    yield from rescored.notes


# -- correlations of numbers of systems ---------------------------------------------------------------------------------
def correlation_blocks(correlation: Correlation) -> doc.Document:
    """Return the verdict, a row for each system, each coefficient with what is known of it, and notes."""
    independence = [f"{correlation.independence}."] if correlation.independence else []
    notes = doc.notes([*correlation.notes, *_permutations(correlation), *independence])
    return (*_correlation_verdict(correlation), _systems(correlation), *_coefficients(correlation), *notes)


def _systems(correlation: Correlation) -> doc.Table:
    rows = correlation.to_rows()
    columns = (
        doc.labels("system", [str(row["system"]) for row in rows]),
        doc.numbers(correlation.x_name, [row["x"] for row in rows], 2),
        doc.numbers("rank", [row["rank_x"] for row in rows], form="rank", drop=3),
        doc.numbers(correlation.y_name, [row["y"] for row in rows], 2),
        doc.numbers("its rank", [row["rank_y"] for row in rows], form="rank", drop=2),
        doc.numbers("beside the expected", [row["rank_difference"] for row in rows], form="places", drop=1),
    )
    return doc.Table(columns, f"{_correlation_title(correlation)}, {len(rows)} systems")


def _permutations(correlation: Correlation) -> Iterator[str]:
    if correlation.p_value is not None:
        drawn = f"{PERMUTATIONS:,} permutations, seed {correlation.seed}"
        yield f"p-value of rho: {'all permutations' if correlation.exact else drawn}."


def _correlation_title(correlation: Correlation) -> str:
    return f"{correlation.y_name} against {correlation.x_name}"


def _coefficients(correlation: Correlation) -> Iterator[doc.Block]:
    known = correlation.coefficients
    columns = [
        doc.labels("coefficient", [name for name, _, _ in known]),
        doc.numbers("value", [value for _, value, _ in known], 3),
        doc.Column("95 % interval", [doc.between(ends, 3, "fixed") for _, _, ends in known]),
    ]
    if correlation.p_value is not None:
        columns.append(doc.numbers("p", [correlation.p_value, *([None] * (len(known) - 1))], form="p"))
    yield doc.Table(tuple(columns))
    points = doc.Series("systems", correlation.x, correlation.y, names=correlation.systems)
    names = (correlation.x_name, correlation.y_name)
    title = _correlation_title(correlation)
    yield doc.ChartData("correlation", title, *names, "", (points,), kind="scatter", log_x=correlation.log_x)


def _correlation_verdict(correlation: Correlation) -> Iterator[doc.Verdict]:
    rho, p = correlation.spearman, correlation.p_value
    if rho is None or p is None:
        return
    if p >= SIGNIFICANT:
        yield doc.Verdict("unknown", f"The ranks show no link beyond chance ({p_equals(p)}).")
        return
    which = "higher" if rho > 0 else "lower"
    yield doc.Verdict(
        "good", f"Systems with a higher {correlation.y_name} tend to have a {which} {correlation.x_name} ({p_equals(p)})."
    )
