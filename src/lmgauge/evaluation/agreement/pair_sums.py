"""What two tables of log-probabilities of the same tokens add up to, collected block by block in bounded memory.

Kept are sums of each segment, counts of slices, a histogram and the worst tokens, never a value for each token. Sums of a
segment are made of all its tokens at once, and added up exactly, so that no figure depends on how tables were cut.

Sources: Schulman (2020), "Approximating KL divergence" (k1, k3); Kish (1965), "Survey sampling" (effective sample size).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.evaluation.agreement.results import PairFigures, PairSlice, PairSlices, WorstEvent
from lmgauge.evaluation.divergence.divergence_result import Figure
from lmgauge.evaluation.divergence.figures import QUANTILES
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.evaluation.slicing.examples import text_around
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, ranges_by_event
from lmgauge.evaluation.slicing.sums import Cut
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.intervals import DOCUMENTS, FEWEST_UNITS, UNKNOWN, ratio_interval, spread_of, sums_by
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

_COLUMNS = (
    *("events", "finite", "outside", "first_zeros", "second_zeros"),
    *("difference", "size", "square", "excess", "logprob", "logprob_square", "product", "largest"),
)
NOTHING = Figure(None, None)
_BITS = 16  # leading bits of a float32: its sign, its exponent and 7 bits of its fraction
_WORST_DOCUMENTS, _AROUND = 10, 6
_PROBABILITIES = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99)
_PROBABILITY_LABELS = (
    *("below 0.00001", "0.00001 to 0.0001", "0.0001 to 0.001", "0.001 to 0.01", "0.01 to 0.1", "0.1 to 0.5"),
    *("0.5 to 0.9", "0.9 to 0.99", "0.99 to 1"),
)


def common_rows(batches: Sequence[ScoreBatch]) -> list[ScoreBatch]:
    """Return the rows that tables of the same segments all have: where one ends early, the others end there too."""
    fewest = np.min([batch.segment_events for batch in batches], axis=0)
    rows = []
    for batch in batches:
        if not np.array_equal(batch.segment_events, fewest):
            position = ranges_by_event([batch]).position
            batch = batch.of_rows(np.flatnonzero(position < np.repeat(fewest, batch.segment_events)))
        rows.append(batch)
    return rows


def refuse_other_tokens(first: ScoreBatch, second: ScoreBatch, names: tuple[str, str]) -> bool:
    """Refuse tables of other tokens, and return True if both tables have tokens, so that this is known."""
    a, b = first.strings.tokens, second.strings.tokens
    if not (a is b or a == b) or not np.array_equal(first.token_ids, second.token_ids):
        numbers = {"": -1}
        codes = [
            np.array([numbers.setdefault(token, len(numbers)) for token in batch.strings.tokens])[batch.token_ids]
            for batch in (first, second)
        ]
        apart = np.flatnonzero((codes[0] != codes[1]) & (codes[0] >= 0) & (codes[1] >= 0))
        if len(apart):
            row, segment = int(apart[0]), first.row_segments()
            shown = [repr(batch.strings.tokens[batch.token_ids[row]]) for batch in (first, second)]
            raise InputError(
                f"{names[1]}: token {row - int(np.searchsorted(segment, segment[row])) + 1:,} of segment {segment[row]} is "
                f"{shown[1]}, and in {names[0]} it is {shown[0]}; score the same tokens with both (here one may be missing)"
            )
    return any(a) and any(b)


class PairSums:
    """Collects what is compared of two tables, block by block."""

    def __init__(self, band: tuple[float, float], examples: int, cuts: Cuts) -> None:
        self._band, self._examples, self._cuts = (math.log(band[0]), math.log(band[1])), examples, cuts
        self._parts: list[Floats] = [np.zeros((0, len(_COLUMNS)))]
        self._histogram = np.zeros(1 << _BITS, np.int64)
        # of each cut its labels, counts of each slice, int64 [slices, 5], and the largest size in it, float64 [slices]
        self._slices: dict[str, tuple[Sequence[str], Ints, Floats]] = {}
        self.largest = 0.0
        self._worst: list[WorstEvent] = []

    def add(self, block: Segments | None, first: ScoreBatch, second: ScoreBatch) -> None:
        """Add the rows that both tables have of some whole segments, and those segments where the text is at hand."""
        a, b = first.logprob, second.logprob
        zeros = a == -np.inf, b == -np.inf
        finite = ~(zeros[0] | zeros[1])
        if not finite.all():
            a, b = (np.where(finite, values, 0.0) for values in (a, b))
        d = b - a
        size = np.abs(d)
        outside = (d < self._band[0]) | (d > self._band[1]) | (zeros[0] != zeros[1])
        with np.errstate(over="ignore"):
            excess = np.expm1(d) - d
        only = [zeros[i] & ~zeros[1 - i] for i in (0, 1)]
        added = (finite, outside, *only, d, size, d * d, excess, a, a * a, a * d)
        self._parts.append(_by_segment(first.segment_events, added, size))
        leading = d[finite].astype(np.float32).view(np.uint32) >> np.uint32(32 - _BITS)
        self._histogram += np.bincount(leading, minlength=1 << _BITS)
        self.largest = max(self.largest, float(size.max(initial=0.0)))
        ranges = ranges_by_event([first])
        # Sizes as whole numbers of 2^-20 nats and of 2^-50 nats beyond: their sums are exact, in whatever order.
        coarse = np.floor(size * 2.0**20)
        counted = (None, finite, outside, coarse, np.floor((size * 2.0**20 - coarse) * 2.0**30))
        for cut in (*self._cuts.of_events(block, first, ranges, spans=bool(len(first.ends))), _by_probability(a)):
            self._add_slices(cut, counted, size)
        self._add_worst(block, first, (a, b), size, ranges.position)

    def _add_slices(self, cut: Cut, counted: Sequence[NDArray[Any] | None], size: Floats) -> None:
        name, labels, codes = cut
        known, sums, largest = self._slices.get(name, ((), np.zeros((0, len(counted)), np.int64), np.zeros(0)))
        labels = max(labels, known, key=len)
        sums, largest = (
            np.concatenate((old, np.zeros((len(labels) - len(old), *old.shape[1:]), old.dtype))) for old in (sums, largest)
        )
        for place, weights in enumerate(counted):
            sums[:, place] += np.bincount(codes, weights, len(labels)).astype(np.int64)
        np.maximum.at(largest, codes, size)
        self._slices[name] = labels, sums, largest

    def _add_worst(
        self, block: Segments | None, rows: ScoreBatch, logprobs: tuple[Floats, Floats], size: Floats, position: Ints
    ) -> None:
        least = abs(self._worst[-1].difference) if len(self._worst) == self._examples else 0.0
        few = np.flatnonzero(size > least)
        if not len(few) or not self._examples:
            return
        few = few[np.argsort(-size[few], kind="stable")[: self._examples]]
        owner, starts = rows.row_segments(), rows.starts() if len(rows.ends) else None
        for row in few.tolist():
            place = int(position[row])
            if block is None or starts is None:
                around = rows.of_rows(np.arange(row - min(place, _AROUND), min(row + 1 + _AROUND, len(rows))))
                tokens = around.tokens()[: np.searchsorted(around.row_segments(), owner[row], side="right")]
                middle = min(place, _AROUND)
                text = _joined(tokens[:middle]), tokens[middle], _joined(tokens[middle + 1 :])
            else:
                text = text_around(block, int(owner[row]) - block.first, int(starts[row]), int(rows.ends[row]))
            a, b = (float(values[row]) for values in logprobs)
            self._worst.append(WorstEvent(int(owner[row]), place, a, b, b - a, *text))
        self._worst = sorted(self._worst, key=lambda event: -abs(event.difference))[: self._examples]

    @property
    def worst(self) -> tuple[WorstEvent, ...]:
        """Return the tokens with the largest differences, the largest first."""
        return tuple(self._worst)

    def _slice_rows(self) -> Iterator[PairSlices]:
        # The ways to cut the events, those with one slice left out.
        for name, (labels, sums, largest) in self._slices.items():
            events, finite, outside, coarse, fine = sums.T
            columns = (labels, events, finite, coarse * 2.0**-20 + fine * 2.0**-50, outside, largest)
            rows = [_slice(*row) for row in zip(*columns, strict=True) if row[1]]
            if len(rows) > 1:
                yield PairSlices(name, tuple(rows))

    def _quantiles(self) -> dict[str, float]:
        # Quantiles of the differences by percent: the middle of the bin that each is in.
        bins = np.flatnonzero(self._histogram)
        values = _bin_values(bins)
        order = np.argsort(values)
        reached = np.cumsum(self._histogram[bins[order]])
        if not len(bins):
            return {}
        places = [int(percent / 100 * (int(reached[-1]) - 1)) for percent in QUANTILES]
        chosen = values[order][np.searchsorted(reached, places, side="right")]
        return {f"{percent:g}": float(value) for percent, value in zip(QUANTILES, chosen, strict=True)}

    def _sizes(self) -> tuple[tuple[float, int], ...]:
        # Counts of sizes between powers of two.
        bins = np.flatnonzero(self._histogram)
        exponents = np.frexp(np.abs(_bin_values(bins)))[1] - 1  # of 0.75: 2^-1
        exponents[_bin_values(bins) == 0] = -200
        counts = {int(e): int(self._histogram[bins[exponents == e]].sum()) for e in np.unique(exponents)}
        return tuple((0.0 if e == -200 else 2.0**e, count) for e, count in counts.items())

    @cached_property
    def sums(self) -> dict[str, Floats]:
        """Return what all blocks add up to in each segment, by name float64 [segments]; after the last block."""
        return dict(zip(_COLUMNS, np.concatenate(self._parts).T, strict=True))

    @cached_property
    def _mean_logprob(self) -> float:
        return exact_sum(self.sums["logprob"]) / max(1.0, float(self.sums["finite"].sum()))

    def centered(self) -> Floats:
        """Return the sums of difference x (log-probability - its mean) of each segment, float64 [segments]."""
        return self.sums["product"] - self._mean_logprob * self.sums["difference"]

    def figures(self, band: tuple[float, float], documents: Ints | None) -> PairFigures:
        """Return the figures of the two."""
        # documents: int64 [segments], the document of each; None where they are not known.
        sums, mean = self.sums, self._mean_logprob

        def ratio(numerators: Floats, per: Floats = sums["finite"]) -> Figure:
            total, size = exact_sum(numerators), float(per.sum())
            return Figure(total / size, ratio_interval(numerators, per, documents, total=total)) if size else NOTHING

        spread = sums["logprob_square"] - 2 * mean * sums["logprob"] + mean**2 * sums["finite"]
        k1 = ratio(-sums["difference"])
        logs = np.where(sums["second_zeros"] > 0, -np.inf, sums["difference"])
        some = (sums["events"] > 0) & (sums["first_zeros"] == 0)
        far = (sums["events"] > 0) & ~(some & (logs >= math.log(band[0])) & (logs <= math.log(band[1])))
        segments, outside = (column.astype(np.float64) for column in (sums["events"] > 0, far))
        worst = [] if documents is None else [PairSlices("document (the worst)", self._worst_documents(documents))]
        return PairFigures(
            int(sums["events"].sum()),
            ratio(sums["difference"]),
            ratio(sums["size"]),
            ratio(sums["square"]).mapped(math.sqrt),
            ratio(sums["outside"], sums["events"]).mapped(_share),
            k1,
            ratio(sums["excess"]),
            ratio(self.centered(), np.maximum(spread, 0.0)),
            k1.mapped(perplexity_ratio_from_nats),
            ratio(outside, segments).mapped(_share),
            effective_sample_size(logs[some], None if documents is None else documents[some]),
            self.largest,
            self._quantiles(),
            (int(sums["first_zeros"].sum()), int(sums["second_zeros"].sum())),
            self._sizes(),
            (*self._slice_rows(), *worst),
        )

    def _worst_documents(self, documents: Ints) -> tuple[PairSlice, ...]:
        codes, inverse = np.unique(documents, return_inverse=True)
        events, finite, size, outside = (
            sums_by(inverse, self.sums[name]) for name in ("events", "finite", "size", "outside")
        )
        largest = np.zeros(len(codes))
        np.maximum.at(largest, inverse, self.sums["largest"])
        worst = np.argsort(-size / np.maximum(finite, 1.0), kind="stable")[:_WORST_DOCUMENTS]
        names = [f"document {code + 1:,}" for code in codes[worst].tolist()]
        columns = (column[worst].tolist() for column in (events, finite, size, outside, largest))
        return tuple(map(_slice, names, *columns))


def _bin_values(bins: Ints) -> Floats:
    # The middle of bins of a histogram by leading bits; 0 of the bin of 0.
    # bins [0x3F80 >> 0] (1 to 1.0078) -> [1.0039]
    middle = (bins.astype(np.uint32) << np.uint32(32 - _BITS)) | np.uint32(1 << (31 - _BITS))
    zero = (bins & 0x7FFF) == 0
    return np.where(zero, 0.0, middle.view(np.float32).astype(np.float64))


def _joined(tokens: Sequence[str]) -> str:
    return (" " if any(token.startswith("#") for token in tokens) else "").join(tokens)


def _slice(label: str, events: float, finite: float, size: float, outside: float, largest: float) -> PairSlice:
    return PairSlice(label, int(events), size / finite if finite else None, outside / events, largest)


def _by_probability(logprob: Floats) -> Cut:
    return "probability in the first", _PROBABILITY_LABELS, np.searchsorted(np.log(_PROBABILITIES), logprob, side="right")


def _by_segment(events: Ints, columns: Sequence[NDArray[Any]], size: Floats) -> Floats:
    # Number of rows of each segment, sums of their columns, and the largest size, float64 [segments, 2 + columns].
    sums = np.zeros((len(events), len(_COLUMNS)))
    sums[:, 0] = events
    some = np.flatnonzero(events)
    if len(some):
        begins = (np.cumsum(events) - events)[some]
        for place, column in enumerate(columns, 1):
            sums[some, place] = np.add.reduceat(column, begins, dtype=np.float64)
        sums[some, -1] = np.maximum.reduceat(size, begins)
    return sums


def effective_sample_size(logs: Floats, documents: Ints | None) -> Figure:
    """Return the effective number of sequences with weights exp(logs) as a share of them: (sum w)^2 / sum w^2 / n."""
    # logs: float64 [sequences], log of the ratio of each; -inf where the second gives it probability zero.
    if not len(logs) or logs.max() == -np.inf:
        return NOTHING
    # Ratios of long sequences leave float64; the figure is the same for any multiple of the weights.
    weights = np.exp(logs - logs.max())
    unit = np.arange(len(logs)) if documents is None else np.unique(documents, return_inverse=True)[1]
    known = documents is not None and unit.max() >= FEWEST_UNITS - 1
    unit = unit if known else np.arange(len(logs))
    first, second, counts = (sums_by(unit, column) for column in (weights, weights**2, np.ones(len(logs))))
    value, rest = float(first.sum() ** 2 / second.sum()) / len(logs), len(logs) - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (first.sum() - first) ** 2 / (second.sum() - second) / rest
    over = spread_of(value, (value - without) * rest, counts, DOCUMENTS if known else UNKNOWN)
    interval = None if over is None else over.interval()
    return Figure(value, interval and replace(interval, low=max(0.0, interval.low), high=_share(interval.high)))


def _share(value: float) -> float:
    return min(1.0, value)
