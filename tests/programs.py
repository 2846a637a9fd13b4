"""Programs that tests start, talk to and stop."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def running(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program that an interrupt stops, and that has ended when the block has, whatever happens in it.

    A shell has programs in the background ignore interrupts (SIGINT), and what they start inherits that: a suite in the
    background would start programs that never stop.

    Args:
        command: the program and its arguments.
        options: of `subprocess.Popen`.
    """
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen([str(part) for part in command], **options)
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def skipped_after_minutes(minutes: int, program: str) -> Iterator[None]:
    """Skip the test in the block, or that this decorates, where the machine does not serve a program that it needs in time.

    Args:
        minutes: how long the block may take.
        program: that is waited for.
    """
    expired = False

    def interrupt(*frame: object) -> None:
        nonlocal expired
        expired = True
        raise KeyboardInterrupt  # Ray swallows every other error that is raised while it waits

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60 * minutes)
    try:
        yield
    except KeyboardInterrupt:
        if not expired:
            raise
        pytest.skip(f"{program} did not answer within {minutes} minutes")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
