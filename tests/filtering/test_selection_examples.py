"""Documents to look at, from both ends of the order and from where the selection ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.filtering.selection import LAST, LEAST, MOST, NEXT, draw_examples, most_alike_first
from lmgauge.text.documents import Corpus


def test_each_place_has_three() -> None:
    differences = np.arange(20.0)[::-1].copy()
    drawn = draw_examples(Corpus.from_strings(map_texts(20)), differences, differences < 10)
    assert {where: [example.difference for example in examples] for where, examples in drawn.items()} == {
        MOST: [0.0, 1.0, 2.0],
        LAST: [7.0, 8.0, 9.0],
        NEXT: [10.0, 11.0, 12.0],
        LEAST: [17.0, 18.0, 19.0],
    }
    assert drawn[MOST][0].text == "document 19"
    assert drawn[MOST][0].place == "<strings>:20"


def map_texts(count: int) -> list[str]:
    return [f"document {i}" for i in range(count)]


@given(st.lists(st.sampled_from([0.0, 0.5, np.nan]), min_size=1, max_size=20), st.data())
def test_no_document_is_drawn_twice_and_all_are_where_they_belong(values: list[float], data: st.DataObject) -> None:
    differences = np.array(values)
    order = most_alike_first(differences)
    chosen = np.zeros(len(values), bool)
    chosen[order[: data.draw(st.integers(0, len(order)))]] = True
    drawn = draw_examples(Corpus.from_strings(map_texts(len(values)), block_bytes=20), differences, chosen)
    numbers = [int(one.text.split()[1]) for examples in drawn.values() for one in examples]
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) >= min(6, len(order))
    for where, examples in drawn.items():
        assert all(chosen[int(one.text.split()[1])] == (where in (MOST, LAST)) for one in examples)
