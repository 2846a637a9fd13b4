"""Do two engines agree on the same tokens, as far as the first agrees with itself?

The noise floor is the first engine against itself: in other batches, or another run of it. If the second engine does nothing
but compute in other batches, then its log-probabilities and those of the floor are two draws of one thing, and exchanging
them in any document changes nothing but chance. The test exchanges them at random, document by document, and asks how often
a figure comes out as far beyond the floor as it did. It is exact for engines
that are as noisy as the floor (Fisher 1935). Sound engines are not: one kernel rounds more than another, and leans to one
side on all tokens of a text. So sizes of differences must be more than `MARGIN` times those of the floor, and shifts more
than `SHIFT` times its mean size (of the slope: at a standard deviation of log-probabilities from their mean).

Tables are read block by block in bounded memory. Kept are sums of each segment, counts of slices, a histogram and the worst
tokens, never a value for each token. Sums of a segment are made of all its tokens at once, and added up exactly, so that no
figure depends on how tables were cut.

Sources: Schulman (2020), "Approximating KL divergence" (k1, k3); Kish (1965), "Survey sampling" (effective sample size).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import check_whole
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.agreement.results import ROUNDING, EngineAgreement, PairFigures, PairSlice, PairSlices, WorstEvent
from lmgauge.evaluation.comparison.comparability import choose_documents
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.evaluation.divergence.divergence_result import Figure
from lmgauge.evaluation.divergence.figures import QUANTILES
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.evaluation.slicing.examples import text_around
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, ranges_by_event
from lmgauge.evaluation.slicing.sums import Cut
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import DOCUMENTS, FEWEST_UNITS, UNKNOWN, ratio_interval, spread, spread_of, sums_by
from lmgauge.numerics.resampling import swap_p_values
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import bits_to_nats, log10_to_nats, nats_to_bits, nats_to_log10, perplexity_ratio_from_nats
from lmgauge.scores.table import ScoreBatch, Strings, same_tokens
from lmgauge.text.documents import Corpus
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


MARGIN, SHIFT = 2.0, 0.1
"""Sound passes of bfloat16 that differ in all documents are beyond the floor in 15 % of draws with 1.5 and 0, in 2 % so."""

_TESTED = ("mean_size", "rms", "mean_difference", "slope")
_AS_IF = {nats_to_bits(1.0): "the second is in bits", bits_to_nats(1.0): "the first is in bits"} | {
    nats_to_log10(1.0): "the second is in log10",
    log10_to_nats(1.0): "the first is in log10",
}
"""What log-probabilities were multiplied by, and what that says."""
_MOST_DOCUMENTS, _MOST_BLOCKS = 512, 64  # of more, neighbors are exchanged together


def agree(
    a: Run,
    b: Run,
    floor: Run | None = None,
    corpus: Corpus | None = None,
    *,
    band: tuple[float, float] = (0.9, 1.1),
    examples: int = 5,
    floor_from: str = "",
    documents_of_text: bool = False,
) -> EngineAgreement:
    """Compare the log-probabilities that two runs have of the same tokens."""
    # floor: the engine of the first, again; corpus: the text, None: where the runs remember it; floor_from: where the floor
    # is from, in words.
    check_whole("examples", examples, 0)
    runs = with_distinct_names([run for run in (a, b, floor) if run is not None])
    _refuse_same(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text, names = corpus or remembered(*runs[:2]), [run.name for run in runs]
    pairs = [PairSums(band, examples, Cuts(text)) for _ in runs[1:]]
    missing, tokens_known = np.zeros((len(runs), 2), np.int64), True
    named: list[list[Ints]] = [[] for _ in (*runs, text)]
    columns = ("token", "kind", "document", "position", *(() if text is None else ("start", "end")))
    for block, tables in lockstep([run.batches(columns) for run in runs], text, names, complete=False):
        events = np.array([table.segment_events for table in tables])
        fewest, most = events.min(axis=0), events.max(axis=0)
        lacks = (events == 0) & (most > 0)
        missing += np.column_stack([np.where(lacks, 0, most - events).sum(axis=1), lacks.sum(axis=1)])
        of_text = None if block is None else block.documents
        for known, numbers in zip(named, [*(table.documents() for table in tables), of_text], strict=True):
            known += [] if numbers is None else [numbers[fewest > 0]]
        first, *others = common_rows(tables)
        for pair, other, run in zip(pairs, others, runs[1:], strict=True):
            tokens_known &= refuse_other_tokens(first, other, (str(runs[0].path), str(run.path)))
            pair.add(block, first, other)
    if not pairs[0].sums:
        raise InputError(f"{names[1]} and {names[0]}: have no token of a segment in common; score the same text with both")
    if not tokens_known and len({run.text_sha256 for run in runs} - {""}) > 1:
        raise InputError(f"{names[1]} and {names[0]}: are of different texts; score the same text with both")
    size, events = pairs[0].sums["size"], pairs[0].sums["events"]
    documents = [np.concatenate(one) if sum(map(len, one)) == len(events) else None for one in named]
    chosen = choose_documents(runs, documents[:-1], text, asked=documents_of_text)
    own = documents[-1 if chosen.table is None else chosen.table]
    figures, over = [pair.figures(own) for pair in pairs], spread(size, events, own)
    p_values = {} if floor is None else _p_values(pairs[0], pairs[1], own)
    parts = {"n": str(figures[0].events), "band": f"{band[0]:g}..{band[1]:g}"}
    parts |= dict(zip(("first", "second", "floor"), names, strict=False))
    notes = _notes(names, figures[0], missing, tokens_known, 0 if text else pairs[0].certain)
    return EngineAgreement(
        first=names[0],
        second=names[1],
        band=band,
        segments=len(events),
        figures=figures[0],
        floor=None if floor is None else figures[1],
        floor_from=floor_from or ("" if floor is None else names[2]),
        p_values=p_values,
        beyond=_beyond(figures[0], None if floor is None else figures[1], p_values),
        missing=tuple((tokens, segments) for tokens, segments in missing.tolist()),
        worst_tokens=tuple(pairs[0].worst),
        independence="" if over is None else in_words(over, chosen.by),
        signature=str(Signature({**parts, "independent": in_signature(over), "v": NUMBERS_VERSION}, "agree")),
        notes=(*notes, *caveats(over), *chosen.notes),
    )


def _refuse_same(runs: Sequence[Run]) -> None:
    # Refuse a floor that is one of the two that are compared.
    tables = [(run.scores.resolve(), run.column) for run in runs]
    if len(tables) > 2 and tables[2] in tables[:2]:
        raise UsageError(f"the floor is {'AB'[tables.index(tables[2])]} itself: it has to be another run of A's engine")


def _p_values(pair: PairSums, floor: PairSums, documents: Ints | None) -> dict[str, float]:
    # Of figures against those of the floor; none where the floor repeats itself bit by bit, or there is too little text.
    count = len(pair.sums["events"])
    unit, most = np.arange(count), _MOST_BLOCKS
    if documents is not None and len(np.unique(documents)) >= FEWEST_UNITS:
        unit, most = np.unique(documents, return_inverse=True)[1], _MOST_DOCUMENTS
        count = int(unit.max()) + 1
    if count < FEWEST_UNITS or not floor.largest:
        return {}
    # Of 5 units, 2 at most: units [0, 1, 2, 3, 4] -> [0, 0, 0, 1, 1]
    unit = unit * min(most, count) // count
    columns = [pair.sums[name] / times - floor.sums[name] for name, times in (("size", MARGIN), ("square", MARGIN**2))]
    shifts = pair.sums["difference"] - floor.sums["difference"], pair.centered() - floor.centered()
    for shift, scale in zip(shifts, (1.0, pair.deviation), strict=True):
        allowed = SHIFT * scale * floor.sums["size"]
        columns += [shift - allowed, -shift - allowed]
    size, square, up, down, rise, fall = swap_p_values(np.column_stack([sums_by(unit, column) for column in columns]))
    return dict(zip(_TESTED, (size, square, min(up, down), min(rise, fall)), strict=True))


def _beyond(figures: PairFigures, floor: PairFigures | None, p_values: Mapping[str, float]) -> bool | None:
    if floor is not None and sum(figures.zeros) > sum(floor.zeros):
        return True
    if (figures.largest.value or 0.0) <= ROUNDING and not any(figures.zeros):
        return False
    if floor is not None and not floor.largest.value:
        return True
    return any(p_value < SIGNIFICANT for p_value in p_values.values()) if p_values else None


def _notes(names: Sequence[str], figures: PairFigures, missing: Ints, tokens_known: bool, certain: int) -> Iterator[str]:
    if certain > figures.events / 100:
        yield f"{certain:,} tokens have log-probability 0 in both: is that padding? A log with a mask leaves it out"
    for name, (tokens, segments) in zip(names, missing.tolist(), strict=True):
        lacks = (tokens, "token of its segments", "tokens of its segments"), (segments, "whole segment", "whole segments")
        if said := [f"{count:,} {one if count == 1 else many}" for count, one, many in lacks if count]:
            yield f"{name} lacks {' and '.join(said)}: left out"
    for name, zeros in zip(names, figures.zeros, strict=False):
        if zeros:
            yield f"{zeros:,} tokens have probability zero in {name} alone: they are outside the band, and in no mean"
    for times, unit in _AS_IF.items():
        if figures.slope.value is not None and abs(1 + figures.slope.value - times) < 1e-3:
            yield f"log p of the second is {times:.3f} times that of the first, as if {unit}; both must be in nats"
    if not tokens_known:
        yield "a table has no tokens: that both are of the same tokens was not checked"
