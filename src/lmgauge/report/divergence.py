"""How far candidates are from their base: the answer, the figures, where they suffer, which is closest; and stored bases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.base.memory import format_bytes
from lmgauge.base.result_list import ResultColumn, columns_of
from lmgauge.evaluation.divergence.candidates import KL
from lmgauge.evaluation.divergence.divergence_result import (
    FLOOR,
    CandidateDivergences,
    CandidateTest,
    Divergence,
    Figure,
    SavedBase,
    Storage,
    WorstToken,
)
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.numerics.units import bits_to_nats
from lmgauge.report import blocks as doc
from lmgauge.report.comparison import KL_COLUMN, change_cells
from lmgauge.report.formats import in_words, listed, number, p_equals, percent
from lmgauge.report.slices import slice_kind

Row = tuple[str, doc.Number, doc.Cell]
_AROUND = 40  # characters of context to show
_MARGIN = 0.001  # a smaller change of the perplexity is marked neither good nor bad
_TITLE, _FORM = KL_COLUMN.title, (KL_COLUMN.digits, KL_COLUMN.form)


def blocks(divergence: Divergence, *, details: bool = True) -> doc.Document:
    """Return the verdict, the figures, where the candidate suffers, what a reader must know, and the signature."""
    names, values, intervals = zip(*_rows(divergence), strict=True)
    columns = [doc.labels("figure", names), doc.Column("value", values), doc.Column("95 % interval", intervals, 1)]
    floor = divergence.floor
    if floor is not None:  # its perplexities are of fewer events
        of_floor = {name: value for name, value, _ in _rows(floor) if "perplexity of" not in name}
        columns.append(doc.Column(floor.b, [of_floor.get(name, "") for name in names]))
    return (
        doc.Heading(f"{divergence.b} compared with {divergence.a}"),
        *_verdict(divergence),
        doc.Text(looked_at(divergence)),
        doc.Table(tuple(columns)),
        *storage_blocks(divergence.storage),
        *_quantiles(divergence),
        *(details_of(divergence) if details else ()),
        *doc.notes(divergence.notes),
        *doc.notes([f"95 % intervals: {divergence.independence}."] if divergence.independence else []),
        doc.Signature(divergence.signature),
    )


def looked_at(result: Divergence) -> str:
    """Return how many of the events and segments of the text were compared."""
    floor = f"; {result.floor.b} of {result.a} at {result.floor.events:,} events" if result.floor is not None else ""
    return f"{_of(result.events, result.total_events)} events, {_of(result.segments, result.total_segments)} segments{floor}"


def _of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole > 1 else f"{part:,} of {whole:,}"


def _kl(value: float | None) -> doc.Number:
    return doc.Number(value, *_FORM)


def _verdict(result: Divergence) -> Iterator[doc.Verdict]:
    ratio, agreement, kl = result.perplexity_ratio, result.top_1_agreement.value, result.kl_ab_nats.value
    if ratio.value is None or not math.isfinite(ratio.value) or kl is None:
        return
    gap, ends = change_cells(ratio.value, ratio.interval, perplexity=True)
    between = "" if ratio.interval is None else f" (95 % interval {in_words(ends)})"
    level: doc.Level = "unknown"
    what = "does not differ measurably"
    if ratio.interval is None:
        what = "differs"
    elif ratio.interval.low > 1 or ratio.interval.high < 1:
        level, what = ("bad", "is higher") if ratio.interval.low > 1 else ("good", "is lower")
    small = ""
    if level != "unknown" and abs(ratio.value - 1) < _MARGIN:
        level, small = "fact", f"; below {percent(_MARGIN, 1)} it counts as neither good nor bad"
    alike = "" if agreement is None else f" Both expect the same token in {percent(agreement)} of the events."
    far = f"{result.b} is {in_words(_kl(kl))} nats per token from {result.a} (mean KL divergence)."
    far += _beside_floor([result])
    yield doc.Verdict(level, f"{far} Its perplexity {what}: {in_words(gap)}{between}{small}.{alike}")


def _beside_floor(items: Sequence[Divergence]) -> str:
    # A sentence of the noise floor, and of the candidates that are not beyond it.
    if items[0].floor is None:
        return ""
    floor = items[0].floor.kl_ab_nats
    most = _order(floor) if floor.interval is None else floor.interval.high
    within = [item.b for item in items if _order(item.kl_ab_nats) <= most]
    which = f"; {listed(within)} {'is' if len(within) == 1 else 'are'} within it" if within else ""
    return f" The noise floor is {in_words(_kl(floor.value))}{which}."


def _rows(result: Divergence) -> Iterator[Row]:
    for name, own in columns_of(Divergence).items():
        if name == "kl_ba_nats" and result.infinite_kl_ab:
            yield "  where finite, nats", _kl(result.kl_ab_without_infinite_nats), ""
        figures = getattr(result, name)
        for k, figure in figures.items() if isinstance(figures, dict) else [(0, figures)]:
            if k != 1:  # that is the agreement
                yield figure_row(own, figure, k, a=result.a, b=result.b)


def figure_row(own: ResultColumn, figure: Figure, *parts: object, **names: str) -> Row:
    """Return the title of a figure, with what stands in for its braces, its value and its interval."""
    value = None if figure.value is None else own.scale * figure.value
    ends = doc.between(figure.interval, own.digits, own.form, own.scale)
    return own.title.format(*parts, **names), doc.Number(value, own.digits, own.form), ends


def percentile(percent: str) -> str:
    """Return what a quantile is called: 50 is the median, 0 and 100 the ends."""
    return {"0": "minimum", "50": "median", "100": "maximum"}.get(percent, f"{percent} %")


def _quantiles(result: Divergence) -> Iterator[doc.Block]:
    quantiles = result.kl_ab_quantiles_nats
    if not any(quantiles.values()):
        return
    names = [percentile(percent) for percent in quantiles]
    changes = [100 * result.probability_change_quantiles[percent] for percent in quantiles]
    columns = (
        doc.labels("events up to", names),
        doc.numbers(_TITLE, list(quantiles.values()), *_FORM),
        doc.numbers("change of p, %", changes, 3, "signed"),
    )
    yield doc.Table(columns, "quantiles over events; p is that of the true token")
    title, x = f"How far {result.b} is from {result.a}, over events", "share of events that are no further apart"
    kl = (doc.series("KL", names, list(quantiles.values())),)
    chart = doc.ChartData("divergence", title, x, "KL divergence", "nats", kl, better="lower", rule_name="mean")
    yield replace(chart, rule=result.kl_ab_nats.value, log_y=all(value > 0 for value in quantiles.values()))


# --- where the candidate suffers --------------------------------------------------------------------------------------


def details_of(result: Divergence) -> Iterator[doc.Block]:
    """Yield slices of the text, and the tokens that suffer most."""
    if not any(result.kl_ab_quantiles_nats.values()):
        return
    for slices in result.slices:
        if len(slices.rows) > 1:
            yield from _slice(slices, result)
    if result.costly_tokens:
        yield _costly(result)
    yield from _worst("events where the models differ most", result, result.worst_tokens)
    yield from _worst("events whose true token lost the most probability", result, result.lost_tokens)


def _slice(slices: Slices, result: Divergence) -> Iterator[doc.Block]:
    rows = slices.rows
    floors = () if result.floor is None else result.floor.slices
    of_floor = {row.label: _nats(row.bits_per_unit[0]) for one in floors if one.name == slices.name for row in one.rows}
    means = [_nats(row.bits_per_unit[0]) for row in rows]
    ends = [row.interval and (bits_to_nats(row.interval[0]), bits_to_nats(row.interval[1])) for row in rows]
    columns = (
        *doc.columns(rows, "label", "ranges"),
        doc.numbers(_TITLE, means, *_FORM),
        doc.Column("95 % interval", [doc.between(end, *_FORM) for end in ends], 2),
        *([doc.numbers(FLOOR, [of_floor.get(row.label) for row in rows], *_FORM)] if of_floor else ()),
    )
    yield doc.Table(columns, f"by {slices.name}")
    name = f"divergence-{slices.name.split(' (')[0].replace(' ', '-')}"
    finite = [i for i, value in enumerate(means) if value is not None and math.isfinite(value)][: doc.MOST_CHART_ROWS]
    labels, values, intervals = [rows[i].label for i in finite], [means[i] for i in finite], [ends[i] for i in finite]
    kind, title = slice_kind(slices), f"KL divergence by {slices.name}"
    kl = [doc.series("KL", labels, values, intervals)]
    if of_floor and kind == "line":
        kl.append(doc.series(FLOOR, labels, [of_floor.get(label) for label in labels]))
    log = len(kl) > 1 and all(value is None or value > 0 for one in kl for value in (*one.y, *one.low))
    chart = doc.ChartData(name, title, slices.name, "KL divergence", "nats", tuple(kl), kind=kind, better="lower", log_y=log)
    yield replace(chart, rule=result.kl_ab_nats.value, rule_name="the whole text")


def _nats(bits: float | None) -> float | None:
    return None if bits is None else float(bits_to_nats(bits))


def _costly(result: Divergence) -> doc.Table:
    costs = result.costly_tokens
    mean = result.kl_ab_without_infinite_nats or 0.0
    whole = mean * (result.events - result.infinite_kl_ab - result.undefined_events)
    nats = [_nats(cost.bits) or 0.0 for cost in costs]
    columns = [
        doc.labels("", [cost.token if cost.token.strip() else repr(cost.token) for cost in costs]),
        *doc.columns(costs, "events"),
        doc.numbers("share of all KL", [value / whole if whole else None for value in nats], 2, "percent"),
        doc.numbers("KL each, nats", [_nats(cost.mean_bits) for cost in costs], *_FORM),
    ]
    if any(cost.zeros for cost in costs):
        columns.append(doc.numbers("KL infinite", [cost.zeros for cost in costs], form="count"))
    return doc.Table(tuple(columns), "tokens with the most KL in total, and where they occurred")


def _worst(title: str, result: Divergence, tokens: Sequence[WorstToken]) -> Iterator[doc.Block]:
    # Table of events: where, how far apart, the token in its context, and what each model expected.
    if not tokens:
        return
    columns = (
        doc.Column("segment", [f"{one.segment + 1:,}" for one in tokens], 3),
        *doc.columns(tokens, "kl_nats"),
        doc.numbers(f"p in {result.a}", [one.p_a for one in tokens], 3, "probability"),
        doc.numbers(f"p in {result.b}", [one.p_b for one in tokens], 3, "probability"),
        doc.labels(f"{result.a} expects", [f"{one.top_a!r} {number(one.top_a_probability, 2)}" for one in tokens], drop=2),
        doc.labels(f"{result.b} expects", [f"{one.top_b!r} {number(one.top_b_probability, 2)}" for one in tokens], drop=1),
        doc.Column(
            "the token in its text",
            [doc.Tokens((one.context[-_AROUND:], one.text), meant=1) for one in tokens],
            align="left",
        ),
    )
    yield doc.Table(columns, title, anchors=tuple(one.segment for one in tokens))


# -- several candidates -------------------------------------------------------------------------------------------------
_MEASURES = {"kl": "KL, nats", "log_loss": "log loss, nats"}


def candidate_blocks(candidates: CandidateDivergences, *, details: bool | None = None) -> doc.Document:
    """Return the verdict, a row for each candidate, the tests of one against another, and with details all of each."""
    items = candidates.items
    if len(items) == 1:
        return blocks(items[0], details=details is not False)
    heading = doc.Heading(f"candidates compared with {items[0].a}")
    beginning = (heading, _closest(candidates), doc.Text(looked_at(items[0])), _table(items))
    compared: doc.Document = (*_charts(items), *_tests(candidates.tests))
    if details:
        return (*beginning, *compared, *(block for item in items for block in blocks(item)))
    notes = list(dict.fromkeys(note for item in items for note in _named_notes(item, items)))
    notes += [f"95 % intervals and p-values: {item.independence}." for item in items if item.independence][:1]
    signatures = doc.signatures(item.signature for item in items)
    return (*beginning, *storage_of_several(items), *compared, *doc.notes(notes), *signatures)


def _named_notes(item: Divergence, items: Sequence[Divergence]) -> Iterator[str]:
    for note in item.notes:
        shared = all(note in other.notes for other in items)
        yield note if shared else f"{item.b}: {note}"


def _closest(candidates: CandidateDivergences) -> doc.Verdict:
    ranked = sorted(candidates.items, key=lambda item: _order(item.kl_ab_nats))
    best = ranked[0]
    if best.kl_ab_nats.value is None or not math.isfinite(best.kl_ab_nats.value):
        return doc.Verdict("unknown", f"No candidate is a finite divergence from {best.a}.")
    tests = [test for test in candidates.tests if test.measure == KL and best.b in (test.first, test.second)]
    apart = {_other(test, best.b): test for test in tests}
    further = [item.b for item in ranked[1:] if apart[item.b].significant]
    alike = [item.b for item in ranked[1:] if not apart[item.b].significant]
    kl = best.kl_ab_nats
    between = "" if kl.interval is None else f" (95 % interval {in_words(doc.between(kl.interval, *_FORM))})"
    sentences = [f"{best.b} is closest to {best.a}: mean KL {in_words(_kl(kl.value))} nats per token{between}."]
    if further:
        sentences.append(f"{listed(further)} {'is' if len(further) == 1 else 'are'} further away: {_by(further, apart)}.")
    if alike:
        sentences.append(f"{listed(alike)} {'is' if len(alike) == 1 else 'are'} not measurably different.")
    return doc.Verdict("unknown" if alike else "good", " ".join(sentences) + _beside_floor(candidates.items))


def _order(figure: Figure) -> float:
    return math.inf if figure.value is None else figure.value


def _other(test: CandidateTest, name: str) -> str:
    return test.second if test.first == name else test.first


def _by(names: Sequence[str], tests: dict[str, CandidateTest]) -> str:
    gaps = [abs(tests[name].difference or 0.0) for name in names]
    least = max(tests[name].p_value_holm or 0.0 for name in names)
    atleast = "by" if len(names) == 1 else "by at least"
    adjusted = ", adjusted (Holm)" if len(tests) > 1 else ""
    return f"{atleast} {in_words(_kl(min(gaps)))} nats per token ({p_equals(least)}{adjusted})"


def _table(items: Sequence[Divergence]) -> doc.Table:
    def column(title: str, name: str, digits: int, form: doc.Form = "number", scale: float = 1, drop: int = 0) -> doc.Column:
        values = [getattr(item, name).value for item in rows]
        return doc.numbers(title, [None if value is None else scale * value for value in values], digits, form, drop=drop)

    floor = items[0].floor
    rows = [*items, floor] if floor is not None else items
    quantiles = [item.kl_ab_quantiles_nats for item in rows]
    columns = (
        doc.labels("candidate", [item.b for item in rows]),
        column(_TITLE, "kl_ab_nats", *_FORM),
        doc.Column("95 % interval", [doc.between(item.kl_ab_nats.interval, *_FORM) for item in rows]),
        doc.numbers("99.9 %", [values.get("99.9") for values in quantiles], *_FORM, drop=4),
        doc.numbers("maximum", [values.get("100") for values in quantiles], *_FORM, drop=5),
        column("same top, %", "top_1_agreement", 2, scale=100),
        column("acceptance, %", "acceptance_rate", 2, scale=100, drop=6),
        column("RMS change of p, %", "probability_change_rms", 2, "figures", scale=100, drop=3),
        column("ppl / base", "perplexity_ratio", 5),
        doc.Column("95 % interval", [doc.between(item.perplexity_ratio.interval, 5) for item in rows], 2),
    )
    return doc.Table(columns)


def _charts(items: Sequence[Divergence]) -> Iterator[doc.ChartData]:
    finite = [item for item in items if math.isfinite(_order(item.kl_ab_nats))]
    if not finite:
        return
    names, figures = [item.b for item in finite], [item.kl_ab_nats for item in finite]
    kl = doc.series("KL", names, [figure.value for figure in figures], [figure.interval for figure in figures])
    title, y = f"How far candidates are from {items[0].a}: mean KL(base || candidate)", "mean KL divergence"
    chart = doc.ChartData("candidates", title, "candidate", y, "nats", (kl,), kind="intervals", better="lower")
    floor = items[0].floor
    yield chart if floor is None else replace(chart, rule=floor.kl_ab_nats.value, rule_name=floor.b)


def _tests(tests: Sequence[CandidateTest]) -> Iterator[doc.Table]:
    rows = [test for test in tests if test.difference is not None]
    if not rows:
        return
    columns = (
        doc.labels("worse?", [_asked(test) for test in rows]),
        doc.labels("measure", [_MEASURES[test.measure] for test in rows]),
        doc.numbers("difference", [test.difference for test in rows], 6, "signed"),
        doc.Column("95 % interval", [doc.between(test.interval, 6, "signed") for test in rows], 1),
        doc.Column("p", [doc.Number(test.p_value_holm, form="p", significant=bool(test.significant)) for test in rows]),
    )
    several = len({test.measure for test in rows}) < len(rows)
    note = ("p-values are adjusted for the tests of their measure (Holm)",) if several else ()
    yield doc.Table(columns, "is one worse than the other? the same events, paired", footnotes=note)


def _asked(test: CandidateTest) -> str:
    return f"{test.second} than {test.first}"


# -- stored bases -------------------------------------------------------------------------------------------------------
def base_blocks(saved: SavedBase) -> doc.Document:
    """Return what was stored and how long the file is."""
    rows = {
        "file": str(saved.path),
        "base": saved.model,
        "events": f"{saved.events:,} of {saved.total_events:,}",
        "segments": f"{saved.segments:,} of {saved.total_segments:,}",
        "stored for each event": _what(saved.stored, saved.top, saved.samples),
        "size": _size(saved.file_bytes, saved.whole_bytes),
    }
    return (doc.Lines(tuple(rows.items())), *doc.notes(saved.notes))


def storage_blocks(storage: Storage | None) -> Iterator[doc.Block]:
    """Yield what storing can have done to figures; nothing where no stored base was used."""
    if storage is None:
        return
    yield _of_file(storage)
    if storage.errors:
        errors, figures = storage.errors, columns_of(Divergence)
        columns = (
            doc.labels("how much storing may have changed", [figures[name].title for name in errors]),
            *doc.columns(list(errors.values())),
        )
        confidence = percent(next(iter(errors.values())).confidence, 1)
        yield doc.Table(
            columns, f"the figure of whole distributions: proven bounds, {confidence}; what is not here is exact"
        )
    yield from doc.notes(_notes(storage))


def storage_of_several(items: Sequence[Divergence]) -> Iterator[doc.Block]:
    """Yield what storing can have done to the KL divergence of each candidate; nothing where no stored base was used."""
    first = items[0].storage
    if first is None:
        return
    yield _of_file(first)
    bounds = [None if item.storage is None else item.storage.errors.get("kl_ab_nats") for item in items]
    if any(bound is not None for bound in bounds):
        columns = (
            doc.labels("KL, nats, of whole distributions", [item.b for item in items]),
            *doc.columns(bounds),
        )
        confidence = next(bound.confidence for bound in bounds if bound is not None)
        yield doc.Table(columns, f"how much storing may have changed: proven bounds, {percent(confidence, 1)}")


def _of_file(storage: Storage) -> doc.Text:
    what = _what(storage.stored, storage.top, storage.samples)
    return doc.Text(f"stored base {storage.file}: {what}; {_size(storage.file_bytes, storage.whole_bytes)}")


def _notes(storage: Storage) -> Iterator[str]:
    if storage.stored == "bfloat16":
        yield "bfloat16 keeps three digits of a log-probability: small divergences are only its rounding"
    if storage.stored == "top" and storage.tail_mass > 0:
        yield (
            f"{percent(storage.tail_mass)} of the base's probability was stored as draws; KL at a single event has a "
            f"standard error of {number(storage.event_error_nats, 2)} nats from it, which widens the quantiles"
        )


def _what(stored: str, top: int, samples: int) -> str:
    if stored == "states":
        return "the last hidden states, of which the output layer makes whole distributions"
    if stored != "top":
        return f"all log-probabilities, {stored}"
    return f"the {top:,} most probable tokens, and draws from the rest, {samples:,} for a probability of 1"


def _size(file_bytes: int, whole: int) -> str:
    ratio = whole / max(1, file_bytes)
    shown = f"1/{ratio:,.0f} of" if ratio >= 1.5 else f"{1 / ratio:,.2g} times"
    return f"{format_bytes(file_bytes)}, {shown} 16 bits a token of the vocabulary ({format_bytes(whole)})"
