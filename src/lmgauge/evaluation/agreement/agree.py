"""Do two engines agree on the same tokens, as far as the first agrees with itself?

The noise floor is the first engine against itself: in other batches, or another run of it. If the second engine does nothing
but compute in other batches, then its log-probabilities and those of the floor are two draws of one thing, and exchanging
them in any document changes nothing but chance. The test exchanges them at random, document by document, and asks how often
a figure comes out as far beyond the floor as it did. It is exact for engines
that are as noisy as the floor (Fisher 1935). Sound engines are not: one kernel rounds more than another, and leans to one
side on all tokens of a text. So sizes of differences must be more than `MARGIN` times those of the floor, and shifts more
than `SHIFT` times its mean size (of the slope: at a standard deviation of log-probabilities from their mean).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import check_whole
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.agreement.pair_sums import PairSums, common_rows, refuse_other_tokens
from lmgauge.evaluation.agreement.results import ROUNDING, EngineAgreement, PairFigures
from lmgauge.evaluation.comparison.comparability import choose_documents
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.evaluation.slicing.span_alignment import Ints
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import FEWEST_UNITS, spread, sums_by
from lmgauge.numerics.resampling import swap_p_values
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import bits_to_nats, log10_to_nats, nats_to_bits, nats_to_log10
from lmgauge.text.documents import Corpus

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
