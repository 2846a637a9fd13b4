"""The line search against its slow twin: at every place, and against dense scans."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import nbest as twin

from lmgauge.tasks.nbest.line_search import Candidates, Search, Steps


@st.composite
def candidates(draw: st.DrawFn, features: int = 3) -> Candidates:
    """Lists of 1 to 6 hypotheses with small whole features, so that ties are common."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    count = sum(sizes)
    values = draw(st.lists(st.integers(-4, 4), min_size=features * count, max_size=features * count))
    errors = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    return Candidates(
        np.array(values, np.float64).reshape(features, count), np.append(0, np.cumsum(sizes)), np.array(errors, np.int64)
    )


def random_candidates(seed: int, lists: int = 40, size: int = 12, features: int = 4) -> Candidates:
    """Lists whose features have something to say about the errors."""
    generator = np.random.default_rng(seed)
    count = lists * size
    errors = generator.integers(0, 8, count)
    noise = generator.normal(size=(features, count))
    return Candidates(noise * 3 - errors * generator.uniform(0, 1, (features, 1)), np.arange(0, count + 1, size), errors)


def errors_at(steps: Steps, places: np.ndarray) -> list[int]:
    """The errors at places of a line."""
    return steps.errors[np.searchsorted(steps.changes, places, side="right")].tolist()


@given(one=candidates(), weights=st.tuples(*[st.integers(-3, 3)] * 3))
def test_the_choice_is_the_first_of_the_best(one: Candidates, weights: tuple[int, ...]) -> None:
    offsets = one.offsets.tolist()
    assert one.choose(np.array(weights, float)).tolist() == twin.best_of(one.features, offsets, weights)
    assert one.count(np.array(weights, float)) == twin.errors_at(one.features, offsets, one.errors.tolist(), weights)


@given(one=candidates(), weights=st.tuples(*[st.integers(-3, 3)] * 3), direction=st.tuples(*[st.integers(-2, 2)] * 3))
def test_errors_along_a_line_are_those_at_its_places(
    one: Candidates, weights: tuple[int, ...], direction: tuple[int, ...]
) -> None:
    begin, way = np.array(weights, float), np.array(direction, float)
    steps = one.along(begin, way)
    assert (np.diff(steps.changes) >= 0).all()
    # Crossings of lines with small whole coefficients are ratios of numbers up to 48, and so none of these places, at
    # which all totals are exact.
    places = np.array([-16385, -7169, -1025, -511, 1, 307, 1025, 2663, 16385]) / 1024
    assert errors_at(steps, places) == [one.count(begin + place * way) for place in places]


@given(one=candidates(), weights=st.tuples(*[st.integers(-3, 3)] * 3), direction=st.tuples(*[st.integers(-2, 2)] * 3))
def test_no_place_of_a_dense_scan_beats_the_least(
    one: Candidates, weights: tuple[int, ...], direction: tuple[int, ...]
) -> None:
    begin, way = np.array(weights, float), np.array(direction, float)
    place, fewest = one.along(begin, way).least(-3.0, 5.0)
    assert -3.0 <= place <= 5.0
    scan = np.arange(-3071, 5120, 20) / 1024
    assert fewest <= min(one.count(begin + x * way) for x in scan)
    if place:  # 0 may be a place where two lines cross: the first of equal hypotheses is chosen there
        assert one.count(begin + place * way) == fewest


@pytest.mark.parametrize("seed", range(3))
def test_on_many_lists_the_least_is_exact(seed: int) -> None:
    one = random_candidates(seed)
    begin, way = np.array([1.0, 0.5, 0.2, 0.0]), np.array([0.0, 1.0, -0.5, 2.0])
    steps = one.along(begin, way)
    scan = np.linspace(-20, 20, 2001)
    assert errors_at(steps, scan) == [one.count(begin + x * way) for x in scan]
    place, fewest = steps.least(-math.inf, math.inf)
    assert one.count(begin + place * way) == fewest == steps.errors.min()


def test_the_search_is_not_beaten_by_a_grid_and_does_not_depend_on_threads() -> None:
    one = random_candidates(7, features=3)
    search = Search(one, np.array([0.0, 0.0, -math.inf]), starts=6, seed=1)
    tuned = search.run(threads=1)
    grid = [np.array([1.0, a, b]) for a in np.linspace(0, 6, 61) for b in np.linspace(-6, 6, 61)]
    assert tuned.errors == one.count(tuned.weights) <= min(map(one.count, grid))
    again = search.run(threads=4)
    assert (again.weights == tuned.weights).all()
    assert again.lines == tuned.lines


@given(one=candidates(), seed=st.integers(0, 3))
def test_weights_stay_in_their_bounds_and_are_never_worse_than_the_first_place(one: Candidates, seed: int) -> None:
    tuned = Search(one, np.array([0.0, 0.0, -math.inf]), starts=1, seed=seed).run(threads=1)
    assert tuned.weights[0] == 1.0
    assert tuned.weights[1] >= 0.0
    assert tuned.errors == one.count(tuned.weights) <= one.count(np.array([1.0, 0.0, 0.0]))


def test_a_plateau_that_holds_0_is_left_alone_and_the_widest_is_taken() -> None:
    assert Steps(np.array([1.0]), np.array([2, 2])).least(-math.inf, math.inf) == (0.0, 2)
    assert Steps(np.array([1.0, 2.0, 3.0, 7.0]), np.array([4, 1, 2, 1, 3])).least(-9.0, 9.0) == (5.0, 1)
    assert Steps(np.array([1.0, 2.0]), np.array([4, 3, 1])).least(-math.inf, 1.5) == (1.25, 3)
    assert Steps(np.array([2.0, 2.0 + 1e-12]), np.array([4, 0, 3])).least(-1.0, 4.0)[1] == 3  # an interval of rounding


def test_one_hypothesis_a_list_has_nothing_to_choose() -> None:
    one = Candidates(np.ones((2, 3)), np.arange(4), np.array([1, 2, 3]))
    assert one.along(np.ones(2), np.ones(2)).changes.tolist() == []
    assert Search(one, np.zeros(2), starts=0, seed=0).run(threads=1).errors == 6
