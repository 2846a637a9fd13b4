"""Do two engines agree: the answer, the figures beside the noise floor, where they differ; and the curve of a series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmgauge.base.result_list import columns_of
from lmgauge.evaluation.agreement.results import AgreementSeries, EngineAgreement, PairFigures, PairSlices
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.report import blocks as doc
from lmgauge.report.divergence import figure_row, percentile
from lmgauge.report.formats import counted, in_words, listed, p_equals

_COLUMNS = columns_of(PairFigures)
_FLOOR = "noise floor"
_EXCHANGED = "p: by exchanging the two in whole documents, or in neighboring segments where these are not known; adjusted"
_ALLOWED = "sizes may be twice the floor's, shifts a tenth of it"
_STATES: dict[bool | None, doc.Mark] = {
    True: doc.Mark("beyond the floor", "bad"),
    False: doc.Mark("agree", "good"),
    None: doc.Mark("no verdict", "unknown"),
}


def blocks(agreement: EngineAgreement) -> doc.Document:
    """Return the verdict, the figures beside the floor, where the two differ, what a reader must know, and the signature."""
    first, second = agreement.first, agreement.second
    looked_at = f"{counted(agreement.figures.events, 'token')} of {counted(agreement.segments, 'segment')}"
    lost = max(segments for _, segments in agreement.missing)
    looked_at += f" ({counted(lost, 'segment')} left out, as not all have them)" if lost else ""
    floor = f"; {_FLOOR}: {agreement.floor_from}" if agreement.floor is not None else ""
    return (
        doc.Heading(f"{second} compared with {first}, token by token"),
        doc.Verdict(_STATES[agreement.beyond].level, _answer(agreement)),
        doc.Text(f"{looked_at}; Δ is log p of {second} minus log p of {first}{floor}"),
        _figures(agreement),
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


def _answer(agreement: EngineAgreement) -> str:
    figures, floor, two = agreement.figures, agreement.floor, f"{agreement.second} and {agreement.first}"
    size = f"mean |Δ log p| is {_said(figures.mean_size.value)} nats"
    size += "" if floor is None else f", that of the {_FLOOR} {_said(floor.mean_size.value)}"
    size += f", and {counted(sum(figures.zeros), 'token')} impossible in one alone" if any(figures.zeros) else ""
    if agreement.beyond is None and floor is None:
        remedy = "name another run of it (--floor RUN), or let the model or server score the text itself"
        return f"{two}: {size}. Nothing tells how far {agreement.first} is from itself: {remedy}."
    if agreement.beyond is None:
        remedy = "score more text, or cut it into documents (--document)"
        return f"{two}: {size}. Fewer than six documents or segments are too little to test: {remedy}."
    clear = [name for name, p_value in agreement.p_values.items() if p_value < SIGNIFICANT]
    if not agreement.beyond:
        how = f"within the {_FLOOR}" if agreement.p_values and not clear else "up to the rounding of float32"
        return f"{two} agree {how}: {size}, the largest |Δ| {_said(figures.largest.value)}."
    if not clear:
        why = "which has fewer zero probabilities" if any(figures.zeros) else "which has no differences at all"
        return f"{two} are further apart than the {_FLOOR}, {why}: {size}."
    by, least = listed([_COLUMNS[name].title.removesuffix(", nats") for name in clear]), min(agreement.p_values.values())
    return f"{two} are further apart than the {_FLOOR} by {by} ({p_equals(least)}): {size}."


def _figures(agreement: EngineAgreement) -> doc.Table:
    band, p_values = f"[{agreement.band[0]:g}, {agreement.band[1]:g}]", agreement.p_values
    sides = [
        list(zip(*(figure_row(own, getattr(one, name), band=band) for name, own in _COLUMNS.items()), strict=True))
        for one in (agreement.figures, agreement.floor)
        if one is not None
    ]
    (names, values, intervals), *others = sides
    columns = [doc.labels("figure", names), doc.Column("value", values), doc.Column("95 % interval", intervals, 1)]
    columns += [doc.Column(_FLOOR, other[1]) for other in others]
    if not p_values:
        return doc.Table(tuple(columns))
    tested = [doc.Number(p, form="p", significant=p is not None and p < SIGNIFICANT) for p in map(p_values.get, _COLUMNS)]
    return doc.Table((*columns, doc.Column("p", tested)), footnotes=(_EXCHANGED, _ALLOWED))


def _sides(agreement: EngineAgreement) -> dict[str, PairFigures]:
    return {agreement.second: agreement.figures} | ({} if agreement.floor is None else {_FLOOR: agreement.floor})


def _distribution(agreement: EngineAgreement) -> Iterator[doc.Block]:
    sides, percents = _sides(agreement), list(agreement.figures.quantiles)
    columns = [_nats(name, [one.quantiles.get(percent) for percent in percents]) for name, one in sides.items()]
    names = doc.labels("tokens with Δ up to", list(map(percentile, percents)))
    yield doc.Table((names, *columns), "quantiles over tokens, nats, each right within 1 % of itself")
    shares = {name: {low: 100 * count / one.events for low, count in one.histogram if low} for name, one in sides.items()}
    title, x = "How far tokens are apart, where they are not equal", "|Δ log p|, from here to twice as much"
    series = tuple(doc.series(name, list(known), list(known.values())) for name, known in shares.items() if known)
    yield doc.ChartData("sizes", title, x, "share of tokens", "%", series, x_unit="nats", log_x=True)


def _slices(agreement: EngineAgreement, slices: PairSlices) -> Iterator[doc.Block]:
    labels = [row.label for row in slices.rows]
    sizes = {
        name: {row.label: row.mean_size for cut in one.slices if cut.name == slices.name for row in cut.rows}
        for name, one in _sides(agreement).items()
    }
    columns = [_nats(name, [known.get(label) for label in labels]) for name, known in sizes.items() if name == _FLOOR]
    of_documents = slices.name.startswith("document")  # the worst of the floor are others
    yield doc.Table((*doc.columns(slices.rows), *([] if of_documents else columns)), f"by {slices.name}")
    if not of_documents:
        series = tuple(doc.series(name, labels, [known.get(label) for label in labels]) for name, known in sizes.items())
        kind: doc.ChartKind = "line" if slices.name.startswith(("position", "length", "size")) else "bars"
        name, title = slices.name.split(" ")[0], f"Mean |Δ log p| by {slices.name}"
        yield doc.ChartData(name, title, slices.name, "mean |Δ log p|", "nats", series, kind=kind, better="lower")


def _worst(agreement: EngineAgreement) -> Iterator[doc.Block]:
    events = agreement.worst_tokens
    if events:
        columns = (
            doc.Column("segment", [f"{event.segment + 1:,}" for event in events], 2),
            doc.Column("token", [f"{event.position + 1:,}" for event in events], 2),
            doc.numbers("first log p", [event.first for event in events], 3, drop=1),
            doc.numbers("second log p", [event.second for event in events], 3, drop=1),
            *doc.columns(events),
            doc.Column("in its text", [doc.Tokens((e.before, e.token, e.after), meant=1) for e in events], align="left"),
        )
        yield doc.Table(columns, "tokens that are furthest apart", anchors=tuple(event.segment for event in events))


def series_blocks(series: AgreementSeries) -> doc.Document:
    """Return how many pairs are beyond their floor, a row for each, the curve, and what a reader must know."""
    labels, states = [pair.label for pair in series], [_STATES[pair.beyond] for pair in series]
    beyond = [pair.label for pair in series if pair.beyond]
    level: doc.Level = "bad" if beyond else "good" if all(pair.beyond is False for pair in series) else "unknown"
    said = f"Beyond their {_FLOOR}: {listed(beyond)}." if beyond else f"No pair is known to be beyond its {_FLOOR}."
    sizes, shares = ([getattr(pair.figures, name) for pair in series] for name in ("mean_size", "share_outside"))
    floor = [None if pair.floor is None else pair.floor.mean_size.value for pair in series]
    columns = (
        doc.labels("pair", labels),
        _nats(_COLUMNS["mean_size"].title, [size.value for size in sizes]),
        doc.Column("95 % interval", [doc.between(size.interval, 2, "figures") for size in sizes], 1),
        _nats(_FLOOR, floor),
        _nats("outside the band, %", [None if one.value is None else 100 * one.value for one in shares], drop=2),
        doc.Column("verdict", states, align="left"),
    )
    curve = [doc.series("the pair", labels, [size.value for size in sizes], [size.interval for size in sizes])]
    curve += [doc.series(_FLOOR, labels, floor)] if any(floor) else []
    return (
        doc.Heading(f"{counted(len(series), 'pair')} of engines, token by token"),
        doc.Verdict(level, said),
        doc.Table(columns),
        doc.ChartData("series", "Mean |Δ log p| by pair", "pair", "mean |Δ log p|", "nats", tuple(curve), better="lower"),
        *doc.notes(dict.fromkeys(f"{pair.label}: {note}" for pair in series for note in pair.notes)),
        *doc.signatures(pair.signature for pair in series),
    )
