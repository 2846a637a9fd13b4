"""Models that spell unseen words: what they are made of, and where their bits go on a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmgauge.evaluation.diagnosis.spelling_costs import ENDS, KNOWN, LETTERS, SPACE, UNSEEN
from lmgauge.report import blocks as doc
from lmgauge.report.formats import percent

if TYPE_CHECKING:
    from lmgauge.evaluation.diagnosis.results import Diagnosis
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.models.spelling.whitespace_model import SeparatorModel

_MOST_SEPARATORS = 8


def blocks(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    """Yield where the bits go, of a model that spells unseen words; nothing of any other."""
    costs = diagnosis.spelling
    if costs is None:
        return
    result = diagnosis.evaluation
    one = result.unit if result.unit in ("word", "character") else "token"
    names = {
        KNOWN: f"known {one}s",
        UNSEEN: f"unseen {one}s: the event <unk>",
        LETTERS: f"unseen {one}s: their letters" if one == "word" else f"unseen {one}s: which it is",
        SPACE: "white space between words",
        ENDS: "line ends",
    }
    labels = [names[part.part] for part in costs.parts]
    bits = [part.bits for part in costs.parts]
    columns = [
        doc.labels("", labels),
        *doc.columns(costs.parts, "events", "bits", "share"),
        doc.Column("", [doc.Bar(max(0.0, part.share)) for part in costs.parts], drop=1, align="left"),
        doc.numbers("bits each", [part.bits / part.events for part in costs.parts], 3, "fixed"),
    ]
    if result.bytes:
        columns.append(doc.numbers("bits/byte", [total / result.bytes for total in bits], 4, "fixed"))
    yield doc.Table(tuple(columns), "where the bits go: known and unseen words, letters, white space, line ends")
    series = doc.series("share of bits", labels, [round(100 * part.share, 2) for part in costs.parts])
    yield doc.ChartData("spelling", "Where the bits go", "part", "share of bits", "%", (series,), kind="bars")
    if costs.dearest and one == "word":
        yield doc.Table(doc.columns(costs.dearest), "unseen words whose letters cost most")


def learned(content: Mapping[str, Any]) -> list[str]:
    """Return what a speller learned from, and what white space costs."""
    if not content:
        return ["unseen characters share what is left of Unicode; there is nothing to learn"]
    speller, separators = content["speller"], content["separators"]
    single = separators["single_space"]
    return [
        f"spelling: learned from {speller['words']:,} words of {speller['alphabet']:,} different characters, order "
        f"{speller['order']}; it gives {percent(speller['known_mass'])} to words that are known and never spelled",
        f"white space: {separators['seen']:,} places, {percent(single)} a single space; {separators['bits']:.4f} bits each",
    ]


def model_blocks(model: SpelledModel, *, name: str = "") -> doc.Document:
    """Return what a model is made of: the model inside, the speller, and the commonest separators."""
    one = model.tokenizer.unit
    lines = [
        ("model", name or model.label),
        (f"known {one}s", f"{model.known_count:,}, predicted by {model.inner.label}"),
    ]
    speller, separators = model.speller, model.separators
    if speller is None or separators is None:
        return (doc.Lines((*lines, (f"unseen {one}s", "shared out among all other characters of Unicode"))),)
    summary = model.spelling.summary()
    of_words = f" of {summary['words']:,} words" if summary["words"] else ""
    lines += [
        ("unseen words", f"spelled by {summary['order']:.0f}-grams of {summary['alphabet']:,.0f} characters{of_words}"),
        ("known words", f"{percent(summary['known_mass'])} of what the speller alone would spell, which is left out"),
    ]
    return (doc.Lines(tuple(lines)), *_separators(separators))


def _separators(model: SeparatorModel) -> Iterator[doc.Block]:
    seen: Counter[int] = Counter()
    for (_, which), count in model.counts.items():
        seen[which] += count
    most = seen.most_common(_MOST_SEPARATORS)
    if most:
        columns = (
            doc.labels("", [_shown(model.known[which]) for which, _ in most]),
            doc.numbers("times", [count for _, count in most], form="count", drop=1),
            doc.numbers("share", [count / seen.total() for _, count in most], 3, "percent"),
        )
        yield doc.Table(columns, "white space before words and line ends in the training text, the commonest")


def _shown(separator: str) -> str:
    if set(separator) <= {" "}:
        return {0: "none", 1: "a space"}.get(len(separator), f"{len(separator)} spaces")
    return ascii(separator)
