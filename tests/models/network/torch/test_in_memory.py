"""A network in memory with its tokenizer is a model everywhere: nothing is trained, saved or loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge import Corpus, NeuralModel, ScoringOptions, UsageError  # noqa: E402
from lmgauge.models.registry import load_model  # noqa: E402


@pytest.fixture
def parts(checkpoint: Callable[..., Path]) -> tuple[Any, Any]:
    """A network and its tokenizer, as someone has them at hand."""
    folder = checkpoint("gpt2")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return network, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def model(parts: tuple[Any, Any]) -> NeuralModel:
    return NeuralModel.wrap(*parts, ScoringOptions(batch_tokens=512))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT.splitlines()[:4]) + "\n", encoding="utf-8")
    return path


def test_it_is_evaluated_and_its_run_diagnosed(model: NeuralModel, text: Path, tmp_path: Path) -> None:
    result = lmgauge.evaluate(model, text, output=tmp_path / "run")
    assert math.isfinite(result.perplexity)
    diagnosis = lmgauge.diagnose(tmp_path / "run", model=model, only=["calibration"], contexts=20)
    assert diagnosis.calibration is not None


def test_it_is_audited(model: NeuralModel, text: Path) -> None:
    assert lmgauge.audit(model, text).verdict != "FAIL"


def test_it_is_compared_with_another_and_mixed(model: NeuralModel, parts: tuple[Any, Any], text: Path) -> None:
    other = NeuralModel.wrap(*parts, ScoringOptions(context=8))
    away = lmgauge.divergence(model, other, text, events=20)
    assert away.kl_ab_bits.value >= 0
    mixed = lmgauge.mix([model, other], weights=[0.5, 0.5])
    assert math.isfinite(lmgauge.evaluate(mixed, text).perplexity)


def test_it_is_sampled_from(model: NeuralModel) -> None:
    assert len(list(lmgauge.sample(model, 2, max_tokens=4))) == 2


def test_a_bare_network_is_told_the_right_call(parts: tuple[Any, Any]) -> None:
    for call in (load_model, lambda network: lmgauge.evaluate(network, Corpus.from_strings(["a"]))):
        with pytest.raises(UsageError, match=r"not a bare network: lmgauge\.NeuralModel\.wrap\(network, tokenizer\)"):
            call(parts[0])


def test_options_by_name_are_those_of_the_object(checkpoint: Callable[..., Path]) -> None:
    folder, corpus = checkpoint("gpt2"), Corpus.from_strings(TEXT.splitlines()[:3])
    named, object_ = load_model(folder, context=16, stride=8), load_model(folder, ScoringOptions(context=16, stride=8))
    assert str(named.context_policy) == "sentence,16/8,end=newline"
    for one, other in zip(named.score(corpus), object_.score(corpus), strict=True):
        np.testing.assert_array_equal(one.logprob, other.logprob)
