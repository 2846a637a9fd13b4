"""A short load: every answer right, and nothing that grows. `python -m tests.load --minutes N` is the long one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra explore is not installed")

from tests.load.explorer import load_explorer
from tests.load.figures import Load
from tests.load.servers import load_clients

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says what a process holds")


@pytest.mark.parametrize("put", [partial(load_explorer, lines=500), load_clients])
def test_answers_stay_right_and_nothing_grows(put: Callable[..., Load], tmp_path: Path) -> None:
    load = put(tmp_path, seconds=3.0)
    assert load.wrong == []
    assert sum(load.asked.values()) > 50
    assert load.before is not None
    assert load.after is not None
    assert load.growth() < 40e6  # caches fill; a leak of a request's arrays is more
    assert load.after.files - load.before.files <= 20  # connections that are just being closed
    assert load.after.threads - load.before.threads <= 20
    assert load.after.temporary <= load.before.temporary + 20
