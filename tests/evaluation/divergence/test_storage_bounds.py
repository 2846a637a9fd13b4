"""Bounds on what storage can have done to a figure: they hold as often as they say, where chance is at its worst too."""

import math

import numpy as np
import pytest
from tests.scores.distributions.stored import near_by, normalized, random_logprob, tile

from lmgauge.base.errors import UsageError
from lmgauge.evaluation.divergence.storage_bounds import StorageError, storage_error
from lmgauge.scores.distributions.reductions import FIGURES, Divergences
from lmgauge.scores.distributions.stored_rows import StoredDivergences, stored_rows


def errors(a, b, name, settings, confidence, seeds) -> list[tuple[float, StorageError]]:
    """Return estimate and error of each of many files of one base."""
    found = []
    for seed in range(seeds):
        columns = StoredDivergences((1,))(stored_rows(tile(a), 0, *settings, seed=seed), tile(b))
        error = storage_error(columns, name, confidence)
        assert error is not None
        found.append((float(columns[name].mean()), error))
    return found


def share_held(found, truth) -> float:
    return float(np.mean([e.low <= truth and (e.high is None or truth <= e.high) for _, e in found]))


@pytest.mark.parametrize("spread", [0.02, 0.5, 2.0])
@pytest.mark.parametrize("name", FIGURES)
def test_bounds_hold_as_often_as_they_say(spread, name):
    rng = np.random.default_rng(7)
    a = random_logprob(rng, 8, 200)
    b = near_by(rng, a, spread)
    truth = float(Divergences((1,))(tile(a), tile(b))[name].mean())
    found = errors(a, b, name, (10, 20), 0.8, 60)
    assert share_held(found, truth) >= 0.8
    # The estimates lie around the truth as their standard errors say.
    estimates = np.array([value for value, _ in found])
    usual = np.mean([error.standard_error for _, error in found])
    assert abs(estimates.mean() - truth) < 5 * usual / math.sqrt(len(found)) + 1e-9
    if spread < 1:  # far apart, a few draws in a thousand make up most of the spread
        assert 0.4 * usual < estimates.std() < 1.3 * usual


def test_bounds_hold_where_what_matters_is_mostly_missed():
    """One token of the tail, drawn once in a few files, is all of the divergence: most estimates are far too low."""
    p = np.full(101, 0.5 / 100)
    p[0] = 0.5
    q = p.copy()
    q[50] = 1e-9
    a, b = np.log(p)[None], normalized(np.log(q)[None])
    truth = float(Divergences((1,))(tile(a), tile(b))["kl_ab"][0])
    found = errors(a, b, "kl_ab", (1, 40), 0.5, 200)
    naive = np.mean([value + 3 * error.standard_error >= truth for value, error in found])
    assert naive < 0.5  # what a standard error says is of no use here
    assert share_held(found, truth) >= 0.5


def test_bounds_narrow_as_draws_and_events_grow():
    rng = np.random.default_rng(8)
    a = random_logprob(rng, 64, 300)
    b = near_by(rng, a, 0.2)

    def width(events, samples):
        rows = stored_rows(tile(a[:events]), 0, 10, samples)
        error = storage_error(StoredDivergences((1,))(rows, tile(b[:events])), "kl_ab")
        return error.high - error.low

    assert width(64, 200) < width(64, 20) / 3
    assert width(64, 50) < width(8, 50) / 3


def test_where_all_is_stored_nothing_is_left_open():
    rng = np.random.default_rng(9)
    a = random_logprob(rng, 3, 10)
    b = near_by(rng, a, 0.2)
    columns = StoredDivergences((1,))(stored_rows(tile(a), 0, top=10), tile(b))
    for name in FIGURES:
        error = storage_error(columns, name)
        assert error.standard_error == 0
        assert error.low == error.high == pytest.approx(float(columns[name].mean()))


def test_no_upper_bound_where_the_candidate_may_rule_out_what_the_base_holds_possible():
    with np.errstate(divide="ignore"):
        a, b = np.log([[0.5, 0.3, 0.2, 0.0]]), np.log([[0.5, 0.3, 0.0, 0.2]])
    rows = stored_rows(tile(a), 0, top=1, samples=1, seed=0)
    assert rows.drawn_ids.tolist() == [1]  # the token that B rules out was not drawn
    error = storage_error(StoredDivergences((1,))(rows, tile(b)), "kl_ab")
    assert error.high == math.inf
    other = stored_rows(tile(a), 0, top=1, samples=20)
    assert storage_error(StoredDivergences((1,))(other, tile(b)), "kl_ab") == StorageError(None, math.inf, math.inf)


def test_nothing_is_proven_of_kl_the_other_way_from_above():
    rng = np.random.default_rng(10)
    a = random_logprob(rng, 3, 50)
    rows = stored_rows(tile(a), 0, top=5, samples=10)
    assert storage_error(StoredDivergences((1,))(rows, tile(near_by(rng, a, 0.1))), "kl_ba").high is None


def test_undefined_events_and_wrong_confidence():
    nothing = np.full((1, 4), -np.inf)
    columns = StoredDivergences((1,))(stored_rows(tile(nothing), 0, top=2), tile(nothing))
    assert storage_error(columns, "kl_ab") is None
    with pytest.raises(UsageError, match="confidence must be between 0 and 1"):
        storage_error(columns, "kl_ab", 1.0)
