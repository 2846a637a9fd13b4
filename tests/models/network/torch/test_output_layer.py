"""Log-probabilities from tiles of the vocabulary beside a log-softmax over all logits in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from lmgauge.models.network.torch import output_layer  # noqa: E402
from lmgauge.models.network.torch.output_layer import OutputLayer, unchanged  # noqa: E402

ROWS, COLUMNS = 3, 5  # of a tile, here: so small that every border is met


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_layer, "_CPU_TILE", (ROWS, COLUMNS))


def soft_capping(logits: torch.Tensor) -> torch.Tensor:
    return logits.div_(2.0).tanh_().mul_(2.0)


def scaling(logits: torch.Tensor) -> torch.Tensor:
    return logits * 0.25


def full(layer: OutputLayer, hidden: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    """All logits at once, in float64."""
    logits = hidden.double() @ layer.weight.double().T
    if layer.bias is not None:
        logits = logits + layer.bias.double()
    found: np.ndarray = layer.adjust(logits).log_softmax(1).gather(1, targets[:, None])[:, 0].numpy()
    return found


def random_layer(
    seed: int, vocabulary: int, width: int, *, bias: bool, adjust: Callable[..., torch.Tensor], scale: float
) -> OutputLayer:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(vocabulary, width, generator=generator) * scale
    return OutputLayer(weight, torch.randn(vocabulary, generator=generator) * scale if bias else None, adjust)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    states=st.integers(0, 3 * ROWS + 1),
    vocabulary=st.integers(1, 3 * COLUMNS + 1),
    width=st.integers(1, 9),
    bias=st.booleans(),
    adjust=st.sampled_from([unchanged, soft_capping, scaling]),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_as_all_logits_at_once(
    seed: int, states: int, vocabulary: int, width: int, bias: bool, adjust: Callable[..., torch.Tensor], scale: float
) -> None:
    layer = random_layer(seed, vocabulary, width, bias=bias, adjust=adjust, scale=scale)
    generator = torch.Generator().manual_seed(seed + 1)
    hidden = torch.randn(states, width, generator=generator)
    targets = torch.randint(vocabulary, (states,), generator=generator)
    kept = hidden.clone()
    found = layer.log_probabilities(hidden, targets)
    assert found.dtype == torch.float64
    largest = float((hidden.abs().sum(1).max() if states else 0) * scale * 4) + 1
    np.testing.assert_allclose(found.numpy(), full(layer, hidden, targets), atol=3e-7 * largest * width, rtol=1e-6)
    assert torch.equal(hidden, kept)  # nothing is changed in place


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000), vocabulary=st.integers(1, 2 * COLUMNS + 1), adjust=st.sampled_from([unchanged, soft_capping])
)
def test_probabilities_sum_to_one(seed: int, vocabulary: int, adjust: Callable[..., torch.Tensor]) -> None:
    layer = random_layer(seed, vocabulary, 4, bias=True, adjust=adjust, scale=3.0)
    state = torch.randn(1, 4, generator=torch.Generator().manual_seed(seed)).expand(vocabulary, 4)
    assert float(layer.log_probabilities(state, torch.arange(vocabulary)).exp().sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("vocabulary", [COLUMNS - 1, COLUMNS, COLUMNS + 1, 2 * COLUMNS, 2 * COLUMNS + 1])
@pytest.mark.parametrize("states", [ROWS - 1, ROWS, ROWS + 1, 2 * ROWS])
def test_tiles_that_just_fit(vocabulary: int, states: int) -> None:
    layer = random_layer(1, vocabulary, 4, bias=True, adjust=unchanged, scale=1.0)
    hidden, targets = torch.randn(states, 4), torch.full((states,), vocabulary - 1)
    np.testing.assert_allclose(layer.log_probabilities(hidden, targets).numpy(), full(layer, hidden, targets), atol=1e-5)


@pytest.mark.parametrize("impossible", [[0], list(range(COLUMNS)), list(range(COLUMNS, 2 * COLUMNS)), list(range(1, 12))])
def test_impossible_tokens(impossible: list[int]) -> None:
    """A whole tile may be impossible, the first one too: -inf, and never NaN."""
    bias = torch.zeros(12)
    bias[impossible] = -torch.inf
    layer = OutputLayer(torch.randn(12, 4, generator=torch.Generator().manual_seed(2)), bias)
    hidden = torch.randn(1, 4, generator=torch.Generator().manual_seed(3)).expand(12, 4)
    found = layer.log_probabilities(hidden, torch.arange(12)).numpy()
    assert np.isneginf(found[impossible]).all()
    np.testing.assert_allclose(found, full(layer, hidden, torch.arange(12)), atol=1e-6)


@pytest.mark.parametrize("where", [0, COLUMNS, 11])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_values_that_are_no_numbers_come_through(where: int, value: float) -> None:
    bias = torch.zeros(12)
    bias[where] = value
    found = OutputLayer(torch.ones(12, 4), bias).log_probabilities(torch.ones(2, 4), torch.tensor([3, where]))
    assert bool(found.isnan().all())


def test_nothing_possible_is_no_number() -> None:
    layer = OutputLayer(torch.ones(12, 4), torch.full((12,), -torch.inf))
    assert bool(layer.log_probabilities(torch.ones(2, 4), torch.tensor([3, 4])).isnan().all())


def test_large_logits_do_not_overflow() -> None:
    weight = torch.tensor([[300.0], [-300.0], [299.0], [0.0], [1.0], [299.5], [-1000.0]])
    layer = OutputLayer(weight)
    hidden, targets = torch.full((7, 1), 10.0), torch.arange(7)
    np.testing.assert_allclose(layer.log_probabilities(hidden, targets).numpy(), full(layer, hidden, targets), atol=1e-2)


def test_all_logits_of_few_states() -> None:
    layer = random_layer(4, 17, 6, bias=True, adjust=soft_capping, scale=1.0)
    hidden = torch.randn(3, 6)
    logits = layer.logits(hidden)
    assert logits.dtype == torch.float32
    np.testing.assert_allclose(
        logits.double().log_softmax(1).numpy(),
        np.stack([layer.log_probabilities(hidden, torch.full((3,), token)).numpy() for token in range(17)], axis=1),
        atol=1e-5,
    )


@pytest.mark.parametrize("adjust", [unchanged, soft_capping])
def test_bfloat16_is_close(adjust: Callable[..., torch.Tensor]) -> None:
    exact = random_layer(5, 200, 32, bias=True, adjust=adjust, scale=0.5)
    hidden = torch.randn(50, 32, generator=torch.Generator().manual_seed(6))
    targets = torch.randint(200, (50,), generator=torch.Generator().manual_seed(7))
    coarse = OutputLayer(exact.weight.bfloat16(), exact.bias, exact.adjust)
    found = coarse.log_probabilities(hidden.bfloat16(), targets).numpy()
    wanted = exact.log_probabilities(hidden, targets).numpy()
    np.testing.assert_allclose(found, wanted, atol=0.1)
    # Rounded inputs are all that differs: beside the same rounded inputs in float64 it is closer.
    np.testing.assert_allclose(found, full(coarse, hidden.bfloat16(), targets), atol=0.05)


def test_a_certain_token_is_certain_in_bfloat16() -> None:
    """The logit of the target and those that it is divided by are rounded alike: else what is certain costs something."""
    generator = torch.Generator().manual_seed(8)
    hidden = torch.randn(64, 48, generator=generator).bfloat16()
    weight = torch.randn(64, 48, generator=generator).bfloat16() + 1.5 * hidden  # token i is what state i says, and no other
    layer = OutputLayer(weight)
    exact = full(layer, hidden, torch.arange(64))
    assert (exact > -1e-6).mean() > 0.9
    found = layer.log_probabilities(hidden, torch.arange(64)).numpy()
    np.testing.assert_allclose(found[exact > -1e-6], 0, atol=0.01)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_s_kernel_adds_what_torch_adds() -> None:
    logits = 20 * torch.randn(6, 9000)
    logits[1], logits[2, :5000], logits[3, 77], logits[4], logits[5, 8999] = -torch.inf, -torch.inf, torch.nan, 1e4, 3e38
    kernel = output_layer._gpu_kernel()
    assert kernel is not None
    found = []
    for add, device in ((output_layer._add_exponentials, "cpu"), (kernel, "cuda")):
        largest = torch.full((6,), -torch.inf, device=device)
        total = torch.zeros(6, dtype=torch.float64, device=device)
        for part in logits.split(4500, 1):
            add(part.to(device).contiguous(), largest, total)
        found.append((largest.double() + total.log()).cpu())
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(found[0][[0, 2]], logits.double().logsumexp(1)[[0, 2]], rtol=1e-6, atol=1e-6)
