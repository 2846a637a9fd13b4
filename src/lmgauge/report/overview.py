"""Reports of runs: the answer in a sentence, then figures, where the bits go, and the text itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lmgauge.evaluation.comparison.results import Comparisons
from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.overview import GroupMatrix, Overview, group_matrix, step_numbers
from lmgauge.evaluation.passages import ScoreHistogram
from lmgauge.evaluation.results import Evaluation
from lmgauge.numerics.figures import TITLES
from lmgauge.numerics.intervals import Interval
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
    figures = evaluations.blocks([diagnosed.evaluation])
    yield from (block for block in figures if not isinstance(block, doc.Signature))
    parts = diagnosis.parts(diagnosed)
    yield from _section("What the number is worth", parts["baselines"])
    yield from _section("Where the bits go", (*parts["spelling"], *parts["slices"]))
    yield from _section("How reliable it is", parts["calibration"])
    yield from _folded("How segments differ", (*_histogram(overview), *parts["segments"]))
    yield from _folded("Which events are hard", (*parts["events"], *parts["unseen"]))
    yield from _folded("Signature", [block for block in figures if isinstance(block, doc.Signature)])
    yield from _text(overview, diagnosed.notes)


def verdict(diagnosed: Diagnosis) -> doc.Verdict:
    """Return what the number of one run is, how sure it is, and what it may be compared with, in a few sentences."""
    return doc.Verdict("bad" if diagnosed.evaluation.zero_probability_events else "fact", " ".join(_sentences(diagnosed)))


def _sentences(diagnosed: Diagnosis) -> Iterator[str]:
    result = diagnosed.evaluation
    infinite = bool(result.zero_probability_events)
    interval = "" if infinite or result.interval is None else f" (95 % interval {in_words(doc.between(result.interval, 2))})"
    events = counted(result.events, "event")
    yield f"{result.model} has a perplexity of {number(result.perplexity, 2)}{interval} over {events}."
    if result.sample:
        yield evaluations.of_sample(result)
    if infinite:
        yield (
            f"It gives probability zero to {result.zero_probability_events:,} of them; "
            f"without these it is {number(result.perplexity_without_zeros, 2)}."
        )
    if result.bits_per_byte is None:
        yield "The text is not available, so it has no bits per byte."
    elif not infinite:
        between = "" if diagnosed.interval is None else f" (95 %: {in_words(doc.between(diagnosed.interval))})"
        least = "at least " if result.bits_per_byte_is_bound else ""
        yield f"That is {least}{number(float(result.bits_per_byte))} bits per byte{between}."
    yield f"{_COMPARABLE}{_bits_comparable(result)}."


_COMPARABLE = "Compare the perplexity only with those of the same text, tokens and vocabulary"


def _bits_comparable(result: Evaluation) -> str:
    if result.bits_per_byte is None or math.isinf(result.bits_per_byte):
        return ""
    if result.bits_per_byte_is_bound:
        return "; bits per byte are a lower bound, which shows no model to be better than another"
    return "; bits per byte with those of any model on this text"


def _section(title: str, content: Sequence[doc.Block], *, folded: bool = False) -> doc.Document:
    return (doc.Heading(title, folded), *content) if content else ()


_folded = partial(_section, folded=True)


def _seal(overview: Overview) -> doc.Document:
    if overview.audit is None:
        return ()
    level: doc.Level = "good" if overview.audit.passed else "bad"
    return (doc.Verdict(level, f"Audit: {audits.conclusion(overview.audit)}"), audits.ladder(overview.audit))


# -- several runs -------------------------------------------------------------------------------------------------------
def _of_several(overview: Overview) -> Iterator[doc.Block]:
    compared = overview.comparisons
    assert compared is not None
    rivals = comparison.ranked(compared, overview.ranked_by)
    several = len(compared) > 1
    yield comparison.ranking(compared, overview.ranked_by) if several else comparison.verdict(compared[0], 1)
    yield from _seal(overview)
    order = order_on_page(overview.runs)
    named = [replace(overview.diagnoses[i].evaluation, model=overview.runs[i]) for i in order]
    figures, *each = evaluations.blocks(named)
    signatures = [block for block in each if isinstance(block, doc.Signature)]
    charts = [block for block in each if isinstance(block, doc.ChartData)]
    notes = [block for block in each if isinstance(block, doc.Text)]
    yield doc.Heading("The models")
    yield _ranking_table(overview, rivals, order) if rivals else figures
    yield from (_by_step(chart, [one.model for one in named]) for chart in charts)
    yield from [_differences(overview, rivals, order)] if rivals else ()
    yield from notes
    title = "Pair by pair" if several else comparison.title(compared[0])
    of_pairs = _section(title, tuple(_pairs(compared, folded=bool(rivals))), folded=bool(rivals))
    yield from () if rivals else of_pairs
    matrix = group_matrix(overview.diagnoses, compared)
    if matrix is not None:
        yield from _section("Group by group", tuple(_matrix(matrix, overview)))
    pair = compared[0]
    if matrix is not None:
        pair = replace(pair, slices=tuple(slices for slices in pair.slices if slices.name != "group"))
    yield from _section(f"Where {pair.second} and {pair.first} differ", comparison.slices_of(pair))
    yield from _folded(f"Examples: {pair.second} and {pair.first}", comparison.examples_of(pair))
    yield from _folded("How segments differ", tuple(_histogram(overview)))
    yield from of_pairs if rivals else ()
    yield from _folded("What must match", (comparison.agreements_of(compared),))
    yield from _folded("All figures and signatures", [figures, *signatures]) if rivals else _folded("Signatures", signatures)
    yield from _text(overview)


def order_on_page(runs: Sequence[str]) -> list[int]:
    """Return the places of runs in the order in which a page shows them: that of their steps, if they are checkpoints."""
    steps = step_numbers(runs) if len(runs) > 2 else []
    return sorted(range(len(runs)), key=lambda i: steps[i] if steps else i)


def _pairs(compared: Comparisons, *, folded: bool) -> Iterator[doc.Block]:
    # Of each pair its figures, and its verdict where the page does not begin with it; p counts for all pairs of a ranking.
    tests = comparison.pairs(len(compared.runs)) if folded else len(compared)
    for item in compared:
        if len(compared) > 1:
            verdict = comparison.verdict(item, tests)
            yield doc.Text(verdict.text) if folded else verdict
        named = f"difference of {item.second} from {item.first}"
        for block in comparison.figures_of(item):
            yield replace(block, title=named) if isinstance(block, doc.Table) else block


def _ranking_table(overview: Overview, rivals: Mapping[str, comparison.Rival], order: Sequence[int]) -> doc.Table:
    # Rows in the order of the page; the rank is that of the figure.
    metric, best = overview.ranked_by, overview.runs[0]
    perplexity = metric == "perplexity"
    digits = 2 if perplexity else 4
    ranks = [best, *sorted(rivals, key=lambda name: rivals[name].gap.second)]
    names = [overview.runs[i] for i in order]
    results = [overview.diagnoses[i] for i in order]
    ends = [one.evaluation.interval if perplexity else one.interval for one in results]
    rows = [rivals.get(name) for name in names]
    states = [row.state if row else "best" if name == best else "unranked" for name, row in zip(names, rows, strict=True)]
    changes = [
        comparison.change_cells(row.gap.difference, row.gap.interval, perplexity=perplexity)
        if row
        else (doc.Number(None),) * 2
        for row in rows
    ]
    columns = (
        doc.Column("rank", [str(ranks.index(name) + 1) if name in ranks else "–" for name in names]),
        doc.labels("model", names),
        doc.numbers(TITLES[metric], [getattr(one.evaluation, metric) for one in results], digits),
        doc.Column("95 % interval", [doc.between(end, digits) for end in ends], 2),
        doc.Column("difference", [cells[0] for cells in changes]),
        doc.Column("95 % interval", [cells[1] for cells in changes], 1),
        doc.numbers("p (Holm)", [row.item.p_value_holm if row else None for row in rows], form="p"),
        doc.Column("verdict", [comparison.STATES[state] for state in states], align="left"),
    )
    where = ", which is not the last step" if step_numbers(names) and best != names[-1] else ""
    footnote = f"The best is {best}{where}; each difference is from it, on the same text."
    tests = comparison.pairs(len(overview.runs))
    adjusted = f"p is adjusted for {tests} comparisons, all pairs of models, as the best was picked by these same figures."
    return doc.Table(columns, bold=(names.index(best),), footnotes=(footnote, adjusted))


def _differences(overview: Overview, rivals: Mapping[str, comparison.Rival], order: Sequence[int]) -> doc.ChartData:
    # How far each is above the best, in the order of the table.
    best, metric = overview.runs[0], overview.ranked_by
    rows: list[tuple[str, float, Interval | None]] = []
    for name in (overview.runs[i] for i in order):
        if name == best:
            rows.append((name, float(metric == "perplexity"), None))  # a ratio of 1, or 0 bits
        elif name in rivals:
            rows.append((name, rivals[name].gap.difference, rivals[name].gap.interval))
    return comparison.difference_chart(rows, best, metric)


def _by_step(chart: doc.ChartData, names: Sequence[str]) -> doc.ChartData:
    # Chart of models, as a curve where their names differ by a number of steps only.
    steps = step_numbers(names)
    if len(steps) < 3 or chart.name != "models":
        return chart
    series = tuple(replace(one, x=tuple(map(float, steps)), names=tuple(names)) for one in chart.series)
    return replace(chart, name="steps", title=f"{chart.title} by step", x_title="step", kind="line", series=series)


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


def _text(overview: Overview, notes: Sequence[str] = ()) -> doc.Document:
    passages = overview.passages
    missing = doc.notes((*notes, *passages.notes))
    if not passages.items:
        return _section("What is not shown", missing)
    two = len(overview.shown) == 2
    what = (
        f"what {overview.shown[1]} costs beyond {overview.shown[0]}" if two else f"what each token costs {overview.shown[0]}"
    )
    return (
        doc.Heading("The text", folded=True),
        doc.Text(f"Segments of the text, colored by {what}, in bits."),
        *missing,
        doc.Passages(passages.items, overview.shown, passages.cuts),
    )
