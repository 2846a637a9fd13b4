"""Perplexity: figures by hand, zeros, extremes, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.perplexity import as_nats, mean_segment_perplexity, score_sequence
from lmgauge.numerics.units import perplexity_from_nats

INF = math.inf


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
            score_sequence([-1.0])  # type: ignore[call-arg]


class TestSequences:
    def test_numbers_by_hand(self) -> None:
        # 1/2 * 1/4 * 1/8 = 1/64: 6 bits over 3 events.
        given = [0.5, 0.25, 0.125]
        score = score_sequence(given, unit="probability")
        assert score.joint_probability == pytest.approx(1 / 64, rel=1e-15)
        assert score.log_probability == pytest.approx(-6 * math.log(2), rel=1e-15)
        assert score.cross_entropy == pytest.approx(2 * math.log(2), rel=1e-15)
        assert score.bits_per_event == pytest.approx(2.0, rel=1e-15)
        assert score.perplexity == pytest.approx(4.0, rel=1e-15)
        assert score_sequence([-1, -2, -3], unit="bits").perplexity == pytest.approx(4.0, rel=1e-15)

    def test_certainty_is_one_and_zero_without_a_sign(self) -> None:
        assert score_sequence([1.0, 1.0], unit="probability").perplexity == 1.0
        certain, signed = score_sequence([1.0], unit="probability"), score_sequence([-0.0], unit="nats")
        for number in (certain.cross_entropy, certain.log_probability, signed.cross_entropy, signed.log_probability):
            assert math.copysign(1.0, number) == 1.0

    def test_the_sum_is_exact(self) -> None:
        # A running float64 sum of these loses the small ones altogether.
        given = np.array([-1e16, *[-1.0] * 1000, -1e16])
        assert score_sequence(given, unit="nats").log_probability == -20_000_000_000_001_000.0
        assert np.cumsum(given)[-1] != -20_000_000_000_001_000.0

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

    def test_it_cannot_be_changed(self) -> None:
        score = score_sequence([0.5], unit="probability")
        with pytest.raises(AttributeError):
            score.perplexity = 1.0  # type: ignore[misc]


class TestSegments:
    def test_corpus_and_mean_differ(self) -> None:
        # Perplexities 2 and 8; together 1 + 9 bits over 4 events, 2^2.5.
        nats = [math.log(2), 9 * math.log(2)]
        assert mean_segment_perplexity(nats, [1, 3]) == pytest.approx(5.0, rel=1e-14)
        assert perplexity_from_nats(sum(nats) / 4) == pytest.approx(2**2.5, rel=1e-14)

    def test_infinite_segments(self) -> None:
        assert mean_segment_perplexity([1.0, INF], [1, 1]) == INF

    def test_the_mean_of_large_perplexities_does_not_overflow(self) -> None:
        largest = perplexity_from_nats(709.0)
        assert mean_segment_perplexity([709.0] * 3, [1, 1, 1]) == pytest.approx(largest, rel=1e-14)

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
    def test_refused(self, nats: Any, events: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            mean_segment_perplexity(nats, events)
