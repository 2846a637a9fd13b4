"""Reports of runs: the answer in a sentence, then figures, where the bits go, and the text itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.overview import GroupMatrix, Overview, group_matrix
from lmgauge.evaluation.passages import ScoreHistogram
from lmgauge.evaluation.results import Evaluation, comparison_notes
from lmgauge.report import audit as audits
from lmgauge.report import blocks as doc
from lmgauge.report import comparison, diagnosis, evaluations
from lmgauge.report.formats import counted, in_words, number


def blocks(overview: Overview) -> doc.Document:
    """Return a report of one run, or of several beside the first."""
    parts = _of_one(overview) if len(overview.runs) == 1 else _of_several(overview)
    return tuple(parts)


# -- one run ------------------------------------------------------------------------------------------------------------
def _of_one(overview: Overview) -> Iterator[doc.Block]:
    (diagnosed,) = overview.diagnoses
    yield verdict(diagnosed)
    yield from _seal(overview)
    yield from evaluations.blocks([diagnosed.evaluation])
    parts = diagnosis.parts(diagnosed)
    yield from _section("What the number is worth", parts["baselines"])
    yield from _section("Where the bits go", (*parts["spelling"], *parts["slices"]))
    yield from _section("How segments differ", (*_histogram(overview), *parts["segments"]))
    yield from _section("Which events are hard", (*parts["events"], *parts["unseen"]))
    yield from _section("How far it may be believed", (*parts["calibration"], *parts["ranks"]))
    yield from _text(overview)
    yield from _section("What is not shown", doc.notes((*diagnosed.notes, *overview.passages.notes)))


def verdict(diagnosed: Diagnosis) -> doc.Verdict:
    """Return what the number of one run is, how sure it is, and what it may be compared with, in a few sentences."""
    return doc.Verdict("bad" if diagnosed.evaluation.zero_probability_events else "fact", " ".join(_sentences(diagnosed)))


def _sentences(diagnosed: Diagnosis) -> Iterator[str]:
    result = diagnosed.evaluation
    infinite = bool(result.zero_probability_events)
    interval = "" if infinite or result.interval is None else f" (95 % interval {in_words(doc.between(result.interval, 2))})"
    events = counted(result.events, "event")
    yield f"{result.model} has a perplexity of {number(result.perplexity, 2)}{interval} over {events}."
    if infinite:
        yield (
            f"It gives probability zero to {result.zero_probability_events:,} of them; "
            f"without these it is {number(result.perplexity_without_zeros, 2)}."
        )
    if result.bits_per_byte is None:
        yield "The text is not at hand, so it has no bits per byte."
    elif not infinite:
        between = "" if diagnosed.interval is None else f" (95 %: {in_words(doc.between(diagnosed.interval))})"
        least = "at least " if result.bits_per_byte_is_bound else ""
        yield f"That is {least}{number(float(result.bits_per_byte))} bits per byte{between}."
    if result.interval is not None and result.independence:
        yield f"The intervals: {result.independence}."
    yield f"{_COMPARABLE}{_bits_comparable(result)}."


_COMPARABLE = "Compare the perplexity only with those of the same text, tokens and vocabulary"


def _bits_comparable(result: Evaluation) -> str:
    if result.bits_per_byte is None or math.isinf(result.bits_per_byte):
        return ""
    if result.bits_per_byte_is_bound:
        return "; bits per byte are a lower bound, which shows no model to be better than another"
    return "; bits per byte with those of any model on this text"


def _section(title: str, content: Sequence[doc.Block]) -> doc.Document:
    return (doc.Heading(title), *content) if content else ()


def _seal(overview: Overview) -> doc.Document:
    if overview.audit is None:
        return ()
    level: doc.Level = "good" if overview.audit.passed else "bad"
    return (doc.Verdict(level, f"Audit: {audits.conclusion(overview.audit)}"), audits.ladder(overview.audit))


# -- several runs -------------------------------------------------------------------------------------------------------
def _of_several(overview: Overview) -> Iterator[doc.Block]:
    compared = overview.comparisons
    assert compared is not None
    yield from (comparison.verdict(item, len(compared)) for item in compared)
    yield from _seal(overview)
    results = [diagnosed.evaluation for diagnosed in overview.diagnoses]
    named = [replace(result, model=name) for result, name in zip(results, overview.runs, strict=True)]
    each = evaluations.blocks(named)
    charted = any(isinstance(block, doc.ChartData) for block in each)
    yield from _section("The models, each on its own", (*each, *(() if charted else _forest(overview))))
    yield from _curve(overview)
    matrix = group_matrix(overview.diagnoses, compared)
    if matrix is not None:
        yield from _section("Group by group", tuple(_matrix(matrix, overview)))
    for item in compared:
        yield from _section(comparison.title(item), tuple(comparison.figures_of(item)))
    yield from _section("What has to agree", (comparison.agreements_of(compared),))
    pair = compared[0]
    if matrix is not None:
        pair = replace(pair, slices=tuple(slices for slices in pair.slices if slices.name != "group"))
    yield from _section(f"Where {pair.second} and {pair.first} differ", comparison.details_of(pair))
    yield from _section("How segments differ", tuple(_histogram(overview)))
    yield from _text(overview)
    yield from _section("What is not shown", doc.notes(overview.passages.notes))


def _forest(overview: Overview) -> Iterator[doc.Block]:
    rows = [(name, d) for name, d in zip(overview.runs, overview.diagnoses, strict=True) if d.interval is not None]
    if len(rows) < 2:
        return
    names, diagnoses = zip(*rows, strict=True)
    bits = [diagnosed.evaluation.bits_per_byte for diagnosed in diagnoses]
    series = doc.series("bits per byte", names, bits, [diagnosed.interval for diagnosed in diagnoses])
    title = "Bits per byte with 95 % intervals"
    note = "models on the same text differ less than their intervals suggest: the verdict above is of their difference"
    chart = doc.ChartData("bits-per-byte", title, "model", "bits per byte", "bits", (series,), kind="intervals", note=note)
    yield replace(chart, better="lower")


def _curve(overview: Overview) -> doc.Document:
    # Bits per byte (or perplexity) against steps, where the names of the runs differ by one number only.
    steps = step_numbers(overview.runs)
    if len(steps) < 3:
        return ()
    in_order = sorted(zip(steps, overview.runs, overview.diagnoses, strict=True), key=lambda row: row[0])
    numbers, names, diagnoses = zip(*in_order, strict=True)
    results = [diagnosed.evaluation for diagnosed in diagnoses]
    by_bytes = all(result.bits_per_byte is not None for result in results)
    if any(result.bits_per_byte_is_bound for result in results):  # perplexities, if these may be compared
        by_bytes = by_bytes and bool(comparison_notes(results))
    values = tuple(_finite(result.bits_per_byte if by_bytes else result.perplexity) for result in results)
    ends = [
        d.interval if by_bytes else r.interval and (r.interval.low, r.interval.high)
        for d, r in zip(diagnoses, results, strict=True)
    ]
    figure = "bits per byte" if by_bytes else "perplexity"
    between = doc.Column("95 % interval", [doc.between(pair, 4 if by_bytes else 2) for pair in ends])
    table = doc.Table(
        (doc.labels("model", names), doc.numbers("step", numbers, form="count"), doc.numbers(figure, values, 4), between)
    )
    low, high = (tuple(None if pair is None else _finite(pair[i]) for pair in ends) for i in (0, 1))
    series = doc.Series(figure, tuple(map(float, numbers)), values, low, high, tuple(names))
    chart = doc.ChartData(
        "steps", f"{figure.capitalize()} by step", "step", figure, "bits" if by_bytes else "", (series,), better="lower"
    )  # fmt: skip
    return (doc.Heading("Step by step"), table, chart)


_STEPS = re.compile(r"(?:step|steps|epoch|checkpoint|ckpt|iter|iteration|update)s?[-_ =.]*$", re.IGNORECASE)


def step_numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers of steps, epochs or checkpoints by which names differ; empty where they differ by anything else."""
    parts = [re.split(r"([0-9]{1,15})", name) for name in names]
    if len({len(part) for part in parts}) != 1:
        return []
    differ = [i for i, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    if len(differ) != 1 or differ[0] % 2 == 0:
        return []
    if not _STEPS.search(parts[0][differ[0] - 1]):
        return []
    return [int(part[differ[0]]) for part in parts]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _matrix(matrix: GroupMatrix, overview: Overview) -> Iterator[doc.Block]:
    # Models by groups: all of it as a table, a chart of the costs and one of the differences.
    yield _matrix_table(matrix, overview)
    groups = tuple(matrix.own[0])
    series = [
        doc.series(name, groups, [_finite(bits) for bits in matrix.bits(i)], [row.interval for row in rows.values()])
        for i, (name, rows) in enumerate(zip(overview.runs, matrix.own, strict=True))
    ]
    title = "Bits per byte by group, with 95 % intervals"
    yield doc.ChartData(
        "group-matrix", title, "group", "bits per byte", "bits", tuple(series), kind="intervals", better="lower", cut="group"
    )
    differences = [
        doc.series(name, groups, [row.difference for row in rows], [row.interval for row in rows])
        for name, rows in zip(overview.runs[1:], map(dict.values, matrix.paired[1:]), strict=True)
    ]
    if any(value is not None for one in differences for value in one.y):
        title, y = f"Difference from {overview.runs[0]} by group, with 95 % intervals", "difference in bits per byte"
        yield doc.differences("group-differences", title, "group", y, "bits", differences, cut="group")


def _matrix_table(matrix: GroupMatrix, overview: Overview) -> doc.Table:
    sizes = [row.size for row in matrix.own[0].values()]
    columns = [
        doc.labels("group", [*matrix.own[0], "mean over groups", "mean over bytes"]),
        doc.numbers("bytes", [*sizes, None, sum(sizes)], form="count", drop=1),
    ]
    for i, (name, whole) in enumerate(zip(overview.runs, overview.diagnoses, strict=True)):
        values = [*matrix.bits(i), matrix.mean_bits(i), whole.evaluation.bits_per_byte]
        intervals = [row.interval for row in matrix.own[i].values()]
        between = [doc.between(interval, 3) for interval in (*intervals, None, whole.interval)]
        columns += [doc.numbers(name, values, 3), doc.Column("95 % interval", between, 3)]
        differences = [row.difference for row in matrix.paired[i].values()]
        if any(difference is not None for difference in differences):
            columns.append(doc.numbers("difference", [*differences, None, None], 3, "signed", drop=2))
            columns.append(doc.numbers("p (Holm)", [*matrix.p_values(i), None, None], form="p", drop=4))
    adjusted = " and the number of models (Bonferroni)" if len(matrix.own) > 2 else ""
    footnote = (
        f"bits per byte; differences are from {overview.runs[0]}, paired; p adjusted for the groups (Holm){adjusted}. "
        "The interval of a group of fewer than 6 documents is about text like these; its difference is not tested."
    )
    return doc.Table(tuple(columns), "models by groups", (len(sizes), len(sizes) + 1), (footnote,), cut="group")


# -- the text -----------------------------------------------------------------------------------------------------------
def _histogram(overview: Overview) -> Iterator[doc.Block]:
    scores = overview.passages.scores
    if scores is None or sum(map(sum, scores.counts)) < 2:
        return
    series = tuple(
        doc.Series(name, scores.edges, (*map(float, counts), None))
        for name, counts in zip(overview.shown, scores.counts, strict=True)
    )
    per = f"bits per {scores.unit}"
    yield doc.ChartData(
        "segment-scores", f"Segments by {per}", per, "segments", "", series, x_unit="bits", kind="histogram",
        note="; ".join(_outside(scores)),
    )  # fmt: skip


def _outside(scores: ScoreHistogram) -> Iterator[str]:
    if scores.beyond:
        yield f"{scores.beyond:,} beyond the ends are in the outermost bins"
    if any(scores.infinite):
        yield f"{sum(scores.infinite):,} with an event of probability zero are in none"


def _text(overview: Overview) -> doc.Document:
    passages = overview.passages
    if not passages.items:
        return ()
    two = len(overview.shown) == 2
    what = (
        f"what {overview.shown[1]} costs beyond {overview.shown[0]}" if two else f"what each token costs {overview.shown[0]}"
    )
    return (
        doc.Heading("The text"),
        doc.Text(f"Segments of the text, colored by {what}, in bits."),
        doc.Passages(passages.items, overview.shown, passages.cuts),
    )
