"""What tests start is stopped by an interrupt, however the suite was started, and never outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.programs import running

ENDLESS = [sys.executable, "-c", "print('here', flush=True)\nwhile True: pass"]


@pytest.fixture
def in_background() -> Iterator[None]:
    """As a shell starts what it puts in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
@pytest.mark.usefixtures("in_background")
def test_an_interrupt_stops_a_program() -> None:
    with running(ENDLESS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline().strip() == b"here"
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0


def test_a_test_that_fails_leaves_no_program() -> None:
    with pytest.raises(KeyError), running(ENDLESS, stdout=subprocess.DEVNULL) as process:
        raise KeyError
    assert process.poll() is not None
