"""Divergences from stored distributions: exact where all is stored, right on average where draws stand for the tail."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.scores.distributions.stored import near_by, normalized, random_logprob, tile

from lmgauge.scores.distributions.reductions import FIGURES, Divergences
from lmgauge.scores.distributions.stored_rows import StoredDivergences, stored_rows
from lmgauge.scores.distributions.tile import Tile

LOGITS = st.floats(-6, 6, width=32)


@given(arrays.arrays(np.float64, (2, 3, 6), elements=LOGITS))
def test_where_all_tokens_are_stored_the_figures_are_exact(logits):
    a, b = tile(normalized(logits[0])), tile(normalized(logits[1]))
    exact = Divergences((1, 3))(a, b)
    columns = StoredDivergences((1, 3))(stored_rows(a, 0, top=6), b)
    for name, values in exact.items():
        assert columns[name] == pytest.approx(values, abs=1e-5), name
    for name in FIGURES:
        assert columns[f"{name}_variance"].tolist() == [0, 0, 0]


def expected_columns(a: np.ndarray, b: np.ndarray, top: int, samples: int, ruled_out=()) -> dict[str, float]:
    """Return the mean of each column over all that can be drawn: every combination of a token for each piece."""
    rows = stored_rows(tile(a), 0, top=top, samples=samples)
    m, mass = int(rows.draws[0]), float(rows.tail_mass[0])
    p = np.exp(a[0])
    p[rows.top_ids[0]] = 0
    ends = np.cumsum(p)
    edges = np.arange(m + 1) * mass / m
    share = np.clip(np.minimum(ends[None], edges[1:, None]) - np.maximum(ends - p, edges[:-1, None]), 0, None) * m / mass
    means: dict[str, float] = {}
    for drawn in itertools.product(range(len(p)), repeat=m):
        probability = float(np.prod(share[np.arange(m), drawn]))
        if probability > 0:
            ids = np.array(sorted(drawn), np.uint32)
            one = replace(rows, drawn_ids=ids, drawn_logprobs=a[0, ids])
            for name, values in StoredDivergences((1,), ruled_out)(one, tile(b)).items():
                means[name] = means.get(name, 0.0) + probability * float(values[0])
    return means


@given(arrays.arrays(np.float64, (2, 1, 6), elements=LOGITS), st.integers(1, 3), st.integers(1, 4))
def test_no_estimate_is_biased(logits, top, samples):
    a, b = normalized(logits[0]), normalized(logits[1])
    exact = Divergences((1,))(tile(a), tile(b))
    means = expected_columns(a, b, top, samples)
    for name in FIGURES:
        assert means[name] == pytest.approx(float(exact[name][0]), rel=1e-5, abs=2e-6), name
    for name in ("kl_ab", "js", "tv"):
        assert means[f"{name}_far"] == pytest.approx(float(exact[name][0]), rel=1e-5, abs=2e-6), name


def test_no_estimate_is_biased_where_the_base_rules_tokens_out():
    with np.errstate(divide="ignore"):
        a, b = np.log([[0.4, 0.3, 0.0, 0.2, 0.1]]), np.log([[0.3, 0.2, 0.2, 0.1, 0.2]])
    with np.errstate(over="ignore"):
        exact = Divergences((1,))(tile(a), tile(b))
    for ruled_out in ((), (2,)):
        means = expected_columns(a, b, 1, 4, ruled_out)
        for name in FIGURES:
            if name == "kl_ba" and not ruled_out:  # that all tokens of the tail are possible for B is seen from their number
                assert means[name] == np.inf
            assert means[name] == pytest.approx(float(exact[name][0]), abs=1e-6), (name, ruled_out)


def test_a_candidate_that_rules_out_what_the_base_holds_possible_is_infinitely_far():
    with np.errstate(divide="ignore"):
        a, b = np.log([[0.4, 0.3, 0.2, 0.1]]), np.log([[0.4, 0.3, 0.3, 0.0]])
    rows = stored_rows(tile(a), 0, top=1, samples=1)
    columns = StoredDivergences((1,))(rows, tile(b))  # known from the number of possible tokens, whatever was drawn
    assert columns["kl_ab"].tolist() == [np.inf]
    assert np.isfinite(np.concatenate([columns["js"], columns["tv"]])).all()
    top = StoredDivergences((1,))(stored_rows(tile(a), 0, top=4), tile(b))
    assert top["kl_ab"].tolist() == [np.inf]


def test_undefined_where_a_model_gives_nothing_a_probability():
    a = random_logprob(np.random.default_rng(0), 2, 5)
    nothing = np.full((2, 5), -np.inf)
    for base, candidate in ((a, nothing), (nothing, a)):
        columns = StoredDivergences((1,))(stored_rows(tile(base), 0, top=2), tile(candidate))
        assert all(np.isnan(columns[name]).all() for name in FIGURES)


def test_a_tail_in_proportion_is_known_without_draws():
    """Two n-gram models give unseen words the same distribution times a back-off weight: then nothing is left to chance."""
    a = np.log([[0.5, 0.2, 0.15, 0.1, 0.05]])
    b = np.log([[0.25, 0.3, 0.225, 0.15, 0.075]])
    exact = Divergences((1,))(tile(a), tile(b))
    columns = StoredDivergences((1,))(stored_rows(tile(a), 0, top=1, samples=3), tile(b))
    for name in FIGURES:
        assert columns[name] == pytest.approx(exact[name], abs=1e-6)
        assert columns[f"{name}_variance"] == pytest.approx([0], abs=1e-12)


def test_overlaps_are_those_of_whole_distributions():
    rng = np.random.default_rng(4)
    a = random_logprob(rng, 20, 40)
    b = near_by(rng, a, 0.5)
    exact = Divergences((1, 5, 8))(tile(a), tile(b))
    columns = StoredDivergences((1, 5, 8))(stored_rows(tile(a), 0, top=8), tile(b))
    for k in (1, 5, 8):
        assert columns[f"overlap_{k}"].tolist() == exact[f"overlap_{k}"].tolist()


def test_torch_gives_the_same():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    a = random_logprob(rng, 6, 80)
    b = near_by(rng, a, 0.3)
    rows = stored_rows(tile(a), 0, top=5, samples=50)
    ours = StoredDivergences((1, 5))(rows, tile(b))
    theirs = StoredDivergences((1, 5))(rows, Tile(lambda: torch.asarray(b, dtype=torch.float32), np.zeros(6, np.int64)))
    for name, values in ours.items():
        assert theirs[name] == pytest.approx(values, rel=1e-3, abs=1e-6), name


def test_parts_give_the_rows_of_the_whole():
    rng = np.random.default_rng(6)
    a = random_logprob(rng, 7, 30)
    b = near_by(rng, a, 0.3)
    rows = stored_rows(tile(a), 0, top=3, samples=20)
    whole = StoredDivergences((1,))(rows, tile(b))
    parts = [StoredDivergences((1,))(rows.part(i, j), tile(b[i:j])) for i, j in ((0, 3), (3, 7))]
    for name, values in whole.items():
        assert np.concatenate([part[name] for part in parts]) == pytest.approx(values), name
    assert sum(len(rows.part(i, j).drawn_ids) for i, j in ((0, 3), (3, 7))) == len(rows.drawn_ids)
