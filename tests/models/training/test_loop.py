"""Learning rates: the schedules of the papers, patience, and what is kept of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from lmgauge.models.training.loop import LearningRate, make_optimizer
from lmgauge.models.training.settings import preset_settings


def rate(**changes: Any) -> LearningRate:
    return LearningRate(preset_settings("lstm", **changes), 1000)


def test_zaremba_halves_each_epoch_after_the_fourth() -> None:
    small = rate()
    assert [small.at(epoch, 0) for epoch in range(7)] == [1, 1, 1, 1, 0.5, 0.25, 0.125]
    large = LearningRate(preset_settings("lstm", "large"), 1)
    assert large.at(13, 0) == 1
    assert large.at(15, 0) == pytest.approx(1 / 1.15**2)


def test_patience_counts_epochs_without_a_lower_perplexity() -> None:
    patient = rate(schedule="constant", patience=2)
    for epoch, perplexity in enumerate([10.0, 11.0, 9.0, 9.5]):
        assert not patient.exhausted(epoch)
        patient.see(epoch, perplexity)
    assert not patient.exhausted(4)
    patient.see(4, 9.4)
    assert patient.exhausted(5)
    assert (patient.best, patient.best_epoch) == (9.0, 2)
    assert patient.at(0, 5) == patient.at(9, 500) == 1.0
    assert not rate(patience=0).exhausted(1000)


def test_cosine_warms_up_and_falls_to_a_hundredth() -> None:
    cosine = rate(schedule="cosine", warmup=100, learning_rate=2.0)
    assert cosine.at(0, 0) == pytest.approx(0.02)
    assert cosine.at(0, 99) == cosine.at(0, 100) == 2.0
    assert cosine.at(0, 550) == pytest.approx(2.0 * (0.01 + 0.99 / 2))
    assert cosine.at(0, 1000) == cosine.at(0, 2000) == pytest.approx(0.02)
    rates = [cosine.at(0, update) for update in range(100, 1001)]
    assert rates == sorted(rates, reverse=True)


def test_state_through_json() -> None:
    first, second = rate(), rate()
    second.restore(json.loads(json.dumps(first.state())))
    assert second == first
    for epoch, perplexity in enumerate([5.0, 4.0, 4.0]):
        first.see(epoch, perplexity)
    second.restore(json.loads(json.dumps(first.state())))
    assert second == first


def test_weight_decay_is_for_matrices() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = make_optimizer(model, preset_settings("transformer", weight_decay=0.5))
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert decay == {id(model.weight): 0.5, id(model.bias): 0.0}
