"""Documents to look at: the most and the least alike, and those on both sides of where the selection ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lmgauge.filtering.selection_cuts import Chosen, Floats, most_alike_first
from lmgauge.filtering.tally import example_text
from lmgauge.text.documents import Corpus

MOST, LAST, NEXT, LEAST = "most alike", "the last that are selected", "the first that are left out", "least alike"
_EACH = 3


@dataclass(frozen=True)
class SelectionExample:
    """A document of the pool."""

    place: str  # its file and line or record
    difference: float  # of its cross-entropies, bits per token
    text: str


def draw_examples(pool: Corpus, differences: Floats, chosen: Chosen) -> dict[str, tuple[SelectionExample, ...]]:
    """Return documents by where they stand in the order, lowest difference first; none twice."""
    # pool: the documents; read once; differences: float64 [documents], bits per token; NaN where there is no score; chosen:
    # bool [documents], those selected: the first in the order.
    order, number = most_alike_first(differences), int(np.count_nonzero(chosen))
    ranges = {
        MOST: range(min(_EACH, number)),
        LAST: range(max(_EACH, number - _EACH), number),
        NEXT: range(number, min(number + _EACH, len(order))),
        LEAST: range(max(number + _EACH, len(order) - _EACH), len(order)),
    }
    places = {where: [int(order[place]) for place in places] for where, places in ranges.items() if places}
    texts = _examples(pool, differences, sorted(document for documents in places.values() for document in documents))
    return {where: tuple(texts[document] for document in documents) for where, documents in places.items()}


def _examples(pool: Corpus, differences: Floats, documents: list[int]) -> Mapping[int, SelectionExample]:
    wanted = np.array(documents, np.int64)
    examples = {}
    for block in pool:
        for i in (wanted[(wanted >= block.first) & (wanted < block.first + len(block))] - block.first).tolist():
            number = block.first + i
            examples[number] = SelectionExample(block.place(i), float(differences[number]), example_text(block.text(i)))
    return examples
