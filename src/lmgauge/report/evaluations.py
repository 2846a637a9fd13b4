"""Evaluations: perplexity first, then the units, then what could spoil them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmgauge.evaluation.results import Evaluation, comparison_notes
from lmgauge.figures import FIGURES, Figure
from lmgauge.numerics.intervals import DOCUMENTS, UNKNOWN
from lmgauge.report import blocks as doc


def blocks(results: Sequence[Evaluation], title: str = "") -> doc.Document:
    """Return a table with a row for each evaluation, what a reader must know to read it, and the signatures.

    Args:
        results: at least one, of models or groups of segments.
        title: above the table.
    """
    signatures = dict.fromkeys(result.signature for result in results)
    return (_table(results, title), *doc.notes(footnotes(results)), *map(doc.Signature, signatures))


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
    if any(result.zero_probability_events for result in results):
        columns.append(doc.numbers("p = 0", [result.zero_probability_events for result in results], form="count"))
        columns.append(doc.numbers("ppl without", [result.perplexity_without_zeros for result in results], 2, drop=8))
    return doc.Table(tuple(columns), title)


def _cells(figure: Figure, results: Sequence[Evaluation]) -> list[doc.Number]:
    return [
        doc.Number(getattr(result, figure.name), figure.digits, bound=figure.bounded and result.bits_per_byte_is_bound)
        for result in results
    ]


def footnotes(results: Sequence[Evaluation]) -> Iterator[str]:
    """Yield sentences about bounds, zero probabilities, what reading changed and what may be compared; each once.

    Args:
        results: the evaluations of one table.
    """
    if any(result.bits_per_byte_is_bound for result in results):
        reasons = dict.fromkeys(reason for result in results for reason in result.bound_reasons)
        yield f"≥: lower bound, as {' and '.join(reasons)}."
    for result in results:
        if result.zero_probability_events and result.group is None:
            first = result.first_zero_probability_events[0]
            yield (
                f"{result.model}: {result.zero_probability_events:,} events have probability zero, "
                f"first {first.token!r}, event {first.position + 1} of segment {first.segment + 1}; "
                "'ppl without' leaves them out."
            )
    yield from _independence(results)
    groups = [result for result in results if result.group is not None and result.interval is not None]
    if any(r.documents_by != UNKNOWN and r.interval is not None and r.interval.unit == UNKNOWN for r in groups):
        yield "95 % interval of a group that is one document: about text like this document."
    elif groups and any(r.interval is not None and r.interval.unit == DOCUMENTS for r in groups):
        yield "95 % interval of a group: over the documents in it."
    yield from dict.fromkeys(note for result in results for note in result.notes)
    yield from comparison_notes(results)


def _independence(results: Sequence[Evaluation]) -> Iterator[str]:
    """Say what the intervals take as independent, once for each kind: for the result whose segments are most alike."""
    kinds: dict[tuple[str, int, bool], list[Evaluation]] = {}
    for result in results:
        if result.interval is not None and result.group is None:
            kind = result.interval.unit, result.interval.units, result.interval.alike > 1.0
            kinds.setdefault(kind, []).append(result)
    for same in kinds.values():
        widest = max(same, key=lambda result: result.interval.alike if result.interval else 0.0)
        of = f" of {', '.join(result.model for result in same)}" if len(kinds) > 1 else ""
        yield f"95 % interval{of}: {widest.independence}."
