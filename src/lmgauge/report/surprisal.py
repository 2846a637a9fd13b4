"""What strings and words cost: a row for each token, string or word, and the sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lmgauge.numerics.units import nats_to_bits
from lmgauge.report import blocks as doc
from lmgauge.report.calc import surprisal_chart
from lmgauge.report.formats import counted, number
from lmgauge.scores import KINDS, OOV, SPELLED

if TYPE_CHECKING:
    from lmgauge.evaluation.words.rows import WordSurprisals
    from lmgauge.models.scored_text import ScoredText, ScoredTexts

# -- strings ------------------------------------------------------------------------------------------------------------
_UNKNOWN = {KINDS[OOV]: "unknown word", KINDS[SPELLED]: "unknown word, spelled"}


def text_blocks(scored: ScoredText) -> doc.Document:
    """Return the text, a row for each token, and the sums."""
    unknown = [_UNKNOWN.get(kind, "") for kind in scored.kinds]
    tokens = _named(scored)
    columns = [
        doc.labels("token", tokens),
        doc.numbers("nats", scored.logprobs, 4, "fixed"),
        doc.Column("probability", [f"{math.exp(logprob):.4g}" for logprob in scored.logprobs]),
    ]
    if any(unknown):
        columns.append(doc.labels("", unknown))
    perplexity = "" if scored.perplexity is None else f", perplexity {number(scored.perplexity)}"
    total = f"{counted(len(scored), 'event')}, {number(scored.log_probability)} nats{perplexity}"
    bits = [nats_to_bits(-logprob) for logprob in scored.logprobs]
    return (*_scored_text(scored), doc.Table(tuple(columns)), *surprisal_chart(tokens, bits), doc.Text(total))


def _named(scored: ScoredText) -> list[str]:
    # Tokens, an unknown word with the word: "<unk> (cat)".
    text, names = scored.text.encode(), []
    for token, kind, (start, end) in zip(scored.tokens, scored.kinds, scored.spans, strict=True):
        word = text[start:end].decode(errors="replace").strip() if kind == KINDS[OOV] else ""
        names.append(f"{token} ({word})" if word and word != token else token)
    return names


def _scored_text(scored: ScoredText) -> doc.Document:
    text = scored.text.encode()
    parts = tuple(text[start:end].decode(errors="replace") for start, end in scored.spans)
    return (doc.Tokens(parts),) if text else ()


def several_texts(scored: ScoredTexts) -> doc.Document:
    """Return a row for each string."""
    rows = [item.summary() for item in scored]
    return (
        doc.Table(
            (
                doc.numbers("perplexity", [row["perplexity"] for row in rows]),
                doc.numbers("nats", [row["log_probability"] for row in rows]),
                doc.numbers("events", [row["events"] for row in rows], form="count"),
                doc.labels("text", [row["text"] for row in rows]),
            )
        ),
    )


# -- words and regions --------------------------------------------------------------------------------------------------
_FIGURES = (("surprisal", "surprisal"), ("surprisal_corrected", "corrected"), ("entropy_before", "entropy before"))


def word_blocks(words: WordSurprisals) -> doc.Document:
    """Return the first rows, what they add up to, and notes."""
    shown = words.rows.slice(0, doc.MOST_CHART_ROWS).to_pydict()
    name = "word" if "word" in shown else "region"
    title = "word" if name == "word" else "text"
    columns = [doc.labels("text", shown["text_id"]), doc.labels(title, shown[title], wraps=True)]
    columns += [doc.labels("region", shown["region"])] if name == "region" else []
    fields = words.rows.column_names[words.rows.column_names.index("segment") + 1 :]  # of the text: they come last
    columns += [doc.labels(field, ["" if value is None else str(value) for value in shown[field]]) for field in fields]
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
