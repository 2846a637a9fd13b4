"""Laws of the metrics over random input: inequalities, identities, round trips, additivity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.information import (
    branching_factor,
    cross_entropy,
    entropy,
    jensen_shannon_divergence,
    kl_divergence,
    mutual_information,
    mutual_information_by_distance,
    mutual_information_of_pairs,
)
from lmgauge.numerics.perplexity import as_nats, mean_segment_perplexity, score_sequence
from lmgauge.numerics.units import (
    bits_from_perplexity,
    bits_to_nats,
    log10_to_nats,
    nats_from_perplexity,
    nats_to_bits,
    nats_to_log10,
    perplexity_from_bits,
    perplexity_from_nats,
)

LAST_DIGITS = 1e-12

probabilities = st.floats(0.0, 1.0)
positive_probabilities = st.floats(1e-300, 1.0)
log_probabilities = st.floats(-1e6, 0.0) | st.just(-math.inf)
counts = st.integers(0, 10**6)


@st.composite
def distributions(draw: st.DrawFn, size: int | None = None) -> list[float]:
    """Distributions with zeros, ties and very small parts."""
    n = draw(st.integers(1, 12)) if size is None else size
    part = st.just(0.0) | st.floats(1e-12, 1.0)
    parts = draw(st.lists(part, min_size=n, max_size=n).filter(any))
    total = math.fsum(parts)
    return [x / total for x in parts]


@st.composite
def two_distributions(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    n = draw(st.integers(1, 12))
    return draw(distributions(n)), draw(distributions(n))


@st.composite
def tables(draw: st.DrawFn) -> list[list[int]]:
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    row = st.lists(counts, min_size=columns, max_size=columns)
    return draw(st.lists(row, min_size=rows, max_size=rows).filter(lambda t: any(map(any, t))))


def close(value: float, wanted: float) -> bool:
    return value == wanted or math.isclose(value, wanted, rel_tol=LAST_DIGITS, abs_tol=LAST_DIGITS)


# --- divergences ------------------------------------------------------------------------------------------


@given(two_distributions())
def test_gibbs_inequality(pair: tuple[list[float], list[float]]) -> None:
    p, q = pair
    assert kl_divergence(p, q, unit="nats") >= 0.0
    assert cross_entropy(p, q, unit="nats") >= entropy(p, unit="nats") - LAST_DIGITS


@given(two_distributions())
def test_cross_entropy_is_entropy_plus_divergence(pair: tuple[list[float], list[float]]) -> None:
    p, q = pair
    whole = entropy(p, unit="bits") + kl_divergence(p, q, unit="bits")
    assert close(cross_entropy(p, q, unit="bits"), whole)


@given(distributions())
def test_entropy_lies_between_none_and_the_uniform(p: list[float]) -> None:
    assert 0.0 <= entropy(p, unit="nats") <= math.log(len(p)) + LAST_DIGITS
    assert 1.0 <= branching_factor(p) <= len(p) * (1 + LAST_DIGITS)
    assert kl_divergence(p, p, unit="nats") == 0.0


@given(two_distributions())
def test_jensen_shannon_is_symmetric_bounded_and_finite(pair: tuple[list[float], list[float]]) -> None:
    p, q = pair
    there, back = (jensen_shannon_divergence(*order, unit="bits") for order in ((p, q), (q, p)))
    assert there == back
    assert 0.0 <= there <= 1.0
    middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    halves = [kl_divergence(side, middle, unit="bits") / 2 for side in (p, q)]
    assert close(there, sum(halves))


# --- conversions ------------------------------------------------------------------------------------------


@given(st.floats(-1e12, 1e12))
def test_units_there_and_back(x: float) -> None:
    assert math.isclose(bits_to_nats(nats_to_bits(x)), x, rel_tol=1e-15, abs_tol=1e-300)
    assert math.isclose(log10_to_nats(nats_to_log10(x)), x, rel_tol=1e-15, abs_tol=1e-300)


@given(st.floats(0.0, 700.0))
def test_the_chain_of_perplexity(nats: float) -> None:
    figure = perplexity_from_nats(nats)
    assert close(nats_from_perplexity(figure), nats)
    assert close(bits_from_perplexity(figure), nats_to_bits(nats))
    assert math.isclose(perplexity_from_bits(nats_to_bits(nats)), figure, rel_tol=1e-12)


@given(st.lists(positive_probabilities, min_size=1))
def test_the_unit_of_the_input_does_not_matter(given_: list[float]) -> None:
    wanted = as_nats(given_, "probability")
    logs: list[tuple[Any, Any]] = [("nats", math.log), ("bits", math.log2), ("log10", math.log10)]
    for unit, log in logs:
        assert np.allclose(as_nats([log(p) for p in given_], unit), wanted, rtol=1e-14, atol=1e-15)


# --- sequences --------------------------------------------------------------------------------------------


@given(st.lists(probabilities, min_size=1))
def test_every_number_of_a_sequence_fits_the_others_and_none_is_nan(given_: list[float]) -> None:
    score = score_sequence(given_, unit="probability")
    figures = [x for x in score.to_dict().values() if isinstance(x, float)]
    assert not any(map(math.isnan, figures))
    assert score.perplexity >= 1.0
    assert score.zero_probability_events == given_.count(0.0)
    assert math.isinf(score.perplexity) == bool(score.zero_probability_events) or score.cross_entropy > 709
    assert close(score.cross_entropy * score.events, -score.log_probability)
    if score.zero_probability_events < score.events:
        assert score.perplexity_without_zeros is not None
        assert score.perplexity_without_zeros <= score.perplexity


@given(st.lists(log_probabilities, min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_events_changes_no_bit(logs: list[float], random: Any) -> None:
    shuffled = random.sample(logs, len(logs))
    left, right = score_sequence(logs, unit="nats"), score_sequence(shuffled, unit="nats")
    assert left.log_probability == right.log_probability
    assert left.perplexity == right.perplexity


@given(st.lists(st.lists(log_probabilities, min_size=1), min_size=1))
def test_sums_add_up_over_any_partition(parts: list[list[float]]) -> None:
    everything = [x for part in parts for x in part]
    whole = score_sequence(everything, unit="nats")
    sums = [score_sequence(part, unit="nats").log_probability for part in parts]
    assert math.isclose(exact_sum(np.array(sums)), whole.log_probability, rel_tol=1e-14, abs_tol=1e-300)
    figure = perplexity_from_nats((0.0 - exact_sum(np.array(sums))) / len(everything))
    assert math.isclose(figure, whole.perplexity, rel_tol=1e-9)


@given(st.lists(st.floats(0.0, 500.0), min_size=1), st.integers(1, 100))
def test_segments_of_one_length_average_above_the_corpus(nats: list[float], events: int) -> None:
    """Jensen's inequality: the mean of exponentials is at least the exponential of the mean."""
    lengths = [events] * len(nats)
    assert mean_segment_perplexity(nats, lengths) >= perplexity_from_nats(math.fsum(nats) / sum(lengths)) * (1 - LAST_DIGITS)


# --- mutual information -----------------------------------------------------------------------------------


@given(tables())
def test_mutual_information_is_the_divergence_from_independence(table: list[list[int]]) -> None:
    joint = np.array(table) / np.sum(table)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    found = mutual_information(table, unit="nats")
    assert found >= 0.0
    assert close(found, kl_divergence(joint.ravel(), product.ravel(), unit="nats"))


@given(tables())
def test_mutual_information_by_entropies(table: list[list[int]]) -> None:
    """I(X; Y) = H(X) + H(Y) - H(X, Y) = I(Y; X), and at most either entropy."""
    joint = np.array(table) / np.sum(table)
    of_x, of_y = (entropy(joint.sum(axis=axis), unit="bits") for axis in (1, 0))
    found = mutual_information(table, unit="bits")
    assert close(found, of_x + of_y - entropy(joint.ravel(), unit="bits"))
    assert close(found, mutual_information(np.array(table).T, unit="bits"))
    assert found <= min(of_x, of_y) + LAST_DIGITS


@given(tables())
def test_dense_and_sparse_counts_agree(table: list[list[int]]) -> None:
    cells = {(i, j): count for i, row in enumerate(table) for j, count in enumerate(row)}
    for correction in ("none", "miller-madow"):
        options: dict[str, Any] = {"unit": "nats", "correction": correction}
        dense = mutual_information(table, **options)
        assert close(mutual_information(cells, **options), dense)
        assert close(mutual_information({k: c for k, c in cells.items() if c}, **options), dense)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.data())
def test_pairs_at_a_distance_are_pairs(ids: list[int], data: st.DataObject) -> None:
    distance = data.draw(st.integers(1, len(ids) - 1))
    found = mutual_information_by_distance(ids, [distance], unit="nats")[0]
    assert found >= 0.0
    direct = mutual_information_of_pairs(ids[:-distance], ids[distance:], unit="nats")
    assert found == pytest.approx(direct, rel=1e-12, abs=1e-14)


@given(st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1), st.integers(1, 5))
def test_boundaries_leave_only_pairs_within_segments(segments: list[list[int]], distance: int) -> None:
    pairs = [pair for s in segments for pair in zip(s, s[distance:], strict=False)]
    if not pairs:
        return
    found = mutual_information_by_distance(
        [token for s in segments for token in s],
        [distance],
        unit="bits",
        segment_lengths=[len(s) for s in segments],
    )
    first, second = zip(*pairs, strict=True)
    direct = mutual_information_of_pairs(first, second, unit="bits")
    assert found[0] == pytest.approx(direct, rel=1e-12, abs=1e-14)
