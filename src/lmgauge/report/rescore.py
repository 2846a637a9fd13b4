"""N-best lists rescored: what the recognizer's choice and the new one cost, the weights, and how they were chosen."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.report import blocks as doc
from lmgauge.report import tasks
from lmgauge.report.formats import counted, in_words, p_equals, percent
from lmgauge.tasks.nbest.results import Rescored, Tuning


def blocks(rescored: Rescored) -> doc.Document:
    """Return the answer, error rates, weights, how they were tuned, charts, notes and the signature."""
    return (
        doc.Heading("N-best lists rescored"),
        doc.Verdict(*_answer(rescored)),
        *_rates(rescored),
        *_limits(rescored),
        _weights(rescored),
        *_tuning(rescored),
        *doc.notes(_notes(rescored)),
        doc.Signature(rescored.signature),
    )


def _answer(rescored: Rescored) -> tuple[doc.Level, str]:
    says = f"Another hypothesis is the best in {rescored.changed:,} of {counted(len(rescored.lists), 'list')}"
    if rescored.systems is None:
        return "fact", f"{says}."
    before, after = rescored.systems
    name = rescored.systems.metric
    rates = " to ".join(in_words(doc.Number(one.score.score, 2, "percent")) for one in (before, after))
    p = "not tested" if after.p_value is None else p_equals(after.p_value)
    if not after.significant:
        return "unknown", f"{says}; {name} goes from {rates}: no sure difference ({p})."
    better = (after.difference or 0.0) < 0
    return ("good" if better else "bad"), f"{says}; {name} {'falls' if better else 'rises'} from {rates} ({p})."


def _rates(rescored: Rescored) -> doc.Document:
    return () if rescored.systems is None else tuple(tasks.blocks(rescored.systems))


def _limits(rescored: Rescored) -> Iterator[doc.Table]:
    if rescored.oracle is None or rescored.worst is None:
        return
    limits = (("fewest errors (oracle)", rescored.oracle), ("most errors", rescored.worst))
    columns = (
        doc.labels("choice", [name for name, _ in limits]),
        doc.numbers(f"{rescored.oracle.metric} %", [100 * rates.score for _, rates in limits], 2),
        doc.numbers("errors", [rates.errors for _, rates in limits], form="count"),
    )
    yield doc.Table(columns, "What the lists allow")


def _weights(rescored: Rescored) -> doc.Table:
    unknown = {one.model: one.unknown / max(one.words, 1) for one in rescored.unknown}
    kinds = [*["recognizer"] * len(rescored.lists.score_names), *["model"] * len(rescored.models), "length"]
    columns = (
        doc.labels("weight of", list(rescored.weights)),
        doc.labels("kind", kinds, drop=1),
        doc.numbers("weight", list(rescored.weights.values()), 4),
        doc.numbers("unknown words", [unknown.get(name) for name in rescored.weights], 2, "percent", drop=2),
    )
    return doc.Table(columns, "Weights" if rescored.tuning is None else "Weights, tuned")


def _tuning(rescored: Rescored) -> doc.Document:
    tuning = rescored.tuning
    if tuning is None:
        return ()
    rows = (("first of the list", tuning.first), ("tuned", tuning.best), ("fewest errors (oracle)", tuning.oracle))
    name = tuning.best.metric
    columns = (
        doc.labels("choice", [title for title, _ in rows]),
        doc.numbers(f"{name} %", [100 * rates.score for _, rates in rows], 2),
        doc.numbers("errors", [rates.errors for _, rates in rows], form="count"),
    )
    title = f"On the {counted(tuning.lists, 'list')} that the weights were tuned on"
    table = doc.Table(columns, title, footnotes=("The weights were chosen for this rate: that of other lists is higher.",))
    return (table, *_charts(tuning))


def _charts(tuning: Tuning) -> Iterator[doc.ChartData]:
    name = tuning.best.metric
    for number, curve in enumerate(tuning.curves, 1):
        line = doc.series(name, curve.weights, [100 * rate for rate in curve.rates])
        yield doc.ChartData(
            f"weight-{number}",
            f"{name} on the tuning lists by the weight of {curve.name}",
            f"weight of {curve.name}",
            name,
            "%",
            (line,),
            better="lower",
            note=f"the other weights are as tuned; {curve.name} is {curve.tuned:.4g}",
        )


def _notes(rescored: Rescored) -> Iterator[str]:
    lists = rescored.lists
    yield (
        f"{counted(len(lists), 'list')}, hypotheses in all: {len(lists.texts):,}; before is the first of each list, as the "
        "recognizer has it."
    )
    if rescored.tuning is not None:
        places = f"{rescored.tuning.places} places, {rescored.tuning.lines:,} lines"
        yield f"Weights by exact line search ({places}, seed {rescored.tuning.seed}); only their ratios matter."
    for one in rescored.unknown:
        if one.unknown > one.words / 4:
            share = percent(one.unknown / one.words, 0)
            yield f"{one.model} does not know {share} of the words: are case and punctuation those of its training text?"
    yield from rescored.notes
