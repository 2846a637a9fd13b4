"""What two tables of log-probabilities of the same tokens add up to, collected block by block in bounded memory.

Kept are sums of each segment, counts of slices, a histogram and the worst tokens, never a value for each token. Sums of a
segment are made of all its tokens at once, and added up exactly, so that no figure depends on how tables were cut.

Sources: Schulman (2020), "Approximating KL divergence" (k1, k3); Kish (1965), "Survey sampling" (effective sample size).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce

import numpy as np

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
from lmgauge.scores.table import ScoreBatch, Strings, same_tokens
from lmgauge.text.segments import Segments

_BITS = 16  # leading bits of a float32: its sign, its exponent and 7 bits of its fraction
_WORST_DOCUMENTS, _AROUND = 10, 6
_ENDS = [2.0**power for power in range(-9, 7)]  # of the slices by the size of log p, nats
_BY_SIZE = [f"below {_ENDS[0]:.2g}", *(f"{end:.2g} to {2 * end:.2g}" for end in _ENDS)]
_NOTHING = Figure(None, None)


def common_rows(batches: Sequence[ScoreBatch]) -> list[ScoreBatch]:
    """Return the rows that tables of the same segments all have: where one ends early, the others end there too."""
    if all("position" in batch.extra for batch in batches):  # of lists: tokens without a score have no row
        places = [batch.row_segments() << 32 | batch.extra["position"] for batch in batches]
        if not all(np.array_equal(places[0], other) for other in places[1:]):
            common = reduce(partial(np.intersect1d, assume_unique=True), places)
            batches = [batch.of_rows(np.searchsorted(own, common)) for batch, own in zip(batches, places, strict=True)]
    fewest = np.min([batch.segment_events for batch in batches], axis=0)

    def cut(batch: ScoreBatch) -> ScoreBatch:
        return batch.of_rows(np.flatnonzero(ranges_by_event([batch]).position < np.repeat(fewest, batch.segment_events)))

    return [batch if np.array_equal(batch.segment_events, fewest) else cut(batch) for batch in batches]


def refuse_other_tokens(first: ScoreBatch, second: ScoreBatch, names: Sequence[str]) -> bool:
    """Refuse tables of other tokens, and return True if both tables have tokens, so that this is known."""
    if Strings([""]) in (first.strings, second.strings):
        return False
    if first.strings != second.strings or not np.array_equal(first.token_ids, second.token_ids):
        for row in np.flatnonzero(~same_tokens(first, second))[:1].tolist():
            segment, place = int(first.row_segments()[row]), int(ranges_by_event([first]).position[row]) + 1
            own, other = (batch.strings.tokens[batch.token_ids[row]] for batch in (first, second))
            why = "score the same tokens with both, in the same order (here one may be missing)"
            if own.startswith("#") != other.startswith("#"):
                why = "one has the ids of tokens, the other their text: take ids, or text, of both"
            raise InputError(
                f"{names[1]}: token {place} of segment {segment + 1} is {other!r}, and in {names[0]} it is {own!r}; {why}"
            )
    return True


class PairSums:
    """Collects what is compared of two tables, block by block."""

    def __init__(self, band: tuple[float, float], examples: int, cuts: Cuts) -> None:
        self._band, self._examples, self._cuts = (math.log(band[0]), math.log(band[1])), examples, cuts
        self._parts: defaultdict[str, list[Floats]] = defaultdict(list)
        self._histogram = np.zeros(1 << _BITS, np.int64)
        # of each cut its labels, counts of each slice, int64 [slices, 5], and the largest size in it, float64 [slices]
        self._slices: dict[str, tuple[Sequence[str], Ints, Floats]] = {}
        self._zeros = np.zeros(2, np.int64)  # tokens that one of the two alone gives probability zero
        self.certain = 0  # tokens with log-probability 0 in both
        self.largest, self.worst = 0.0, list[WorstEvent]()

    def add(self, block: Segments | None, first: ScoreBatch, second: ScoreBatch) -> None:
        """Add the rows that both tables have of some whole segments, and those segments where the text is at hand."""
        if not len(first):
            return
        a, b = first.logprob, second.logprob
        finite, only = np.isfinite(a) & np.isfinite(b), np.zeros((2, 1), bool)
        impossible = not finite.all()
        if impossible:
            zeros = np.array([a, b]) == -np.inf
            only = zeros & ~zeros[::-1]  # in the first alone, in the second alone
            a, b = (np.where(finite, values, 0.0) for values in (a, b))
        d = b - a
        size, outside = np.abs(d), (d < self._band[0]) | (d > self._band[1]) | only.any(axis=0)
        with np.errstate(over="ignore"):
            excess = np.expm1(d) - d
        counted = {"events": np.ones(len(d)), "finite": finite.astype(np.float64), "outside": outside.astype(np.float64)}
        sums = {"difference": d, "size": size, "square": d * d, "excess": excess}
        sums |= {"logprob": a, "logprob_square": a * a, "product": a * d}
        begins = (np.cumsum(first.segment_events) - first.segment_events)[first.segment_events > 0]
        for name, column in (counted | sums).items():
            self._parts[name].append(np.add.reduceat(column, begins))
        self._parts["largest"].append(np.maximum.reduceat(size, begins))
        self.largest = max(self.largest, float(size.max()))
        self._zeros += only.sum(axis=1)
        self.certain += int(np.count_nonzero((first.logprob == 0) & (second.logprob == 0)))
        leading = (d[finite] if impossible else d).astype(np.float32).view(np.uint32) >> np.uint32(32 - _BITS)
        self._histogram += np.bincount(leading, minlength=1 << _BITS)
        # Sizes as whole numbers of 2^-20 nats and of 2^-50 nats beyond: their sums are exact, in whatever order.
        coarse = np.floor(size * 2.0**20)
        columns = [*counted.values(), coarse, np.floor((size * 2.0**20 - coarse) * 2.0**30)]
        ranges = ranges_by_event([first])
        # Of 3 nats, 0.75 x 2^2, the slice from 2 to 4; a little more, as 0 has no such form.
        by_size = np.clip(np.frexp(1e-9 - np.maximum(first.logprob, -1e9))[1] + 9, 0, len(_ENDS))
        cuts = self._cuts.of_events(block, first, ranges, spans=bool(len(first.ends)))
        for cut in (*cuts, ("size of log p in the first (nats)", _BY_SIZE, by_size)):
            self._add_slices(cut, columns, size)
        far = np.where(only.any(axis=0), np.inf, size) if impossible else size
        self._add_worst(block, first, (first.logprob, second.logprob), far, ranges.position)

    def _add_slices(self, cut: Cut, columns: Sequence[Floats], size: Floats) -> None:
        name, labels, codes = cut
        known, sums, largest = self._slices.get(name, ((), np.zeros((0, len(columns)), np.int64), np.zeros(0)))
        labels = max(labels, known, key=len)
        sums.resize((len(labels), len(columns)), refcheck=False)
        largest.resize(len(labels), refcheck=False)
        runs = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
        if 8 * len(runs) < len(codes):  # rows that follow each other are of one slice: those are added up first
            codes, columns = codes[runs], [np.add.reduceat(column, runs) for column in columns]
            size = np.maximum.reduceat(size, runs)
        for place, column in enumerate(columns):
            sums[:, place] += np.bincount(codes, column, len(labels)).astype(np.int64)
        np.maximum.at(largest, codes, size)
        self._slices[name] = labels, sums, largest

    def _add_worst(
        self, block: Segments | None, rows: ScoreBatch, logprobs: tuple[Floats, Floats], size: Floats, position: Ints
    ) -> None:
        few = min(self._examples, len(size))
        least = abs(self.worst[-1].difference) if len(self.worst) == self._examples > 0 else 0.0
        if not few or not (size > least).any():
            return
        furthest = np.flatnonzero((size > least) & (size >= np.partition(size, -few)[-few]))
        for row in furthest[np.argsort(-size[furthest], kind="stable")[:few]].tolist():
            place, segment = int(position[row]), int(np.searchsorted(np.cumsum(rows.segment_events), row, side="right"))
            if block is None or not len(rows.ends):
                end = min(row + 1 + _AROUND, int(rows.segment_events[: segment + 1].sum()))
                tokens = rows.of_rows(np.arange(row - min(place, _AROUND), end)).tokens()
                space, middle = " " * tokens[0].startswith("#"), min(place, _AROUND)  # ids are not the text
                around = space.join(tokens[:middle]), tokens[middle], space.join(tokens[middle + 1 :])
            else:
                around = text_around(block, segment, int(rows.starts()[row]), int(rows.ends[row]))
            a, b = (float(values[row]) for values in logprobs)
            self.worst.append(WorstEvent(int(rows.segments[segment]), place, a, b, b - a, *around))
        self.worst = sorted(self.worst, key=lambda event: -abs(event.difference))[: self._examples]

    @cached_property
    def sums(self) -> dict[str, Floats]:
        """Return what each segment that has rows adds up to, by name float64 [segments]; after the last block."""
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}

    @cached_property
    def _mean_logprob(self) -> float:
        return exact_sum(self.sums["logprob"]) / max(1.0, float(self.sums["finite"].sum()))

    @cached_property
    def deviation(self) -> float:
        """Return the standard deviation of the first log-probabilities, nats."""
        return math.sqrt(float(self._squares.sum()) / max(1.0, float(self.sums["finite"].sum())))

    @cached_property
    def _squares(self) -> Floats:
        # Sums of (log-probability - its mean) ** 2 of each segment.
        sums, mean = self.sums, self._mean_logprob
        return np.maximum(sums["logprob_square"] - 2 * mean * sums["logprob"] + mean**2 * sums["finite"], 0.0)

    def centered(self) -> Floats:
        """Return the sums of difference x (log-probability - its mean) of each segment, float64 [segments]."""
        return self.sums["product"] - self._mean_logprob * self.sums["difference"]

    def figures(self, documents: Ints | None) -> PairFigures:
        """Return the figures of the two."""
        # documents: int64 [segments], the document of each; None where they are not known.
        sums = self.sums

        def ratio(numerators: Floats, per: Floats = sums["finite"]) -> Figure:
            total, size = exact_sum(numerators), float(per.sum())
            return Figure(total / size, ratio_interval(numerators, per, documents, total=total)) if size else _NOTHING

        logs, k1, whole = sums["difference"], ratio(-sums["difference"]), sums["finite"] == sums["events"]
        far = (~whole | (logs < self._band[0]) | (logs > self._band[1])).astype(np.float64)
        quantiles, histogram = self._distribution()
        return PairFigures(
            events=int(sums["events"].sum()),
            mean_difference=ratio(logs),
            mean_size=ratio(sums["size"]),
            rms=ratio(sums["square"]).mapped(math.sqrt),
            share_outside=ratio(sums["outside"], sums["events"]).mapped(_share),
            k1=k1,
            k3=ratio(sums["excess"]),
            slope=ratio(self.centered(), self._squares),
            perplexity_ratio=k1.mapped(perplexity_ratio_from_nats),
            sequences_outside=ratio(far, np.ones(len(far))).mapped(_share),
            effective_sample_size=_effective(np.where(whole, logs, -np.inf), documents),
            largest=Figure(self.largest, None),
            quantiles=quantiles,
            zeros=(int(self._zeros[0]), int(self._zeros[1])),
            histogram=histogram,
            slices=tuple(self._slice_rows(documents)),
        )

    def _distribution(self) -> tuple[dict[str, float], tuple[tuple[float, int], ...]]:
        # Quantiles by percent (the middle of the bin each is in), and the counts of sizes from each power of two on.
        bins = np.flatnonzero(self._histogram)
        if not len(bins):
            return {}, ()
        # The bits 0x3F80 are 1 to 1.0078: the middle is 0x3F808000, 1.0039.
        middle = (bins << (32 - _BITS) | 1 << (31 - _BITS)).astype(np.uint32).view(np.float32).astype(np.float64)
        middle[bins & 0x7FFF == 0] = 0.0
        order = np.argsort(middle)
        middle, counts = middle[order], self._histogram[bins[order]]
        reached = np.cumsum(counts)
        places = [int(percent / 100 * (int(reached[-1]) - 1)) for percent in QUANTILES]
        chosen = middle[np.searchsorted(reached, places, side="right")].tolist()
        powers = np.where(middle, 2.0 ** (np.frexp(np.abs(middle))[1] - 1), 0.0)
        sizes, size_of = np.unique(powers, return_inverse=True)
        histogram = tuple(zip(sizes.tolist(), map(int, np.bincount(size_of, counts)), strict=True))
        return {f"{percent:g}": value for percent, value in zip(QUANTILES, chosen, strict=True)}, histogram

    def _slice_rows(self, documents: Ints | None) -> Iterator[PairSlices]:
        # The ways to cut the events, those with one slice left out, and the documents that are furthest apart.
        for name, (labels, sums, largest) in self._slices.items():
            events, finite, outside, coarse, fine = sums.T
            columns = (labels, events, finite, outside, coarse * 2.0**-20 + fine * 2.0**-50, largest)
            rows = [_slice(*row) for row in zip(*columns, strict=True) if row[1]]
            if len(rows) > 1:
                yield PairSlices(name, tuple(rows))
        if documents is not None:
            codes, of_segment = np.unique(documents, return_inverse=True)
            sums_of = [sums_by(of_segment, self.sums[name]) for name in ("events", "finite", "outside", "size")]
            far = np.zeros(len(codes))
            np.maximum.at(far, of_segment, self.sums["largest"])
            worst = np.argsort(-sums_of[3] / np.maximum(sums_of[1], 1.0), kind="stable")[:_WORST_DOCUMENTS]
            names = [f"document {code + 1:,}" for code in codes[worst].tolist()]
            yield PairSlices("document (the worst)", tuple(map(_slice, names, *(each[worst] for each in (*sums_of, far)))))


def _slice(label: str, events: float, finite: float, outside: float, size: float, largest: float) -> PairSlice:
    mean = float(size / finite) if finite else None
    return PairSlice(label, int(events), mean, float(outside / events), float(largest))


def _effective(logs: Floats, documents: Ints | None) -> Figure:
    # Effective number of sequences with weights exp(logs) as a share of them: (sum w)^2 / sum w^2 / n.
    if logs.max() == -np.inf:  # each has a token of probability zero
        return _NOTHING
    unit = np.arange(len(logs)) if documents is None else np.unique(documents, return_inverse=True)[1]
    known = documents is not None and unit.max() >= FEWEST_UNITS - 1
    # Ratios of long sequences leave float64; the figure is the same for any multiple of the weights.
    weights = np.exp(logs - logs.max())
    parts = [sums_by(unit if known else np.arange(len(logs)), each) for each in (weights, weights**2, np.ones(len(logs)))]
    first, second, count = (float(part.sum()) for part in parts)
    value, rest = first**2 / second / count, count - parts[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (first - parts[0]) ** 2 / (second - parts[1]) / rest
    over = spread_of(value, (value - without) * rest, parts[2], DOCUMENTS if known else UNKNOWN)
    interval = None if over is None else over.interval()
    return Figure(value, interval and replace(interval, low=max(0.0, interval.low), high=_share(interval.high)))


def _share(value: float) -> float:
    return min(1.0, value)
