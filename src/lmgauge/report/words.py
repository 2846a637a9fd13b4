"""Words and regions with their surprisal: the first rows, sums, and a chart of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted

if TYPE_CHECKING:
    from lmgauge.evaluation.words.rows import WordSurprisals

_FIGURES = (("surprisal", "surprisal"), ("surprisal_corrected", "corrected"), ("entropy_before", "entropy before"))


def blocks(words: WordSurprisals) -> doc.Document:
    """Return the first rows, what they add up to, and notes."""
    shown = words.rows.slice(0, doc.MOST_CHART_ROWS).to_pydict()
    name = "word" if "word" in shown else "region"
    title = "word" if name == "word" else "text"
    columns = [doc.labels("text", shown["text_id"]), doc.labels(title, shown[title], wraps=True)]
    columns += [doc.labels("region", shown["region"])] if name == "region" else []
    columns.append(doc.numbers("pieces", shown["pieces"], form="count", drop=2))
    columns += [doc.numbers(head, shown[column], 3, "fixed", unit="bits") for column, head in _FIGURES]
    if "log_frequency" in shown:
        columns.append(doc.numbers("log frequency", shown["log_frequency"], 2, "fixed", drop=1, unit="Zipf"))
    left = words.units - len(shown["pieces"])
    noun = name if words.units == 1 else f"{name}s"
    first = f"the first {len(shown['pieces']):,} of {words.units:,} {noun}; files and to_pandas() have all"
    return (
        doc.Table(tuple(columns), f"{words.model}: bits of each {name}", footnotes=(first,) * (left > 0)),
        _chart(words, shown, name),
        doc.Lines(
            (
                ("in all", f"{counted(words.units, name)} of {counted(words.texts, 'text')}: {words.bits:,.2f} bits"),
                ("besides", f"{words.rest_bits:,.2f} bits of line ends and of text in no {name}"),
            )
        ),
        *doc.notes(words.notes),
        doc.Signature(words.signature),
    )


def _chart(words: WordSurprisals, shown: dict[str, list[object]], name: str) -> doc.ChartData:
    numbers, strings = shown[f"{name}_number"], shown["word" if name == "word" else "region"]
    x = [f"{number} {string}" for number, string in zip(numbers, strings, strict=True)]
    one_text = [place for place, text in enumerate(shown["segment"]) if text == shown["segment"][0]]
    series = tuple(
        doc.series(head, [x[place] for place in one_text], [_value(shown[column][place]) for place in one_text])
        for column, head in _FIGURES[:2]
    )
    note = "of the first text" if len(one_text) < words.units else ""
    return doc.ChartData("words", f"Surprisal of each {name}", name, "surprisal", "bits", series, kind="line", note=note)


def _value(figure: object) -> float | None:
    return figure if isinstance(figure, float) else None
