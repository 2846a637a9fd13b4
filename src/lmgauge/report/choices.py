"""Which of several texts models prefer: accuracies with intervals, by group, and models against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lmgauge.evaluation.choices.accuracies import MEASURES, PER_BYTE, RAW, Accuracy, Choices, Preference, counted
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_words, p_equals

_TITLES = {RAW: "raw", PER_BYTE: "by byte"}


def blocks(choices: Choices) -> doc.Document:
    """Return the answer, a table of accuracies for each model, models against each other, notes and signature."""
    fewest, most = choices.options
    texts = f"{fewest} texts each" if fewest == most else f"{fewest} to {most} texts each"
    chance = in_words(doc.Number(choices.chance, 1, "percent"))
    return (
        doc.Heading(
            "How often is the good text preferred?" if choices.kind == "pairs" else "How often is the answer right?"
        ),
        *_verdicts(choices),
        doc.Text(f"{counted(choices.items, choices.kind)}, {texts}; chance {chance}"),
        *(_table(choices, model) for model in choices.models),
        *_chart(choices),
        *_tests(choices),
        *doc.notes([*choices.notes, f"95 % intervals and tests: {choices.independence}"]),
        doc.Signature(choices.signature),
    )


def _verdicts(choices: Choices) -> Iterator[doc.Verdict]:
    # Say which of two models is right more often, or how often the only one is.
    if len(choices.models) == 1:
        one = choices.accuracy()
        level: doc.Level = "good" if one.interval.low > choices.chance else "unknown"
        than = "more often than chance" if level == "good" else "not surely more often than chance"
        share = in_words(doc.Number(one.accuracy, 1, "percent"))
        ends = in_words(doc.between(one.interval, 1, "percent"))
        yield doc.Verdict(level, f"{one.model}: right in {share}, 95 % interval {ends}: {than}.")
        return
    for test in choices.preferences:
        if test.group or test.measure != RAW:
            continue
        better, other = (test.second, test.first) if test.difference > 0 else (test.first, test.second)
        share = in_words(doc.Number(abs(test.difference), 1, "percent"))
        p_value = p_equals(test.adjusted_p_value)
        if test.adjusted_p_value < 0.05:
            yield doc.Verdict("good", f"{better} is right more often than {other}: by {share} ({p_value}, McNemar).")
        else:
            yield doc.Verdict("unknown", f"{better} and {other}: no sure difference ({share}, {p_value}, McNemar).")


def _table(choices: Choices, model: str) -> doc.Table:
    raw = [choices.accuracy(model, group) for group in ("", *choices.groups)]
    by_byte = [choices.accuracy(model, group, PER_BYTE) for group in ("", *choices.groups)]
    names = [one.group or "all" for one in raw]
    own: list[tuple[str, list[Accuracy]]] = [(_TITLES[RAW], raw), (_TITLES[PER_BYTE], by_byte)]
    columns = [doc.labels("group", names), doc.numbers(choices.kind, [one.items for one in raw], form="count")]
    for title, rows in own:
        drop = 2 * (rows is by_byte)
        columns += [
            doc.numbers(title, [one.accuracy for one in rows], 1, "percent"),
            doc.Column("95 % interval", [doc.between(one.interval, 1, "percent") for one in rows], drop),
        ]
    columns += doc.columns(raw, "ties", "margin")
    means = {measure: choices.mean_over_groups(model, measure) for measure in MEASURES}
    shares = [f"{in_words(doc.Number(mean, 1, 'percent'))} {_TITLES[measure]}" for measure, mean in means.items()]
    below = f"; mean of the groups {' and '.join(shares)}" if choices.groups else ""
    return doc.Table(tuple(columns), f"Accuracy of {model}{below}")


def _chart(choices: Choices) -> Iterator[doc.ChartData]:
    if not choices.groups:
        return
    rows = {model: [choices.accuracy(model, group) for group in choices.groups] for model in choices.models}
    series = tuple(
        doc.series(model, choices.groups, [one.accuracy for one in own], [one.interval for one in own])
        for model, own in rows.items()
    )
    y = "share of items in which the good text is preferred"
    chart = doc.ChartData("accuracy", "Accuracy by group", "group", y, "", series, kind="intervals", better="higher")
    yield replace(chart, rule=choices.chance, rule_name="chance")


def _tests(choices: Choices) -> Iterator[doc.Table]:
    tests: list[Preference] = [test for test in choices.preferences if not test.group]
    tests += [test for test in choices.preferences if test.group and test.measure == RAW]
    if not tests:
        return
    yield doc.Table(
        (
            doc.labels("models", [f"{test.first} → {test.second}" for test in tests]),
            doc.labels("group", [test.group or "all" for test in tests]),
            doc.labels("measure", [_TITLES[test.measure] for test in tests]),
            doc.numbers("difference, points", [100 * test.difference for test in tests], 1, "signed"),
            *doc.columns(tests),
        ),
        "Models against each other (McNemar, exact; p adjusted after Holm)",
    )
