"""What a longer context is worth: the answer, a row for each length and each step, and the curve with its band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmgauge.evaluation.context_curve.curve import ContextCurve, ContextStep
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, p_equals

_LEVEL = 0.05
_BITS = ("bits_per_token", "interval_per_token", "bits_per_byte", "interval_per_byte")


def blocks(curve: ContextCurve) -> doc.Document:
    """Return the answer, both tables, the charts, what a reader must know, and the signature."""
    bound = ["bits per byte are a lower bound: " + "; ".join(curve.bound_reasons)] if curve.bits_per_byte_is_bound else []
    independence = [f"95 % intervals: {curve.independence}."] if curve.independence else []
    return (
        doc.Heading(f"What {curve.model} gains from a longer context"),
        doc.Verdict("fact", _answer(curve)),
        _points(curve),
        _steps(curve),
        *_charts(curve),
        *doc.notes((*bound, *curve.notes, *independence)),
        doc.Signature(curve.signature),
    )


def _answer(curve: ContextCurve) -> str:
    first, last = curve.points[0], curve.points[-1]
    values = [in_words(doc.Number(point.bits_per_token, 4)) for point in (first, last)]
    says = (
        f"The same {counted(curve.events, 'token')} cost {values[0]} bits each with a context of {first.context:,}, "
        f"{values[1]} with {last.context:,}. "
    )
    tested = [step for step in curve.steps if step.p_value_holm is not None]
    if not tested:
        return says + "There is too little text to tell whether the lengths differ."
    clear = [step for step in tested if (step.p_value_holm or 0.0) < _LEVEL]
    if not clear:
        return says + f"No step from one length to the next differs significantly (smallest {_smallest(tested)})."
    worse = [step for step in clear if (step.bits_per_token or 0.0) > 0]
    helped = [step for step in clear if step not in worse]
    parts = [f"{_listed(helped)} save{'s' * (len(helped) == 1)} bits"] if helped else []
    parts += [f"{_listed(worse)} cost{'s' * (len(worse) == 1)} bits"] if worse else []
    parts += ["the other steps show no difference"] if len(clear) < len(curve.steps) else []
    text = "; ".join(parts)
    return says + f"{text[0].upper()}{text[1:]} (p < {_LEVEL}, adjusted for {counted(len(curve.steps), 'step')})."


def _smallest(steps: Sequence[ContextStep]) -> str:
    return p_equals(min(step.p_value_holm for step in steps if step.p_value_holm is not None))


def _listed(steps: Sequence[ContextStep]) -> str:
    return ("the step " if len(steps) == 1 else "the steps ") + ", ".join(map(_name, steps))


def _name(step: ContextStep) -> str:
    return f"{step.shorter:,} to {step.longer:,}"


def _points(curve: ContextCurve) -> doc.Table:
    order = ("context", *_BITS, "perplexity", "zero_probability_events")
    return doc.Table(doc.columns(curve.points, *order), f"{counted(curve.events, 'token')} under each length")


def _steps(curve: ContextCurve) -> doc.Table:
    columns = (doc.labels("step", [_name(step) for step in curve.steps]), *doc.columns(curve.steps))
    footnote = "Differences are paired, token by token; below 0 the longer context is better."
    return doc.Table(columns, "from each length to the next", footnotes=(footnote,))


def _charts(curve: ContextCurve) -> Iterator[doc.ChartData]:
    x = [f"{point.context:,}" for point in curve.points]
    note = "bands are for each length alone; steps are paired, so one can be significant although bands overlap"
    exact = not curve.bits_per_byte_is_bound and all(point.bits_per_byte is not None for point in curve.points)
    unit = "byte" if exact else "token"
    y, ends = ([getattr(point, f"{what}_per_{unit}") for point in curve.points] for what in ("bits", "interval"))
    yield doc.ChartData(
        "context", f"Bits per {unit} by length of context", "context", f"bits per {unit}", "bits",
        (doc.series(curve.model, x, y, ends),), x_unit="tokens", better="lower", note=note,
    )  # fmt: skip
    names = [_name(step) for step in curve.steps]
    gaps = doc.series(
        curve.model, names, [step.bits_per_token for step in curve.steps], [s.interval_per_token for s in curve.steps]
    )
    title, note = "What each longer context changes", "below 0: the longer context is better"
    yield doc.differences("context-steps", title, "step", "difference in bits per token", "bits", [gaps], note=note)
