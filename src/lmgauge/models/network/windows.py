"""Which stretch of a token sequence the model is shown for which predictions.

A sequence is s[0], s[1], ...; s[n] is predicted from what comes before it, for n from 1. Window k shows s[k * stride] to
s[k * stride + context - 1], so its predictions reach to n = k * stride + context; each prediction is taken from the first
window that reaches it. Where a window begins thus depends on the position alone: what follows a token never changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a sequence and the predictions taken from it.

    Attributes:
        begin: first position shown.
        first: first position predicted.
        last: one past the last position predicted; the model is shown `begin` to `last - 1` (not included).
    """

    begin: int
    first: int
    last: int

    @property
    def shown(self) -> int:
        """How many tokens the model is shown."""
        return self.last - 1 - self.begin


def windows(first: int, last: int, context: int | None, stride: int | None) -> Iterator[Window]:
    """Yield the windows of the predictions of positions `first` to `last` (not included).

    Args:
        first: first position to predict, from 1.
        last: one past the last.
        context: most tokens to show at a time; None for all.
        stride: tokens from one window to the next, at most `context`.
    """
    if context is None or stride is None:
        if first < last:
            yield Window(0, first, last)
        return
    while first < last:
        k = window_of(first, context, stride)
        reached = min(last, k * stride + context + 1)
        yield Window(k * stride, first, reached)
        first = reached


def window_of(position: int, context: int, stride: int) -> int:
    """Return the first window that reaches a prediction."""
    return max(0, -(-(position - context) // stride))
