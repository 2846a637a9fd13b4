"""Do two engines agree on the same tokens, as far as the first agrees with itself?

The noise floor is the first engine against itself: in other batches, or another run of it. If the second engine does nothing
but compute in other batches, then its log-probabilities and those of the floor are two draws of one thing, and exchanging
them in any document changes nothing but chance. The test exchanges them at random, document by document, and asks how often
a figure comes out as far beyond the floor as it did. It is exact for engines that are as noisy as the floor (Fisher 1935),
and of the sizes of differences, which grow where the second engine rounds in other places, it asks whether they are more
than `MARGIN` times those of the floor. Shifts are tested without a margin: noise of any size has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import check_whole
from lmgauge.base.version import __version__
from lmgauge.evaluation.agreement.pair_sums import PairSums, common_rows, refuse_other_tokens
from lmgauge.evaluation.agreement.results import BEYOND as BEYOND
from lmgauge.evaluation.agreement.results import ROUNDING, EngineAgreement, FloorTest, PairFigures
from lmgauge.evaluation.comparison.comparability import choose_documents
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import FEWEST_UNITS, spread, sums_by
from lmgauge.numerics.resampling import swap_p_values
from lmgauge.numerics.signature import Signature
from lmgauge.text.documents import Corpus

MARGIN = 1.5
"""How many times the floor sizes of differences may be: sound engines of one number format are not equally noisy."""

_SIZES = {"mean_size": ("size", MARGIN), "rms": ("square", MARGIN**2)}
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
    text = corpus or remembered(*runs[:2])
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    names = [run.name for run in runs]
    pairs = [PairSums(band, examples, Cuts(text)) for _ in runs[1:]]
    missing = np.zeros((2, len(runs)), np.int64)  # tokens, segments
    named: list[list[Ints]] = [[] for _ in (*runs, text)]
    tokens_known = True
    for block, tables in lockstep([run.batches() for run in runs], text, names, complete=False):
        documents = [*(table.documents() for table in tables), None if block is None else block.documents]
        for known, numbers in zip(named, documents, strict=True):
            known += [] if numbers is None else [numbers]
        events = np.array([table.segment_events for table in tables])
        lacking = (events == 0) & (events.max(axis=0) > 0)
        missing += [np.where(lacking, 0, events.max(axis=0) - events).sum(axis=1), lacking.sum(axis=1)]
        first, *others = common_rows(tables)
        for pair, other, run in zip(pairs, others, runs[1:], strict=True):
            tokens_known &= refuse_other_tokens(first, other, (str(runs[0].path), str(run.path)))
            pair.add(block, first, other)
    segments = int(np.count_nonzero(pairs[0].sums["events"]))
    if not segments:
        raise InputError(f"{names[1]} and {names[0]}: have no token of a segment in common; score the same text with both")
    if not tokens_known and len({run.text_sha256 for run in runs} - {""}) > 1:
        raise InputError(f"{names[1]} and {names[0]}: are of different texts; score the same text with both")
    of_runs = [np.concatenate(one) if one and sum(map(len, one)) == len(pairs[0].sums["events"]) else None for one in named]
    chosen = choose_documents(runs, of_runs[:-1], text, asked=documents_of_text)
    documents_of = of_runs[-1 if chosen.table is None else chosen.table]
    figures = [pair.figures(band, documents_of) for pair in pairs]
    of_floor = figures[1] if floor is not None else None
    tests = () if floor is None else tuple(_tests(pairs, figures, documents_of))
    over = spread(pairs[0].sums["size"], pairs[0].sums["events"], documents_of)
    return EngineAgreement(
        first=names[0],
        second=names[1],
        band=band,
        segments=segments,
        figures=figures[0],
        floor=of_floor,
        floor_from=floor_from or ("" if floor is None else names[2]),
        tests=tests,
        beyond=_beyond(figures[0], of_floor, tests),
        missing_tokens=tuple(missing[0].tolist()),
        missing_segments=tuple(missing[1].tolist()),
        worst_tokens=pairs[0].worst,
        independence="" if over is None else in_words(over, chosen.by),
        signature=_signature(figures[0], band, names, in_signature(over)),
        notes=(*_notes(runs, figures, missing, tokens_known), *caveats(over), *chosen.notes),
    )


def _tests(pairs: Sequence[PairSums], figures: Sequence[PairFigures], documents: Ints | None) -> Iterator[FloorTest]:
    # Tests of the figures of the pair against those of the floor; none where the floor repeats itself bit by bit.
    second, floor = pairs
    if not floor.largest:
        return
    columns: dict[str, Floats] = {
        name: second.sums[column] / margin - floor.sums[column] for name, (column, margin) in _SIZES.items()
    }
    columns |= {
        "mean_difference": second.sums["difference"] - floor.sums["difference"],
        "slope": second.centered() - floor.centered(),
    }
    some = second.sums["events"] > 0
    unit, most = np.arange(np.count_nonzero(some)), _MOST_BLOCKS
    if documents is not None and len(np.unique(documents[some])) >= FEWEST_UNITS:
        unit, most = np.unique(documents[some], return_inverse=True)[1], _MOST_DOCUMENTS
    count = int(unit.max()) + 1
    if count < FEWEST_UNITS:
        return
    # Of 5 units, 2 at most: units [0, 1, 2, 3, 4] -> [0, 0, 0, 1, 1]
    unit = unit * min(most, count) // count
    differences = np.column_stack([sums_by(unit, column[some]) for column in columns.values()])
    p_values = swap_p_values(differences, [name not in _SIZES for name in columns])
    for name, p_value in zip(columns, p_values, strict=True):
        value, of_floor = (getattr(one, name).value for one in figures)
        yield FloorTest(name, value, of_floor, p_value)


def _beyond(figures: PairFigures, floor: PairFigures | None, tests: Sequence[FloorTest]) -> bool | None:
    if floor is None:
        return None
    if sum(figures.zeros) > sum(floor.zeros):
        return True
    if figures.largest <= ROUNDING:
        return False
    if not floor.largest:
        return True
    return any(test.p_value < SIGNIFICANT for test in tests) if tests else None


def _notes(runs: Sequence[Run], figures: Sequence[PairFigures], missing: Ints, tokens_known: bool) -> Iterator[str]:
    for run, tokens, segments in zip(runs, *missing.tolist(), strict=True):
        if tokens or segments:
            yield f"{run.name} lacks {tokens:,} tokens at the ends of segments and {segments:,} whole segments: left out"
    for run, zeros in zip(runs, figures[0].zeros, strict=False):
        if zeros:
            yield f"{zeros:,} tokens have probability zero in {run.name} alone: they are outside the band, and in no mean"
    if not tokens_known:
        yield "a table has no tokens: that both are of the same tokens was not checked"


def _signature(figures: PairFigures, band: tuple[float, float], names: Sequence[str], independent: str) -> str:
    parts = {
        "n": str(figures.events),
        "band": f"{band[0]:g}..{band[1]:g}",
        **dict(zip(("first", "second", "floor"), names, strict=False)),
        "independent": independent,
        "v": __version__,
    }
    return str(Signature(parts, "agree"))
