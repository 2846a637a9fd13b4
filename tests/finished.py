"""What a coroutine comes to, also where the browser of the tests has a loop of its own in this thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that runs in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
