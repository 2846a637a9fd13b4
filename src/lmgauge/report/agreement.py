"""Do two engines agree: the answer, the figures beside the noise floor, where they differ; and the curve of a series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.base.result_list import columns_of
from lmgauge.evaluation.agreement.results import AgreementSeries, EngineAgreement, FloorTest, PairFigures, PairSlices
from lmgauge.report import blocks as doc
from lmgauge.report.divergence import percentile
from lmgauge.report.formats import counted, in_words, listed, p_equals

_COLUMNS = columns_of(PairFigures)
_FLOOR = "noise floor"
_FIGURES = {"mean_size": "mean |Δ|", "rms": "RMS of Δ", "mean_difference": "mean Δ", "slope": "Δ for a nat of log p"}
_STATES: dict[bool | None, tuple[doc.Level, str]] = {
    True: ("bad", "beyond the floor"),
    False: ("good", "within the floor"),
    None: ("unknown", "no verdict"),
}


def blocks(agreement: EngineAgreement) -> doc.Document:
    """Return the verdict, the figures beside the floor, where the two differ, what a reader must know, and the signature."""
    return (
        doc.Heading(f"{agreement.second} compared with {agreement.first}, token by token"),
        _verdict(agreement),
        doc.Text(_looked_at(agreement)),
        _figures(agreement),
        *_tests(agreement.tests),
        *_distribution(agreement),
        *(block for slices in agreement.figures.slices for block in _slices(agreement, slices)),
        *_worst(agreement),
        *doc.notes(agreement.notes),
        *doc.notes([f"95 % intervals: {agreement.independence}."] if agreement.independence else []),
        doc.Signature(agreement.signature),
    )


def _nats(title: str, values: Sequence[float | None], *, drop: int = 0) -> doc.Column:
    return doc.numbers(title, values, 2, "figures", drop=drop)


def _said(value: float | None) -> str:
    return in_words(doc.Number(value, 2, "figures"))


def _band(agreement: EngineAgreement) -> str:
    return f"[{agreement.band[0]:g}, {agreement.band[1]:g}]"


def _verdict(agreement: EngineAgreement) -> doc.Verdict:
    figures, floor, two = agreement.figures, agreement.floor, f"{agreement.second} and {agreement.first}"
    level, _ = _STATES[agreement.beyond]
    size = f"mean |Δ log p| is {_said(figures.mean_size.value)} nats"
    if floor is None and agreement.within_rounding:
        return doc.Verdict("good", f"{two} agree up to the rounding of float32: {size}, at most {_said(figures.largest)}.")
    if floor is None:
        remedy = "name another run of the first (--floor RUN), or let the model or server score the text itself"
        return doc.Verdict("unknown", f"{two}: {size}. Nothing tells how far {agreement.first} is from itself: {remedy}.")
    beside = f"{size}, that of the noise floor {_said(floor.mean_size.value)}"
    if agreement.beyond is None:
        return doc.Verdict(level, f"{two}: {beside}. {_too_little(agreement)}.")
    if not agreement.beyond:
        why = "" if agreement.tests else ", and no token is further apart than the rounding of float32"
        return doc.Verdict(level, f"{two} agree within the noise floor: {beside}{why}.")
    found = [test for test in agreement.tests if test.p_value < 0.05]
    if not found:
        more = "which has no difference at all" if not floor.largest else "which rules out fewer tokens"
        return doc.Verdict(level, f"{two} are further apart than the noise floor, {more}: {beside}.")
    least = max(found, key=lambda test: -test.p_value)
    return doc.Verdict(
        level,
        f"{two} are further apart than the noise floor by {listed([_FIGURES[test.figure] for test in found])}: {beside} "
        f"({p_equals(least.p_value)}).",
    )


def _too_little(agreement: EngineAgreement) -> str:
    return "Fewer than six documents or segments: too little to test; score more text, or cut it into documents (--document)"


def _looked_at(agreement: EngineAgreement) -> str:
    events = f"{counted(agreement.figures.events, 'token')} of {counted(agreement.segments, 'segment')}"
    floor = f"; noise floor: {agreement.floor_from}" if agreement.floor is not None else ""
    return f"{events}; Δ is log p of {agreement.second} minus log p of {agreement.first}{floor}"


def _figures(agreement: EngineAgreement) -> doc.Table:
    def cells(figures: PairFigures) -> list[doc.Number]:
        rows = ((_COLUMNS[name], figure.value) for name, figure in figures.items())
        return [doc.Number(None if v is None else own.scale * v, own.digits, own.form) for own, v in rows]

    names = [_COLUMNS[name].title.format(band=_band(agreement)) for name, _ in agreement.figures.items()]
    ends = [
        doc.between(figure.interval, _COLUMNS[name].digits, _COLUMNS[name].form, _COLUMNS[name].scale)
        for name, figure in agreement.figures.items()
    ]
    largest = [doc.Number(one.largest, 2, "figures") for one in (agreement.figures, agreement.floor) if one is not None]
    columns = [
        doc.labels("figure", [*names, "largest |Δ|, nats"]),
        doc.Column("value", [*cells(agreement.figures), largest[0]]),
        doc.Column("95 % interval", [*ends, ""], 1),
    ]
    if agreement.floor is not None:
        columns.append(doc.Column(_FLOOR, [*cells(agreement.floor), largest[1]]))
    return doc.Table(tuple(columns))


def _tests(tests: Sequence[FloorTest]) -> Iterator[doc.Table]:
    if tests:
        columns = (
            doc.labels("beyond the floor?", [_FIGURES[test.figure] for test in tests]),
            _nats("value", [test.value for test in tests]),
            _nats(_FLOOR, [test.floor for test in tests]),
            doc.Column("p", [doc.Number(test.p_value, form="p", significant=test.p_value < 0.05) for test in tests]),
        )
        note = "p: by exchanging the two in whole documents, adjusted for all tests; sizes may be 1.5 times the floor's"
        yield doc.Table(columns, footnotes=(note,))


def _distribution(agreement: EngineAgreement) -> Iterator[doc.Block]:
    sides = {agreement.second: agreement.figures} | ({} if agreement.floor is None else {_FLOOR: agreement.floor})
    percents = list(agreement.figures.quantiles)
    columns = [doc.labels("tokens up to", list(map(percentile, percents)))]
    columns += [
        _nats("Δ, nats" if one is agreement.figures else _FLOOR, [one.quantiles.get(p) for p in percents])
        for one in sides.values()
    ]
    yield doc.Table(tuple(columns), "quantiles over tokens, within 1 % of each")
    series = []
    for name, one in sides.items():
        known = {low: 100 * count / one.events for low, count in one.histogram if low}
        series.append(doc.series(name, list(known), list(known.values())))
    exact = [f"{name}: {100 * dict(one.histogram).get(0.0, 0) / one.events:.3g} %" for name, one in sides.items()]
    yield doc.ChartData(
        "sizes", "How far tokens are apart", "|Δ log p|, from here to twice as much", "share of tokens", "%",
        tuple(one for one in series if one.x), x_unit="nats", log_x=True,
        note=f"without tokens that are equal ({', '.join(exact)})",
    )  # fmt: skip


def _slices(agreement: EngineAgreement, slices: PairSlices) -> Iterator[doc.Block]:
    rows = slices.rows
    columns = list(doc.columns(rows))
    of_floor = () if agreement.floor is None else agreement.floor.slices
    floor = {row.label: row.mean_size for one in of_floor if one.name == slices.name for row in one.rows}
    ordered = not slices.name.startswith("document")
    if floor and ordered:
        columns.append(_nats(_FLOOR, [floor.get(row.label) for row in rows]))
    yield doc.Table(tuple(columns), f"by {slices.name}")
    if ordered:
        labels = [row.label for row in rows]
        series = [doc.series(agreement.second, labels, [row.mean_size for row in rows])]
        series += [doc.series(_FLOOR, labels, [floor.get(label) for label in labels])] if floor else []
        kind: doc.ChartKind = "line" if slices.name.startswith(("position", "length", "probability")) else "bars"
        name = slices.name.split(" (")[0].replace(" ", "-")
        yield doc.ChartData(
            name, f"Mean |Δ log p| by {slices.name}", slices.name, "mean |Δ log p|", "nats", tuple(series), kind=kind,
            better="lower",
        )  # fmt: skip


def _worst(agreement: EngineAgreement) -> Iterator[doc.Block]:
    events = agreement.worst_tokens
    if events:
        columns = (
            doc.Column("segment", [f"{event.segment + 1:,}" for event in events], 2),
            doc.Column("token", [f"{event.position + 1:,}" for event in events], 2),
            doc.numbers(f"log p, {agreement.first}", [event.first for event in events], 3, drop=1),
            doc.numbers(f"log p, {agreement.second}", [event.second for event in events], 3, drop=1),
            *doc.columns(events),
            doc.Column(
                "the token in its text",
                [doc.Tokens((event.before, event.token, event.after), meant=1) for event in events],
                align="left",
            ),
        )
        yield doc.Table(columns, "tokens that are furthest apart", anchors=tuple(event.segment for event in events))


def series_blocks(series: AgreementSeries) -> doc.Document:
    """Return how many pairs are beyond their floor, a row for each, the curve, and what a reader must know."""
    pairs, labels = series.items, series.labels
    beyond = [label for label, pair in zip(labels, pairs, strict=True) if pair.beyond]
    level: doc.Level = "bad" if beyond else "good" if all(pair.beyond is False for pair in pairs) else "unknown"
    said = f"beyond their noise floor: {listed(beyond)}" if beyond else "none is known to be beyond its noise floor"
    figures, floors = [pair.figures for pair in pairs], [pair.floor for pair in pairs]
    sizes = [one.mean_size for one in figures]
    of_floor = [None if floor is None else floor.mean_size.value for floor in floors]
    columns = [
        doc.labels("pair", list(labels)),
        doc.labels("compared", [f"{pair.second} / {pair.first}" for pair in pairs], drop=3),
        _nats(_COLUMNS["mean_size"].title, [size.value for size in sizes]),
        doc.Column("95 % interval", [doc.between(size.interval, 2, "figures") for size in sizes], 1),
        _nats(_FLOOR, of_floor),
        _nats("outside the band, %", [_percent(one.share_outside.value) for one in figures], drop=2),
        _nats("k3, nats", [one.k3.value for one in figures], drop=2),
        doc.Column("verdict", [doc.Mark(_STATES[pair.beyond][1], _STATES[pair.beyond][0]) for pair in pairs], align="left"),
    ]
    curve = [doc.series("the pair", labels, [size.value for size in sizes], [size.interval for size in sizes])]
    if any(of_floor):
        curve.append(doc.series(_FLOOR, labels, of_floor))
    chart = doc.ChartData("series", "Mean |Δ log p| of each pair", "pair", "mean |Δ log p|", "nats", tuple(curve))
    notes = dict.fromkeys(f"{label}: {note}" for label, pair in zip(labels, pairs, strict=True) for note in pair.notes)
    return (
        doc.Heading(f"{counted(len(pairs), 'pair')} of engines, token by token"),
        doc.Verdict(level, f"{said[0].upper()}{said[1:]}."),
        doc.Table(tuple(columns)),
        replace(chart, better="lower"),
        *doc.notes(notes),
        *doc.signatures(pair.signature for pair in pairs),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
