"""Segments with enough tokens for a context, and nothing of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.network.conftest import byte_level, network

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.sequences import LongSegments
from lmgauge.models.network.torch.model import NeuralModel

TEXTS = ["xyz", "", "xyzxyz", "xy", "xyzxyzx", "x" * 40]  # a token a letter


def model(**options: Any) -> NeuralModel:
    tokenizer = byte_level()
    return NeuralModel.wrap(network("gpt2", len(tokenizer)), tokenizer, ScoringOptions(**options))


@pytest.mark.parametrize(
    ("first", "before", "lengths"), [("bos", 6, [6, 7, 40]), ("uniform", 6, [7, 40]), ("unscored", 3, [6, 7, 40])]
)
@pytest.mark.parametrize("block_bytes", [4, 10_000])
def test_segments_that_are_long_enough(first: Any, before: int, lengths: list[int], block_bytes: int) -> None:
    own = model(first_token=first)
    documents = [f"d{n}" for n in range(len(TEXTS))]
    blocks = LongSegments(own, lmgauge.Corpus.from_strings(TEXTS, documents=documents, block_bytes=block_bytes), before)
    for _ in range(2):  # it can be read again
        found = list(blocks)
        texts = [block.text(i).decode() for block in found for i in range(len(block))]
        assert [len(text) for text in texts] == lengths
        numbers = [number for block in found for number in range(block.first, block.first + len(block))]
        assert numbers == list(range(len(lengths)))
        assert np.concatenate([block.documents for block in found if block.documents is not None]).tolist() == [
            TEXTS.index(text) for text in texts
        ]
        lines = [line for block in found for line in block.lines().tolist()]
        assert lines == [1 + TEXTS.index(text) for text in texts]
        assert (blocks.segments, blocks.events) == (6, sum(map(len, TEXTS)))


def test_given_text_is_refused() -> None:
    text = lmgauge.Corpus.from_strings(["sat on the mat"], given=["the cat "])
    with pytest.raises(
        UsageError, match="contexts are counted from where a segment begins: they cannot be combined with given text"
    ):
        list(LongSegments(model(), text, 2))
