"""Forecasts: sums of one distribution against a twin, in NumPy and torch, and the edges of bins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.scores.distributions.reductions import Forecasts, bins_of
from lmgauge.scores.distributions.tile import Tile

SLACK = 1 + 1e-9


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 3e-8, 0.01, 0.1, 0.15, 0.2, 0.5, 1.0]), min_size=1, max_size=12), st.data()
)
def test_a_distribution_against_its_twin(weights: list[float], data: st.DataObject) -> None:
    p = np.array(weights)
    if not p.sum():
        p[0] = 1.0
    p = p / p.sum()
    token = data.draw(st.integers(0, len(p) - 1))
    with np.errstate(divide="ignore"):
        logprob = np.log(p)
    # A row of other values beside it, as bins are counted over all rows of a tile together.
    other = np.log(np.full(len(p), 1 / len(p)))
    columns = {k: v[1] for k, v in Forecasts()(Tile(lambda: np.stack([other, logprob]), np.array([0, token]))).items()}
    came = [float(i == token) for i in range(len(p))]
    assert columns["brier"] == pytest.approx(sum((a - b) ** 2 for a, b in zip(p.tolist(), came, strict=True)))
    assert columns["entropy"] == pytest.approx(-sum(v * math.log(v) for v in p.tolist() if v), abs=1e-12)
    assert columns["confidence"] == pytest.approx(max(p))
    assert columns["right"] == (int(np.argmax(p)) == token and p[token] > 0)
    assert columns["impossible"] == int((p == 0).sum())
    assert columns["came"] == logprob[token]
    decade, tenth = (int(bins[0]) for bins in bins_of(logprob[token : token + 1]))
    for code in range(10):
        inside = [v for v in p.tolist() if v and sum(v > k / 10 * SLACK for k in range(1, 10)) == code]
        assert columns["tenths"][code, 0] == len(inside)
        assert columns["tenths"][code, 1] == pytest.approx(sum(inside), abs=1e-12)
        assert p[token] == 0 or (p[token] in inside) == (code == tenth)
    for code in range(9):
        inside = [v for v in p.tolist() if v and sum(v <= 10.0**-k * SLACK for k in range(1, 9)) == code]
        assert columns["decades"][code, 0] == len(inside)
        assert columns["decades"][code, 1] == pytest.approx(sum(inside), rel=1e-9, abs=1e-300)
        assert p[token] == 0 or (p[token] in inside) == (code == decade)


def test_torch_counts_the_same_as_numpy() -> None:
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(2).normal(0, 3, (3, 5000)).astype(np.float32)
    logprob = torch.log_softmax(torch.from_numpy(logits), 1)
    targets = np.array([7, 4999, 0])
    ours = Forecasts()(Tile(lambda: logprob, targets))
    twin = Forecasts()(Tile(lambda: logprob.numpy().astype(np.float64), targets))
    for name, values in twin.items():
        # A value at the very edge of a bin may be rounded over it: none of these is.
        assert ours[name] == pytest.approx(values, rel=1e-5, abs=1e-9), name
    assert (ours["decades"][:, :, 0].sum(axis=1) == 5000).all()
    assert (ours["tenths"][:, :, 0].sum(axis=1) == 5000).all()
