"""A network in memory with its tokenizer is a model everywhere: nothing is trained, saved or loaded."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge import Corpus  # noqa: E402
from lmgauge.base.errors import UsageError  # noqa: E402
from lmgauge.models import NeuralModel  # noqa: E402
from lmgauge.models.registry import load_model  # noqa: E402
from lmgauge.scores.distributions import reduce  # noqa: E402
from lmgauge.scores.distributions.reductions import Entropy  # noqa: E402
from lmgauge.settings import ScoringOptions  # noqa: E402


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
        with pytest.raises(UsageError, match=r"not a bare network: lmgauge\.models\.NeuralModel\.wrap\(network,"):
            call(parts[0])


def test_options_by_name_are_those_of_the_object(checkpoint: Callable[..., Path]) -> None:
    folder, corpus = checkpoint("gpt2"), Corpus.from_strings(TEXT.splitlines()[:3])
    named, object_ = load_model(folder, context=16, stride=8), load_model(folder, ScoringOptions(context=16, stride=8))
    assert str(named.context_policy) == "sentence,16/8,end=newline"
    for one, other in zip(named.score(corpus), object_.score(corpus), strict=True):
        np.testing.assert_array_equal(one.logprob, other.logprob)


# --- quantized --------------------------------------------------------------------------------------------------------


class FourBits(torch.nn.Module):
    """A linear layer whose weights are packed, two to a byte, and have one scale for each group of them."""

    def __init__(self, linear: Any, group: int = 8) -> None:
        super().__init__()
        groups = linear.weight.detach().unflatten(1, (-1, group))
        scale = groups.abs().amax(2, keepdim=True) / 7
        whole = (groups / scale.clamp(min=1e-9)).round().to(torch.int64).flatten(1) + 8
        self.register_buffer("weight", (whole[:, ::2] * 16 + whole[:, 1::2]).to(torch.uint8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: Any) -> Any:
        whole = torch.stack((self.weight // 16, self.weight % 16), 2).flatten(1).float() - 8
        values = (whole.unflatten(1, (self.scale.shape[1], -1)) * self.scale).flatten(1)
        return torch.nn.functional.linear(x, values, self.bias)


def quantized(network: Any, bits: int) -> Any:
    network = copy.deepcopy(network)
    network.lm_head.weight = torch.nn.Parameter(network.lm_head.weight.detach().clone())  # no longer tied
    if bits == 8:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch wants another library for it
            return torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear}, dtype=torch.qint8)
    for name, module in list(network.named_modules()):
        if isinstance(module, torch.nn.Linear):
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, FourBits(module))
    return network


@pytest.mark.parametrize("bits", [8, 4])
def test_a_quantized_network_gives_its_own_logits(parts: tuple[Any, Any], text: Path, bits: int) -> None:
    network, tokenizer = quantized(parts[0], bits), parts[1]
    model = NeuralModel.wrap(network, tokenizer)
    assert model.engine.split.output is None
    assert model.fingerprint == NeuralModel.wrap(network, tokenizer).fingerprint
    assert model.fingerprint != NeuralModel.wrap(parts[0], tokenizer).fingerprint
    line = text.read_text(encoding="utf-8").splitlines()[0]
    ids = [tokenizer.bos_token_id, *tokenizer(line + "\n")["input_ids"]]
    with torch.no_grad():
        logprob = network(input_ids=torch.tensor([ids[:-1]])).logits[0].double().log_softmax(-1)
    expected = logprob[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].numpy()
    one = Corpus.from_strings([line + "\n"])
    model = NeuralModel.wrap(network, tokenizer, ScoringOptions(end="none"))
    assert next(iter(model.score(one))).logprob == pytest.approx(expected, abs=1e-5)
    entropy = np.concatenate([batch.extra["entropy"] for batch in reduce(model, one, [Entropy()])])
    assert entropy == pytest.approx(-(logprob.exp() * logprob).sum(1).numpy(), abs=1e-5)
    away = lmgauge.divergence(NeuralModel.wrap(*parts), NeuralModel.wrap(network, tokenizer), text)
    assert 0 < away.kl_ab_nats.value < 0.1
    assert bool(model.notes) == (bits == 8)


def test_no_neighbor_moves_the_scale_of_a_quantized_network(parts: tuple[Any, Any], text: Path) -> None:
    model = NeuralModel.wrap(quantized(parts[0], 8), parts[1], ScoringOptions(batch_tokens=512))
    lines = text.read_text(encoding="utf-8").splitlines()
    together = np.concatenate([batch.logprob for batch in model.score(Corpus.from_strings(lines))])
    alone = [batch.logprob for line in lines for batch in model.score(Corpus.from_strings([line]))]
    assert np.array_equal(together, np.concatenate(alone))
