"""Search of all segments, by text or regular expression, a piece at a time: what was searched is not searched again."""

# Expressions are those of RE2, whose time grows with the text and not with what the expression is: nobody can write one that
# takes for ever.

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError

if TYPE_CHECKING:
    from lmgauge.explore.index import Index

_PIECE = 1 << 22  # bytes of text between two looks at the clock


class Search:
    """Which segments have a text in them, or match a regular expression (RE2), as far as they were looked at."""

    def __init__(self, index: Index, text: str, is_regex: bool, match_case: bool) -> None:
        if index.corpus is None:
            raise UsageError("the text is not at hand, so that it cannot be searched: name it with --text")
        self._index, self._text, self._is_regex, self._match_case = index, text, is_regex, match_case
        self._lock = threading.Lock()
        self._matches, self.size = np.zeros(0, bool), 0
        self._look(np.zeros(1, np.int64), np.zeros(0, np.uint8))  # refuses what is not an expression

    def advance(self, seconds: float) -> int:
        """Look at more segments for about this many seconds; return how many were looked at until now."""
        until = time.monotonic() + seconds
        with self._lock:
            size = self._index.size
            self._matches = np.concatenate((self._matches, np.zeros(size - len(self._matches), bool)))
            starts, ends = (self._index.segments.view(name, size) for name in ("start", "end"))
            while (begin := self.size) < size:
                end = max(int(np.searchsorted(ends, starts[begin] + _PIECE, side="right")), begin + 1)
                # Texts and what stands between them by turns: starts [0, 4], ends [3, 6] -> 0 to 3, 3 to 4, 4 to 6.
                bounds = np.stack((starts[begin:end], ends[begin:end]), axis=1).ravel()
                self._matches[begin:end] = self._look(bounds, self._index.text.view(int(ends[end - 1])))[::2]
                self.size = end
                if time.monotonic() > until:
                    break
            return self.size

    def matches(self, size: int) -> NDArray[np.bool_]:
        """Return which of the first segments match, bool [size]."""
        return self._matches[:size]

    def _look(self, bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.bool_]:
        # Which texts match: `bounds`, int64 [n + 1], part the UTF-8 bytes `data`.
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.LargeStringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))
        find = pc.match_substring_regex if self._is_regex else pc.match_substring
        try:
            matching = find(texts, self._text, ignore_case=not self._match_case)
        except pa.ArrowInvalid as error:
            reason = str(error).partition(": ")[2].splitlines()[0] or str(error)
            raise UsageError(f"the regular expression cannot be used: {reason}") from error
        matches: NDArray[np.bool_] = matching.to_numpy(zero_copy_only=False)
        return matches
