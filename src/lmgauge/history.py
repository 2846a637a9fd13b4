"""What a model has seen of a text that grows event by event: the context that `log_distribution` takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_ROOM = 1 << 10


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
