"""Totals from a sample of documents: by hand, against a slow twin, what must hold always, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import sampling as twin

from lmgauge.numerics.intervals import Spread
from lmgauge.numerics.sampling import documents_for, draw, estimated, known, ratio_of

Floats = np.ndarray


def collection(seed: int, documents: int = 60, *, noise: float = 0.1) -> tuple[Floats, Floats, Floats]:
    """Nats of a model, sizes, and nats of a proxy, of documents of very different size."""
    generator = np.random.default_rng(seed)
    sizes = np.round(np.exp(generator.normal(6, 0.8, documents)))
    hard = generator.normal(size=documents)
    proxy = sizes * (2.0 + 0.3 * hard)
    return sizes * (1.4 + 0.2 * hard + noise * generator.normal(size=documents)), sizes, proxy


def per_size(nats: Floats, sizes: Floats, helpers: Floats, drawn: Floats, **options: bool) -> Spread:
    return ratio_of(estimated(nats[drawn], sizes, helpers, drawn), known(sizes, drawn), sizes, drawn, **options)


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
        spread = ratio_of(total, known(sizes, drawn), sizes, drawn)
        # 0.36 + 2.25 + 9 = 11.61; times 2 / 3, times 1 / 4 not drawn; by 6 bytes.
        assert spread.error == pytest.approx((11.61 * 2 / 3 / 4) ** 0.5 / 6)

    def test_a_useless_helper_counts_for_nothing(self) -> None:
        """y - 2 = 1, -1, 1, -1 says nothing of x - 2.5 = -1.5, -0.5, 0.5, 1.5 (slope -0.4, F = 0.8 / (3.2 / 2) = 0.5)."""
        helper = np.array([[1.0], [2.0], [3.0], [4.0], [90.0]])
        total = estimated(np.array([3.0, 1.0, 3.0, 1.0]), np.ones(5), helper, np.arange(4))
        assert total.value == pytest.approx(10.0)
        assert total.helpers == 0

    def test_a_document_that_alone_fixes_the_slope(self) -> None:
        """All of x - q z is from the last: the slope 8 / 9 leaves nothing of it; r = 28 / 10."""
        values, helper = np.array([2.0] * 9 + [10.0]), np.array([[1.0]] * 9 + [[10.0]] + [[1.0]] * 10)
        drawn = np.arange(10)
        total = estimated(values, np.ones(20), helper, drawn)
        assert total.helpers == 0
        assert total.value == pytest.approx(56.0)
        assert ratio_of(total, known(np.ones(20), drawn), np.ones(20), drawn).error > 0.5

    def test_documents_for_an_error(self) -> None:
        assert documents_for(1.0, 100, 1000) == pytest.approx(100.0)
        assert documents_for(0.5, 100, 1000) == pytest.approx(1 / (0.001 + 0.25 * 0.009))
        assert documents_for(0.0, 100, 1000) == pytest.approx(1000.0)


class TestAlways:
    @given(st.integers(0, 10_000), st.integers(6, 40))
    def test_it_is_the_slow_twin(self, seed: int, count: int) -> None:
        nats, sizes, proxy = collection(seed, noise=0.5)
        drawn = draw(60, count, seed)
        total = estimated(nats[drawn], sizes, proxy[:, None], drawn)
        value, left, helps = twin.total(nats[drawn].tolist(), sizes.tolist(), proxy.tolist(), drawn.tolist())
        assert total.value == pytest.approx(value, rel=1e-9)
        assert nats[drawn] - total.fitted[drawn] == pytest.approx(left, abs=1e-6)
        assert total.helpers == helps

    @given(st.integers(0, 10_000), st.integers(8, 40))
    def test_the_error_is_that_of_leaving_each_document_out(self, seed: int, count: int) -> None:
        """Where the proxy is nearly the model; else a part of the slope counts, and is not estimated anew each time."""
        nats, sizes, proxy = collection(seed, noise=1e-5)
        drawn = draw(60, count, seed)
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
        spread = per_size(nats, sizes, helpers, draw(60, count, seed))
        assert spread.ratio == pytest.approx(nats.sum() / sizes.sum(), rel=1e-9)
        assert spread.error == pytest.approx(0.0, abs=1e-9)

    def test_two_proxies_that_are_one_count_as_one(self) -> None:
        nats, sizes, proxy = collection(3)
        drawn = draw(60, 20, 3)
        one, twice = (per_size(nats, sizes, np.column_stack([proxy] * times), drawn) for times in (1, 2))
        assert twice.ratio == pytest.approx(one.ratio, rel=1e-3)

    def test_a_larger_sample_holds_a_smaller_one(self) -> None:
        assert set(draw(1000, 20, 7)) < set(draw(1000, 30, 7))
        assert not np.array_equal(draw(1000, 20, 7), draw(1000, 20, 8))
        assert np.array_equal(draw(9, 9, 1), np.arange(9))

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
        drawn = draw(200, 15, number)
        spreads = [per_size(nats, sizes, one, drawn) for one in helpers]
        errors[number] = [spread.ratio - truth for spread in spreads]
        interval = spreads[0].interval()
        hits += interval.low <= truth <= interval.high
    assert 0.925 <= hits / 400 <= 0.98
    regressed, plain, useless = (errors**2).mean(axis=0)
    assert regressed < plain / 9
    assert useless < 1.03 * plain
