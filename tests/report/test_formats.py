"""How numbers are written, infinite and undefined ones too."""

from __future__ import annotations

import math

import pytest

from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import Column, Number, Range, between, numbers
from lmgauge.report.formats import FORMS, in_column, in_words, number, p_value


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Number(1234.5678, 2), "1,234.57"),
        (Number(1e8, 2), "100,000,000.00"),
        (Number(1e13, 2), "1.00e+13"),
        (Range(8_693_839.02, 1.4e7, 2), "8,693,839.02 – 14,000,000.00"),
        (Range(1.0, 1.4e13, 2), "1.00e+00 – 1.40e+13"),
        (Range(-2e13, 5.0, 2, "signed"), "-2.00e+13 .. +5.00e+00"),
        (Number(0.0012, 4), "0.0012"),
        (Number(0.00028, 4), "0.000280"),
        (Number(0.0000028, 4), "0.00000280"),
        (Number(2.8e-13, 4), "2.80e-13"),
        (Number(0.0, 4), "0.0000"),
        (Number(0.0075, 2), "0.00750"),
        (Number(0.012, 2), "0.01"),
        (Number(0.4, 0), "0.400"),
        (Number(-0.00002, 4, "signed"), "-0.0000200"),
        (Range(-0.00001, 0.25, 4, "signed"), "-0.00001 .. +0.2500"),
        (Range(-1e-12, 0.25, 4, "signed"), "0.0000 .. +0.2500"),
        (Range(1.0, math.inf, 2), "1.00 – ∞"),
        (Number(None, 2, "percent"), "–"),
        (Number(math.inf, 2, "percent"), "∞"),
        (Number(-math.inf, 2), "-∞"),
        (Number(math.inf, 2, "signed"), "+∞"),
        (Number(math.nan, 2, "count"), "nan"),
        (Number(LowerBound(1.5), 1), "≥ 1.5"),
        (Number(0.001, form="p", significant=True), "* 0.0010"),
        (Number(0.00001, form="p"), "< 0.0001"),
        (Number(1.1, 2, "change"), "+10.00 %"),
        (Number(11.6046, 2, "change"), "+1,060.46 %"),
        (Number(0.99996, 2, "change"), "-0.004 %"),
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


def test_small_figures_keep_two_that_count() -> None:
    values = [2.8e-6, 0.0000299, 0.0996, 0.26, 1.04, 12.34, 1234.5, 4.4e-16, 0.0, -0.0314, 2e12]
    shown = ["0.0000028", "0.000030", "0.100", "0.26", "1.0", "12", "1,234", "4.4e-16", "0", "-0.031", "2.0e+12"]
    assert [in_words(Number(value, 2, "figures")) for value in values] == shown
    assert in_words(Range(2.8e-6, 0.26, 2, "figures")) == "0.00000280 – 0.260"  # ends have one more
    assert in_words(Number(math.inf, 2, "figures")) == "∞"


def test_intervals_that_say_nothing_are_dashes() -> None:
    assert [in_words(between(ends)) for ends in (None, (math.inf, math.inf))] == ["–", "–"]
    assert (number(None), p_value(None)) == ("–", "–")


def test_numbers_of_a_column_are_in_one_form() -> None:
    def shown(column: Column) -> list[str]:
        return [in_column(cell) for cell in column.cells if isinstance(cell, Number)]

    assert shown(numbers("KL", [0.00000280, 9.93e-07, 0.5], 6)) == ["0.000002800", "0.000000993", "0.500000000"]
    assert shown(numbers("KL", [2.8e-12, 0.5, 0.0, None], 6)) == ["2.80e-12", "5.00e-01", "0", "–"]
    assert shown(numbers("difference", [0.0800, -0.00002], 4, "signed")) == ["+0.0800", "-0.00002"]
    assert shown(numbers("bits each", [12.5, 0.004], 2)) == ["12.50", "0.00"]
    assert shown(numbers("perplexity", [736.214, 8_693_839.02, 1.1e7], 2)) == ["736.21", "8,693,839.02", "11,000,000.00"]
    shares = Column("", [Number(0.00001, 2, "percent"), Number(2e-9, 4), Range(1e-9, 2e-9, 4)]).cells
    assert [in_column(cell) for cell in shares if not isinstance(cell, str)] == [
        "< 0.01 %",
        "2.00e-09",
        "1.00e-09 – 2.00e-09",
    ]
