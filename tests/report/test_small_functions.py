"""What small functions of `report` give for an example each."""

from __future__ import annotations

from lmgauge.report import diagnosis, formats


def test_formats() -> None:
    assert formats.p_equals(0.5) == "p = 0.5000"
    assert formats.p_equals(0) == "p < 0.0001"
    assert formats.share_of(1, 2) == "50.00 %"
    assert formats.share_of(1, 10**6) == "< 0.01 %"
    assert formats.share_of(0, 0) == "0.00 %"
    assert formats.names_in_brief(["a", "b", "c", "d"]) == "a, b, c and 1 more"


def test_ladder() -> None:
    best = diagnosis.Baseline("xz", "LZMA", 16.0, 2.0)
    assert diagnosis.verdict_on_bound("kn3", diagnosis.LowerBound(0.5), best).level == "unknown"
