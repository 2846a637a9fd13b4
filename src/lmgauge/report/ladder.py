"""Ladders: what a text costs without a network, in one column of bits per byte, and where your models stand in it."""

# `diagnosis.py` shows the rungs below one model with the same table and chart.

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.diagnosis.baselines import Baseline
from lmgauge.evaluation.ladder import Ladder, LadderStep
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc
from lmgauge.report.formats import number, p_equals

_TITLE = "the ladder a network must climb: bits per byte of the test text"


def blocks(ladder: Ladder) -> doc.Document:
    """Return where your models stand, the rungs, a chart of them, and the tests between neighbors."""
    sizes = f"{ladder.bytes:,} bytes, {ladder.words:,} words; training text: {ladder.training_bytes:,} bytes"
    return (
        *_verdicts(ladder),
        doc.Text(sizes),
        table(ladder.rungs, ladder.best, _TITLE, words=ladder.words, characters=ladder.characters),
        chart(ladder.rungs, "The ladder a network must climb"),
        *_steps(ladder.steps),
        *doc.notes(ladder.notes),
    )


def _verdicts(ladder: Ladder) -> Iterator[doc.Verdict]:
    # Say of each of your models which rungs it is above; without one, what a network must beat.
    yours = [rung for rung in ladder.rungs if rung.own]
    if not yours and ladder.baselines:
        untrained = next((rung for rung in ladder.baselines if not rung.trained), None)
        beside = f"; {untrained.name}, which has learned nothing, needs {_bits(untrained)}" if untrained else ""
        yield doc.Verdict("fact", f"A network must beat {ladder.best.name}: {_bits(ladder.best)} bits per byte{beside}.")
    for rung in yours:
        yield _verdict(rung, ladder)


def _verdict(rung: Baseline, ladder: Ladder) -> doc.Verdict:
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


def table(
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


def chart(rungs: Sequence[Baseline], title: str) -> doc.ChartData:
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
