"""How numbers are written, infinite and undefined ones too."""

from __future__ import annotations

import math

import pytest

from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import Number, Range, between
from lmgauge.report.formats import FORMS, in_words, number, p_value


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Number(1234.5678, 2), "1,234.57"),
        (Number(1e8, 2), "1e+08"),
        (Range(8_693_839.02, 1.4e7, 2), "8.7e+06 – 1.4e+07"),
        (Range(-2e7, 5.0, 2, "signed"), "-2e+07 .. +5"),
        (Range(1.0, math.inf, 2), "1.00 – ∞"),
        (Number(0.00001, 4), "1e-05"),
        (Number(None, 2, "percent"), "–"),
        (Number(math.inf, 2, "percent"), "∞"),
        (Number(-math.inf, 2), "-∞"),
        (Number(math.inf, 2, "signed"), "+∞"),
        (Number(math.nan, 2, "count"), "nan"),
        (Number(LowerBound(1.5), 1), "≥ 1.5"),
        (Number(0.001, form="p", significant=True), "* 0.0010"),
        (Number(0.00001, form="p"), "< 0.0001"),
        (Number(1.1, 2, "change"), "+10.00 %"),
        (Number(2.5, 2, "times"), "2.50 ×"),
        (Number(-1.25, 1, "deviation"), "-1.2 σ"),
        (Number(2.5, form="rank"), "2.5"),
        (Number(1, form="places"), "+1"),
        (Range(-0.5, 0.25, 2, "signed"), "-0.50 .. +0.25"),
        (Range(1.0, math.inf, 1), "1.0 – ∞"),
    ],
)
def test_each_rule(cell: Number | Range, shown: str) -> None:
    assert in_words(cell) == shown


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 1e300, math.inf, math.nan])
def test_every_rule_takes_every_number(form: str, value: float) -> None:
    assert in_words(Number(value, 2, form)) != ""  # type: ignore[arg-type]


def test_large_counts_keep_all_digits() -> None:
    assert in_words(Number(12_345_678_901_234_567_890, form="count")) == "12,345,678,901,234,567,890"


def test_intervals_that_say_nothing_are_dashes() -> None:
    assert [in_words(between(ends)) for ends in (None, (math.inf, math.inf))] == ["–", "–"]
    assert (number(None), p_value(None)) == ("–", "–")
