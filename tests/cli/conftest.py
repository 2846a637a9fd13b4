"""What all commands have in common when tests run them."""

from __future__ import annotations

import pytest

from lmgauge.report import progress


@pytest.fixture(autouse=True)
def quiet_however_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a short command may take longer than commands are quiet in a pipe."""
    monkeypatch.setattr(progress, "_FIRST_LINE_SECONDS", 3600.0)
