"""Conversions of units: figures by hand, the ends of the range, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lmgauge.base.errors import InputError
from lmgauge.numerics.units import (
    bits_from_perplexity,
    bits_to_nats,
    log10_to_nats,
    nats_from_perplexity,
    nats_to_bits,
    nats_to_log10,
    perplexity_from_bits,
    perplexity_from_nats,
    perplexity_ratio_from_nats,
    scientific_from_nats,
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

    def test_ratios_of_perplexities(self) -> None:
        assert perplexity_ratio_from_nats(math.log(8) - math.log(2)) == pytest.approx(4, rel=1e-15)
        assert perplexity_ratio_from_nats(-INF) == 0.0
        assert perplexity_ratio_from_nats(1000.0) == perplexity_ratio_from_nats(INF) == INF


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
