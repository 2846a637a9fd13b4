"""The page of systems scored on a task: the answer in a sentence, charts, tables, and segments with their outputs."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.report import blocks as doc
from lmgauge.report import tasks
from lmgauge.report.formats import counted, in_words, p_equals
from lmgauge.tasks.comparison import SystemResult, Systems
from lmgauge.tasks.metrics.error_rates import ErrorRates
from lmgauge.tasks.segment_examples import SegmentExamples

_MOST_ERRORS = 15
_MOST_SYSTEMS = 6  # with tables of errors: the first ones, and the best
_MOST_LINES = 3  # of a histogram; of more systems the first and the best
_OPERATIONS = ("substitutions", "deletions", "insertions")


def page(systems: Systems, examples: SegmentExamples, *, width: int = 2) -> doc.Document:
    """Return all that a page shows of systems."""
    return (
        verdict(systems, width),
        *tasks.blocks(systems, width=width),
        *_charts(systems, examples),
        *_segments(systems, examples),
        *_frequent(examples, systems.best.system),
    )


def verdict(systems: Systems, width: int = 2) -> doc.Verdict:
    """Return which system is best, how sure that is, and against what."""
    best = systems.best
    of = counted(systems.segments, "segment")
    sentences = [f"{best.system} has {_article(systems.metric)} {systems.metric} of {_score(systems, best, width)} on {of}."]
    level: doc.Level = "fact"
    if len(systems) > 1:
        word = "high" if systems.higher_is_better else "low"
        of_all = (
            f"{word}er {systems.metric} of the two systems"
            if len(systems) == 2
            else (f"{word}est {systems.metric} of {len(systems):,} systems")
        )
        sentences[0] = f"{best.system} has the {of_all}: {_score(systems, best, width)} on {of}."
        sentence, level = _difference(systems, best, width)
        sentences += [sentence] if sentence else []
    if systems.independence:
        sentences.append(f"The intervals: {systems.independence}.")
    return doc.Verdict(level, " ".join(sentences))


def _article(metric: str) -> str:
    return "an" if metric[:1] in "AEFHILMNORSX" and metric.isupper() and not metric.startswith(("WER", "CER")) else "a"


def _score(systems: Systems, item: SystemResult, width: int) -> str:
    shown = in_words(doc.Number(systems.scale * item.score.score, width)) + " %" * systems.percent
    if item.interval is None:
        return shown
    return f"{shown} (95 % interval {in_words(doc.between(item.interval, width, scale=systems.scale))})"


def _difference(systems: Systems, best: SystemResult, width: int) -> tuple[str, doc.Level]:
    first = systems[0]
    if best is first:
        sign = 1 if systems.higher_is_better else -1
        other = max(systems[1:], key=lambda item: sign * item.score.score)
        name, against = other.system, "it"
    else:
        other, name, against = best, "it", first.system
    if other.difference is None or other.p_value_holm is None:
        return "", "fact"
    between = ""
    if other.difference_interval is not None:
        between = f", 95 % interval {in_words(doc.between(other.difference_interval, width, 'signed', scale=systems.scale))}"
    difference = in_words(doc.Number(systems.scale * other.difference, width, "signed")) + " points" * systems.percent
    subject = f"{name} differs from {against} by {difference}{between}; {p_equals(other.p_value_holm)}"
    subject = subject[0].upper() + subject[1:] if name == "it" else subject
    if best is first:
        subject = subject.replace(f"{name} differs", f"The next best, {name}, differs", 1)
    if other.significant:
        return f"{subject}: more than chance would explain.", "good"
    return f"{subject}: chance may explain it.", "unknown"


def _charts(systems: Systems, examples: SegmentExamples) -> doc.Document:
    charts = (*_errors_chart(systems), *_histogram(systems, examples))
    return (doc.Heading("Errors and segments" if examples.aligned else "How segments differ"), *charts) if charts else ()


def _errors_chart(systems: Systems) -> Iterator[doc.ChartData]:
    rates = [(item.system, item.score) for item in systems if isinstance(item.score, ErrorRates)]
    if not rates or not all(score.reference_length for _, score in rates):
        return
    names = tuple(name for name, _ in rates)
    series = (
        doc.Series(kind, names, tuple(100 * getattr(score, kind) / score.reference_length for _, score in rates))
        for kind in _OPERATIONS
    )
    title = f"What the {systems.metric} is made of"
    yield doc.ChartData(
        "errors", title, "system", f"errors for 100 {_unit(systems)}s of the reference", "", tuple(series), kind="bars",
        better="lower",
    )  # fmt: skip


def _unit(systems: Systems) -> str:
    return "character" if systems.metric == "CER" else "word"


def _histogram(systems: Systems, examples: SegmentExamples) -> Iterator[doc.ChartData]:
    if systems.segments < 2:
        return
    unit = "%" * systems.percent
    edges = tuple(systems.scale * edge for edge in examples.edges)
    names = [item.system for item in systems]
    if len(names) > _MOST_LINES:
        names = list(dict.fromkeys([names[0], systems.best.system]))
    series = tuple(doc.Series(name, edges, (*map(float, examples.counts[name]), None)) for name in names)
    yield doc.ChartData(
        "segment-scores", f"Segments by {systems.metric}", systems.metric, "segments", "", series, x_unit=unit,
        kind="histogram", note="" if systems.higher_is_better else "the last bin includes everything beyond it",
    )  # fmt: skip


def _segments(systems: Systems, examples: SegmentExamples) -> Iterator[doc.Block]:
    if not examples.items:
        return
    yield doc.Heading("The segments", folded=True)
    if examples.aligned:
        yield doc.Text(
            "Outputs under their reference, as the metric aligns them; of long segments, the part with most errors."
        )
    else:
        yield doc.Text(
            "The reference, and each system's output below it. Words that do not align with the nearest reference are "
            "colored: this helps reading, but is not what the metric counts."
        )
    yield doc.Outputs(examples.items, systems.metric, examples.aligned, systems.percent)


def _frequent(examples: SegmentExamples, best: str) -> doc.Document:
    if not examples.errors:
        return ()
    some = {name: examples.errors[name] for name in (*list(examples.errors)[: _MOST_SYSTEMS - 1], best)}
    return (doc.Heading("Most frequent errors"), *tasks.error_blocks(some, _MOST_ERRORS))
