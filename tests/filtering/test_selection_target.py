"""A target in two parts, and held-out texts that stand in the pool."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.errors import InputError
from lmgauge.filtering.selection_scores import read_pool
from lmgauge.filtering.selection_search import long_texts, split_target
from lmgauge.text.documents import Corpus


def texts_of(corpus: Corpus) -> list[str]:
    return [block.text(i).decode() for block in corpus for i in range(len(block))]


def test_whole_documents_are_held_out() -> None:
    lines = [f"{document} line {i}" for document in range(12) for i in range(5)]
    target = Corpus.from_strings(lines, documents=[line.split()[0] for line in lines])
    parts = split_target(target, 0.25, seed=1)
    assert parts.held_out is not None
    inside, outside = ({text.split()[0] for text in texts_of(part)} for part in (parts.in_domain, parts.held_out))
    assert inside.isdisjoint(outside)
    assert len(outside) == 3
    assert parts.how == "3 of 12 documents of the target are held out"
    assert sorted(texts_of(parts.in_domain) + texts_of(parts.held_out)) == sorted(lines)


def test_contiguous_blocks_are_held_out_where_documents_are_unknown() -> None:
    target = Corpus.from_strings([f"line {i:03}" for i in range(200)])
    parts = split_target(target, 0.25, seed=7)
    assert parts.held_out is not None
    numbers = [int(text.split()[1]) for text in texts_of(parts.held_out)]
    assert len(numbers) == 50
    runs = 1 + np.count_nonzero(np.diff(numbers) != 1)
    assert runs <= 5
    assert parts.how == "5 of 20 contiguous blocks of the target are held out"


def test_one_document_and_two_lines_can_be_split() -> None:
    one = Corpus.from_strings(["a b c", "d e f"] * 20, documents=["only"] * 40)
    assert split_target(one, 0.25, seed=1).how == "5 of 20 contiguous blocks of the target are held out"
    two = split_target(Corpus.from_strings(["a", "b"]), 0.5, seed=1)
    assert two.held_out is not None
    assert len(texts_of(two.held_out)) == len(texts_of(two.in_domain)) == 1


def test_the_same_seed_holds_out_the_same() -> None:
    target = Corpus.from_strings([f"line {i}" for i in range(100)])
    first, again, other = (split_target(target, 0.2, seed).held_out for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    assert texts_of(first) == texts_of(again) != texts_of(other)


@pytest.mark.parametrize("lines", [[], ["one line"]])
def test_a_target_too_short_to_split_is_refused(lines: list[str]) -> None:
    with pytest.raises(InputError, match="--held-out"):
        split_target(Corpus.from_strings(lines), 0.25, seed=1)


def test_copies_of_long_held_out_texts_are_known_byte_for_byte() -> None:
    long = "a text that is longer than forty bytes, and so no chance"
    texts = long_texts(Corpus.from_strings(["short", long]))
    _, copies = read_pool(Corpus.from_strings([long, "short", long + " ", long.upper()]), texts)
    assert copies.tolist() == [True] + [False] * 3
