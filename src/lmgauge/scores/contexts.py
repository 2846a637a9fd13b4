"""The tokens before an event: what `log_distribution` is asked about."""

# `EventContexts` gives them for the events of a batch, a segment or a whole text, by number or one after another;
# `GrowingContext` for a text that is drawn or decoded token by token.

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

_FIRST_ROOM = 1 << 10


class EventContexts:
    """The ids before each event of consecutive segments."""

    # ids: uint32 [n], the events, segment after segment; segment_events: int [segments], events of each segment; before:
    # uint32, what came before these segments where a context runs on, `<s>` first; None at the beginning; given_tokens:
    # uint32 [m] and int64 [segments], the ids that are given before each segment, and how many of each; None for none.

    def __init__(
        self,
        ids: NDArray[np.uint32],
        segment_events: ArrayLike,
        *,
        bos: int,
        runs_on: bool,
        before: NDArray[np.uint32] | None = None,
        given_tokens: tuple[NDArray[np.uint32], NDArray[np.int64]] | None = None,
    ) -> None:
        begin = np.array([bos], np.uint32)
        if runs_on:
            before = begin if before is None else before
            self.ids = np.concatenate((before, ids))
            self._begins, self._ends = np.zeros(len(ids), np.int64), len(before) + np.arange(len(ids))
            return
        # Each segment gets an <s> of its own: [5 6 2 7 2] of 3 + 2 events becomes [<s> 5 6 2 <s> 7 2].
        counts = np.asarray(segment_events, np.int64)
        firsts = np.cumsum(counts) - counts
        shown, shown_counts = (begin[:0], np.zeros(len(counts), np.int64)) if given_tokens is None else given_tokens
        shown = np.insert(shown, np.cumsum(shown_counts) - shown_counts, bos)
        shown_counts = shown_counts + 1
        self.ids = np.insert(ids, np.repeat(firsts, shown_counts), shown)
        offsets = np.cumsum(shown_counts)  # ids that are not events, up to each segment's first event
        self._begins = np.repeat(firsts + offsets - shown_counts, counts)
        self._ends = np.arange(len(ids)) + np.repeat(offsets, counts)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, event: int) -> NDArray[np.uint32]:
        # Ids before an event, uint32 [n], `<s>` first: a view, not a copy.
        return self.ids[self._begins[event] : self._ends[event]]

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        # Ids before each event, as `[event]` gives them.
        for begin, end in zip(self._begins.tolist(), self._ends.tolist(), strict=True):
            yield self.ids[begin:end]


class GrowingContext:
    """The ids before the next event of a text that comes token by token."""

    def __init__(self, bos: int, *, runs_on: bool) -> None:
        # An array that doubles: a list would be turned into an array again at every event.
        self._ids = np.full(_FIRST_ROOM, bos, np.uint32)
        self._used, self._runs_on = 1, runs_on

    def ids(self) -> NDArray[np.uint32]:
        """Return the ids, uint32 [n], `<s>` first: a view that holds until the context changes."""
        return self._ids[: self._used]

    def add(self, token: int) -> None:
        """Take one event more."""
        if self._used == len(self._ids):
            self._ids = np.concatenate((self._ids, np.empty_like(self._ids)))
        self._ids[self._used] = token
        self._used += 1

    def end_segment(self) -> None:
        """Begin the next segment, which sees nothing of what was before it, unless the context runs on."""
        if not self._runs_on:
            self.restart()

    def restart(self) -> None:
        """Forget all but `<s>`."""
        self._used = 1


def last_sentence(context: NDArray[np.uint32], bos: int, eos: int) -> NDArray[np.uint32]:
    """Return what a model of single sentences sees of a running context: `<s>`, and what follows the last `</s>`."""
    # context: uint32 [n], `<s>` first.
    ends = np.flatnonzero(context == eos)
    return np.insert(context[ends[-1] + 1 :], 0, bos) if len(ends) else context
