"""Average lengths of several references as whole numbers, so that sums over segments stay exact."""

from __future__ import annotations

LENGTH_SCALE = 720720
"""An average length is counted in this part of a word: divisible by every number of references up to `MOST_AVERAGED`."""

MOST_AVERAGED = 16
"""The most references of a segment whose lengths can be averaged."""
