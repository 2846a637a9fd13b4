"""Why bits are lower bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lmgauge.evaluation.origin import Origin, bound_reasons

WORDS = Origin("m", unit="word", context="sentence")


@pytest.mark.parametrize(
    ("changes", "oov", "lossy", "reasons"),
    [
        ({}, 0, 0, []),
        ({}, 0, 1, ["the tokenizer drops some white space"]),
        ({"unit": "subword"}, 0, 1, ["the tokenizer alters some of the text, or reads it as special tokens"]),
        ({"unit": "subword", "context": "sentence,first=unscored"}, 0, 1, ["the first token of a context is not scored"]),
        (
            {"context": "sentence,first=unscored"},
            1,
            0,
            ["unseen words share one token, <unk>, which is easier to predict than the words"],
        ),
        ({"oov_policy": "closed"}, 1, 0, ["unseen words are impossible"]),
    ],
)
def test_the_reason_of_a_bound_is_the_true_one(changes: dict[str, Any], oov: int, lossy: int, reasons: list[str]) -> None:
    assert [reason.sentence for reason in bound_reasons(replace(WORDS, **changes), oov, lossy)] == reasons
