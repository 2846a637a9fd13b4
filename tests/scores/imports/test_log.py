"""Numbers and tokens of a log, and what is said of them."""

from __future__ import annotations

import math

import pytest

from lmgauge.base.choices import LogUnit
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import number, shown
from lmgauge.scores.imports.log import Log, printable


@pytest.mark.parametrize(
    ("unit", "value", "nats"), [("nats", -2, -2.0), ("bits", "-1", -math.log(2)), ("log10", "-3", math.log(1e-3))]
)
def test_units(unit: LogUnit, value: object, nats: float) -> None:
    assert Log(unit).nats(value, "log") == pytest.approx(nats, rel=1e-15)


def test_what_is_no_logarithm_of_a_probability() -> None:
    log = Log("nats")
    assert log.nats(1e-5, "log") == 0.0, "programs round a certain event to a little more than probability one"
    assert log.nats("-inf", "log") == -math.inf
    for value in (0.1, "nan", 10**400, "inf"):
        with pytest.raises(InputError, match="log: a log-probability is"):
            log.nats(value, "log")
    for value in (None, True, "x", [1]):
        with pytest.raises(InputError, match=r"log: .* is not a number"):
            number(value, "log")


def test_a_program_that_says_its_unit_takes_no_other() -> None:
    Log("log10").states("log10", "KenLM")
    with pytest.raises(UsageError, match="--log-unit bits: KenLM writes log10; leave the option out"):
        Log("bits").states("log10", "KenLM")


def test_remarks_are_counted() -> None:
    log = Log()
    log.remark("{:,} of these", 1000)
    log.remark("{:,} of these")
    log.remark("{:,} of those", 0)
    assert log.notes() == ["1,001 of these"]


def test_tokens_are_harmless() -> None:
    assert printable("a\ud83d") == "a\ufffd"
    assert printable(b"\xff") == "\ufffd"
    assert "\x1b" not in shown("\x1b[31mred" + "x" * 10**6)
    assert len(shown("x" * 10**6)) < 80
