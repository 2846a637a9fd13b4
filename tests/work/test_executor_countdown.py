"""What is said of the time left."""

from __future__ import annotations

import pytest

from lmgauge.base.progress import listening
from lmgauge.work import executor
from lmgauge.work.executor import Countdown, rounded_time


def test_time_left_is_estimated_from_the_tasks_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 104.0, 106.0, 109.0])
    monkeypatch.setattr(executor.time, "monotonic", lambda: next(clock))
    lines: list[str] = []
    with listening(lines.append):
        count = Countdown("counting", 8, done=5)
        for _ in range(3):
            count.step()
    assert lines == [
        "counting, 5 of 8",
        "counting, 6 of 8, about 8 s left",  # 4 s for one task, two are left
        "counting, 7 of 8, about 3 s left",  # 6 s for two tasks
        "counting, 8 of 8",
    ]


def test_times_are_rounded_to_one_unit() -> None:
    assert [rounded_time(seconds) for seconds in (12.3, 3600, 9000)] == ["12 s", "60 min", "2.5 h"]
