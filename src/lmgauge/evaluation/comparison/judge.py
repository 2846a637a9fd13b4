"""The verdict on two runs, from what was collected of them: how far their figures are apart, and whether that is real."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import UsageError
from lmgauge.evaluation.comparison.comparability import EXACT_PART, NOTHING, SHARED_EVENTS, WHOLE, Verdict, bound_reasons
from lmgauge.evaluation.comparison.explain import notes
from lmgauge.evaluation.comparison.pair_sums import PairSums
from lmgauge.evaluation.comparison.results import Comparison, Difference
from lmgauge.evaluation.slicing.ranges import Floats
from lmgauge.numerics.exact import exact_to_nats
from lmgauge.numerics.independence import in_words
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.resampling import DEFAULT_TRIALS, check_draws
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats, perplexity_ratio_from_nats

_UNITS = ("event", "byte", "character", "word")


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """How runs are compared.

    Attributes:
        resamples: draws of the permutation test.
        seed: of the draws.
        threads: how many; no number depends on it.
        examples: how many segments and tokens to show of each kind.

    Raises:
        UsageError: a number is out of range.
    """

    resamples: int = DEFAULT_TRIALS
    seed: int = DEFAULT_SEED
    threads: int | None = None
    examples: int = 5

    def __post_init__(self) -> None:
        check_draws(self.resamples, self.seed)
        if self.examples < 0:
            raise UsageError(f"examples must be a whole number, 0 or more; got {self.examples}")


def judge(sums: PairSums, verdicts: Sequence[Verdict], settings: ComparisonSettings, level: float) -> Comparison:
    """Return the comparison of two runs.

    Args:
        sums: what was collected of them; nothing where they cannot be compared.
        verdicts: for each metric whether it may be compared.
        settings: draws of the test, and threads.
        level: confidence with which a difference must hold to be found, 0 to 1.
    """
    part = sums.part
    units = [unit for unit in _UNITS if _shows(unit, part, verdicts)]
    paired = sums.per_segment.joined()
    zeros, sizes, used = paired.zeros, paired.sizes, paired.used
    spreads = dict(zip(_UNITS, paired.spreads(), strict=True))
    lead = next((spreads[unit] for unit in (*units, *_UNITS) if spreads[unit] is not None), None)
    tested = None if zeros.any() else lead
    p_value = None
    if tested is not None:
        p_value = paired.p_value(tested, settings.resamples, settings.seed, settings.threads)
    intervals = {unit: None if found is None else found.interval() for unit, found in spreads.items()}
    exact = [-math.inf if count else exact_to_nats(total) for count, total in zip(sums.zeros, sums.totals, strict=True)]
    differences = tuple(_differences(units, exact, sizes.sum(axis=0), {} if zeros.any() else intervals))
    finite = [math.fsum(nats[used]) for nats in paired.nats] if zeros.any() else []
    without_zeros = tuple(_differences(units, finite, sizes[used].sum(axis=0), intervals)) if zeros.any() else ()
    if not differences and part != NOTHING:
        part = NOTHING
        verdicts = [replace(verdict, nearest=None) for verdict in verdicts]
    slices = [collected.finish(sums.unit) for collected in sums.slices]
    slices = [found for found in slices if found.rows and not (found.name == "group" and len(found.rows) == 1)]
    by_bytes = sums.unit != "event"
    bounds = [part == WHOLE and bool(bound_reasons(r.origin, t)) for r, t in zip(sums.runs, sums.facts.totals, strict=True)]
    return Comparison(
        first=sums.runs[0].name,
        second=sums.runs[1].name,
        verdicts=tuple(verdicts),
        part=part,
        bytes=int(sizes[:, 1].sum()) if by_bytes else None,
        bytes_in_all=sums.bytes_in_all if by_bytes else None,
        events=int(sizes[:, 0].sum()),
        lower_bounds=(bounds[0], bounds[1]),
        differences=differences,
        without_zeros=without_zeros,
        p_value=p_value if differences else None,
        p_value_holm=None,
        segments=int(np.count_nonzero(used)),
        segments_with_zeros=int(np.count_nonzero(zeros)),
        unit="" if lead is None else lead.unit,
        units=0 if lead is None else lead.units,
        units_needed=None if tested is None else tested.units_needed(level),
        independence="" if lead is None else in_words(lead, sums.documents.by),
        doubts=tuple(f"{run.name}: {why}" for run, why in zip(sums.runs, sums.facts.first_tokens, strict=True) if why),
        slices=tuple(slices),
        segments_lost=sums.segments.worst(),
        segments_won=sums.segments.best(),
        tokens_lost=sums.tokens.worst(),
        tokens_won=sums.tokens.best(),
        notes=tuple(notes(sums, part, paired, lead, slices)),
    )


def _shows(unit: str, part: str, verdicts: Sequence[Verdict]) -> bool:
    """Return True if the part that is compared allows a figure per this unit."""
    if part == WHOLE:
        return any(verdict.comparable for verdict in verdicts if verdict.metric == _metric(unit))
    return unit == {EXACT_PART: "byte", SHARED_EVENTS: "event"}.get(part)


def _metric(unit: str) -> str:
    return "perplexity" if unit == "event" else f"bits_per_{unit}"


def _differences(
    units: Sequence[str], nats: Sequence[float], totals: Floats, intervals: Mapping[str, Interval | None]
) -> Iterator[Difference]:
    """Yield perplexity where it may be compared, bits per byte and so on, of two sums of log-probabilities."""
    for unit, size in zip(_UNITS, totals.tolist(), strict=True):
        if not size or unit not in units:
            continue
        first, second = (0.0 - part / size for part in nats)  # never -0.0
        interval = intervals.get(unit)
        to_figure = perplexity_from_nats if unit == "event" else nats_to_bits
        to_difference = perplexity_ratio_from_nats if unit == "event" else nats_to_bits
        a, b = to_figure(first), to_figure(second)
        if math.isfinite(first) and math.isfinite(second):
            difference = to_difference(second - first)
        else:
            difference = _quotient(a, b) if unit == "event" else _gap(a, b)
        yield Difference(_metric(unit), a, b, difference, None if interval is None else interval.mapped(to_difference))


def _quotient(first: float, second: float) -> float:
    if math.isinf(first):
        return 1.0 if math.isinf(second) else 0.0
    return math.inf


def _gap(first: float, second: float) -> float:
    if math.isinf(first):
        return 0.0 if math.isinf(second) else -math.inf
    return math.inf
