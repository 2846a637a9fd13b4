"""Which stretch of a token sequence the model is shown for which predictions.

A sequence is s[0], s[1], ...; s[n] is predicted from what comes before it, for n from 1. Window k shows s[k * stride] to
s[k * stride + context - 1], so its predictions reach to n = k * stride + context; each prediction is taken from the first
window that reaches it. Where a window begins thus depends on the position alone: what follows a token never changes it.

The protocols of other programs lay windows differently: a layout says which windows a sequence has, and where the window
of a position begins. In `Filled`, which is kept for the figures of one program only, that depends on the sequence's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from lmgauge.context_policy import ContextPolicy
from lmgauge.counted_note import CountedNote
from lmgauge.protocols import PROTOCOLS


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a sequence and the predictions taken from it."""

    begin: int
    first: int
    last: int  # one past the last position predicted; the model is shown `begin` to `last - 1` (not included)

    @property
    def shown(self) -> int:
        """Return how many tokens the model is shown."""
        return self.last - 1 - self.begin


def windows(first: int, last: int, context: int | None, stride: int | None) -> Iterator[Window]:
    """Yield the windows of the predictions of positions `first` to `last` (not included)."""
    if context is None or stride is None:
        if first < last:
            yield Window(0, first, last)
        return
    while first < last:
        k = window_of(first, context, stride)
        # context 4, stride 2: window 0 predicts 1 to 4, window 1 (from 2) 5 and 6, window 2 (from 4) 7 and 8.
        reached = min(last, k * stride + context + 1)
        yield Window(k * stride, first, reached)
        first = reached


def window_of(position: int, context: int, stride: int) -> int:
    """Return the number of the first window that reaches a prediction."""
    # [window_of(position, context=4, stride=2) for position in (1, 4, 5, 7)] -> [0, 0, 1, 2]
    return max(0, -(-(position - context) // stride))


class Layout(Protocol):
    """Which windows a sequence has."""

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Yield the windows of a whole sequence, in order; what no window predicts is left out."""
        ...

    def begin(self, position: int) -> int:
        """Return where the window begins that predicts a position, as if the sequence ended there."""
        ...


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows a stride apart; each position is predicted from the first that reaches it, see `windows`."""

    context: int | None  # most tokens to show at a time; None for all
    stride: int | None  # tokens from one window to the next

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Yield the windows of a sequence of `last` tokens."""
        # [window.begin for window in Sliding(4, 2).windows(1, 8)] -> [0, 2, 4]
        return windows(max(1, first), last, self.context, self.stride)

    def begin(self, position: int) -> int:
        """Return where the window of a position begins, in tokens."""
        if self.context is None or self.stride is None:
            return 0
        return window_of(position, self.context, self.stride) * self.stride


@dataclass(frozen=True, slots=True)
class Filled:
    """Windows side by side, the last of which is moved left until it is full: its predictions see more."""

    # What a window shows thus depends on where the text ends. lm-evaluation-harness does so (`get_rolling_token_windows`).

    context: int

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Yield the windows of a sequence of `last` tokens."""
        first = max(1, first)
        while first < last:
            reached = min(last, first + self.context)
            yield Window(max(0, reached - 1 - self.context), first, reached)
            first = reached

    def begin(self, position: int) -> int:
        """Return where the window of the last position of a text begins, in tokens."""
        return max(0, position - self.context)


@dataclass(frozen=True, slots=True)
class Chunks:
    """A sequence cut into chunks; the first positions of each are shown and not scored, what fills no chunk is dropped."""

    size: int
    first_scored: int  # first position within a chunk that is scored, from 1

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Yield the windows of a sequence of `last` tokens."""
        # 7 tokens in chunks of 3: begins [0, 3]; the last token fills no chunk.
        for begin in range(0, last - self.size + 1, self.size):
            yield Window(begin, max(first, begin + self.first_scored), begin + self.size)

    def begin(self, position: int) -> int:
        """Return where the chunk of a position begins, in tokens."""
        return position // self.size * self.size


def layout_of(policy: ContextPolicy) -> Layout:
    """Return how a policy lays windows over a sequence."""
    length, stride = policy.length, policy.stride
    if policy.protocol is None or length is None or stride is None:
        return Sliding(length, stride)
    protocol = PROTOCOLS[policy.protocol]
    if protocol.layout == "chunks":
        return Chunks(stride, protocol.first_scored(stride))
    return Filled(length) if protocol.layout == "filled" else Sliding(length, stride)


def windows_note(policy: ContextPolicy, without_bos: bool, count: int, total: int) -> CountedNote:
    """Return the sentence on segments that do not fit into a window."""
    sentence = (
        f"segments longer than {policy.length:,} tokens, read in windows of that size, each {policy.stride:,} tokens after "
        "the one before"
    )
    return CountedNote.of("{count:,} of {total:,} " + sentence + _WITHOUT_BOS * without_bos, count, total)


_WITHOUT_BOS = "; only the first begins with BOS, which this tokenizer puts before a text (--bos-each-window)"
