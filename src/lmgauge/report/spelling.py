"""Models that spell unseen words: what they are made of, and where their bits go on a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmgauge.evaluation.diagnosis.spelling_costs import ENDS, KNOWN, LETTERS, SPACE, UNSEEN, LengthOfWords
from lmgauge.report import blocks as doc
from lmgauge.report.formats import number, percent

if TYPE_CHECKING:
    from lmgauge.evaluation.diagnosis.results import Diagnosis


def blocks(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    """Yield where the bits go, of a model that spells unseen words; nothing of any other.

    Args:
        diagnosis: of one model on one text.
    """
    costs = diagnosis.spelling
    if costs is None:
        return
    result = diagnosis.evaluation
    one = result.unit if result.unit in ("word", "character") else "token"
    names = {
        KNOWN: f"known {one}s",
        UNSEEN: f"unseen {one}s: that one comes",
        LETTERS: f"unseen {one}s: their letters" if one == "word" else f"unseen {one}s: which it is",
        SPACE: "white space between words",
        ENDS: "line ends",
    }
    labels = [names[part.part] for part in costs.parts]
    bits = [part.bits for part in costs.parts]
    columns = [
        doc.labels("", labels),
        doc.numbers("events", [part.events for part in costs.parts], form="count", drop=2),
        doc.numbers("bits in all", bits, 0, drop=3),
        doc.numbers("share of bits", [part.share for part in costs.parts], 2, "percent"),
        doc.Column("", [doc.Bar(max(0.0, part.share)) for part in costs.parts], drop=1, align="left"),
        doc.numbers("bits each", [part.bits / part.events for part in costs.parts], 3),
    ]
    if result.bytes:
        columns.append(doc.numbers("bits/byte", [total / result.bytes for total in bits], 4))
    yield doc.Table(tuple(columns), "where the bits go: known and unseen words, letters, white space, line ends")
    series = doc.series("share of bits", labels, [part.share for part in costs.parts])
    yield doc.ChartData("spelling", "Where the bits go", "part", "share of bits", "", (series,), kind="bars")
    if costs.dearest and one == "word":
        words = (
            doc.labels("", [word.word for word in costs.dearest]),
            doc.numbers("events", [word.events for word in costs.dearest], form="count"),
            doc.numbers("bits of its letters", [word.spelling_bits for word in costs.dearest], 2),
        )
        yield doc.Table(words, "unseen words whose letters cost most")
    if len(costs.lengths) > 1:
        lengths = (
            doc.labels("characters", [_lengths(row) for row in costs.lengths]),
            doc.numbers("events", [row.events for row in costs.lengths], form="count", drop=1),
            doc.numbers("bits a word", [row.bits / row.events for row in costs.lengths], 2),
            doc.numbers("bits a character", [row.bits / row.characters for row in costs.lengths], 2),
        )
        yield doc.Table(lengths, "unseen words by length: what their letters cost, the end of the word included")


def learned(content: Mapping[str, Any]) -> list[str]:
    """Return what a speller learned from, and what white space costs.

    Args:
        content: as `SpelledModel.learned` gives it; empty for a model of characters.

    >>> learned({})
    ['unseen characters share what is left of Unicode; there is nothing to learn']
    """
    if not content:
        return ["unseen characters share what is left of Unicode; there is nothing to learn"]
    speller, separators = content["speller"], content["separators"]
    single = separators["single_space"]
    return [
        f"spelling: learned from {speller['words']:,} words of {speller['alphabet']:,} different characters, order "
        f"{speller['order']}; it gives {percent(speller['known_mass'])} to words that are known and never spelled",
        f"white space: {separators['seen']:,} places, {percent(single)} a single space; {number(separators['bits'], 4)} "
        "bits each",
    ]


def _lengths(row: LengthOfWords) -> str:
    if row.last is None:
        return f"{row.first} or more"
    return str(row.first) if row.first == row.last else f"{row.first} – {row.last}"
