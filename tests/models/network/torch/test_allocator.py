"""Memory settings that hold for a computation and not after it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from lmgauge.models.network.torch import allocator as memory
from lmgauge.models.network.torch.allocator import kept_pages


def test_settings_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, name: int, value: int) -> int:
            calls.append((name, value))
            return 1

    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    with kept_pages():
        assert calls == [(-3, 1 << 30), (-1, 1 << 30)]
    assert calls[2:] == [(-3, 128 << 10), (-1, 128 << 10)]


def test_elsewhere_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("no such library"))
    with kept_pages():
        assert np.ones(1 << 20).sum() == 1 << 20
