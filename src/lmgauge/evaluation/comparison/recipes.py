"""Recipes compared through several runs of each: the text and the seeds are both sources of chance.

A test over documents tells two models apart, and says nothing of the recipes that made them: with another seed the same
recipe makes another model. With several runs of each, the difference of the recipes is that of their mean log-probabilities.
Its variance is the sum of two parts:

* the text: the jackknife over documents of the difference of the means (`statistics.spread`);
* the seeds: s_A^2 / K_A + s_B^2 / K_B, with s the standard deviation of a recipe's K runs on this text (Welch 1947).

Degrees of freedom are Welch and Satterthwaite's (Satterthwaite 1946) over all parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.result_list import Result, ResultList, interval_columns
from lmgauge.evaluation.comparison.comparability import Documents, choose_documents, gather_facts, verdicts
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.evaluation.comparison.until import Decision, by_runs, figures_of
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.numerics.figures import Scale
from lmgauge.numerics.independence import caveats, in_words
from lmgauge.numerics.intervals import Interval, Spread, spread
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.units import difference_to_scale, nats_to_scale
from lmgauge.text.documents import Corpus

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PERPLEXITY, BITS_PER_BYTE = "perplexity", "bits_per_byte"


@dataclass(frozen=True, repr=False)
class RecipeComparison(Result):
    """One recipe compared with the first."""

    STATED: ClassVar = ("significant",)
    first: str
    second: str
    runs: tuple[int, int]
    metric: str  # `perplexity` where it may be compared, else `bits_per_byte`
    values: tuple[tuple[float, ...], tuple[float, ...]]  # the figure of each run, by recipe
    figures: tuple[float, float]  # of each recipe, at the mean log-probability of its runs
    difference: float  # second minus first, bits per byte (for perplexity: the ratio of the two)
    interval: Interval  # 95 %, of the difference, over texts and seeds
    seed_share: float  # share of the variance that comes from the seeds, 0 to 1
    p_value: float  # p_value, p_value_holm: two-sided, by Student's t; adjusted for the number of recipes
    p_value_holm: float
    independence: str  # what is taken as independent, in words
    notes: tuple[str, ...]

    @property
    def significant(self) -> bool:
        """Return True if the difference is significant, at 5 %, adjusted."""
        return self.p_value_holm < SIGNIFICANT

    def _in_brief(self) -> str:
        return (
            f"recipe {self.second} / {self.first}: {self.metric} {self.figures[1]:.4f} / {self.figures[0]:.4f}, "
            f"p = {self.p_value_holm:.4g} (seeds {100 * self.seed_share:.0f} % of the variance)"
        )


@dataclass(frozen=True, repr=False)
class RecipeComparisons(ResultList[RecipeComparison]):
    """Each recipe compared with the first, in order."""

    def to_rows(self) -> list[dict[str, Any]]:
        names = ("first", "second", "metric", "difference", "seed_share", "p_value", "p_value_holm", "significant")
        return [
            {name: getattr(item, name) for name in names}
            | {"first_value": item.figures[0], "second_value": item.figures[1]}
            | interval_columns(item.interval)
            for item in self.items
        ]


def compare_recipes(
    recipes: Mapping[str, Sequence[Run]], *, corpus: Corpus | None = None, documents_of_text: bool = False
) -> RecipeComparisons:
    """Compare recipes with the first of them, each by two runs or more (other seeds) on one text."""
    _check(recipes)
    runs = with_distinct_names([run for group in recipes.values() for run in group])
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text = corpus or remembered(*runs)
    metric = _metric(runs, text)
    columns = _read(runs, text, metric, documents_of_text)
    of_recipe: dict[str, list[Floats]] = {}
    scored = iter(columns.nats)
    for name, group in recipes.items():
        of_recipe[name] = [next(scored) for _ in group]
        _refuse_copies(group, of_recipe[name])
    first, *others = of_recipe
    items = (_compared((first, name), (of_recipe[first], of_recipe[name]), columns, metric) for name in others)
    return RecipeComparisons(holm_adjusted(items))


def decide_recipes(recipes: Mapping[str, Sequence[Run]]) -> Decision:
    """Say which of two recipes is better by their runs, paired in order and looked at after each pair."""
    _check(recipes)
    counts = [len(group) for group in recipes.values()]
    if len(counts) != 2 or counts[0] != counts[1]:
        raise UsageError(f"two recipes are paired seed by seed: give as many runs of each (there are {counts})")
    runs = [run for group in recipes.values() for run in group]
    metric = _metric(runs, remembered(*runs)).replace(PERPLEXITY, "cross_entropy")
    (first, one), (second, other) = ((name, figures_of(group, metric)) for name, group in recipes.items())
    return by_runs((first, second), metric, one, other)


def _check(recipes: Mapping[str, Sequence[Run]]) -> None:
    if len(recipes) < 2:
        raise UsageError("a comparison needs two recipes or more: --recipe A=run1,run2 --recipe B=run3,run4")
    paths: dict[str, str] = {}
    for name, group in recipes.items():
        if len(group) < 2:
            raise UsageError(
                f"recipe {name}: has {len(group)} run; give two or more (other seeds), as one run does not show how much "
                "the seed matters; compare two models with `lmgauge compare RUN RUN`"
            )
        for run in group:
            path = str(run.path.resolve())
            if path in paths:
                raise UsageError(f"{run.path}: is in recipe {paths[path]} and again in {name}; name each run once")
            paths[path] = name


def _refuse_copies(runs: Sequence[Run], nats: Sequence[Floats]) -> None:
    # Refuse runs of one recipe that agree to the last digit: they are one model, not two seeds.
    for i, (run, own) in enumerate(zip(runs, nats, strict=True)):
        for earlier, other in zip(runs[:i], nats[:i], strict=True):
            if np.array_equal(own, other):
                raise UsageError(
                    f"{earlier.path} and {run.path} score every segment alike: they are the same model, not two seeds"
                )


def _metric(runs: Sequence[Run], text: Corpus | None) -> str:
    # Figure that may be compared between all runs: perplexity, else bits per byte.
    possible = {PERPLEXITY, BITS_PER_BYTE} if text is not None else {PERPLEXITY}
    for run, facts in zip(runs[1:], gather_facts(runs, text), strict=True):
        for verdict in verdicts(runs[0], run, facts)[0]:
            if verdict.comparable or verdict.metric not in possible:
                continue
            possible.discard(verdict.metric)
            if not possible:
                remedy = "train all with one vocabulary (--words), or on characters or bytes"
                if text is None:
                    remedy = "name the text (--text), which bits per byte need"
                raise InputError(
                    f"{run.path} and {runs[0].path} may not be compared ({'; '.join(verdict.reasons)}); {remedy}"
                )
    return PERPLEXITY if PERPLEXITY in possible else BITS_PER_BYTE


@dataclass(frozen=True)
class _Columns:
    """What all runs have by segment.

    Attributes:
        nats: of each run, float64 [segments].
        sizes: float64 [segments], events or bytes.
        documents: int64 [segments], or None where documents are not known.
        chosen: where the documents come from.
    """

    nats: list[Floats]
    sizes: Floats
    documents: Ints | None
    chosen: Documents


def _read(runs: Sequence[Run], text: Corpus | None, metric: str, documents_of_text: bool) -> _Columns:
    # Read every table once, beside the text if it is at hand.
    nats: list[Floats] = []
    named: list[Ints | None] = []
    sizes, of_text = np.zeros(0), None
    for run in runs:
        tally = EventSums()
        lengths: list[Floats] = []
        known: list[Ints] = []
        for block, (batch,) in lockstep([run.batches()], text, [run.name]):
            tally.add(batch)
            if block is not None:
                lengths.append(segment_bytes(block, batch, run.origin.policy).astype(np.float64))
                known += [] if block.documents is None else [block.documents]
        if tally.total_zeros:
            raise InputError(
                f"{run.path}: {tally.total_zeros:,} events have probability zero, so its figure is infinite and cannot "
                "be tested"
            )
        sums = tally.per_segment()
        sizes = np.concatenate(lengths) if metric == BITS_PER_BYTE else sums.events.astype(np.float64)
        of_text = np.concatenate(known) if known else None
        nats.append(sums.nats)
        named.append(sums.documents)
    chosen = choose_documents(runs, named, text, asked=documents_of_text)
    return _Columns(nats, sizes, of_text if chosen.table is None else named[chosen.table], chosen)


def _compared(
    names: tuple[str, str], nats: tuple[list[Floats], list[Floats]], columns: _Columns, metric: str
) -> RecipeComparison:
    size = float(columns.sizes.sum())
    means = [np.mean(group, axis=0) for group in nats]
    values = [np.array([-math.fsum(run) / size for run in group]) for group in nats]
    text = spread(means[0] - means[1], columns.sizes, columns.documents)
    if text is None:
        raise InputError("nothing tells how the difference varies from text to text: " + next(caveats(None)))
    seeds = [float(part.var(ddof=1)) / len(part) for part in values]
    both = _with_seeds(text, seeds, [len(part) - 1 for part in values])
    figures = [float(part.mean()) for part in values]
    scale: Scale = "perplexity" if metric == PERPLEXITY else "bits"
    to_figure, to_difference = partial(nats_to_scale, scale=scale), partial(difference_to_scale, scale=scale)
    first, second = (tuple(to_figure(value) for value in part.tolist()) for part in values)
    total = text.error**2 + sum(seeds)
    p_value = both.p_value
    return RecipeComparison(
        first=names[0],
        second=names[1],
        runs=(len(nats[0]), len(nats[1])),
        metric=metric,
        values=(first, second),
        figures=(to_figure(figures[0]), to_figure(figures[1])),
        difference=to_difference(both.ratio),
        interval=both.interval().mapped(to_difference),
        seed_share=sum(seeds) / total if total else 0.0,
        p_value=p_value,
        p_value_holm=p_value,
        independence=in_words(text, columns.chosen.by),
        notes=(*caveats(text), *columns.chosen.notes),
    )


def _with_seeds(text: Spread, variances: Sequence[float], freedoms: Sequence[int]) -> Spread:
    # Spread with the variances of the seeds added: Welch's t, Satterthwaite's degrees of freedom.
    parts = [(text.error**2, text.freedom), *zip(variances, freedoms, strict=True)]
    total = math.fsum(variance for variance, _ in parts)
    if not total:
        return text
    freedom = total**2 / math.fsum(variance**2 / degrees for variance, degrees in parts)
    return replace(text, error=math.sqrt(total), freedom=max(1, math.floor(freedom + 1e-9)))
