"""What small functions of `work` give for an example each."""

from __future__ import annotations

from lmgauge.work import countdown


def test_countdown() -> None:
    assert countdown.rounded_time(12.3) == "12 s"
    assert countdown.rounded_time(3600) == "60 min"
    assert countdown.rounded_time(9000) == "2.5 h"
