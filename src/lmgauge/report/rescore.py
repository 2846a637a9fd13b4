"""N-best lists rescored: what the recognizer's choice and the new one cost, the weights, and how they were chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lmgauge.report import blocks as doc
from lmgauge.report import tasks
from lmgauge.report.formats import counted, in_words, p_equals, percent
from lmgauge.tasks.metrics.error_rates import ErrorRates
from lmgauge.tasks.nbest.rescoring import Rescored


def blocks(rescored: Rescored) -> Iterator[doc.Block]:
    """Yield the answer, error rates, weights, how they were tuned, notes and the signature."""
    yield doc.Heading("N-best lists rescored")
    yield doc.Verdict(*_answer(rescored))
    if rescored.systems is not None:
        yield from tasks.blocks(rescored.systems)
    if rescored.oracle is not None and rescored.worst is not None:
        yield _choices("What the lists allow", {"fewest errors (oracle)": rescored.oracle, "most errors": rescored.worst})
    yield _weights(rescored)
    if (tuning := rescored.tuning) is not None:
        title = f"On the {counted(tuning.lists, 'list')} that the weights were tuned on"
        rows = {"first of the list": tuning.first, "tuned": tuning.best, "fewest errors (oracle)": tuning.oracle}
        yield _choices(title, rows, "The weights were chosen for this rate: that of other lists is higher.")
    yield from doc.notes(_notes(rescored))
    yield doc.Signature(rescored.signature)


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


def _choices(title: str, rows: Mapping[str, ErrorRates], *footnotes: str) -> doc.Table:
    # What hypotheses cost that are chosen in some ways.
    rates = list(rows.values())
    columns = (
        doc.labels("choice", list(rows)),
        doc.numbers(f"{rates[0].metric} %", [100 * one.score for one in rates], 2),
        doc.numbers("errors", [one.errors for one in rates], form="count"),
    )
    return doc.Table(columns, title, footnotes=footnotes)


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
