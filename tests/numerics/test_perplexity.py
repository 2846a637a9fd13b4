"""Perplexity: figures by hand, zeros, extremes, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from lmgauge.errors import InputError, UsageError
from lmgauge.numerics import perplexity as room
from lmgauge.numerics.perplexity import (
    as_nats,
    bits_from_perplexity,
    bits_per_event,
    bits_to_nats,
    corpus_perplexity,
    cross_entropy,
    exact_sum,
    joint_log_probability,
    joint_probability,
    log10_to_nats,
    mean_segment_perplexity,
    nats_from_perplexity,
    nats_to_bits,
    nats_to_log10,
    perplexity,
    perplexity_from_bits,
    perplexity_from_nats,
    scientific_from_nats,
    score_sequence,
    weighted_branching_factor,
)

INF = math.inf


class TestConversions:
    def test_scalars_stay_python_floats(self) -> None:
        assert nats_to_bits(math.log(8)) == pytest.approx(3)
        assert bits_to_nats(3.0) == pytest.approx(math.log(8))
        assert nats_to_log10(math.log(1000)) == pytest.approx(3)
        assert log10_to_nats(3.0) == pytest.approx(math.log(1000))
        for value in (perplexity_from_nats(1.0), perplexity_from_bits(1.0), nats_from_perplexity(2.0)):
            assert type(value) is float

    def test_arrays_keep_their_shape(self) -> None:
        bits = np.array([[1.0, 2.0], [3.0, 6.0]])
        assert perplexity_from_bits(bits).tolist() == [[2.0, 4.0], [8.0, 64.0]]
        assert bits_from_perplexity(perplexity_from_bits(bits)).tolist() == bits.tolist()
        assert np.allclose(nats_from_perplexity(perplexity_from_nats(bits)), bits, rtol=1e-15)
        assert np.allclose(nats_to_bits(bits_to_nats(bits)), bits, rtol=1e-15)

    def test_ends_of_the_range(self) -> None:
        assert perplexity_from_nats(0.0) == 1.0
        assert perplexity_from_nats(INF) == INF
        assert perplexity_from_nats(1000.0) == INF  # beyond float64, without a warning
        assert perplexity_from_bits(1023.0) == 2.0**1023
        assert perplexity_from_bits(1024.0) == INF
        assert nats_from_perplexity(INF) == INF
        assert bits_from_perplexity(1.0) == 0.0

    @pytest.mark.parametrize("convert", [perplexity_from_nats, perplexity_from_bits])
    def test_negative_cross_entropy_is_refused(self, convert: Any) -> None:
        with pytest.raises(InputError, match=r"value 1 of 1 is -2\.0, negative: .* negate it"):
            convert(-2.0)
        with pytest.raises(InputError, match="value 2 of 2 is nan"):
            convert(np.array([1.0, math.nan]))

    @pytest.mark.parametrize("convert", [nats_from_perplexity, bits_from_perplexity])
    def test_impossible_perplexity_is_refused(self, convert: Any) -> None:
        with pytest.raises(InputError, match=r"is 0\.5, below 1"):
            convert(0.5)
        with pytest.raises(InputError, match="nan, not a number"):
            convert(math.nan)


class TestAsNats:
    def test_all_units_agree(self) -> None:
        wanted = [math.log(0.5), math.log(0.001)]
        assert as_nats([0.5, 0.001], "probability") == pytest.approx(wanted, rel=1e-15)
        assert as_nats(wanted, "nats").tolist() == wanted
        assert as_nats([math.log2(0.5), math.log2(0.001)], "bits") == pytest.approx(wanted, rel=1e-15)
        assert as_nats([math.log10(0.5), -3], "log10") == pytest.approx(wanted, rel=1e-15)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
    def test_any_real_type_is_computed_in_float64(self, dtype: Any) -> None:
        nats = as_nats(np.array([1, 0, 1], dtype=dtype), "probability")
        assert nats.dtype == np.float64
        assert nats.tolist() == [0.0, -INF, 0.0]

    def test_zero_is_minus_infinity_in_every_unit(self) -> None:
        assert as_nats([0.0, -0.0], "probability").tolist() == [-INF, -INF]
        for unit in ("nats", "bits", "log10"):
            assert as_nats([-INF], unit).tolist() == [-INF]

    def test_the_callers_array_is_left_alone(self) -> None:
        given = np.array([0.5, 0.0])
        as_nats(given, "probability")
        assert given.tolist() == [0.5, 0.0]

    @pytest.mark.parametrize(
        ("values", "unit", "message"),
        [
            ([0.5, 1.5], "probability", r"probability value 2 of 2 is 1\.5, above 1: divide percentages"),
            ([0.5, INF], "probability", "value 2 of 2 is inf, above 1"),
            ([-0.5], "probability", r"value 1 of 1 is -0\.5, below 0: .* nats, bits or log10"),
            ([0.5, math.nan, 0.5], "probability", "value 2 of 3 is nan, not a number: remove it"),
            ([-1.0, 0.1], "nats", r"log-probability value 2 of 2 is 0\.1, above 0, .* negate"),
            ([INF], "bits", "value 1 of 1 is inf, above 0"),
            ([math.nan], "log10", "value 1 of 1 is nan"),
            ([-1.7e308], "log10", r"value 1 of 1 is -1\.7e\+308, below -1e\+290.*-inf"),
            ([], "nats", "no log-probability value given"),
            ([[0.5]], "probability", r"must be a list of numbers, not of shape \(1, 1\)"),
            (0.5, "probability", r"must be a list of numbers, not of shape \(\)"),
            ([[0.5], [0.5, 0.1]], "probability", "must be a plain list of numbers"),
            (["0.5"], "probability", "must be real numbers, not str"),
            ([True], "probability", "must be real numbers, not bool"),
            ([0.5j], "probability", "must be real numbers, not complex"),
            ([None], "probability", "must be real numbers, not object"),
        ],
    )
    def test_refused(self, values: Any, unit: Any, message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            as_nats(values, unit)
        assert "\n" not in str(caught.value)

    def test_unknown_unit(self) -> None:
        with pytest.raises(UsageError, match="'log' is unknown: it is one of probability, nats, bits, log10"):
            as_nats([0.5], "log")  # type: ignore[arg-type]

    def test_the_unit_has_no_default(self) -> None:
        with pytest.raises(TypeError, match="unit"):
            perplexity([-1.0])  # type: ignore[call-arg]


class TestSequences:
    def test_numbers_by_hand(self) -> None:
        # 1/2 * 1/4 * 1/8 = 1/64: 6 bits over 3 events.
        given = [0.5, 0.25, 0.125]
        assert joint_probability(given, unit="probability") == pytest.approx(1 / 64, rel=1e-15)
        assert joint_log_probability(given, unit="probability") == pytest.approx(-6 * math.log(2), rel=1e-15)
        assert cross_entropy(given, unit="probability") == pytest.approx(2 * math.log(2), rel=1e-15)
        assert bits_per_event(given, unit="probability") == pytest.approx(2.0, rel=1e-15)
        assert perplexity(given, unit="probability") == pytest.approx(4.0, rel=1e-15)
        assert perplexity([-1, -2, -3], unit="bits") == pytest.approx(4.0, rel=1e-15)

    def test_certainty_is_one_and_zero_without_a_sign(self) -> None:
        assert perplexity([1.0, 1.0], unit="probability") == 1.0
        for number in (cross_entropy([1.0], unit="probability"), joint_log_probability([-0.0], unit="nats")):
            assert math.copysign(1.0, number) == 1.0

    def test_the_sum_is_exact(self) -> None:
        # A running float64 sum of these loses the small ones altogether.
        given = np.array([-1e16, *[-1.0] * 1000, -1e16])
        assert joint_log_probability(given, unit="nats") == -20_000_000_000_001_000.0
        assert sum(given.tolist()) != -20_000_000_000_001_000.0

    def test_the_sum_over_several_blocks(self) -> None:
        count = room.exact_sum.__globals__["SUM_BLOCK"] * 2 + 3
        assert exact_sum(np.full(count, 0.1)) == math.fsum([0.1] * count)

    def test_underflow_of_the_joint_probability_is_no_zero_probability(self) -> None:
        score = score_sequence(np.full(10_000, 0.5), unit="probability")
        assert score.joint_probability == 0.0
        assert score.zero_probability_events == 0
        assert score.log_probability == pytest.approx(-10_000 * math.log(2), rel=1e-15)
        assert score.perplexity == pytest.approx(2.0, rel=1e-15)


class TestZeros:
    def test_infinite_counted_and_finite_without(self) -> None:
        score = score_sequence([0.5, 0.0, 0.125, 0.0], unit="probability")
        assert score.perplexity == score.cross_entropy == score.bits_per_event == INF
        assert score.log_probability == -INF
        assert score.joint_probability == 0.0
        assert score.zero_probability_events == 2
        assert score.first_zero_events == (2, 4)
        # sqrt(2 * 8) over the two others
        assert score.perplexity_without_zeros == pytest.approx(4.0, rel=1e-15)

    def test_nothing_left(self) -> None:
        score = score_sequence([-INF, -INF], unit="bits")
        assert score.perplexity == INF
        assert score.perplexity_without_zeros is None
        assert "none left" in str(score)

    def test_only_the_first_ten_are_listed(self) -> None:
        score = score_sequence([0.0] * 25 + [1.0], unit="probability")
        assert score.zero_probability_events == 25
        assert score.first_zero_events == tuple(range(1, 11))

    def test_without_zeros_equals_perplexity_when_there_are_none(self) -> None:
        score = score_sequence([0.3, 0.4], unit="probability")
        assert score.perplexity_without_zeros == score.perplexity
        assert score.first_zero_events == ()


class TestSequenceScore:
    def test_to_dict_holds_plain_values(self) -> None:
        fields = score_sequence(np.array([0.5, 0.25], dtype=np.float32), unit="probability").to_dict()
        assert list(fields) == [
            "events",
            "joint_probability",
            "log_probability",
            "cross_entropy",
            "bits_per_event",
            "perplexity",
            "zero_probability_events",
            "perplexity_without_zeros",
            "first_zero_events",
        ]
        assert {type(value) for value in fields.values()} <= {int, float, tuple}
        assert json.loads(json.dumps(fields, allow_nan=False))["events"] == 2

    def test_str_names_each_number_with_its_unit(self) -> None:
        assert str(score_sequence([0.5, 0.0], unit="probability")).splitlines() == [
            "events: 2",
            "joint probability: 0",
            "log-probability: -inf nats",
            "cross-entropy: inf nats per event",
            "bits per event: inf bits",
            "perplexity: inf",
            "zero-probability events: 1",
            "perplexity without zeros: 2",
        ]

    def test_it_cannot_be_changed(self) -> None:
        score = score_sequence([0.5], unit="probability")
        with pytest.raises(AttributeError):
            score.perplexity = 1.0  # type: ignore[misc]


class TestScientific:
    @pytest.mark.parametrize(
        ("nats", "text"),
        [
            (0.0, "1"),
            (-INF, "0"),
            (math.log(0.36), "0.36"),
            (-1000 * math.log(10), "1e-1000"),
            (-1e4, "1.13548387e-4343"),  # e^-10000 = 1.135483865314736e-4343
            (-1e200, "about 10^-4.34294481903e+199"),
        ],
    )
    def test_also_below_float64(self, nats: float, text: str) -> None:
        assert scientific_from_nats(nats) == text


class TestBranching:
    def test_a_fair_and_a_loaded_die(self) -> None:
        assert weighted_branching_factor([1 / 6] * 6) == pytest.approx(6.0, rel=1e-14)
        # 0.99 for one face, 0.002 for each of five: H = -0.99 ln 0.99 - 0.01 ln 0.002 = 0.0720959
        loaded = weighted_branching_factor([0.99] + [0.002] * 5)
        assert loaded == pytest.approx(math.exp(-0.99 * math.log(0.99) - 0.01 * math.log(0.002)), rel=1e-14)
        assert 1.07 < loaded < 1.08

    def test_one_branch(self) -> None:
        assert weighted_branching_factor([0.0, 1.0]) == 1.0

    def test_contexts_weigh_by_how_often_they_occur(self) -> None:
        # Three times out of four a free choice of four (2 bits), once no choice: 1.5 bits.
        rows = [[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]
        assert weighted_branching_factor(rows, weights=[3, 1]) == pytest.approx(2**1.5, rel=1e-14)
        assert weighted_branching_factor(rows, weights=[3e300, 1e300]) == pytest.approx(2**1.5, rel=1e-14)
        assert weighted_branching_factor(rows, weights=[0, 7]) == 1.0

    @pytest.mark.parametrize(
        ("rows", "weights", "error", "message"),
        [
            ([[0.5, 0.5]], None, UsageError, "need weights"),
            ([0.5, 0.5], [1.0], UsageError, "weights belong to several contexts"),
            ([[0.5, 0.5], [0.5, 0.4]], [1, 1], InputError, "context 2 sums to 0.9"),
            ([[0.5, 0.5]], [1, 1], InputError, "2 weights for 1 contexts"),
            ([[0.5, 0.5]], [-1], InputError, "context weight 1 of 1 is -1.0"),
            ([[0.5, 0.5]], [INF], InputError, "context weight 1 of 1 is inf"),
            ([[0.5, 0.5]], [0], InputError, "all context weights are 0"),
            ([2, 3], None, InputError, "value 1 of 2 is 2.0, above 1: divide counts"),
            ([], None, InputError, "no branch distribution value given"),
        ],
    )
    def test_refused(self, rows: Any, weights: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            weighted_branching_factor(rows, weights=weights)


class TestSegments:
    def test_corpus_and_mean_differ(self) -> None:
        # Perplexities 2 and 8; together 1 + 9 bits over 4 events, 2^2.5.
        nats = [math.log(2), 9 * math.log(2)]
        assert mean_segment_perplexity(nats, [1, 3]) == pytest.approx(5.0, rel=1e-14)
        assert corpus_perplexity(nats, [1, 3]) == pytest.approx(2**2.5, rel=1e-14)

    def test_infinite_segments(self) -> None:
        assert mean_segment_perplexity([1.0, INF], [1, 1]) == INF
        assert corpus_perplexity([1.0, INF], [1, 1]) == INF

    def test_the_mean_of_large_perplexities_does_not_overflow(self) -> None:
        largest = perplexity_from_nats(709.0)
        assert mean_segment_perplexity([709.0] * 3, [1, 1, 1]) == pytest.approx(largest, rel=1e-14)

    @pytest.mark.parametrize("measure", [mean_segment_perplexity, corpus_perplexity])
    @pytest.mark.parametrize(
        ("nats", "events", "message"),
        [
            ([-1.0], [1], "segment nats value 1 of 1 is -1.0, negative: give minus"),
            ([1.0, math.nan], [1, 1], "segment nats value 2 of 2 is nan"),
            ([1e300], [1], "which no model computes"),
            ([1.0], [0], "segment event count 1 of 1 is 0.0, not a whole number"),
            ([1.0], [1.5], "segment event count 1 of 1 is 1.5"),
            ([1.0], [INF], "segment event count 1 of 1 is inf"),
            ([1.0], [1, 2], "1 nats values, 2 event counts"),
            ([], [], "no segment nats value given"),
        ],
    )
    def test_refused(self, measure: Any, nats: Any, events: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            measure(nats, events)


def test_exported_names_exist_and_are_sorted() -> None:
    assert room.__all__ == sorted(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)
