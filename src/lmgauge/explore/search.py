"""Search of all segments, by text or regular expression, a piece at a time: what was searched is not searched again."""

# Expressions are those of RE2, whose time grows with the text and not with what the expression is: nobody can write one that
# takes for ever.

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import UsageError
from lmgauge.explore.columns import Column

if TYPE_CHECKING:
    from lmgauge.explore.index import Index

LONGEST_PATTERN = 1_000
_PIECE = 1 << 22  # bytes of text between two looks at the clock
_REMEMBERED = 8


@dataclass(frozen=True)
class Pattern:
    """What to look for."""

    text: str  # to be found within a segment
    is_regex: bool = False  # it is a regular expression (RE2)
    match_case: bool = False

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_PATTERN:
            raise UsageError(f"the search is {len(self.text):,} characters long, more than {LONGEST_PATTERN:,}")

    def matches(self, ends: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which texts it is found in."""
        # ends: int64 [n + 1], where each text ends in `data`; the first number is where the first begins; data: uint8,
        # their UTF-8 bytes one after another.
        import pyarrow as pa
        import pyarrow.compute as pc

        buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(data)]
        texts = pa.LargeStringArray.from_buffers(len(ends) - 1, buffers[1], buffers[2])
        find = pc.match_substring_regex if self.is_regex else pc.match_substring
        try:
            matching = find(texts, self.text, ignore_case=not self.match_case)
        except pa.ArrowInvalid as error:
            reason = str(error).partition(": ")[2].splitlines()[0] or str(error)
            raise UsageError(f"the regular expression cannot be used: {reason}") from error
        matches: NDArray[np.bool_] = matching.to_numpy(zero_copy_only=False)
        return matches


class Search:
    """Which segments have a pattern, as far as they were looked at."""

    def __init__(self, index: Index, pattern: Pattern, path: Path) -> None:
        self._index, self._pattern = index, pattern
        self._matches = Column(path, np.uint8)
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def size(self) -> int:
        """Return segments that were looked at."""
        return len(self._matches)

    def advance(self, seconds: float) -> None:
        """Look at more segments, for about this many seconds; a search that was closed meanwhile stays where it is."""
        until = time.monotonic() + seconds
        with self._lock:
            while not self._is_closed and (begin := len(self._matches)) < (size := self._index.size):
                ends, data = self._index.texts(size)
                end = int(np.searchsorted(ends[begin + 1 :], ends[begin] + _PIECE, side="right")) + begin
                end = min(max(end, begin + 1), size)
                self._matches.append(self._pattern.matches(ends[begin : end + 1], data))
                if time.monotonic() > until:
                    return

    def matches(self, size: int) -> NDArray[np.bool_]:
        """Return which of the first segments match, bool [size]."""
        return np.asarray(self._matches.view(size), bool)

    def close(self) -> None:
        """End the search and remove its file; what was found stays readable."""
        with self._lock:
            self._is_closed = True
            self._matches.remove()


class Searches:
    """The searches that were made last."""

    def __init__(self, index: Index, folder: Path) -> None:
        self._index, self._folder = index, folder
        self._lock = threading.Lock()
        self._made: OrderedDict[Pattern, Search] = OrderedDict()
        self._count = 0

    def of(self, pattern: Pattern) -> Search:
        """Return the search for a pattern, begun before or new."""
        if not self._index.has_text:
            raise UsageError("the text is not at hand, so that it cannot be searched: name it with --text")
        with self._lock:
            if pattern not in self._made:
                pattern.matches(np.zeros(1, np.int64), np.zeros(0, np.uint8))  # refuses what is not an expression
                self._made[pattern] = Search(self._index, pattern, self._folder / f"search-{self._count}")
                self._count += 1
            self._made.move_to_end(pattern)
            while len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)[1].close()
            return self._made[pattern]

    def close(self) -> None:
        """Close the files of all searches."""
        with self._lock:
            while self._made:
                self._made.popitem()[1].close()
