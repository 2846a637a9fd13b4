"""How far the rows of a stored table reach in its text, and what does not fit."""

from __future__ import annotations

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import InputError
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments


class Extent:
    """How far the spans of a table reach in each segment, to be held against the text."""

    def __init__(self, policy: ContextPolicy) -> None:
        self._leaves_out = policy.leaves_out
        self.ends: dict[int, int] = {}
        self.spans = True
        self.apart = 0
        self.uncovered = 0

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch."""
        if not len(batch):
            return
        if not len(batch.ends):
            self.spans = False
            self.ends.update(dict.fromkeys(batch.segments.tolist(), -1))
            return
        self.apart += batch.spans_apart - (batch.gaps if self._leaves_out else 0)
        segments, reach = batch.segments.tolist(), batch.reach().tolist()
        reach[0] = max(reach[0], self.ends.get(segments[0], 0))  # it may have begun in the batch before
        self.ends.update(zip(segments, reach, strict=True))

    def compare(self, block: Segments) -> None:
        """Compare the spans with a block of the text."""
        lengths = (block.ends - block.starts).tolist()
        for segment, length in enumerate(lengths, block.first):
            end = self.ends.pop(segment, None)
            if end is None or (self.spans and end < length):
                self.uncovered += 1
            elif end > length:
                raise InputError(
                    f"segment {segment} of the score table ends at byte {end}, but the text's has {length} bytes; "
                    "is it the same text?"
                )

    def notes(self, segments: int) -> list[str]:
        """Return what a reader must know, all of the text being read."""
        if self.ends:
            raise InputError(
                f"the score table has a segment {min(self.ends)}, but the text has {segments}; is it the same text?"
            )
        notes = []
        if not self.spans:
            notes.append("the table has no byte spans: whether it scores every byte of the text was not checked")
        if self.apart:
            notes.append(
                f"{self.apart:,} spans do not begin where the one before ended: bytes are scored twice or not at all"
            )
        if self.uncovered and not self._leaves_out:
            notes.append(
                f"{self.uncovered:,} of {segments:,} segments are not scored to their end; their bytes count all the same"
            )
        return notes
