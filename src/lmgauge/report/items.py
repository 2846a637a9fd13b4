"""Runs of scores of items compared: what is real first, then scores, differences, subsets, and items to look at."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, number, p_equals, percent
from lmgauge.tasks.items.results import ITEMS, ItemComparisons, ItemDifference

_ONCE = ("subset", "items", "first", "score")  # said elsewhere of all items
_POWER = "; detectable, needed: with power 80 %"
_UNLIKE = "Only the items that all runs have alike are compared: "


def blocks(result: ItemComparisons, *, details: bool | None = None) -> doc.Document:
    """Return the answers, scores of runs, their differences, those by subset, notes, and items to look at."""
    # details: these items; None: only of two runs.
    first = result.systems[0].system
    names, gaps, ends = zip(*((one.second, one.difference, one.interval) for one in result.differences), strict=True)
    line, y = doc.series("difference", names, gaps, ends), f"difference in {result.score}"
    better = "higher" if result.higher_is_better else "lower"
    chart = doc.differences("difference", f"Difference from {first}", "run", y, "", [line], better=better)
    return (
        doc.Heading(f"{result.score} on {counted(result.items, 'item')}, the same in all runs by {result.matched_by}"),
        *([doc.Verdict("bad", f"{_UNLIKE}{'; '.join(result.not_shared)}.")] if result.not_shared else []),
        *(doc.Verdict("good" if d.significant else "unknown", " ".join(_answer(result, d))) for d in result.differences),
        doc.Table(doc.columns(result.systems)),
        doc.Table(tuple(one for one in doc.columns(result.differences) if one.title not in _ONCE), f"beside {first}"),
        *([chart] if any(ends) else []),
        doc.Table(doc.columns(result.by_subset), f"by subset, beside {first}"),
        *doc.notes([f"95 % intervals and p: {result.independence}{_POWER}", *_sampling(result), *result.notes]),
        *(_examples(result) if details or (details is None and len(gaps) == 1) else []),
        doc.Signature(result.signature),
    )


def _answer(result: ItemComparisons, one: ItemDifference) -> Iterator[str]:
    # One sentence on whether the difference is real, then what it would take to find it.
    better, other = (one.second, one.first) if (one.difference > 0) == result.higher_is_better else (one.first, one.second)
    scores = f"{number(one.second_score)} for {one.second}, {number(one.first_score)} for {one.first}"
    ends = "" if one.interval is None else f", 95 % interval {in_words(doc.between(one.interval, 4, 'signed'))}"
    gap = f"{scores}, difference {in_words(doc.Number(one.difference, 4, 'signed'))}{ends}"
    if one.p_value_holm is None:
        yield f"{one.second} and {one.first}: not tested ({gap}), as six items are needed."
        return
    tests = len(result.differences)
    test = f"{p_equals(one.p_value_holm)}, {one.test}{f', Holm over {tests} comparisons' * (tests > 1)}"
    if one.significant:
        yield f"{better} is better than {other}: {gap} ({test})."
    else:
        yield f"No real difference between {one.second} and {one.first}: {gap} ({test})."
        if one.units_needed is not None:
            unit = one.unit.replace(UNKNOWN, ITEMS)
            yield f"To find one of this size takes about {one.units_needed:,} {unit}; {one.units:,} are here."
        if one.detectable is not None:
            yield f"Differences of {number(one.detectable)} or more are found in these (80 % power)."
    if one.p_value_of_items is not None:
        yield f"Without the clusters p would be {p_equals(one.p_value_of_items).removeprefix('p ').removeprefix('= ')}."


def _sampling(result: ItemComparisons) -> Iterator[str]:
    for one in result.differences:
        share = one.sampling_share
        if share is not None:
            twice, endless = (percent(1 - (1 - share * part) ** 0.5, 0) for part in (0.5, 1.0))
            comes = (
                f"{percent(share, 0)} of the squared error comes from sampling answers, the rest from which items are here"
            )
            helps = f"twice the samples make the interval {twice} narrower, endless ones {endless}, twice the items 29 %"
            yield f"{one.second}: {comes}; {helps}"


def _examples(result: ItemComparisons) -> Iterator[doc.Block]:
    for why in dict.fromkeys(one.why for one in result.examples):
        rows = [one for one in result.examples if one.why == why]
        subsets = [doc.labels("subset", [one.subset for one in rows])] if any(one.subset for one in rows) else []
        scores = zip(*(one.scores for one in rows), strict=True)
        runs = [doc.numbers(run.system, own) for run, own in zip(result.systems, scores, strict=True)]
        yield doc.Table((*subsets, doc.labels("item", [one.item for one in rows], wraps=True), *runs), why)
