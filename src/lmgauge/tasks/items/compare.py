"""Runs of scores of items compared: the same items are paired, and their differences tested over what is independent.

The score of an item is the mean of its samples, that of a run the mean over items. Two runs share their items, so that what
counts is how the differences of items vary (Miller 2024, "Adding error bars to evals", arXiv 2411.00640, section 4.2):

* **Items that form clusters** (questions on one passage, variants of one template) are alike, and the cluster is left out
  by the jackknife: with clusters of one size its error is Miller's equation 4 times root(G / (G - 1)) of G clusters.
* **0 and 1, one sample each, no clusters**: McNemar's exact test of the items that only one of the two solves.
* **Several samples of an item**: means of k samples vary by s2 / k within and by w2 between items (analysis of variance:
  s2 is the mean variance within, w2 the variance of the means less s2 / k). More samples make only the first part smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import counted, first_few
from lmgauge.base.files import digest
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.independence import FEW_UNITS
from lmgauge.numerics.intervals import (
    DOCUMENTS,
    FEWEST_UNITS,
    SEGMENTS,
    UNKNOWN,
    Spread,
    mcnemar_p_value,
    spread,
    sums_by,
    wilson_interval,
)
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.signature import Signature
from lmgauge.tasks.items.logs import COLUMNS, SUBSETS_OF_FILES
from lmgauge.tasks.items.results import CLUSTERS, ITEMS, ItemComparisons, ItemDifference, ItemExample, ItemRun
from lmgauge.tasks.items.table import ItemScores
from lmgauge.tasks.significance import SIGNIFICANT

Key = tuple[str, str]
"""An item: its subset, and its id there."""
Marks = dict[Key, set[str]]
"""What is said of items: digests of questions or of prompts, clusters."""
_UNITS = {DOCUMENTS: CLUSTERS, SEGMENTS: ITEMS, UNKNOWN: UNKNOWN}
_SHOWN = 3
_EXACT, _STUDENT = "McNemar's exact test", "Student's t"


class _Run:
    """One run, item by item, in the order of its log."""

    def __init__(self, name: str, scores: ItemScores) -> None:
        self.name, self.origin, codes = name, scores.origin, scores.codes
        self._keys = list(zip(scores.subset, scores.item, strict=True))
        self.places = dict(zip(self._keys, codes.tolist(), strict=True))
        self.counts = np.bincount(codes)  # samples of each item
        self.means = scores.item_means
        squares = sums_by(codes, (scores.score - self.means[codes]) ** 2)
        self.variances = squares / np.where(self.counts > 1, self.counts - 1, np.nan)  # within items; NaN of one sample
        self.contents, self.prompts = self._of_items(scores.content), self._of_items(scores.prompt)
        self.clusters = self._of_items(scores.cluster)
        if several := [key for key, clusters in self.clusters.items() if len(clusters) > 1]:
            raise InputError(f"{name}: {_counted(several, 'in several clusters')}")

    def _of_items(self, column: Sequence[str]) -> Marks:
        """Return what a column says of the items that it says something of."""
        known: Marks = {}
        for key, value in zip(self._keys, column, strict=False):  # what is not known at all is empty
            if value:
                known.setdefault(key, set()).add(value)
        return known


@dataclass(frozen=True, eq=False)
class _Paired:
    """Runs on the same items."""

    runs: Sequence[_Run]
    keys: Sequence[Key]
    clusters: Ints | None  # [items], their numbers; None where they are not known
    means: Floats  # [runs, items], scores
    counts: Ints  # [runs, items], samples
    variances: Floats  # [runs, items], within items; NaN of single samples

    @classmethod
    def of(cls, runs: Sequence[_Run], keys: Sequence[Key]) -> _Paired:
        """Return what runs say of items that are in all of them."""
        places = [[run.places[key] for key in keys] for run in runs]
        means, counts, variances = (
            np.stack([getattr(run, name)[own] for run, own in zip(runs, places, strict=True)])
            for name in ("means", "counts", "variances")
        )
        return cls(runs, keys, _clusters(runs, keys), means, counts, variances)

    def part(self, chosen: Sequence[int]) -> _Paired:
        """Return the same of some items."""
        keys, clusters = [self.keys[i] for i in chosen], None if self.clusters is None else self.clusters[chosen]
        means, counts, variances = self.means[:, chosen], self.counts[:, chosen], self.variances[:, chosen]
        return _Paired(self.runs, keys, clusters, means, counts, variances)

    @property
    def binary(self) -> bool:
        """Return True if each item has one score of 0 or 1."""
        return bool((self.counts == 1).all() and np.isin(self.means, (0.0, 1.0)).all())

    def spread(self, values: Floats) -> Spread | None:
        """Return the mean of values of items with its error over clusters or items."""
        return _spread(values, np.arange(len(values)) if self.clusters is None else self.clusters)

    def within(self, run: int) -> float:
        """Return the mean variance within the items of a run; NaN of single samples."""
        known = self.variances[run][self.counts[run] > 1]
        return float(known.mean()) if len(known) else math.nan

    def noise(self, run: int) -> float:
        """Return the part of the variance of the items' means that comes from samples; NaN of single samples."""
        return self.within(run) * float((1 / self.counts[run]).mean())


def _spread(values: Floats, units: Ints) -> Spread | None:
    made = spread(values, np.ones(len(values)), units)
    return None if made is None else replace(made, unit=_UNITS[made.unit])


def compare_items(
    runs: Sequence[ItemScores], names: Sequence[str], *, common: bool = False, examples: int = 5
) -> ItemComparisons:
    """Compare each run with the first."""
    # names: of runs, each once; common: leave out items that not all runs have alike, instead of refusing the runs.
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs of scores of items or more")
    origins, first = [run.origin for run in runs], runs[0].origin
    for name, other in zip(names, origins, strict=True):
        named_alike = other.score == first.score or COLUMNS in (other.program, first.program)  # a column may be a model
        if not named_alike:
            raise InputError(f"{name} has scores of {other.score!r}, {names[0]} of {first.score!r}: compare one score")
        if other.higher_is_better != first.higher_is_better:
            here, there = ("higher", "lower") if first.higher_is_better else ("lower", "higher")
            ways = f"{names[0]}: {here} is better, {name}: {there}"
            raise InputError(f"the direction differs ({ways}): import both with --lower-is-better, or neither")
    each = [_Run(name, run) for name, run in zip(names, runs, strict=True)]
    keys, not_shared = _shared(each)
    if not keys or (not_shared and not common):
        cure = "--common compares those that all have alike" if keys else "no item is in all runs" + _other_subsets(each)
        raise InputError(f"not the same items: {'; '.join([*not_shared, cure])}")
    paired = _Paired.of(each, keys)
    ends = min(one.lowest for one in origins), max(one.highest for one in origins)
    whole = _adjusted([paired], [""])
    subsets: dict[str, list[int]] = {}
    for place, (subset, _) in enumerate(keys):
        subsets.setdefault(subset, []).append(place)
    parts = [paired.part(places) for places in subsets.values()] if len(subsets) > 1 else []
    score = "/".join(dict.fromkeys(one.score for one in origins))
    choices = {
        "score": score,
        "n": str(len(keys)),
        "samples": "+".join(dict.fromkeys(str(run.counts.max()) for run in each)),
        "independent": f"{whole[0].units}-{whole[0].unit}",
        "items": digest(sorted(keys))[:6],
        "v": NUMBERS_VERSION,
    }
    return ItemComparisons(
        score=score,
        higher_is_better=first.higher_is_better,
        systems=tuple(_run(paired, i, ends) for i in range(len(each))),
        differences=whole,
        by_subset=_adjusted(parts, list(subsets)),
        items=len(keys),
        matched_by=next((f"id and {what}" for what in ("content", "prompt") if _known(each, keys, what)), "id"),
        not_shared=tuple(not_shared),
        independence=_independence(whole[0]),
        examples=tuple(_examples(paired, examples, ends)),
        signature=str(Signature(choices, head="items")),
        notes=tuple(dict.fromkeys(_notes(paired, whole, len(subsets)))),
    )


def _known(runs: Sequence[_Run], keys: Sequence[Key], what: str) -> bool:
    return all(key in getattr(run, f"{what}s") for run in runs for key in keys)


def _counted(keys: Sequence[Key], what: str) -> str:
    return f"{counted(len(keys), 'item')} {what} ({first_few(['/'.join(filter(None, key)) for key in keys], _SHOWN)})"


def _shared(runs: Sequence[_Run]) -> tuple[list[Key], list[str]]:
    """Return the items that all runs have alike, and in words what is not so."""
    first, *others = runs
    keys, differing = list(first.places), list[str]()
    for other in others:
        sides = {
            f"of {first.name} not in {other.name}": [key for key in first.places if key not in other.places],
            f"of {other.name} not in {first.name}": [key for key in other.places if key not in first.places],
            f"with another question or prompt in {other.name}": [key for key in first.places if _other(first, other, key)],
        }
        differing += [_counted(left, what) for what, left in sides.items() if left]
        apart = {key for left in sides.values() for key in left}
        keys = [key for key in keys if key not in apart]
    return keys, differing


def _other_subsets(runs: Sequence[_Run]) -> str:
    """Return what is to be said of runs that share ids, but not the subsets of these."""
    subsets = [{subset for subset, _ in run.places} for run in runs]
    if set.intersection(*subsets) or not set.intersection(*({item for _, item in run.places} for run in runs)):
        return ""
    names = first_few(sorted(set().union(*subsets)), _SHOWN)
    return f"; ids are shared, but subsets differ ({names}): {SUBSETS_OF_FILES}"


def _other(first: _Run, second: _Run, key: Key) -> bool:
    # The same question may be asked with other few-shot examples, or in another chat template.
    by_content = key in first.contents and key in second.contents
    return _differ(first.contents, second.contents, key) if by_content else _differ(first.prompts, second.prompts, key)


def _differ(first: Marks, second: Marks, key: Key) -> bool:
    return key in first and key in second and first[key] != second[key]


def _clusters(runs: Sequence[_Run], keys: Sequence[Key]) -> Ints | None:
    known = [run for run in runs if run.clusters]
    for run in known[1:]:
        if differ := [key for key in keys if run.clusters.get(key) != known[0].clusters.get(key)]:
            raise InputError(f"{_counted(differ, f'of another cluster in {run.name}')}: import all with the same field")
    if not known:
        return None
    numbers: dict[object, int] = {}
    each = (tuple(known[0].clusters.get(key, (key,))) for key in keys)  # an item of no cluster is one
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in each], np.int64)


def _run(paired: _Paired, run: int, ends: tuple[float, float]) -> ItemRun:
    values, within = paired.means[run], paired.within(run)
    own, share, interval = paired.spread(values), float(values.mean()), None
    if paired.binary and paired.clusters is None:
        interval = wilson_interval(share, len(values), ITEMS)
    elif own is not None and own.error:  # all alike, they do not tell how others would vary
        wide = own.interval()
        interval = replace(wide, low=max(ends[0], wide.low), high=min(ends[1], wide.high))
    variances: tuple[float | None, float | None] = (None, None)
    if within >= 0 and len(values) > 1:  # not NaN
        variances = within, max(0.0, float(values.var(ddof=1)) - paired.noise(run))
    return ItemRun(paired.runs[run].name, int(paired.counts[run].sum()), share, interval, *variances)


def _adjusted(parts: Sequence[_Paired], subsets: Sequence[str]) -> tuple[ItemDifference, ...]:
    # The level that Holm's method asks of the smallest p-value is that of what can be found.
    tests = sum(len(part.runs) - 1 for part in parts)
    return holm_adjusted(
        _difference(part, run, subset, 1 - SIGNIFICANT / tests)
        for part, subset in zip(parts, subsets, strict=False)
        for run in range(1, len(part.runs))
    )


def _difference(paired: _Paired, run: int, subset: str, level: float) -> ItemDifference:
    first, second = paired.means[[0, run]]
    apart, n = second - first, len(first)
    own, alone = paired.spread(apart), _spread(apart, np.arange(n))
    clusters = paired.clusters if own is not None and own.unit == CLUSTERS else None
    only = int((first > second).sum()), int((second > first).sum())
    differing = int(np.count_nonzero(np.abs(apart) if clusters is None else sums_by(clusters, np.abs(apart))))
    exact = paired.binary and paired.clusters is None
    # Where few units differ, their signs say no more than tossed coins.
    least = 2.0 ** min(0, 1 - differing)
    p = mcnemar_p_value(*only) if exact else None if own is None else max(own.p_value, least)
    known = None if differing < FEWEST_UNITS else own
    share = (paired.noise(0) + paired.noise(run)) / n / own.error**2 if own is not None and own.error else math.nan
    return ItemDifference(
        first=paired.runs[0].name,
        second=paired.runs[run].name,
        subset=subset,
        items=n,
        unit=own.unit if own else UNKNOWN,
        units=own.units if own else n,
        first_score=float(first.mean()),
        second_score=float(second.mean()),
        difference=own.ratio if own else float(apart.mean()),
        interval=None if known is None else known.interval(),
        test=_EXACT if exact else _STUDENT,
        p_value=p,
        p_value_holm=None,
        p_value_of_items=None if clusters is None or alone is None else alone.p_value,
        only_first=only[0] if paired.binary else None,
        only_second=only[1] if paired.binary else None,
        detectable=None if known is None else known.detectable(level),
        units_needed=None if known is None else known.units_needed(level),
        sampling_share=None if math.isnan(share) else min(1.0, share),
    )


def _independence(lead: ItemDifference) -> str:
    if lead.unit != UNKNOWN:
        return f"{lead.units:,} {lead.unit} are taken as independent"
    if lead.p_value is None:
        return f"{counted(lead.items, 'item')}: fewer than {FEWEST_UNITS} have no interval"
    return f"fewer than {FEWEST_UNITS} clusters do not tell how clusters vary: this is about more items of the same clusters"


def _notes(paired: _Paired, differences: Sequence[ItemDifference], subsets: int) -> Iterator[str]:
    for run in paired.runs:
        yield from (f"{run.name}: {note}" for note in run.origin.notes)
        if asked := [key for key in paired.keys if _differ(paired.runs[0].prompts, run.prompts, key)]:
            yield f"{_counted(asked, f'asked with another prompt in {run.name}')}: other examples, or chat template"
    if subsets > 1:
        yield "each item counts alike, so that large subsets weigh more"
    lead = differences[0]
    if FEWEST_UNITS <= lead.units < FEW_UNITS:
        unit = lead.unit.replace(UNKNOWN, ITEMS)
        yield f"only {lead.units} {unit}: treat the intervals as rough ({FEW_UNITS} or more needed)"
    for one in differences:
        if one.interval is None and one.p_value is not None:
            yield f"{one.second}: differs from {one.first} in too few {one.unit} for an interval: {FEWEST_UNITS} are needed"
        elif one.interval and one.p_value and (one.interval.low > 0 or one.interval.high < 0) != (one.p_value < SIGNIFICANT):
            yield f"{one.second}: believe p, which is exact; the interval, which says otherwise, is not"


def _examples(paired: _Paired, most: int, ends: tuple[float, float]) -> Iterator[ItemExample]:
    sign = 1.0 if paired.runs[0].origin.higher_is_better else -1.0
    goods = sign * paired.means
    misses = (goods < sign * sum(ends) / 2).mean(axis=0)
    chosen = [("most runs miss it", -misses, misses > 0.5)]
    for run, good in zip(paired.runs[1:], goods[1:], strict=True):
        gain = good - goods[0]
        chosen += [(f"lost by {run.name}", gain, gain < 0), (f"won by {run.name}", -gain, gain > 0)]
    for why, order, among in chosen:
        for i in [i for i in np.argsort(order, kind="stable").tolist() if among[i]][:most]:
            yield ItemExample(why, paired.keys[i][1], paired.keys[i][0], tuple(paired.means[:, i].tolist()))


def summarized(scores: ItemScores) -> tuple[ItemRun, float | None]:
    """Return the score of one run with its interval, and its standard error where it is known."""
    run = _Run(scores.origin.model, scores)
    paired = _Paired.of([run], list(run.places))
    own = paired.spread(paired.means[0])
    return _run(paired, 0, (scores.origin.lowest, scores.origin.highest)), None if own is None else own.error
