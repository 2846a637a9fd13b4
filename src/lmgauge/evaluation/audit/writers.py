"""What the audit asks of a model that gives every text a probability: to write events as text, step by step."""

# Such a model has a method `writer()`, which returns a `Writer` of one segment; `writer(text, begin)` goes on behind a text
# whose last event begins at that byte. `SpelledModel` has it. A decoder reads each step from a code, and so gets the
# bytes of the text; a check knows the text and asks what each step says of it.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

NO_WRITER = "rows say that unseen words are spelled, but the model has no method `writer` that says how"


class Step(Protocol):
    """What may come next inside an event."""

    @property
    def part(self) -> str: ...
    @property
    def logprob(self) -> NDArray[np.float64]: ...
    @property
    def wanted(self) -> int: ...


class Writer(Protocol):
    """Writes the events of a segment as its text, step by step; `SpelledModel.writer()` returns one."""

    @property
    def text(self) -> bytes | bytearray: ...

    def write(self, token: int, choose: Callable[[Any], int], text: bytes | None = None) -> bytes:
        """Write an event, and return its bytes."""
        # choose: takes each step, with log-probabilities float64 [choices], nats, and returns a choice.
        ...
