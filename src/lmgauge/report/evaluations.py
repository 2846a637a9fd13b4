"""Evaluations: perplexity first, then the units, then what could spoil them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from lmgauge.evaluation.results import Evaluation, comparison_notes
from lmgauge.numerics.figures import FIGURES, Figure
from lmgauge.numerics.intervals import DOCUMENTS, UNKNOWN
from lmgauge.report import blocks as doc
from lmgauge.scores.context_policy import PROTOCOLS, ContextPolicy
from lmgauge.scores.special_tokens import FAULT


def blocks(results: Sequence[Evaluation], title: str = "") -> doc.Document:
    """Return a table with a row for each evaluation, what a reader must know to read it, and the signatures."""
    signatures = doc.signatures(result.signature for result in results)
    samples = dict.fromkeys(of_sample(result) for result in results if result.sample)
    return (*map(doc.Text, samples), _table(results, title), *_charts(results), *doc.notes(footnotes(results)), *signatures)


def of_sample(result: Evaluation) -> str:
    """Return that figures are of a sample of documents alone, in words."""
    return f"The figures are of a sample alone, {result.sample} documents; compare and export estimate those of the whole."


def _table(results: Sequence[Evaluation], title: str) -> doc.Table:
    columns = [doc.labels("model", [result.model for result in results])]
    if any(result.group is not None for result in results):
        columns.append(doc.labels("group", [result.group or "(all)" for result in results]))
    figures = [doc.Column(figure.heading, _cells(figure, results), figure.drop) for figure in FIGURES if figure.heading]
    columns += [
        figures[0],
        doc.Column("95 % interval", [doc.between(None if r.zero_probability_events else r.interval, 2) for r in results], 4),
        *figures[1:],
        doc.numbers("OOV", [result.oov_rate for result in results], 2, "percent", drop=7),
        doc.numbers("events", [result.events for result in results], form="count", drop=5),
    ]
    if any(result.oov_policy == "spelled" for result in results):
        unseen = [_UNSEEN.get(result.oov_policy, "") if result.oov else "" for result in results]
        columns.insert(-1, doc.labels("", unseen, drop=6))
    if any(result.zero_probability_events for result in results):
        columns.append(doc.numbers("p = 0", [result.zero_probability_events for result in results], form="count"))
        columns.append(doc.numbers("ppl without", [result.perplexity_without_zeros for result in results], 2, drop=8))
    return doc.Table(tuple(columns), title)


PAIRED = "intervals may overlap although a difference is real: two models are compared on the same text, segment by segment"
_CURES = {"byte": "--words of all bytes, <0x00> to <0xFF>"}
_UNSEEN = {"spelled": "spelled", "unk": "as <unk>", "closed": "impossible"}


def _charts(results: Sequence[Evaluation]) -> Iterator[doc.ChartData]:
    wholes = [result for result in results if result.group is None]
    groups = [result for result in results if result.group is not None]
    if len({result.model for result in wholes}) == len(wholes) > 1:
        yield from _chart("models", "", "model", wholes, [("", [result.model for result in wholes], wholes)])
    names = list(dict.fromkeys(str(result.group) for result in groups))
    models = list(dict.fromkeys(result.model for result in groups))
    if len(names) > 1 and len(set(map(_row, groups))) == len(groups):
        largest = {name: sum(result.events for result in groups if result.group == name) for name in names}
        names = sorted(names, key=lambda name: -largest[name])[: doc.MOST_CHART_ROWS]
        parts = [[result for result in groups if result.model == model and result.group in names] for model in models]
        series = [(model, [str(result.group) for result in part], part) for model, part in zip(models, parts, strict=True)]
        yield from _chart("groups", " by group", "group", wholes, series, cut="group")


def _row(result: Evaluation) -> tuple[str, str | None]:
    return result.model, result.group


def _chart(
    name: str,
    by: str,
    what: str,
    wholes: Sequence[Evaluation],
    parts: Sequence[tuple[str, list[str], Sequence[Evaluation]]],
    cut: str = "",
) -> Iterator[doc.ChartData]:
    # Chart of the figure that may be compared: perplexity with its intervals, else bits per byte, else none.
    texts = {result.fingerprints.get("text") for result in wholes}
    noted = comparison_notes(wholes)
    bits = bool(noted)
    if len(texts) > 1 or any("nor may" in note for note in noted):
        return
    if bits and any(result.bits_per_byte is None or result.bits_per_byte_is_bound for result in wholes):
        return
    series = []
    for title, x, results in parts:
        ends = [None if bits or result.zero_probability_events else result.interval for result in results]
        y = [result.bits_per_byte if bits else result.perplexity for result in results]
        series.append(doc.series(title or "bits per byte" * bits or "perplexity", x, y, ends))
    figure, unit = ("bits per byte", "bits") if bits else ("perplexity", "")
    if not any(value is not None and math.isfinite(value) for one in series for value in one.y):
        return
    title = figure.capitalize() + by
    note = "" if cut else PAIRED
    chart = doc.ChartData(name, title, what, figure, unit, tuple(series), kind="intervals", better="lower", cut=cut)
    yield replace(chart, note=note)


def _cells(figure: Figure, results: Sequence[Evaluation]) -> list[doc.Number]:
    return [doc.Number(getattr(result, figure.name), figure.digits) for result in results]


def footnotes(results: Sequence[Evaluation]) -> Iterator[str]:
    """Yield what a reader must know, what matters most first; each sentence once."""
    notes = list(_notes(results))
    yield from (note for note in notes if FAULT in note)
    yield from comparison_notes(results)
    for result in results:
        if result.zero_probability_events and result.group is None:
            first = result.first_zero_probability_events[0]
            yield (
                f"{result.model}: {result.zero_probability_events:,} events have probability zero, "
                f"first {first.token!r}, event {first.position + 1} of segment {first.segment + 1}; "
                "'ppl without' leaves them out."
            )
    for result in results:
        if result.source_figures:
            protocol = ContextPolicy.parse(result.context).protocol
            source = PROTOCOLS[protocol].source if protocol is not None else "its source"
            figures = ", ".join(f"{name} {value:,.4f}" for name, value in result.source_figures.items())
            yield f"{result.model}: as {source} prints it: {figures}."
    if any(result.bits_per_byte_is_bound and not result.zero_probability_events for result in results):
        reasons = dict.fromkeys(reason for result in results for reason in result.bound_reasons)
        bounds = [result for result in results if result.oov and result.bits_per_byte_is_bound]
        cures = dict.fromkeys(_CURES.get(result.unit, "--vocabulary spelled") for result in bounds)
        exact = f" (for exact bits, train with {' or '.join(cures)})" if cures else ""
        yield f"≥ is a lower bound: {' and '.join(reasons)}{exact}."
    yield from (note for note in notes if FAULT not in note)
    yield from _independence(results)
    groups = [result for result in results if result.group is not None and result.interval is not None]
    if any(r.documents_by != UNKNOWN and r.interval is not None and r.interval.unit == UNKNOWN for r in groups):
        yield "95 % interval of a group of fewer than 6 documents: about text like these."
    elif groups and any(r.interval is not None and r.interval.unit == DOCUMENTS for r in groups):
        yield "95 % interval of a group: over the documents in it."
    yield from (f"{result.model}: {result.first_segment}" for result in results if result.first_segment)


def _notes(results: Sequence[Evaluation]) -> Iterator[str]:
    # Notes of the results, each once, with the models it is about where it is not about all of them. Those that differ in
    # shares are one: "takes 16.4 % of the bits", "takes 19.1 % of the bits" -> "takes 16.4 to 19.1 % of the bits".
    models = dict.fromkeys(result.model for result in results)
    about: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for result in results:
        for note in result.notes:
            parts = _SHARE.split(note)
            about.setdefault(tuple(parts[::2]), []).append((result.model, parts[1::2]))
    for words, those in about.items():
        names = dict.fromkeys(name for name, _ in those)
        ranges = [list(dict.fromkeys(sorted(column, key=float))) for column in zip(*(own for _, own in those), strict=True)]
        shown = [" to ".join((own[0], own[-1])[: len(own)]) for own in ranges]
        note = "".join(word + share for word, share in zip_longest(words, shown, fillvalue=""))
        yield note if len(names) == len(models) else f"{', '.join(names)}: {note}"


_SHARE = re.compile(r"(\b[0-9]+(?:\.[0-9]+)?)(?= %)")


def _independence(results: Sequence[Evaluation]) -> Iterator[str]:
    # Say what the intervals take as independent, once for each kind: for the result whose segments are most alike.
    kinds: dict[tuple[str, int, bool], list[Evaluation]] = {}
    for result in results:
        if result.interval is not None and result.independence and result.group is None:
            kind = result.interval.unit, result.interval.units, result.interval.alike > 1.0
            kinds.setdefault(kind, []).append(result)
    for same in kinds.values():
        widest = max(same, key=lambda result: result.interval.alike if result.interval else 0.0)
        of = f" of {', '.join(result.model for result in same)}" if len(kinds) > 1 else ""
        yield f"95 % interval{of}: {widest.independence}."
