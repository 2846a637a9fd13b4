"""What is stored of a base's distributions."""

import numpy as np
import pytest
from tests.scores.distributions.stored import normalized, random_logprob, tile

from lmgauge.scores.distributions.stored_rows import stored_rows
from lmgauge.scores.distributions.tile import Tile


def test_top_and_mass_of_the_rest_are_those_of_the_distribution():
    logprob = random_logprob(np.random.default_rng(1), 5, 30)
    rows = stored_rows(tile(logprob), 0, top=4, samples=10)
    order = np.argsort(-logprob, axis=1)
    assert rows.top_ids.tolist() == order[:, :4].tolist()
    assert np.allclose(rows.top_logprobs, np.take_along_axis(logprob, order[:, :4], 1), rtol=1e-7)
    assert np.allclose(rows.tail_mass, 1 - np.exp(rows.top_logprobs).sum(axis=1), atol=1e-6)
    assert np.allclose(rows.entropy, -(np.exp(logprob) * logprob).sum(axis=1))
    assert rows.tail_tokens.tolist() == [26] * 5
    assert rows.draws.tolist() == np.ceil(10 * rows.tail_mass).astype(int).tolist()


def test_each_draw_is_of_its_own_piece_of_the_tail():
    # The tail 0.1 0.2 0.1 0.1 has the mass 0.5; of m = 5 pieces of 0.1 the second and third lie in token 2 alone.
    logprob = np.log([[0.5, 0.1, 0.2, 0.1, 0.1]])
    for seed in range(20):
        rows = stored_rows(tile(logprob), 0, top=1, samples=9, seed=seed)
        assert rows.drawn_ids.tolist() == [1, 2, 2, 3, 4]


def test_a_token_is_drawn_as_often_as_its_probability_says():
    logprob = np.log([[0.4, 0.25, 0.2, 0.1, 0.05]])
    counts = np.zeros(5)
    for seed in range(4000):
        rows = stored_rows(tile(logprob), 7, top=1, samples=2, seed=seed)
        counts += np.bincount(rows.drawn_ids, minlength=5)
    expected = 2 * 4000 * np.exp(logprob[0]) / 0.6
    assert counts[0] == 0
    assert (np.abs(counts - expected)[1:] < 5 * np.sqrt(expected[1:])).all()


def test_draws_depend_on_the_number_of_the_event_and_not_on_how_tiles_are_cut():
    logprob = random_logprob(np.random.default_rng(2), 6, 50)
    settings = {"top": 3, "samples": 40, "seed": 9}
    whole = stored_rows(tile(logprob), 10, **settings)
    parts = [stored_rows(tile(logprob[:2]), 10, **settings), stored_rows(tile(logprob[2:]), 12, **settings)]
    assert np.array_equal(whole.drawn_ids, np.concatenate([part.drawn_ids for part in parts]))
    assert np.array_equal(whole.part(2, 6).drawn_logprobs, parts[1].drawn_logprobs)
    assert not np.array_equal(whole.drawn_ids, stored_rows(tile(logprob), 11, **settings).drawn_ids)


def test_tokens_that_cannot_come_are_never_drawn():
    logprob = np.array([[np.log(0.5), -np.inf, np.log(0.25), -800.0, np.log(0.25)]])
    rows = stored_rows(tile(logprob), 0, top=1, samples=100)
    assert set(rows.drawn_ids.tolist()) == {2, 4}
    assert rows.tail_tokens.tolist() == [2]
    all_stored = stored_rows(tile(logprob), 0, top=5, samples=100)
    assert all_stored.top_logprobs[0, 3:].tolist() == [-np.inf, -np.inf]
    assert all_stored.draws.tolist() == [0]


def test_probabilities_are_divided_by_their_sum():
    logprob = normalized(np.zeros((1, 8)))
    rows = stored_rows(tile(logprob + 0.5), 0, top=2, samples=4)
    assert rows.mass == pytest.approx([np.exp(0.5)])
    assert np.exp(rows.top_logprobs[0, 0]) == pytest.approx(1 / 8)
    assert rows.tail_mass == pytest.approx([6 / 8])
    assert rows.entropy == pytest.approx([np.log(8)])


def test_nothing_possible_is_nothing_stored():
    rows = stored_rows(tile(np.full((1, 4), -np.inf)), 0, top=2, samples=4)
    assert (rows.mass.tolist(), rows.tail_mass.tolist(), rows.draws.tolist()) == ([0.0], [0.0], [0])


def test_torch_and_numpy_store_the_same():
    torch = pytest.importorskip("torch")
    logprob = random_logprob(np.random.default_rng(3), 4, 60)
    settings = {"top": 5, "samples": 30}
    ours = stored_rows(tile(logprob), 0, **settings)
    theirs = stored_rows(Tile(lambda: torch.asarray(logprob), np.zeros(4, np.int64)), 0, **settings)
    assert np.array_equal(ours.top_ids, theirs.top_ids)
    assert np.array_equal(ours.drawn_ids, theirs.drawn_ids)
    assert np.allclose(ours.drawn_logprobs, theirs.drawn_logprobs)
