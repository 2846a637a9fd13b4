"""Comparisons: the verdict first, then the figures, what must match, and where the difference comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lmgauge.base.result_list import columns_of
from lmgauge.evaluation.comparison.comparability import EXACT, EXACT_PART, SHARED_EVENTS, WHOLE
from lmgauge.evaluation.comparison.recipes import RecipeComparison
from lmgauge.evaluation.comparison.results import ROUNDING, Comparison, Comparisons, Difference
from lmgauge.evaluation.comparison.until import Decision
from lmgauge.evaluation.divergence.divergence_result import Divergence
from lmgauge.numerics.figures import TITLES
from lmgauge.numerics.intervals import DOCUMENTS, Interval
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc
from lmgauge.report.formats import change, in_words, listed, number, p_equals, percent
from lmgauge.report.slices import example_blocks, slice_blocks

Figure = doc.Number | doc.Range
KL_NATS = "kl_ab_nats"
KL_COLUMN = columns_of(Divergence)[KL_NATS]
_AGREES = {True: doc.Mark("yes", "good"), False: doc.Mark("NO", "bad"), None: doc.Mark("?", "unknown")}
_PARTS = {WHOLE: "", EXACT_PART: " (exact part)", SHARED_EVENTS: " (shared events)"}
_ABOUT = (
    "This verdict covers these two models on similar texts. To compare the training recipes, use --recipe with several runs "
    "of each."
)


def blocks(comparisons: Comparisons, *, details: bool = True) -> doc.Document:
    """Return the verdict and figures of each comparison, what must match, and with details slices and examples."""
    verdicts = [block for item in comparisons for block in _one(item, len(comparisons))]
    shown = [block for item in comparisons for block in details_of(item)] if details else []
    pairs = doc.notes(
        [f"each is compared with {comparisons.runs[0]} only; for all pairs: lmgauge report"] * (len(comparisons) > 1)
    )
    return (*verdicts, *pairs, *charts_of(comparisons.items), agreements_of(comparisons), *shown)


def blocks_of_one(comparison: Comparison) -> doc.Document:
    """Return the verdict and figures of one comparison, and slices and examples."""
    return (*_one(comparison, 1), *charts_of([comparison]), *details_of(comparison))


def _one(comparison: Comparison, compared: int) -> Iterator[doc.Block]:
    yield doc.Heading(title(comparison))
    yield verdict(comparison, compared)
    yield from figures_of(comparison)


def title(comparison: Comparison) -> str:
    """Return which run is compared with which."""
    return f"{comparison.second} compared with {comparison.first}"


def figures_of(comparison: Comparison) -> Iterator[doc.Block]:
    """Yield which figures may be compared, the figures with their differences, and what these are worth."""
    yield from map(doc.Text, _comparable(comparison))
    if comparison.differences:
        yield _figures(comparison)
    independence = [f"95 % intervals and p-values: {comparison.independence}."] if comparison.independence else []
    about = [] if comparison.p_value_holm is None else [_ABOUT]
    yield from doc.notes([*comparison.notes, *independence, *about])


def charts_of(comparisons: Sequence[Comparison]) -> Iterator[doc.ChartData]:
    """Yield the differences from the first run that have an interval, a chart for each figure that leads."""
    leads = [(item, item.differences[0]) for item in comparisons if item.differences]
    for metric in dict.fromkeys(lead.metric for _, lead in leads):
        rows = [(item.second, lead.difference, lead.interval) for item, lead in leads if lead.metric == metric]
        if any(interval is not None for _, _, interval in rows):
            yield difference_chart(rows, comparisons[0].first, metric)


def difference_chart(rows: Sequence[tuple[str, float, Interval | None]], first: str, metric: str) -> doc.ChartData:
    """Return a chart of differences from one figure: in bits, or for perplexity in per cent."""
    perplexity = metric == "perplexity"

    def drawn(value: float) -> float:
        return 100 * (value - 1) if perplexity else value

    ends = [None if interval is None else (drawn(interval.low), drawn(interval.high)) for _, _, interval in rows]
    series = doc.series("difference", [name for name, _, _ in rows], [drawn(gap) for _, gap, _ in rows], ends)
    y, unit = f"difference in {TITLES[metric]}", "%" if perplexity else "bits"
    chart = doc.differences("difference", f"Difference from {first}", "compared", y, unit, [series])
    note = f"below 0 is better than {first}; if the interval includes 0 it may be chance"
    return replace(chart, rule_name=first, note=note)


def agreements_of(comparisons: Comparisons) -> doc.Table:
    """Return what must match between all runs, and whether it does."""
    names, agreements = comparisons.runs, comparisons.agreements
    verdicts = [_AGREES[agreement.agrees] for agreement in agreements]
    for i, agreement in enumerate(agreements):
        if agreement.what == EXACT and agreement.agrees is False:
            alike = len(set(agreement.values)) == 1  # both are bounds, and for the same reason
            verdicts[i] = doc.Mark("bound" if alike else "no", "unknown")  # stands in the way of some figures only
    values = zip(*(agreement.values for agreement in agreements), strict=True)
    runs = [doc.labels(name, mine, wraps=True) for name, mine in zip(names, values, strict=True)]
    what = doc.labels("what must match", [agreement.what for agreement in agreements])
    return doc.Table((what, *runs, doc.Column("agrees", verdicts, align="left")))


def _comparable(comparison: Comparison) -> Iterator[str]:
    metrics: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for verdict in comparison.verdicts:
        metrics.setdefault((verdict.comparable, verdict.reasons), []).append(TITLES[verdict.metric])
    for (comparable, reasons), names in metrics.items():
        which = ", ".join(names)
        yield f"{which}: comparable" if comparable else f"{which}: NOT comparable: {'; '.join(reasons)}"
    nearest = next((verdict.nearest for verdict in comparison.verdicts if verdict.nearest), None)
    if nearest and not any(verdict.comparable for verdict in comparison.verdicts):
        yield f"compared instead: {nearest}"
    if comparison.part == EXACT_PART and comparison.bytes is not None and comparison.bytes_in_all:
        share = percent(comparison.bytes / comparison.bytes_in_all, 1)
        yield f"compared below: {comparison.bytes:,} of {comparison.bytes_in_all:,} bytes ({share})"
    if comparison.part == SHARED_EVENTS:
        yield f"compared below: {comparison.events:,} events"


def _figures(comparison: Comparison) -> doc.Table:
    differences = [*comparison.differences, *comparison.without_zeros]
    without = len(comparison.differences)
    part = _PARTS.get(comparison.part, "")
    names = [TITLES[d.metric] + part + ", without p = 0" * (i >= without) for i, d in enumerate(differences)]
    return _table(comparison, names, differences, "95 % interval")


def _table(compared: Comparison | Decision, names: Sequence[str], differences: Sequence[Difference], last: str) -> doc.Table:
    first, second, gap, between = zip(*(_cells(d) for d in differences), strict=True)
    columns = (
        doc.labels("figure", names),
        doc.Column(compared.first, first),
        doc.Column(compared.second, second),
        doc.Column("difference", gap, 2),
        doc.Column(last, between, 1),
    )
    return doc.Table(columns)


def _cells(difference: Difference) -> tuple[Figure, Figure, Figure, Figure]:
    perplexity, kl = difference.metric == "perplexity", difference.metric == KL_NATS
    form: doc.Form = "figures" if kl else "number"
    first, second = (doc.Number(value, 2 if perplexity else 4, form) for value in (difference.first, difference.second))
    digits = 6 if kl else 4
    return first, second, *change_cells(difference.difference, difference.interval, perplexity=perplexity, digits=digits)


def change_cells(
    difference: float, interval: Interval | None, *, perplexity: bool, digits: int = 4
) -> tuple[Figure, Figure]:
    """Return a difference of two figures and its interval: in bits or nats, or for perplexity as a change in per cent."""
    # difference: for perplexity the ratio; digits: of the others.
    form: doc.Form = "change" if perplexity else "signed"
    digits = 2 if perplexity else digits
    return doc.Number(difference, digits, form), doc.between(interval, digits, form)


def verdict(comparison: Comparison, compared: int) -> doc.Verdict:
    """Return in a few sentences whether the two may be compared, how far they are apart, and whether that is real."""
    if not comparison.differences:
        return doc.Verdict("bad", "Not comparable: no part of the two can be compared.")
    lead = comparison.differences[0]
    first, second, gap, between = map(in_words, _cells(lead))
    whole = comparison.part == WHOLE and comparison.verdict(lead.metric).comparable
    where = "Comparable" if whole else f"Not comparable as a whole; on the {comparison.part}"
    interval = "" if lead.interval is None else f" (95 % interval {between})"
    name = TITLES[lead.metric]
    figures = f"{name} {second} for {comparison.second}, {first} for {comparison.first}, difference {gap}{interval}."
    level: doc.Level = "good" if comparison.significant else "unknown"
    words = [f"{where}: {figures}", *_conclusion(comparison, compared)]
    if comparison.plan is not None and comparison.units_planned is not None:
        words.append(_needed(percent(comparison.plan), comparison.units_planned, comparison))
    return doc.Verdict(level, " ".join(words))


def _conclusion(comparison: Comparison, compared: int) -> Iterator[str]:
    p = comparison.p_value_holm
    yield from comparison.doubts
    if comparison.within_rounding and not comparison.doubts:
        yield f"The difference is within the rounding of scores ({ROUNDING:g} nats per event): the two are equal."
        return
    if p is None:
        return
    unit = comparison.unit if comparison.unit == DOCUMENTS else "segments"
    tested = f"{p_equals(p)}{_adjusted(compared)}, {comparison.units:,} paired {unit}"
    if comparison.doubts:
        yield f"So there is no verdict ({tested}, if they are natural logs)."
        return
    lead = comparison.differences[0]
    where = {EXACT_PART: " on the part compared", SHARED_EVENTS: " on the shared events"}.get(comparison.part, "")
    if comparison.significant:
        better = comparison.second if lead.second < lead.first else comparison.first
        yield f"The difference{where} is real: {better} is better ({tested})."
        return
    yield f"The difference{where} is not significant ({tested})."
    if comparison.units_needed is not None:
        yield _needed("this size", comparison.units_needed, comparison)
    if comparison.detectable is not None:
        yield f"Differences of {percent(comparison.detectable)} or more are found in a text like this with 80 % power."


def _needed(size: str, units: int, comparison: Comparison) -> str:
    unit = comparison.unit if comparison.unit == DOCUMENTS else "segments"
    times = f"{units / max(1, comparison.units):,.1f} times this text (80 % power)"
    return f"To detect a difference of {size}, about {units:,} such {unit} are needed, {times}."


def _adjusted(tests: int) -> str:
    return f", adjusted for {tests} comparisons (Holm)" if tests > 1 else ""


def details_of(comparison: Comparison) -> doc.Document:
    """Return where the difference comes from: slices of the text, then the tokens and segments that differ most."""
    return (*slices_of(comparison), *examples_of(comparison))


def slices_of(comparison: Comparison) -> doc.Document:
    """Return a table and charts for each way to cut the text."""
    names = (comparison.first, comparison.second)
    return tuple(block for part in comparison.slices for block in slice_blocks(part, names))


def examples_of(comparison: Comparison) -> doc.Document:
    """Return the tokens and segments that differ most."""
    names = (comparison.first, comparison.second)
    examples = (
        ("Tokens where {} loses most", comparison.tokens_lost),
        ("Tokens where {} wins most", comparison.tokens_won),
        ("Segments where {} loses most", comparison.segments_lost),
        ("Segments where {} wins most", comparison.segments_won),
    )
    return tuple(block for title, those in examples for block in example_blocks(title.format(names[1]), those, names))


# -- until it is decided -------------------------------------------------------------------------------------------------
_OF_SCORED = "The figures are of the documents that were scored. "
_AT_LOOKS = "'At every look' holds at all looks together, if differences vary as a normal curve does."


def decision_blocks(decisions: Sequence[Decision]) -> Iterator[doc.Block]:
    """Yield which of two models is better, or nearer to a base, at how many documents that was decided, and the figures."""
    for one in decisions:
        yield doc.Heading(f"{one.second} compared with {one.first}{f', by KL from {one.base}' if one.base else ''}")
        yield doc.Verdict("unknown" if one.verdict == "undecided" else "good", " ".join(_decided(one)))
        yield _table(one, [TITLES.get(one.difference.metric, KL_COLUMN.title)], [one.difference], "at every look")
        looks = _OF_SCORED * (one.unit == DOCUMENTS and one.documents < one.total_documents) + _AT_LOOKS
        yield from doc.notes([*one.notes, looks, *([_ABOUT] if one.unit == DOCUMENTS and not one.base else [])])


def _decided(one: Decision) -> Iterator[str]:
    answers = {"first": f"{one.first} is better", "second": f"{one.second} is better"}
    answers["equal"] = f"the two are alike within {percent(one.margin or 0.0)}"
    if one.base:
        how = {"first": "further from", "second": "nearer to"}
        answers = {verdict: f"{one.second} is {words} {one.base} than {one.first}" for verdict, words in how.items()}
        answers["equal"] = f"the two are alike within {one.margin or 0.0:g} nats"
    share = f"{one.documents:,} of {one.total_documents:,} {one.unit} ({percent(one.documents / one.total_documents, 0)})"
    scored = share if one.unit == DOCUMENTS else f"{one.documents:,} {one.unit}"
    stopped = "Interrupted" if one.interrupted else "Not decided"
    yield f"{stopped} after {scored}." if one.verdict == "undecided" else f"Decided after {scored}: {answers[one.verdict]}."
    if one.interrupted:
        yield "The same command goes on from there, if it has an output (-o)."
    if one.p_value is not None and one.exact is not None:
        *_, between = _cells(replace(one.difference, interval=one.exact))
        yield f"The text is used up: the paired test of all documents has {p_equals(one.p_value)} (below 0.01 decides),"
        yield f"with a 95 % interval of {in_words(between)}."


# -- three models or more -----------------------------------------------------------------------------------------------
STATES: dict[str, doc.Mark] = {
    "best": doc.Mark("best", "fact"),
    "real": doc.Mark("real", "good"),
    "chance": doc.Mark("may be chance", "unknown"),
    "equal": doc.Mark("equal", "fact"),
    "untested": doc.Mark("not tested", "unknown"),
    "doubted": doc.Mark("in doubt", "unknown"),
    "unranked": doc.Mark("no rank", "unknown"),
}
"""What the difference of a model from the best is."""
_ALL_REAL = {1: "the difference is", 2: "both differences are", 3: "all three differences are"}
_MOST_NAMED = 5


@dataclass(frozen=True)
class Rival:
    """A model that a figure ranks below the best, and how far above the best it is."""

    item: Comparison
    gap: Difference

    @property
    def state(self) -> str:
        """Return what the difference is, of `STATES`."""
        if self.item.doubts:
            return "doubted"
        if self.item.within_rounding or self.gap.first == self.gap.second:
            return "equal"
        return {True: "real", False: "chance", None: "untested"}[self.item.significant]


def ranked(comparisons: Comparisons, metric: str) -> dict[str, Rival]:
    """Return by name what a figure ranks: no lower bound, no infinite figure, and none that may not be compared."""
    rivals = {}
    for item in comparisons:
        for gap in item.differences:
            ends = (gap.first, gap.second)
            if gap.metric != metric or item.part != WHOLE or not item.verdict(metric).comparable:
                continue
            if not any(isinstance(value, LowerBound) or math.isinf(value) for value in ends):
                rivals[item.second] = Rival(item, gap)
    return rivals


def ranking(comparisons: Comparisons, metric: str) -> doc.Verdict:
    """Return which of three models or more is best, how much higher each other one is, and which of that is real."""
    rivals = ranked(comparisons, metric)
    states = {rival.state for rival in rivals.values()}
    clear = "real" in states and states <= {"real", "equal"}
    level: doc.Level = "good" if clear and len(rivals) == len(comparisons) else "unknown"
    return doc.Verdict(level, " ".join(_ranking(comparisons, metric, rivals, clear)))


def _ranking(comparisons: Comparisons, metric: str, rivals: dict[str, Rival], clear: bool) -> Iterator[str]:
    if not rivals:
        reasons = [f"{TITLES[one.metric]}: {one.reasons[0]}" for one in comparisons[0].verdicts[:2] if one.reasons]
        named = f" ({'; '.join(reasons)})" if reasons else ""
        yield f"These {len(comparisons.runs)} models cannot be ranked: no figure may be compared between all of them{named}."
        return
    by_state: dict[str, list[Rival]] = {}
    for rival in rivals.values():
        by_state.setdefault(rival.state, []).append(rival)
    value = next(iter(rivals.values())).gap.first
    figure = number(value, 4 if metric != "perplexity" else 0 if value >= 100 else 2)
    what = f"predicts best: {TITLES[metric]}" if clear else f"has the lowest {TITLES[metric]},"
    yield f"{'Of those with a rank, ' * (len(rivals) < len(comparisons))}{comparisons.runs[0]} {what} {figure}."
    if real := by_state.get("real"):
        yield _beaten(real, len(comparisons.runs))
    if chance := by_state.get("chance"):
        each = [_higher(rival, f", {p_equals(rival.item.p_value_holm or 0.0)}") for rival in chance]
        yield f"It may be lower by chance than {listed(each)}."
    if untested := by_state.get("untested"):
        each = list(map(_higher, untested))
        yield f"It is lower than {listed(each)}; this is not tested: that takes six documents or segments."
    if equal := by_state.get("equal"):
        yield f"Equal within the rounding of scores: {listed([rival.item.second for rival in equal])}."
    for rival in by_state.get("doubted", ()):
        yield from (*rival.item.doubts, f"So there is no verdict on {rival.item.second}.")
    for item in comparisons:
        if item.second not in rivals:
            yield f"{item.second} has no rank: {_unranked(item, metric)}."


def _higher(rival: Rival, more: str = "") -> str:
    # A model and how much higher than the best it is.
    if rival.gap.metric == "perplexity":
        return f"{rival.item.second} ({change(rival.gap.difference).removeprefix('+')} higher{more})"
    return f"{rival.item.second} ({number(rival.gap.difference)} {TITLES[rival.gap.metric]} higher{more})"


def _beaten(real: Sequence[Rival], models: int) -> str:
    first, most = real[0].item, p_equals(max(rival.item.p_value_holm or 0.0 for rival in real))
    p = most if len(real) == 1 else most.replace("=", "≤")
    unit = first.unit if first.unit == DOCUMENTS else "segments"
    named = listed(list(map(_higher, real)))
    if len(real) > _MOST_NAMED:
        ends = [choose(real, key=lambda rival: rival.gap.difference) for choose in (min, max)]
        named = f"{len(real)} models, from {' to '.join(map(_higher, ends))}"
    all_real = _ALL_REAL.get(len(real), f"all {len(real)} differences are")
    return f"It beats {named}; {all_real} real ({p}{_adjusted(pairs(models))}, {first.units:,} paired {unit})."


def pairs(models: int) -> int:
    """Return how many pairs a ranking tests: as the best is chosen by the figures, all of them."""
    return models * (models - 1) // 2


def _unranked(item: Comparison, metric: str) -> str:
    infinite = any(gap.metric == metric and math.isinf(gap.second) for gap in item.differences)
    why = "an event has probability zero" if infinite else "only a part may be compared"
    return next(iter(item.verdict(metric).reasons), why)


# -- recipes through several runs ---------------------------------------------------------------------------------------
def recipe_blocks(comparisons: Sequence[RecipeComparison]) -> doc.Document:
    """Return the verdict, figures and notes of each recipe compared with the first."""
    return tuple(block for item in comparisons for block in _recipe(item, len(comparisons)))


def _recipe(item: RecipeComparison, recipes: int) -> doc.Document:
    perplexity, name = item.metric == "perplexity", TITLES[item.metric]
    digits = 2 if perplexity else 4
    gap, between = change_cells(item.difference, item.interval, perplexity=perplexity)
    better = item.second if item.figures[1] < item.figures[0] else item.first
    tested = p_equals(item.p_value_holm) + (f", adjusted for {recipes} recipes (Holm)" if recipes > 1 else "")
    level: doc.Level = "good" if item.significant else "unknown"
    verdict = f"is real: recipe {better} is better" if item.significant else "is not significant"
    difference = f"difference {in_words(gap)} (95 % interval {in_words(between)})"
    columns = (
        doc.labels("recipe", [item.first, item.second]),
        doc.numbers("runs", item.runs, form="count"),
        doc.numbers("mean", item.figures, digits),
        doc.numbers("lowest", [min(values) for values in item.values], digits, drop=2),
        doc.numbers("highest", [max(values) for values in item.values], digits, drop=1),
    )
    share = 100 * item.seed_share
    return (
        doc.Heading(f"{item.second} compared with {item.first}"),
        doc.Verdict(level, f"{name}: {difference}. The difference of the recipes {verdict} ({tested})."),
        doc.Table(columns, f"{name} by recipe"),
        *_recipe_charts(item),
        *doc.notes(
            (
                f"Of the variance {share:.0f} % comes from the seeds, {100 - share:.0f} % from the text.",
                f"Error from the text: {item.independence}.",
                "The runs of a recipe are taken as independent.",
                *item.notes,
            )
        ),
    )


def _recipe_charts(item: RecipeComparison) -> doc.Document:
    recipes = (item.first, item.second)
    runs = [recipe for recipe, values in zip(recipes, item.values, strict=True) for _ in values]
    values = [value for of_recipe in item.values for value in of_recipe]
    series = (doc.series("runs", runs, values), doc.series("mean", recipes, item.figures))
    name, unit = TITLES[item.metric], "" if item.metric == "perplexity" else "bits"
    chart = doc.ChartData("recipes", f"{name.capitalize()} of the runs of each recipe", "recipe", name, unit, series)
    return (
        replace(chart, kind="intervals", better="lower"),
        difference_chart([(item.second, item.difference, item.interval)], item.first, item.metric),
    )
