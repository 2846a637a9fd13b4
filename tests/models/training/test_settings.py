"""Presets: the sizes and recipes of their papers, and settings that keep their rules."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmgauge.base.errors import UsageError
from lmgauge.models.training.networks import build_model, parameter_count
from lmgauge.models.training.settings import (
    NEURAL_KINDS,
    PRESET_NAMES,
    NeuralKind,
    NeuralTrainingSettings,
    RunSettings,
    preset_settings,
)
from lmgauge.work.manifest import difference

ZAREMBA = {  # section 4.1: units, steps, dropout, epochs, decay, epochs before it, clipping, initial range
    "small": (200, 20, 0.0, 13, 0.5, 4, 5, 0.1),
    "medium": (650, 35, 0.5, 39, 1 / 1.2, 6, 5, 0.05),
    "large": (1500, 35, 0.65, 55, 1 / 1.15, 14, 10, 0.04),
}


@pytest.mark.parametrize("preset", PRESET_NAMES)
def test_lstms_are_those_of_the_paper(preset: str) -> None:
    s = preset_settings("lstm", preset)
    found = (s.hidden_size, s.steps, s.dropout, s.epochs, s.decay, s.decay_after, s.clip_norm, s.initializer_range)
    assert found == ZAREMBA[preset]
    assert (s.embedding_size, s.num_layers, s.batch_size, s.learning_rate) == (s.hidden_size, 2, 20, 1.0)
    assert (s.optimizer, s.schedule, s.sum_over_steps) == ("sgd", "decay", True)


@pytest.mark.parametrize(("preset", "millions"), [("small", 4.65), ("medium", 19.8), ("large", 66.0)])
def test_lstms_have_the_known_number_of_parameters(preset: str, millions: float) -> None:
    with torch.device("meta"):
        model = build_model(preset_settings("lstm", preset), 10_000)
    assert parameter_count(model) == pytest.approx(millions * 1e6, rel=0.005)


@pytest.mark.parametrize("preset", PRESET_NAMES)
@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_every_preset_names_its_paper_and_can_be_built(kind: NeuralKind, preset: str) -> None:
    settings = preset_settings(kind, preset)
    assert settings.kind == kind
    assert any(year in settings.paper for year in ("2003", "2010", "2011", "2014", "2017", "2018", "2019"))
    with torch.device("meta"):
        model = build_model(settings, 100)
    model.tie_weights()  # transformers 5.0 does not on "meta"
    embeddings = model.get_input_embeddings().weight
    assert embeddings.shape == (100, settings.embedding_size)
    assert (model.get_output_embeddings().weight is embeddings) is settings.tie_embeddings


@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_presets_grow(kind: NeuralKind) -> None:
    with torch.device("meta"):
        sizes = [parameter_count(build_model(preset_settings(kind, preset), 10_000)) for preset in PRESET_NAMES]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


def test_changes() -> None:
    changed = preset_settings("lstm", "medium", epochs=3, dropout=None, seed=7)
    assert (changed.epochs, changed.dropout, changed.seed, changed.preset) == (3, 0.5, 7, "medium")


def test_differences_are_named() -> None:
    first, second = preset_settings("lstm"), preset_settings("lstm", batch_size=10, seed=1)
    assert difference(second.to_dict(), first.to_dict()) == ("batch_size", 10, 20)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("ffnn", {"order": 1}, "order 1"),
        ("transformer", {"heads": 3}, "multiple of heads \\(3\\); got 256"),
        ("rnn", {"nonlinearity": "relu"}, "nonlinearity 'relu'"),
        ("lstm", {"schedule": "linear"}, "schedule 'linear'"),
        ("lstm", {"hidden_size": 1.5}, "hidden-size must be a whole number from 1 to 4,294,967,295; got 1.5"),
        ("lstm", {"decay": 0.0}, "decay"),
        ("lstm", {"seed": -1}, "seed"),
        ("lstm", {"seed": 1.5}, "seed must be a whole number"),
        ("lstm", {"seed": 1 << 40}, "seed"),
        ("lstm", {"batch_size": True}, "batch-size must be a whole number"),
        ("lstm", {"patience": 0.5}, "patience must be a whole number"),
        ("lstm", {"tie_embeddings": 1}, "tie-embeddings must be True or False; got 1"),
        ("lstm", {"learning_rate": float("inf")}, "learning-rate must be a number above 0; got inf"),
        ("lstm", {"clip_norm": float("nan")}, "clip-norm must be a number from 0; got nan"),
        ("lstm", {"dropout": "0.5"}, "dropout must be a number from 0 to below 1; got '0.5'"),
        ("lstm", {"initializer_range": 0.0}, "initializer-range must be a number above 0"),
        ("lstm", {"dropout": 1.0}, "dropout must be a number from 0 to below 1; got 1.0"),
        ("lstm", {"weight_decay": -0.1}, "weight-decay must be a number from 0; got -0.1"),
        ("ffnn", {"tie_embeddings": True, "embedding_size": 8, "hidden_size": 8, "direct_connections": True}, "tied"),
    ],
)
def test_rules(kind: NeuralKind, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        preset_settings(kind, **changes)


def test_unknown_kinds() -> None:
    with pytest.raises(UsageError, match="kind 'cnn'"):
        preset_settings("cnn")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kind 'cnn'"):
        NeuralTrainingSettings(kind="cnn")  # type: ignore[arg-type]


def test_unknown_settings() -> None:
    with pytest.raises(UsageError, match=r"layers: no such setting .*; choose from .*embedding_size, .*num_layers"):
        preset_settings("lstm", layers=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "words"), [({"reserved": "skip"}, "choose"), ({"checkpoint_every": -1}, "must be a whole number, 0 or more")]
)
def test_a_run_that_cannot_be(options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunSettings(**options)
