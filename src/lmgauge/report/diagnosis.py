"""Diagnoses: what the number is worth, where the bits go, what is worst, whether it may be believed; and ladders."""

# `diagnosis.py` shows the rungs below one model with the same table and chart.

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.baselines import Ladder, LadderStep
from lmgauge.evaluation.diagnosis.calibration import Bin, Calibration
from lmgauge.evaluation.diagnosis.compressors import Baseline, in_order
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc
from lmgauge.report import evaluations, models
from lmgauge.report.formats import number, p_equals, percent, probability, signed
from lmgauge.report.slices import example_blocks, slice_blocks

_Z_95 = 1.959963984540054
_CALIBRATION = "Calibration: are events given p = 0.1 seen a tenth of the time?"
_DIAGONAL = "on the dashed line p is right; below it the model is too sure"


def blocks(diagnosis: Diagnosis) -> doc.Document:
    """Return all that was worked out; sections that say nothing are left out."""
    return (
        *_verdict(diagnosis),
        *doc.notes(diagnosis.notes),
        *evaluations.blocks([diagnosis.evaluation]),
        *(block for part in parts(diagnosis).values() for block in part),
    )


def _verdict(diagnosis: Diagnosis) -> Iterator[doc.Verdict]:
    # Say what the number is worth: beside the cheapest way to write the same bytes without a language model.
    own = diagnosis.evaluation.bits_per_byte
    if own is None or not diagnosis.baselines:
        return
    best = min(diagnosis.baselines, key=lambda baseline: baseline.bits_per_byte)
    what = "the best n-gram model of the training text" if best.trained else "the best without a language model"
    if isinstance(own, LowerBound):
        yield verdict_on_bound(diagnosis.evaluation.model, own, best)
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
    dear = f"segments furthest above the average of {number(_average(diagnosis), 3)} bits per byte"
    events = (
        *((_tokens(diagnosis),) if diagnosis.costly_tokens else ()),
        *example_blocks("events with the least probability", diagnosis.worst_tokens, names),
        *example_blocks("events of probability zero, the first", diagnosis.impossible_tokens, names),
    )
    return {
        "baselines": tuple(_baselines(diagnosis)) if diagnosis.baselines else (),
        "spelling": tuple(models.spelling_blocks(diagnosis)),
        "slices": tuple(_slices(diagnosis)),
        "events": events,
        "segments": example_blocks(dear, diagnosis.worst_segments, names),
        "unseen": (_unseen(diagnosis),) if diagnosis.unseen_words else (),
        "calibration": tuple(_calibration(diagnosis.calibration)) if diagnosis.calibration is not None else (),
    }


def _slices(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    names = [diagnosis.evaluation.model]
    for slices in diagnosis.slices:
        if len(slices.rows) > 1:
            exact = slices.unit == "byte" and not diagnosis.evaluation.bits_per_byte_is_bound
            yield from slice_blocks(slices, names, _average(diagnosis) if exact else None)


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
    yield baseline_table(rungs, reference, f"what the number is worth: the same bytes without {_network(diagnosis)}")
    yield baseline_chart(rungs, f"What the number is worth: the text without {_network(diagnosis)}")


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
    return doc.Table(tuple(columns), "tokens that cost most in total")


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
        happened = doc.series("share that occurred", means, [one.share_happened for one in bins])
        allowed = doc.series("95 % of what chance gives where p is right", means, [None] * len(bins), chance)
        x, y = "p given, mean of each bin", "share that occurred"
        chart = doc.ChartData("calibration", _CALIBRATION, x, y, "", (happened, allowed), diagonal=True, note=_DIAGONAL)
        yield replace(chart, log_x=True, log_y=True)
    if calibration.confidence:
        sure = [one.mean_confidence for one in calibration.confidence]
        right = doc.series("most probable token", sure, [one.accuracy for one in calibration.confidence])
        title, x, y = "How often the most probable token is right", "its p, mean of each bin", "share where it occurred"
        yield doc.ChartData("confidence", title, x, y, "", (right,), diagonal=True, note=_DIAGONAL)


def _deviation(one: Bin) -> float | None:
    return (one.happened - one.expected) / one.deviation if one.deviation else None


def _confidence_lines(calibration: Calibration) -> Iterator[str]:
    confidence = f"given {percent(calibration.mean_confidence, 1)} on average"
    yield f"the most probable token came in {percent(calibration.accuracy, 1)} of contexts, {confidence}"
    yield f"expected calibration error of it: {percent(calibration.expected_calibration_error)} (15 equal bins)"
    paid = number(calibration.mean_surprisal_bits, 3)
    yield f"entropy {number(calibration.mean_entropy_bits, 3)} bits per event, paid {paid}"
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


# -- ladders ------------------------------------------------------------------------------------------------------------
_TITLE = "what a network must beat: bits per byte of the test text"


def ladder_blocks(ladder: Ladder) -> doc.Document:
    """Return where your models stand, the rungs, a chart of them, and the tests between neighbors."""
    sizes = f"{ladder.bytes:,} bytes, {ladder.words:,} words; training text: {ladder.training_bytes:,} bytes"
    return (
        *_ladder_verdicts(ladder),
        doc.Text(sizes),
        baseline_table(ladder.rungs, ladder.best, _TITLE, words=ladder.words, characters=ladder.characters),
        baseline_chart(ladder.rungs, "What a network must beat"),
        *_steps(ladder.steps),
        *doc.notes(ladder.notes),
    )


def _ladder_verdicts(ladder: Ladder) -> Iterator[doc.Verdict]:
    # Say of each of your models which rungs it is above; without one, what a network must beat.
    yours = [rung for rung in ladder.rungs if rung.own]
    if not yours and ladder.baselines:
        untrained = next((rung for rung in ladder.baselines if not rung.trained), None)
        beside = f"; {untrained.name}, which has learned nothing, needs {_bits(untrained)}" if untrained else ""
        yield doc.Verdict("fact", f"A network must beat {ladder.best.name}: {_bits(ladder.best)} bits per byte{beside}.")
    for rung in yours:
        yield _ladder_verdict(rung, ladder)


def _ladder_verdict(rung: Baseline, ladder: Ladder) -> doc.Verdict:
    if isinstance(rung.bits_per_byte, LowerBound):
        return verdict_on_bound(rung.name, rung.bits_per_byte, ladder.baselines[0])
    above = next((one for one in reversed(ladder.baselines) if one.bits <= rung.bits), None)
    below = next((one for one in ladder.baselines if one.bits > rung.bits), None)
    parts = [f"{rung.name}: {_bits(rung)} bits per byte"]
    if above is not None:
        best = ladder.baselines[0]
        first = "" if best == above else f"; the best is {best.name} ({_bits(best)})"
        parts.append(f"loses to {above.name} ({_bits(above)}{_tested(above, rung, ladder)}){first}")
    if below is not None:
        more = f"{number(below.bits / rung.bits, 2)} times as many" if rung.bits else "more"
        parts.append(f"beats {below.name} ({_bits(below)}, {more}{_tested(rung, below, ladder)})")
    return doc.Verdict("bad" if above is not None else "good", "; ".join(parts) + ".")


def verdict_on_bound(name: str, bound: LowerBound, best: Baseline) -> doc.Verdict:
    """Return what a lower bound says of a model: that it loses, or nothing."""
    # bound: of its bits per byte.
    says = f"{name}: {number(bound, 3)} bits per byte, a lower bound"
    if bound.exceeds(best.bits_per_byte):
        return doc.Verdict("bad", f"{says}; so it loses to {best.name} ({_bits(best)}).")
    shown = "which does not show whether it is better or worse than"
    return doc.Verdict("unknown", f"{says}, {shown} {best.name} ({_bits(best)}).")


def _tested(better: Baseline, worse: Baseline, ladder: Ladder) -> str:
    p = next((s.p_value_holm for s in ladder.steps if (s.better, s.worse) == (better.name, worse.name)), None)
    return "" if p is None else f", {p_equals(p)}"


def _bits(rung: Baseline) -> str:
    return number(rung.bits_per_byte, 3)


def baseline_table(
    rungs: Sequence[Baseline], reference: Baseline | None, title: str, *, words: int = 0, characters: int = 0
) -> doc.Table:
    """Return rungs as a table; columns in which nothing would stand are left out."""
    # rungs: in order; reference: what each is compared with, no lower bound; None where its bits are not known; words: of
    # the text; 0 for no such column, and none of seconds.
    own = tuple(i for i, rung in enumerate(rungs) if rung.own)
    columns = [doc.labels("", [rung.name for rung in rungs]), doc.numbers("bits/byte", [r.bits_per_byte for r in rungs], 3)]
    if any(rung.interval for rung in rungs):
        columns.append(doc.Column("95 % interval", [doc.between(rung.interval, 3) for rung in rungs], drop=6))
    columns.append(_compared(rungs, reference))
    for heading, count in (("bits/word", words), ("bits/char", characters)):
        if count:
            per = [rung.bits / count for rung in rungs]
            columns.append(doc.numbers(heading, per, 3, drop=3 if heading == "bits/word" else 1))
    if any(rung.trained for rung in rungs):
        seen = ["" if rung.own else "yes" if rung.trained else "no" for rung in rungs]
        columns.append(doc.Column("trained", seen, drop=5, align="left", note="has seen the training text"))
    if words and any(rung.seconds is not None for rung in rungs):
        columns.append(doc.numbers("seconds", [rung.seconds for rung in rungs], 1, "fixed", drop=2))
    columns.append(doc.labels("what it is", [rung.what for rung in rungs], wraps=True, drop=4))
    return doc.Table(tuple(columns), title, own)


def _compared(rungs: Sequence[Baseline], reference: Baseline | None) -> doc.Column:
    known = None if reference is None or not reference.bits else reference.bits
    ratios = [None if known is None or rung.bound else rung.bits / known for rung in rungs]
    times = doc.numbers("", ratios, 2, "times").cells
    cells = ["" if rung == reference else cell for rung, cell in zip(rungs, times, strict=True)]
    return doc.Column(f"compared with {'the model' if reference is None or reference.own else 'the best'}", cells)


def baseline_chart(rungs: Sequence[Baseline], title: str) -> doc.ChartData:
    """Return a bar for each rung, and a line at the best of your models."""
    # rungs: in order.
    finite = [rung for rung in rungs if math.isfinite(rung.bits_per_byte)]
    own = next((rung for rung in finite if rung.own and not rung.bound), None)
    series = doc.series("bits per byte", [rung.name for rung in finite], [rung.bits_per_byte for rung in finite])
    made = doc.ChartData("baselines", title, "code", "bits per byte", "bits", (series,), kind="bars", better="lower")
    return made if own is None or not own.bits else replace(made, rule=own.bits_per_byte, rule_name=own.name)


def _steps(steps: Sequence[LadderStep]) -> Iterator[doc.Table]:
    if steps:
        yield doc.Table(
            doc.columns(steps, "worse", "better", "difference", "interval", "p_value_holm"),
            "neighbors on the ladder, paired",
            footnotes=("p adjusted for the number of pairs (Holm)",) if len(steps) > 1 else (),
        )
