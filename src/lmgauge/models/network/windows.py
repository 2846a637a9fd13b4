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
        first: first position to predict, in tokens, from 1.
        last: one past the last.
        context: most tokens to show at a time; None for all.
        stride: tokens from one window to the next, at most `context`.

    Example:
        >>> for window in windows(1, 8, context=4, stride=2):
        ...     print(f"show {window.begin} to {window.last - 2}, predict {window.first} to {window.last - 1}")
        show 0 to 3, predict 1 to 4
        show 2 to 5, predict 5 to 6
        show 4 to 6, predict 7 to 7
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
    """Return the number of the first window that reaches a prediction.

    Args:
        position: of the predicted token, from 1.
        context: most tokens a window shows.
        stride: tokens from one window to the next.

    Example:
        >>> [window_of(position, context=4, stride=2) for position in (1, 4, 5, 7)]
        [0, 0, 1, 2]
    """
    return max(0, -(-(position - context) // stride))
