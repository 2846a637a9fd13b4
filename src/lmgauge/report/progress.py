"""What long commands say on standard error while they work; light, as short commands load it too."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmgauge.base.escaping import visible

if TYPE_CHECKING:
    from lmgauge.base.progress import Listener

_FIRST_LINE_SECONDS, _NEXT_LINE_SECONDS = 10.0, 30.0


class _NowAndThen:
    """Says what is being done in plain lines: nothing at first, so that short commands are quiet, then every so often."""

    def __init__(self) -> None:
        self._text, self._began, self._over = "working", time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def update(self, text: str) -> None:
        self._text = text

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        wait = _FIRST_LINE_SECONDS
        while not self._over.wait(wait):
            wait = _NEXT_LINE_SECONDS
            with contextlib.suppress(OSError, ValueError):  # nobody reads standard error
                print(
                    f"lmgauge: {visible(self._text)} ({time.monotonic() - self._began:.0f} s)", file=sys.stderr, flush=True
                )


@contextmanager
def progress(*, in_lines: bool = False) -> Iterator[Listener]:
    """Yield what says on standard error what is being done: on one line, or on a new one now and then in a pipe."""
    # in_lines: also on a terminal, as where rows on standard output are seen on the same one.
    if in_lines or not sys.stderr.isatty():
        lines = _NowAndThen()
        try:
            yield lines.update
        finally:
            lines.end()
        return
    from rich.console import Console
    from rich.text import Text as Line

    with Console(stderr=True).status("starting …") as status:
        yield lambda text: status.update(Line(f"{visible(text)} …"))
