"""What is scored piece by piece is what is scored block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.scores import ScoreBatch, score_in_pieces
from lmgauge.text import work_units
from lmgauge.text.segments import Segments

LINES = ["the cat sat", "", "a dog", "the dog sat on a cat", "x"] * 5


@pytest.mark.parametrize("options", [{}, {"eos": False}, {"tokenizer": "character"}])
@pytest.mark.parametrize("given", [None, ["the cat "] * len(LINES)])
def test_batches_are_those_of_blocks(options: Any, given: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(LINES), order=2, **options)
    texts = [f" {line or 'x'}" if given else line for line in LINES]
    corpus = lmgauge.Corpus.from_strings(texts, given=given, block_bytes=70)
    whole = list(model.score(corpus))
    monkeypatch.setattr(work_units, "UNIT_BYTES", 15)
    ahead: list[int] = []

    def score(cut: Iterator[Segments]) -> Iterable[ScoreBatch]:
        waiting = list(cut)  # takes all pieces before it yields one
        ahead.append(len(waiting))
        return model.score(iter(waiting))

    parts = list(score_in_pieces(score, corpus))
    assert len(parts) == len(whole) < ahead[0]
    for one, other in zip(parts, whole, strict=True):
        for field in fields(ScoreBatch):
            assert_same(getattr(one, field.name), getattr(other, field.name))


def assert_same(one: Any, other: Any) -> None:
    if isinstance(other, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif hasattr(other, "items"):
        assert list(one) == list(other)
        for name in other:
            assert_same(one[name], other[name])
    elif hasattr(other, "crossing"):
        for field in fields(other):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other
