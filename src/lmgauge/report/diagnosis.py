"""Diagnoses: what the number is worth, where the bits go, what is worst, whether it may be believed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.diagnosis.baselines import Baseline, in_order
from lmgauge.evaluation.diagnosis.calibration import Bin, Calibration
from lmgauge.evaluation.diagnosis.costs import RankStatistics
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc
from lmgauge.report import evaluations, ladder, spelling
from lmgauge.report.formats import number, percent, probability, signed
from lmgauge.report.slices import example_blocks, slice_blocks

_Z_95 = 1.959963984540054
_CALIBRATION = "Calibration: are events given p = 0.1 seen a tenth of the time?"
_DIAGONAL = "on the dashed line p is right; below it the model is too sure"


def blocks(diagnosis: Diagnosis) -> doc.Document:
    """Return all that was worked out; sections that say nothing are left out."""
    return (
        *_verdict(diagnosis),
        *evaluations.blocks([diagnosis.evaluation]),
        *(block for part in parts(diagnosis).values() for block in part),
        *doc.notes(diagnosis.notes),
    )


def _verdict(diagnosis: Diagnosis) -> Iterator[doc.Verdict]:
    # Say what the number is worth: beside the cheapest way to write the same bytes without a language model.
    own = diagnosis.evaluation.bits_per_byte
    if own is None or not diagnosis.baselines:
        return
    best = min(diagnosis.baselines, key=lambda baseline: baseline.bits_per_byte)
    what = "the best n-gram model of the training text" if best.trained else "the best without a language model"
    if isinstance(own, LowerBound):
        yield ladder.verdict_on_bound(diagnosis.evaluation.model, own, best)
        return
    better = own < best.bits_per_byte
    worth = f"{number(best.bits_per_byte / own, 2)} times as many" if better and own else "fewer"
    yield doc.Verdict(
        "good" if better else "bad",
        f"{diagnosis.evaluation.model} needs {number(own, 3)} bits per byte; {best.name}, {what}, "
        f"{number(best.bits_per_byte, 3)}: {worth}.",
    )


def parts(diagnosis: Diagnosis) -> dict[str, doc.Document]:
    """Return the sections of a diagnosis in the order of reading, each as its blocks; empty where it says nothing."""
    names = [diagnosis.evaluation.model]
    dear = f"segments that cost most beyond the {number(_average(diagnosis), 3)} bits a byte that bytes cost on average"
    events = (
        *((_tokens(diagnosis),) if diagnosis.costly_tokens else ()),
        *example_blocks("events with the least probability", diagnosis.worst_tokens, names),
        *example_blocks("events of probability zero, the first", diagnosis.impossible_tokens, names),
    )
    return {
        "baselines": tuple(_baselines(diagnosis)) if diagnosis.baselines else (),
        "spelling": tuple(spelling.blocks(diagnosis)),
        "slices": tuple(_slices(diagnosis)),
        "events": events,
        "segments": example_blocks(dear, diagnosis.worst_segments, names),
        "unseen": (_unseen(diagnosis),) if diagnosis.unseen_words else (),
        "calibration": tuple(_calibration(diagnosis.calibration)) if diagnosis.calibration is not None else (),
        "ranks": tuple(_ranks(diagnosis.ranks)) if diagnosis.ranks is not None else (),
    }


def _slices(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    names = [diagnosis.evaluation.model]
    for slices in diagnosis.slices:
        if len(slices.rows) > 1:
            exact = slices.unit == "byte" and not diagnosis.evaluation.bits_per_byte_is_bound
            yield from slice_blocks(slices, names, _average(diagnosis) if exact else None)


def _ranks(ranks: RankStatistics) -> Iterator[doc.Block]:
    yield doc.Heading("ranks and entropies of all events")
    yield from (doc.Text(line, indent=2) for line in _rank_lines(ranks))


def _average(diagnosis: Diagnosis) -> float | None:
    result = diagnosis.evaluation
    if not result.bytes or result.perplexity_without_zeros is None:
        return None
    return finite_bits(result) / result.bytes


def _baselines(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    result = diagnosis.evaluation
    own: Baseline | None = None
    if result.bits_per_byte is not None and result.bytes:
        bits = result.bits_per_byte
        own = Baseline(result.model, "the model", bits * result.bytes, bits, own=True)
    rungs = in_order([*diagnosis.baselines, *([own] if own is not None else [])])
    reference = rungs[0] if own is not None and own.bound else own
    yield ladder.table(rungs, reference, f"what the number is worth: the same bytes without {_network(diagnosis)}")
    yield ladder.chart(rungs, f"What the number is worth: the text without {_network(diagnosis)}")


def _network(diagnosis: Diagnosis) -> str:
    return "a network" if any(baseline.trained for baseline in diagnosis.baselines) else "a language model"


def _tokens(diagnosis: Diagnosis) -> doc.Table:
    costs = diagnosis.costly_tokens
    total = finite_bits(diagnosis.evaluation)
    columns = [
        doc.labels("", [cost.token if cost.token.strip() else repr(cost.token) for cost in costs]),
        *doc.columns(costs, "events", "bits"),
        doc.numbers("share of bits", [cost.bits / total if total else None for cost in costs], 2, "percent"),
        doc.numbers("bits each", [cost.mean_bits for cost in costs], 2),
        *doc.columns(costs, "zeros"),
    ]
    return doc.Table(tuple(columns), "tokens that cost most in all")


def _unseen(diagnosis: Diagnosis) -> doc.Table:
    words = diagnosis.unseen_words
    each = doc.numbers("bits each", [word.bits / word.events for word in words], 2)
    counts = f"{diagnosis.evaluation.oov:,} events, {diagnosis.unseen_types:,} different"
    return doc.Table((*doc.columns(words), each), f"unseen words: {counts}; the most frequent")


def _calibration(calibration: Calibration) -> Iterator[doc.Block]:
    bins = [b for b in calibration.decades if b.forecasts and b.high < 0.5]
    bins += [b for b in calibration.tenths if b.forecasts and b.low >= 0.1 - 1e-12]
    names = [f"{probability(b.low)} to {probability(b.high)}" for b in bins]
    rows = [(b.forecasts, b.mean_forecast, b.share_happened, b.happened, b.expected, _deviation(b)) for b in bins]
    if never := calibration.impossible_happened:
        names.insert(0, "0")
        share = never / calibration.impossible_forecasts
        rows.insert(0, (calibration.impossible_forecasts, 0.0, share, never, 0.0, math.inf))
    forecasts, means, shares, times, expected, off = zip(*rows, strict=True) if rows else ((),) * 6
    columns = (
        doc.labels("given p", names),
        doc.numbers("forecasts", forecasts, form="count", drop=1),
        doc.numbers("mean p", means, 3, "probability"),
        doc.numbers("came true", shares, 3, "probability"),
        doc.numbers("times", times, form="count", drop=2),
        doc.numbers("expected", expected, 1, drop=3),
        doc.Column("off by", [doc.Number(value, 1, "deviation") for value in off], note="in standard deviations (σ)"),
    )
    which = "all" if calibration.seed is None else f"{calibration.contexts:,} of {calibration.events:,}"
    yield doc.Table(columns, f"{_CALIBRATION[0].lower()}{_CALIBRATION[1:]} ({which} contexts)")
    yield from _calibration_charts(calibration, bins)
    yield doc.Heading("how sure it is")
    yield from (doc.Text(line, indent=2) for line in _confidence_lines(calibration))


def _calibration_charts(calibration: Calibration, bins: Sequence[Bin]) -> Iterator[doc.ChartData]:
    if bins:
        means = [one.mean_forecast for one in bins]
        half = [_Z_95 * one.deviation / one.forecasts for one in bins]
        chance = [(max(0.0, mean - h), min(1.0, mean + h)) for mean, h in zip(means, half, strict=True)]
        happened = doc.series("share that came true", means, [one.share_happened for one in bins])
        allowed = doc.series("95 % of what chance gives where p is right", means, [None] * len(bins), chance)
        x, y = "p given, mean of each bin", "share that came true"
        chart = doc.ChartData("calibration", _CALIBRATION, x, y, "", (happened, allowed), diagonal=True, note=_DIAGONAL)
        yield replace(chart, log_x=True, log_y=True)
    if calibration.confidence:
        sure = [one.mean_confidence for one in calibration.confidence]
        right = doc.series("most probable token", sure, [one.accuracy for one in calibration.confidence])
        title, x, y = "How often the most probable token is right", "its p, mean of each bin", "share where it came"
        yield doc.ChartData("confidence", title, x, y, "", (right,), diagonal=True, note=_DIAGONAL)


def _deviation(one: Bin) -> float | None:
    return (one.happened - one.expected) / one.deviation if one.deviation else None


def _confidence_lines(calibration: Calibration) -> Iterator[str]:
    confidence = f"given {percent(calibration.mean_confidence, 1)} on average"
    yield f"the most probable token came in {percent(calibration.accuracy, 1)} of contexts, {confidence}"
    yield f"expected calibration error of it: {percent(calibration.expected_calibration_error)} (15 equal bins)"
    paid = number(calibration.mean_surprisal_bits, 3)
    yield f"entropy {number(calibration.mean_entropy_bits, 3)} bits an event, paid {paid}"
    if calibration.overconfidence_bits is not None:
        yield _overconfidence(calibration.overconfidence_bits, calibration.overconfidence_interval)
    yield f"Brier score {number(calibration.brier_score)} (0 is perfect, 2 the worst)"


def _overconfidence(over: float, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"that is {signed(over, 3)} bits"
    low, high = interval
    sure = "the model is too sure of itself" if low > 0 else "neither too sure nor too unsure"
    sure = "the model is less sure than it could be" if high < 0 else sure
    return f"that is {signed(over, 3)} bits (95 %: {signed(low, 3)} to {signed(high, 3)}): {sure}"


def _rank_lines(ranks: RankStatistics) -> Iterator[str]:
    if ranks.first is not None and ranks.top_5 is not None and ranks.top_10 is not None:
        shares = ", ".join(percent(share, 1) for share in (ranks.first, ranks.top_5, ranks.top_10))
        yield f"the token that came was the first, among 5, among 10 most probable: {shares}"
        yield f"mean reciprocal rank {number(ranks.mean_reciprocal_rank)}"
    if ranks.mean_entropy_bits is not None:
        difference = ranks.mean_surprisal_bits - ranks.mean_entropy_bits
        paid = f"entropy {number(ranks.mean_entropy_bits, 3)} bits an event, paid {number(ranks.mean_surprisal_bits, 3)}"
        sure = "too sure of itself" if difference > 0 else "less sure than it could be"
        yield f"{paid}: {signed(difference, 3)} bits, the model is {sure}" if math.isfinite(difference) else paid
