"""What long commands say on standard error while they work: little in a pipe, one line in a terminal."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import pytest

from lmgauge.base.escaping import visible
from lmgauge.report import progress as progress_module
from lmgauge.report.progress import progress

HOSTILE = "a\x1b[31m\x07\x9b1m\u202e\nb[/bold]"


def test_short_work_is_quiet_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as status:
        status("working hard")
    assert capsys.readouterr().err == ""


def test_long_work_says_now_and_then_what_it_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_FIRST_LINE_SECONDS", 0.05)
    monkeypatch.setattr(progress_module, "_NEXT_LINE_SECONDS", 0.1)
    with progress() as status:
        status(f"proof: coding event 1 of 2 (50 %) {HOSTILE}")
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 6
    assert set(lines) == {f"lmgauge: proof: coding event 1 of 2 (50 %) {visible(HOSTILE)} (0 s)"}
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_no_line_is_drawn_over_rows_that_a_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delattr("rich.console.Console.status")
    with progress(in_lines=True) as listener:
        listener("loading")


def test_errors_end_the_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_FIRST_LINE_SECONDS", 0.05)
    with pytest.raises(KeyError), progress():
        raise KeyError
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_the_progress_line_of_a_terminal_takes_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Status:
        def update(self, text: Any) -> None:
            shown.append(text)

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rich.console.Console.status", lambda console, text: nullcontext(Status()))
    with progress() as listener:
        listener(HOSTILE)
    assert shown[0].plain == f"{visible(HOSTILE)} …"
