"""Whether a model has seen texts: the answer and how far it goes, the scores of both sets, the texts that stand out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.membership.membership import Membership, ScoreOfSets
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_words, number

SCORES_ALONE = (
    "Scores alone prove nothing: a low loss may mean that the text is easy. To see what counts as low, score "
    "texts that the model cannot have seen (--control)."
)
OTHER_REASONS = (
    "An AUROC above 0.5 says that the texts look likelier to the model than the control texts, for whatever reason. "
    "Training is the reason only if the two sets are alike in everything else: source, kind and time, best drawn at "
    "random (Duan et al. 2024)."
)
_HEADLINES = ("reference", "min_k_plus_plus", "min_k", "loss")


def blocks(membership: Membership, *, examples: int = 5) -> doc.Document:
    """Return the answer, the scores, the texts that look most like seen ones, what a reader must know, and the signature."""
    of = f"Has {membership.model} seen these texts?"
    reference = f", reference {membership.reference}" if membership.reference else ""
    control = "no control texts" if membership.control_texts is None else f"{membership.control_texts:,} control texts"
    notes = [
        *([OTHER_REASONS] if membership.control_texts is not None else []),
        *membership.notes,
        *([f"95 % intervals: {membership.independence}."] if membership.independence else []),
    ]
    return (
        doc.Heading(of),
        *_verdict(membership),
        doc.Text(f"{membership.texts:,} texts, {control}{reference}"),
        _table(membership, membership.scores, "Scores of the model"),
        _table(membership, membership.blind, "The texts alone, without a model"),
        *_examples(membership, examples),
        *doc.notes(notes),
        doc.Signature(membership.signature),
    )


def _verdict(result: Membership) -> Iterator[doc.Verdict]:
    # Say what the scores show, never more than they can.
    if result.control_texts is None:
        yield doc.Verdict("unknown", SCORES_ALONE)
        return
    sure = [score for score in result.scores if score.tells_apart and score.auroc is not None]
    blind = next((score for score in result.blind if score.tells_apart), None)
    best = max(result.scores, key=lambda score: abs((score.auroc or 0.5) - 0.5))
    area = f"{best.title.partition(',')[0]}: AUROC {in_words(doc.Number(best.auroc, 3))}{_ends(best)}"
    if blind is not None:
        yield doc.Verdict(
            "unknown",
            f"The two sets differ even without a model ({blind.title}: AUROC {number(blind.auroc, 3)}{_ends(blind)}): a "
            f"score that tells them apart ({area}) does not show that the model has seen the texts.",
        )
    elif not sure:
        yield doc.Verdict(
            "unknown", f"No score separates the texts from the control texts ({area}): no sign that they were seen."
        )
    elif (best.auroc or 0) < 0.5:
        yield doc.Verdict("unknown", f"The control texts look more like seen ones than the texts in question ({area}).")
    else:
        yield doc.Verdict("bad", f"The texts look more like seen ones than the control texts ({area}).")


def _ends(score: ScoreOfSets) -> str:
    return "" if score.auroc_interval is None else f", 95 % interval {in_words(doc.between(score.auroc_interval, 3))}"


def _table(result: Membership, scores: Sequence[ScoreOfSets], title: str) -> doc.Table:
    # Row for each score; with control texts, how well it tells the sets apart.
    if result.control_texts is None:
        sides = doc.labels("direction", [f"seen if {score.seen_if}" for score in scores])
        return doc.Table((*doc.columns(scores, "title", "median"), sides), title)
    rate = f"{100 * result.false_alarms:g} %"
    return doc.Table(tuple(replace(one, title=one.title.format(rate)) for one in doc.columns(scores)), title)


def _examples(result: Membership, count: int) -> Iterator[doc.Table]:
    name = next(name for name in _HEADLINES if name in result.rows)
    rows, sign = result.rows, -1 if result.score(name).seen_if == "high" else 1
    asked = [i for i, which in enumerate(rows["set"]) if which == "text" and rows[name][i] is not None]
    places = sorted(asked, key=lambda i: sign * rows[name][i])[:count]
    if places:
        columns = [
            doc.labels("text", [rows["id"][i] for i in places]),
            doc.numbers("bytes", [rows["bytes"][i] for i in places], form="count", drop=1),
        ]
        for score in result.scores:
            values = [rows[score.name][i] for i in places]
            columns.append(doc.numbers(score.title, values, 3, drop=2 * (score.name != name)))
        yield doc.Table(tuple(columns), f"Texts that look most like seen ones, by {result.score(name).title}")
