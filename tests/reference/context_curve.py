"""A context curve the slow and obvious way: every token alone, shown exactly the tokens that its window is said to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Predict = Callable[[list[int]], Sequence[float]]
"""From the ids shown to the log-probability of each id that may follow."""


def tokens_seen(before: int, length: int, stride: int) -> int:
    """How many of the tokens before it a prediction sees, by trying one window after the other."""
    begin = 0
    while begin + length < before:  # the window ends before this prediction
        begin += stride
    return before - begin


def log_probabilities(
    documents: Sequence[Sequence[int]], start: Sequence[int], length: int, longest: int, stride: int, predict: Predict
) -> list[list[float]]:
    """Of each document those of the tokens with `longest` or more before them; `start` is shown before a document."""
    found = []
    for document in documents:
        ids = [*start, *document]
        own = []
        for place in range(max(longest, len(start)), len(ids)):
            seen = tokens_seen(place, length, stride)
            assert length - stride < seen <= length
            own.append(float(predict(ids[place - seen : place])[ids[place]]))
        found.append(own)
    return found
