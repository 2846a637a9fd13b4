"""Events are counted as the models that make them do, before any computes anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions.blocks import event_counts

TEXT = ["a b", "", "a x <unk>", "b"]


@pytest.mark.parametrize("tokenizer", ["whitespace", "character", "byte"])
def test_counts_are_those_of_the_score_table(tokenizer: str) -> None:
    lines = [line.replace(" <unk>", "") for line in TEXT]
    text = lmgauge.Corpus.from_strings(lines)
    model = lmgauge.train("laplace", text, order=2, tokenizer=tokenizer)
    block = next(iter(text))
    assert event_counts(model, block).tolist() == model.score_block(block).segment_events.tolist()


@pytest.mark.parametrize(
    ("policy", "seen", "expected"),
    [
        ("sentence", 0, [3, 1, 4, 2]),
        ("sentence,end=none", 0, [2, 0, 3, 1]),
        ("sentence,first=unscored,end=newline", 0, [1, 0, 2, 0]),
        ("stream,8/8,first=unscored,end=none", 0, [1, 0, 3, 1]),
        ("stream,8/8,first=unscored,end=none", 5, [2, 0, 3, 1]),
    ],
)
def test_counts_follow_the_policy(policy: str, seen: int, expected: list[int]) -> None:
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]))
    other: Any = SimpleNamespace(
        tokenizer=model.tokenizer,
        vocabulary=model.vocabulary,
        context_policy=ContextPolicy.parse(policy),
        count_events=lambda block: None,
    )
    block = next(iter(lmgauge.Corpus.from_strings(TEXT)))
    counts = event_counts(other, block, seen=seen)
    assert counts.tolist() == expected
    assert counts.dtype == np.int64
