"""What a model has seen of a text that grows event by event: the context that `log_distribution` takes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

_FIRST_ROOM = 1 << 10
LineEnds = Literal["event", "text", "unscored"]


def line_ends(context_policy: str) -> LineEnds:
    """What becomes of the ends of lines: an event `</s>`, the newline that they are, or nothing, as `end=...` tells."""
    if "end=newline" in context_policy:
        return "text"
    return "unscored" if "end=none" in context_policy else "event"


def scores_first_tokens(context_policy: str) -> bool:
    """Whether the first token of a context has a row like all others, so that contexts can be had from the rows."""
    return "first=unscored" not in context_policy


def runs_on(context_policy: str) -> bool:
    """Whether a context runs on over the ends of segments: `stream`, with whatever a model adds to it."""
    return context_policy.startswith("stream")


class History:
    """Ids before the next event.

    Args:
        bos: id of `<s>`, which every history begins with.
        running: whether it runs on over the ends of segments.
    """

    def __init__(self, bos: int, *, running: bool) -> None:
        # An array that doubles: a list would be turned into an array again at every event.
        self._ids = np.full(_FIRST_ROOM, bos, np.uint32)
        self._used, self._running = 1, running

    def ids(self) -> NDArray[np.uint32]:
        """uint32 [n], `<s>` first; a view that holds until the history changes."""
        return self._ids[: self._used]

    def add(self, token: int) -> None:
        """One event more."""
        if self._used == len(self._ids):
            self._ids = np.concatenate((self._ids, np.empty_like(self._ids)))
        self._ids[self._used] = token
        self._used += 1

    def end_segment(self) -> None:
        """The next segment begins: nothing before it is seen, unless the history runs on."""
        if not self._running:
            self._used = 1
