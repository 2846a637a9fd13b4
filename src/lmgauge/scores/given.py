"""What models were shown before the first event of each segment: text that is given, and not scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class GivenTokens:
    """The tokens that were given before each segment of a batch; they are in memory only, as no row is theirs.

    >>> before = GivenTokens(np.array([5, 6, 7]), np.array([1, 2]), np.array([3, 8]), np.array([False, True]))
    >>> before.of_segments(np.array([False, True])).ids.tolist()
    [6, 7]
    """

    ids: NDArray[np.uint32]  # uint32 [m], of the given tokens, segment after segment: index into the strings of the batch
    counts: NDArray[np.int64]  # int64 [segments], given tokens of each
    lengths: NDArray[np.int64]  # int64 [segments], bytes of given text of each
    crossing: NDArray[np.bool_]  # bool [segments], True where the first event is a token that begins in the given text

    def of_segments(self, chosen: slice | NDArray[np.bool_]) -> GivenTokens:
        """Return what was given before some of the segments."""
        # chosen: a slice, or bool [segments].
        of_some = np.zeros(len(self.counts), bool)
        of_some[chosen] = True
        ids = self.ids[np.repeat(of_some, self.counts)]
        return GivenTokens(ids, self.counts[chosen], self.lengths[chosen], self.crossing[chosen])

    @classmethod
    def joined(cls, parts: Sequence[GivenTokens]) -> GivenTokens | None:
        """Return what was given before the segments of some batches, one behind the other; None of none."""
        if not parts:
            return None
        columns = zip(*((part.ids, part.counts, part.lengths, part.crossing) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def by_segment(self) -> list[NDArray[np.uint32]]:
        """Return the ids given before each segment, uint32 each."""
        return np.split(self.ids, np.cumsum(self.counts)[:-1])

    def renamed(self, ids: NDArray[np.int64]) -> GivenTokens:
        """Return the same tokens by other ids."""
        # ids: [vocabulary], the other id of each.
        return replace(self, ids=ids[self.ids].astype(np.uint32))
