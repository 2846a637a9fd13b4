"""Samples by group."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.base.errors import UsageError
from lmgauge.filtering import percentile_sample
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys

TWO = np.arange(1, 3)


def test_keys_are_those_of_every_machine() -> None:
    assert [f"{key:016x}" for key in document_keys("a.jsonl", TWO, 1)] == [
        "9c560cea38668f64",
        "1041ba52ecbfbcc7",
    ]
    assert document_keys("a.jsonl", TWO, 2)[0] != document_keys("a.jsonl", TWO, 1)[0]
    assert document_keys("b.jsonl", TWO, 1)[0] != document_keys("a.jsonl", TWO, 1)[0]
    assert len(document_keys("\udcff", np.arange(0), 1)) == 0


def test_keys_are_spread_evenly() -> None:
    keys = np.concatenate([document_keys(f"{k}.txt", np.arange(1, 1001), 1) for k in range(100)])
    assert len(np.unique(keys)) == 100_000
    counts = np.bincount((keys >> np.uint64(58)).astype(np.int64), minlength=64)
    expected = 100_000 / 64
    assert ((counts - expected) ** 2 / expected).sum() < 104  # chi-squared of 63, 0.1 %


def test_only_few_documents_need_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(percentile_sample, "_PENDING", 50)
    sample = PercentileSample(1, SampleSettings(sample=100))
    scored = 0
    for k in range(200):
        keys, groups = document_keys("a.txt", np.arange(100 * k + 1, 100 * k + 101), 1), Groups.none(100)
        mask = sample.wanted(keys, groups)
        scored += np.count_nonzero(mask)
        sample.add(keys[mask], groups.where(mask), np.ones((np.count_nonzero(mask), 1)))
    assert sample.overall().documents == 20_000
    assert len(sample.overall().values) == 100
    assert scored < 1_000  # 100 ln(200) is 530; a few more come before the sample is settled


def test_a_field_with_too_many_values_is_refused() -> None:
    sample = PercentileSample(1, SampleSettings(group="url"))
    sample.wanted(document_keys("a", np.arange(1, 1001), 1), Groups.of([f"u{k}" for k in range(1000)]))
    with pytest.raises(UsageError, match=r"field 'url' has more than 1,000 values: .* such as the language"):
        sample.wanted(document_keys("a", np.arange(1, 2), 1), Groups.of(["one more"]))
