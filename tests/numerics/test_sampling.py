"""Totals from a sample of documents: by hand, against a slow twin, what must hold always, and by simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import sampling as twin

from lmgauge.numerics.intervals import DOCUMENTS, Spread
from lmgauge.numerics.sampling import Survey, Total, documents_for, documents_until, draw

Floats = np.ndarray


def collection(seed: int, documents: int = 60, *, noise: float = 0.1) -> tuple[Floats, Floats, Floats]:
    """Nats of a model, sizes, and nats of a proxy, of documents of very different size."""
    generator = np.random.default_rng(seed)
    sizes = np.round(np.exp(generator.normal(6, 0.8, documents)))
    hard = generator.normal(size=documents)
    proxy = sizes * (2.0 + 0.3 * hard)
    return sizes * (1.4 + 0.2 * hard + noise * generator.normal(size=documents)), sizes, proxy


def drawn_of(documents: int, count: int, seed: int) -> Floats:
    """Documents drawn without regard to what they are like."""
    return draw(np.zeros(documents), count, seed)


def survey(sizes: Floats, helpers: Floats, drawn: Floats, part: Floats | None = None) -> Survey:
    return Survey(sizes, helpers, drawn, np.ones(len(sizes), bool) if part is None else part)


def estimated(values: Floats, sizes: Floats, helpers: Floats, drawn: Floats) -> Total:
    return survey(sizes, helpers, drawn).total(values)


def per_size(
    nats: Floats, sizes: Floats, helpers: Floats, drawn: Floats, part: Floats | None = None, **options: bool
) -> Spread:
    of = survey(sizes, helpers, drawn, part)
    return of.ratio(nats[drawn], of.known(sizes), **options)


class TestByHand:
    def test_three_documents_of_four(self) -> None:
        """Rate 4 and helper 2 a document; y - 4 = -2, 0, 2 is twice x - 2 = -1, 0, 1; the fourth has x = 4, so y = 8."""
        total = estimated(np.array([2.0, 4.0, 6.0]), np.ones(4), np.array([[1.0], [2.0], [3.0], [4.0]]), np.arange(3))
        assert total.value == pytest.approx(20.0)
        assert total.fitted == pytest.approx([2.0, 4.0, 6.0, 8.0])
        assert total.falls == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)

    def test_without_helpers_it_is_the_plain_ratio(self) -> None:
        """Documents of 1, 2 and 3 bytes cost 2, 4 and 9 nats: 15 / 6 nats a byte, of 10 bytes 25."""
        sizes, drawn = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(3)
        total = estimated(np.array([2.0, 4.0, 9.0]), sizes, np.zeros((4, 0)), drawn)
        assert total.value == pytest.approx(25.0)
        # Residuals 2 - 2.5, 4 - 5, 9 - 7.5 by the shares of the others, 5, 4 and 3 of 6 bytes.
        assert total.falls == pytest.approx([-0.6, -1.5, 3.0])
        spread = per_size(np.array([2.0, 4.0, 9.0, 0.0]), sizes, np.zeros((4, 0)), drawn)
        # 0.36 + 2.25 + 9 = 11.61; times 2 / 3, times 1 / 4 not drawn; by 6 bytes.
        assert spread.error == pytest.approx((11.61 * 2 / 3 / 4) ** 0.5 / 6)

    def test_a_useless_helper_counts_for_nothing(self) -> None:
        """y - 2 = 1, -1, 1, -1 says nothing of x - 2.5 = -1.5, -0.5, 0.5, 1.5 (slope -0.4, F = 0.8 / (3.2 / 2) = 0.5)."""
        helper = np.array([[1.0], [2.0], [3.0], [4.0], [90.0]])
        total = estimated(np.array([3.0, 1.0, 3.0, 1.0]), np.ones(5), helper, np.arange(4))
        assert total.value == pytest.approx(10.0)
        assert total.helpers == 0

    def test_a_part_has_the_slope_of_all_and_its_own_rest(self) -> None:
        """y - 4 = 2 (x - 2) in all. Of the first and the fourth (x = 4): 2 of the first, and 8; 10 in all."""
        helper, part = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([True, False, False, True])
        total = survey(np.ones(4), helper, np.arange(3), part).total(np.array([2.0, 4.0, 6.0]))
        assert total.value == pytest.approx(10.0)

    def test_a_part_without_helpers_is_its_own_ratio(self) -> None:
        """Of 1 and 2 bytes with 2 and 5 nats, and 4 bytes not drawn: 7 nats / 3 bytes, of 7 bytes 49 / 3."""
        sizes, part = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, True])
        total = survey(sizes, np.zeros((4, 0)), np.arange(3), part).total(np.array([2.0, 5.0, 90.0]))
        assert total.value == pytest.approx(49 / 3)
        assert total.falls == pytest.approx([(2 - 7 / 3) / (2 / 3), (5 - 14 / 3) / (1 / 3), 0.0])

    def test_what_counts_is_what_a_helper_says_beyond_those_before(self) -> None:
        """The second helper is twice the first, and 1 more in the last: what it adds says nothing of y = 2 x."""
        helpers = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0], [5.0, 11.0], [9.0, 9.0]])
        total = survey(np.ones(6), helpers, np.arange(5)).total(np.array([2.0, 4.0, 6.0, 8.0, 10.0]))
        assert total.fitted == pytest.approx([2.0, 4.0, 6.0, 8.0, 10.0, 18.0])

    def test_a_document_that_alone_fixes_the_slope(self) -> None:
        """All of x - q z is from the last: the slope 8 / 9 leaves nothing of it; r = 28 / 10."""
        values, helper = np.array([2.0] * 9 + [10.0]), np.array([[1.0]] * 9 + [[10.0]] + [[1.0]] * 10)
        drawn = np.arange(10)
        total = estimated(values, np.ones(20), helper, drawn)
        assert total.helpers == 0
        assert total.value == pytest.approx(56.0)
        assert per_size(np.append(values, np.zeros(10)), np.ones(20), helper, drawn).error > 0.5

    def test_documents_for_an_error(self) -> None:
        assert documents_for(1.0, 100, 1000) == pytest.approx(100.0)
        assert documents_for(0.5, 100, 1000) == pytest.approx(1 / (0.001 + 0.25 * 0.009))
        assert documents_for(0.0, 100, 1000) == pytest.approx(1000.0)

    def test_documents_until_an_interval_is_narrow(self) -> None:
        """By tables: chi-square of 19 degrees of freedom has 13.716 at 20 %, Student's t 2.0930 at 97.5 %."""
        pilot = Spread(10.0, 1.0, 19, "", DOCUMENTS, 20)
        expected = 20 * (2.0930 * 1.0 / (0.02 * 10.0)) ** 2 * 19 / 13.716
        assert documents_until(0.02, pilot, 10**9) == pytest.approx(expected, rel=1e-3)
        assert documents_until(0.02, replace(pilot, error=0.0), 100) == 20


class TestAlways:
    @given(st.integers(0, 10_000), st.integers(6, 40))
    def test_it_is_the_slow_twin(self, seed: int, count: int) -> None:
        nats, sizes, proxy = collection(seed, noise=0.5)
        drawn = drawn_of(60, count, seed)
        total = estimated(nats[drawn], sizes, proxy[:, None], drawn)
        value, left, helps = twin.total(nats[drawn].tolist(), sizes.tolist(), proxy.tolist(), drawn.tolist())
        assert total.value == pytest.approx(value, rel=1e-9)
        assert nats[drawn] - total.fitted[drawn] == pytest.approx(left, abs=1e-6)
        assert total.helpers == helps

    @given(st.integers(0, 10_000), st.integers(15, 40))
    def test_the_error_is_that_of_leaving_each_document_out(self, seed: int, count: int) -> None:
        """Where the proxy is nearly the model; else a part of the slope counts, and is not estimated anew each time."""
        nats, sizes, proxy = collection(seed, noise=1e-5)
        drawn = drawn_of(60, count, seed)
        error = twin.error(nats[drawn].tolist(), sizes.tolist(), proxy.tolist(), drawn.tolist())
        assert per_size(nats, sizes, proxy[:, None], drawn).error == pytest.approx(error, rel=1e-3)

    @given(st.integers(0, 10_000))
    def test_all_documents_give_the_exact_total(self, seed: int) -> None:
        nats, sizes, proxy = collection(seed)
        spread = per_size(nats, sizes, proxy[:, None], np.arange(60))
        assert spread.ratio == pytest.approx(nats.sum() / sizes.sum(), rel=1e-12)
        assert spread.error == 0.0

    @given(st.integers(0, 10_000), st.floats(0.1, 10.0), st.integers(20, 60))
    def test_a_proxy_that_is_the_model_leaves_no_error(self, seed: int, times: float, count: int) -> None:
        nats, sizes, proxy = collection(seed)
        helpers = np.column_stack((proxy, times * nats))
        spread = per_size(nats, sizes, helpers, drawn_of(60, count, seed))
        assert spread.ratio == pytest.approx(nats.sum() / sizes.sum(), rel=1e-9)
        assert spread.error == pytest.approx(0.0, abs=1e-9)

    def test_two_proxies_that_are_one_count_as_one(self) -> None:
        nats, sizes, proxy = collection(3)
        drawn = drawn_of(60, 20, 3)
        one, twice = (per_size(nats, sizes, np.column_stack([proxy] * times), drawn) for times in (1, 2))
        assert twice.ratio == pytest.approx(one.ratio, rel=1e-3)

    def test_a_larger_sample_holds_a_smaller_one(self) -> None:
        values = np.random.default_rng(1).normal(size=1000)
        assert set(draw(values, 20, 7)) < set(draw(values, 30, 7))
        assert not np.array_equal(draw(values, 20, 7), draw(values, 20, 8))
        assert np.array_equal(draw(values[:9], 9, 1), np.arange(9))

    def test_documents_are_drawn_evenly_over_their_values(self) -> None:
        """Of 64 values in order, 16 drawn: four of each 16, whatever the seed; of 100, as many as is fair, or one more."""
        for seed in range(20):
            assert np.bincount(draw(np.arange(64.0), 16, seed) // 16).tolist() == [4, 4, 4, 4]
            assert set(np.bincount(draw(np.arange(100.0), 10, seed) // 25, minlength=4).tolist()) <= {2, 3}

    def test_each_document_is_drawn_with_the_same_chance(self) -> None:
        """2,000 draws of 3 of 7 documents, two of them alike: 857 of each, with a standard error of 22."""
        values = np.array([3.0, 1.0, 2.0, 2.0, 9.0, 5.0, 4.0])
        times = np.bincount(np.concatenate([draw(values, 3, seed) for seed in range(2000)]))
        assert times == pytest.approx(np.full(7, 2000 * 3 / 7), abs=80)

    def test_a_test_on_texts_like_this_adds_what_varies_between_documents(self) -> None:
        """With all documents drawn it is the error of the ratio over documents, as of a run of the whole text."""
        nats, sizes, proxy = collection(4, noise=0.0)
        spread = per_size(nats, sizes, proxy[:, None], np.arange(60), like_texts=True)
        rest = nats - nats.sum() / sizes.sum() * sizes
        assert spread.error == pytest.approx((60 / 59 * (rest**2).sum()) ** 0.5 / sizes.sum(), rel=1e-6)


def test_intervals_cover_and_are_narrower() -> None:
    """400 draws of 15 of 200 documents: coverage within 2.5 standard errors of 95 %, the error a third and less."""
    nats, sizes, proxy = collection(11, 200, noise=0.05)
    truth, hits, errors = nats.sum() / sizes.sum(), 0, np.zeros((400, 3))
    helpers = proxy[:, None], np.zeros((200, 0)), np.random.default_rng(0).uniform(size=(200, 1))
    for number in range(400):
        drawn = drawn_of(200, 15, number)
        spreads = [per_size(nats, sizes, one, drawn) for one in helpers]
        errors[number] = [spread.ratio - truth for spread in spreads]
        interval = spreads[0].interval()
        hits += interval.low <= truth <= interval.high
    assert 0.925 <= hits / 400 <= 0.98
    regressed, plain, useless = (errors**2).mean(axis=0)
    assert regressed < plain / 9
    assert useless < 1.03 * plain
