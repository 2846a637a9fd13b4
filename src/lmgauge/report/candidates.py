"""Several candidates beside one base: which is closest, which are worse, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lmgauge.evaluation.divergence.candidates import KL
from lmgauge.evaluation.divergence.divergence_result import CandidateDivergences, CandidateTest, Divergence, Figure
from lmgauge.report import blocks as doc
from lmgauge.report import divergence as one
from lmgauge.report.formats import in_words, listed, number, p_equals
from lmgauge.report.stored_base import storage_of_several

_MEASURES = {"kl": "KL, nats", "log_loss": "log loss, nats"}


def blocks(candidates: CandidateDivergences, *, details: bool | None = None) -> doc.Document:
    """Return the verdict, a row for each candidate, the tests of one against another, and with details all of each."""
    items = candidates.items
    if len(items) == 1:
        return one.blocks(items[0], details=details is not False)
    each = [block for item in items for block in one.blocks(item)] if details else []
    independence = next((item.independence for item in items if item.independence), "")
    notes = list(dict.fromkeys(note for item in items for note in _named_notes(item, items)))
    return (
        doc.Heading(f"candidates compared with {items[0].a}"),
        _verdict(candidates),
        doc.Text(one.looked_at(items[0])),
        _table(items),
        *(() if details else storage_of_several(items)),
        *_charts(items),
        *_tests(candidates.tests),
        *each,
        *(doc.notes([f"95 % intervals and p-values: {independence}."] if independence else []) if not details else ()),
        *(() if details else doc.notes(notes)),
        *(() if details else (doc.Signature(item.signature) for item in items)),
    )


def _named_notes(item: Divergence, items: Sequence[Divergence]) -> Iterator[str]:
    for note in item.notes:
        shared = all(note in other.notes for other in items)
        yield note if shared else f"{item.b}: {note}"


def _verdict(candidates: CandidateDivergences) -> doc.Verdict:
    ranked = sorted(candidates.items, key=lambda item: _order(item.kl_ab_nats))
    best = ranked[0]
    if best.kl_ab_nats.value is None or not math.isfinite(best.kl_ab_nats.value):
        return doc.Verdict("unknown", f"No candidate is a finite divergence from {best.a}.")
    tests = [test for test in candidates.tests if test.measure == KL and best.b in (test.first, test.second)]
    apart = {_other(test, best.b): test for test in tests}
    further = [item.b for item in ranked[1:] if apart[item.b].significant]
    alike = [item.b for item in ranked[1:] if not apart[item.b].significant]
    kl = best.kl_ab_nats
    between = "" if kl.interval is None else f" (95 % interval {in_words(doc.between(kl.interval))})"
    sentences = [f"{best.b} is closest to {best.a}: mean KL {number(kl.value)} nats a token{between}."]
    if further:
        sentences.append(f"{listed(further)} {'is' if len(further) == 1 else 'are'} further away: {_by(further, apart)}.")
    if alike:
        sentences.append(f"{listed(alike)} {'is' if len(alike) == 1 else 'are'} not told apart from it.")
    return doc.Verdict("unknown" if alike else "good", " ".join(sentences))


def _order(figure: Figure) -> float:
    return math.inf if figure.value is None else figure.value


def _other(test: CandidateTest, name: str) -> str:
    return test.second if test.first == name else test.first


def _by(names: Sequence[str], tests: dict[str, CandidateTest]) -> str:
    gaps = [abs(tests[name].difference or 0.0) for name in names]
    least = max(tests[name].p_value_holm or 0.0 for name in names)
    atleast = "by" if len(names) == 1 else "by at least"
    adjusted = ", adjusted (Holm)" if len(tests) > 1 else ""
    return f"{atleast} {number(min(gaps))} nats a token ({p_equals(least)}{adjusted})"


def _table(items: Sequence[Divergence]) -> doc.Table:
    def column(title: str, figures: Sequence[Figure], digits: int, scale: float = 1.0, drop: int = 0) -> doc.Column:
        values = [None if figure.value is None else scale * figure.value for figure in figures]
        return doc.numbers(title, values, digits, drop=drop)

    quantiles = [item.kl_ab_quantiles_nats for item in items]
    digits = _digits([item.kl_ab_nats.value for item in items])
    columns = (
        doc.labels("candidate", [item.b for item in items]),
        column("KL, nats", [item.kl_ab_nats for item in items], digits),
        doc.Column("95 % interval", [doc.between(item.kl_ab_nats.interval, digits) for item in items]),
        doc.numbers("99.9 %", [values.get("99.9") for values in quantiles], 3, drop=4),
        doc.numbers("maximum", [values.get("100") for values in quantiles], 3, drop=5),
        column("same top, %", [item.top_1_agreement for item in items], 2, 100),
        column("RMS change of p, %", [item.probability_change_rms for item in items], 3, 100, drop=3),
        column("ppl / base", [item.perplexity_ratio for item in items], 5),
        doc.Column("95 % interval", [doc.between(item.perplexity_ratio.interval, 5) for item in items], 2),
    )
    return doc.Table(columns)


def _digits(values: Sequence[float | None]) -> int:
    """Return the digits behind the point with which the smallest value above 0 has three that count; six at least.

    >>> _digits([0.05, 8.028e-06])
    8
    """
    finite = [value for value in values if value and math.isfinite(value)]
    return max(6, 2 - math.floor(math.log10(min(finite)))) if finite else 6


def _charts(items: Sequence[Divergence]) -> Iterator[doc.ChartData]:
    finite = [item for item in items if math.isfinite(_order(item.kl_ab_nats))]
    if not finite:
        return
    names, figures = [item.b for item in finite], [item.kl_ab_nats for item in finite]
    kl = doc.series("KL", names, [figure.value for figure in figures], [figure.interval for figure in figures])
    title, y = f"How far candidates are from {items[0].a}: mean KL(base || candidate)", "mean KL divergence"
    yield doc.ChartData("candidates", title, "candidate", y, "nats", (kl,), kind="intervals", better="lower")


def _tests(tests: Sequence[CandidateTest]) -> Iterator[doc.Table]:
    rows = [test for test in tests if test.difference is not None]
    if not rows:
        return
    digits = _digits([abs(test.difference or 0.0) for test in rows])
    columns = (
        doc.labels("worse?", [_asked(test) for test in rows]),
        doc.labels("measure", [_MEASURES[test.measure] for test in rows]),
        doc.numbers("difference", [test.difference for test in rows], digits, "signed"),
        doc.Column("95 % interval", [doc.between(test.interval, digits, "signed") for test in rows], 1),
        doc.Column("p", [doc.Number(test.p_value_holm, form="p", significant=bool(test.significant)) for test in rows]),
    )
    several = len({test.measure for test in rows}) < len(rows)
    note = ("p-values are adjusted for the tests of their measure (Holm)",) if several else ()
    yield doc.Table(columns, "is one worse than the other? the same events, paired", footnotes=note)


def _asked(test: CandidateTest) -> str:
    return f"{test.second} than {test.first}"
