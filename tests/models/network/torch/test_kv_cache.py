"""Caches of few bits: each format beside a slow twin, and networks beside ones whose layers round by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT, byte_level, network  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge import Corpus, load_model  # noqa: E402
from lmgauge.base.choices import CacheFormat  # noqa: E402
from lmgauge.base.errors import UsageError  # noqa: E402
from lmgauge.models import NeuralModel  # noqa: E402
from lmgauge.models.network.torch.kv_cache import rounded  # noqa: E402
from lmgauge.settings import ScoringOptions  # noqa: E402

CORPUS = Corpus.from_strings(TEXT.splitlines())
BITS = {"bfloat16": (8, 7), "float16": (5, 10), "fp8_e4m3": (4, 3), "fp8_e5m2": (5, 2)}


def nearest(value: float, form: str) -> float:
    """The nearest float of some bits of exponent and mantissa, ties to the even one; what is too large, the largest."""
    exponent, mantissa = BITS[form]
    bias = 2 ** (exponent - 1) - 1
    _, own = np.frexp(value)
    step = 2.0 ** (max(int(own) - 1, 1 - bias) - mantissa)
    most = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0}.get(form, np.inf)
    return float(np.clip(np.round(value / step) * step, -most, most))


def block(values: NDArray[np.float32], form: str) -> list[float]:
    """As ggml's `quantize_row_q8_0_ref` and `quantize_row_q4_0_ref` write a block of 32, and as it is read."""
    furthest = max(values.tolist(), key=abs)
    scale = np.float32(abs(furthest) / 127 if form == "q8_0" else furthest / -8)
    found = []
    for value in values:
        steps = value / scale if scale else np.float32(0)
        if form == "q8_0":
            whole = np.copysign(np.floor(abs(steps) + np.float32(0.5)), steps)  # C's roundf
        else:
            whole = min(15, int(steps + np.float32(8.5))) - 8 if scale else 0
        found.append(float(whole * np.float32(np.float16(scale))))
    return found


@pytest.mark.parametrize("form", get_args(CacheFormat))
def test_values_beside_a_slow_twin(form: Any) -> None:
    random = np.random.default_rng(1)
    values = (random.standard_normal((6, 64)) * 10.0 ** random.integers(-3, 2, (6, 1))).astype(np.float32)
    values[0, :32], values[1, 0], values[2, 0] = 0, 500, -500
    found = rounded(torch.from_numpy(values), form)
    assert found.dtype == torch.float32
    if form == "float32":
        expected = values.tolist()
    elif form in BITS:
        expected = [[nearest(value, form) for value in row] for row in values.tolist()]
    else:
        expected = [block(row[:32], form) + block(row[32:], form) for row in values]
    assert found.numpy() == pytest.approx(np.array(expected), rel=1e-6, abs=1e-30)
    assert torch.equal(rounded(found, form), found) or form.startswith("q")


def wrapped(model: Any, kv_cache: CacheFormat | None = None) -> NeuralModel:
    return NeuralModel.wrap(model, byte_level(), ScoringOptions(context=40, stride=20, kv_cache=kv_cache))


def scores(model: Any) -> NDArray[np.float64]:
    return np.concatenate([batch.logprob for batch in model.score(CORPUS, threads=1)])


def wide(kind: str) -> Any:
    """A network with heads of 32 numbers."""
    if kind != "gpt2":
        return network(kind, 300)
    torch.manual_seed(5)
    config = transformers.GPT2Config(vocab_size=300, n_positions=48, n_embd=64, n_layer=2, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5)
    return model


@pytest.mark.parametrize("form", get_args(CacheFormat))
def test_scores_beside_layers_that_round_by_themselves(form: Any) -> None:
    """No cache at all: what a layer makes keys and values of gives them rounded."""
    plain, cached = wide("gpt2"), wrapped(wide("gpt2"), form)

    def rounding(layer: Any, inputs: Any, output: Any) -> Any:
        query, *kept = output.split(64, dim=-1)
        return torch.cat([query, *(rounded(one.unflatten(-1, (2, 32)), form).flatten(-2) for one in kept)], dim=-1)

    exact = scores(wrapped(plain))
    for layer in plain.transformer.h:
        layer.attn.c_attn.register_forward_hook(rounding)
    expected, found = scores(wrapped(plain)), scores(cached)
    assert found == pytest.approx(expected, abs=1e-5)
    assert (np.abs(found - exact).max() > 1e-4) == (form != "float32")
    assert str(cached.context_policy) == f"sentence,40/20,end=newline,kv_cache={form}"
    assert cached.fingerprint != wrapped(wide("gpt2")).fingerprint


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2"])
def test_tokens_at_a_time_change_nothing(kind: str) -> None:
    """Whole windows and one token after another, also where a window slides (Gemma)."""
    model = wrapped(wide(kind), "fp8_e4m3")
    [batch] = model.score(Corpus.from_strings([TEXT[:60]]), threads=1)
    ids = [1, *batch.token_ids[:35].tolist()]
    one_by_one = [model.log_distribution(ids[:n])[ids[n]] for n in range(1, len(ids))]
    assert batch.logprob[:35] == pytest.approx(one_by_one, abs=2e-5)


def test_one_checkpoint_with_two_caches(tmp_path: Path) -> None:
    folder = tmp_path / "gpt2"
    wide("gpt2").save_pretrained(folder)
    byte_level().save_pretrained(folder)
    names = [f"{folder}:kv={form}" for form in ("float32", "q8_0", "q4_0")]
    exact, near, far = lmgauge.divergence(folder, names, CORPUS, events=None, threads=1)
    assert exact.kl_ab_nats.value == pytest.approx(0, abs=1e-12)
    assert near.b == "gpt2:kv=q8_0"
    assert near.kl_ab_nats.value is not None
    assert far.kl_ab_nats.value is not None
    assert 1e-9 < near.kl_ab_nats.value < far.kl_ab_nats.value / 10
    assert any("keys and values differ (gpt2: not rounded; gpt2:kv=q8_0: q8_0)" in note for note in near.notes)
    assert not any("different contexts" in note for note in near.notes)
    assert near.floor is not None
    positions = [next(one for one in item.slices if one.name.startswith("position")) for item in (near, near.floor)]
    assert [row.label for row in positions[0].rows] == [row.label for row in positions[1].rows]
    both = load_model(f"{folder}:bfloat16:kv=fp8_e5m2")
    assert (both.options.dtype, both.options.kv_cache) == ("bfloat16", "fp8_e5m2")  # type: ignore[union-attr]
    load_model(names[2]).save(tmp_path / "copy")
    assert load_model(tmp_path / "copy").fingerprint == load_model(names[2]).fingerprint != load_model(folder).fingerprint


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"kv-cache q4_0: cuts keys and values into blocks of 32, .* have 16"):
        wrapped(network("llama", 300), "q4_0")
    with pytest.raises(UsageError, match="MambaForCausalLM keeps something else of a text than keys and values"):
        wrapped(network("mamba", 300), "float16")
    lmgauge.train("laplace", CORPUS).save(tmp_path / "laplace")
    with pytest.raises(UsageError, match=r"kv_cache is for networks that compute here \(servers have their own\)"):
        load_model(tmp_path / "laplace", kv_cache="q8_0")
    with pytest.raises(UsageError, match=r"laplace:kv=q8: a cache is one of float32, .*, q4_0, as in :kv=q8_0"):
        load_model(f"{tmp_path / 'laplace'}:kv=q8")
    with pytest.raises(UsageError, match=r"laplace:kv=q8_0: a cache is for networks that compute here .*; name .*laplace"):
        load_model(f"{tmp_path / 'laplace'}:kv=q8_0")
