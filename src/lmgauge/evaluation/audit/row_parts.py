"""Level 1: what rows say of their parts, the spelled letters of unseen words and the white space before words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge
from lmgauge.scores import SEPARATOR, SPELLED, SPELLING

if TYPE_CHECKING:
    from lmgauge.evaluation.audit.rows import Rows

_ROUNDING = 1e-9  # of the sum of three logs


def unseen_noun(unit: str) -> str:
    """Return what an unseen token of a unit is called."""
    return "unseen character" if unit == "character" else "unseen word"


class RowParts:
    """Reads the columns `spelling` and `separator`, segment by segment."""

    def __init__(self, unit: str = "word") -> None:
        self._noun = unseen_noun(unit)
        self.rows = self.faults = self.spelled = self.separated = 0
        self._first = ""

    def add(self, rows: Rows) -> None:
        """Read the parts of the rows of a segment."""
        # rows: of the segment, [n].
        spelled, spelling, separator = rows.kind == SPELLED, rows.part(SPELLING), rows.part(SEPARATOR)
        self.rows += len(rows)
        self.spelled += int(spelled.sum())
        self.separated += len(separator)
        if not len(spelling):
            self._note(rows, spelled, "is spelled, but there is no column `spelling` that pays for its letters")
        for name, column in ((SPELLING, spelling), (SEPARATOR, separator)):
            if len(column):
                self._note(rows, ~(column <= 0), f"has a {name} that is NaN or above 0", column)
        if len(spelling):
            self._note(rows, spelled & (spelling == 0), "is spelled, but nothing is paid for its letters")
            self._note(rows, ~spelled & (spelling != 0), "is not spelled, but has a spelling", spelling)
        if len(spelling) or len(separator):
            event = rows.event_logprob()
            above = event > _ROUNDING * (1 - np.maximum(rows.logprob, -1e300))
            self._note(rows, above, "costs less than its spelling and white space do: the event alone comes to", event)

    def _note(self, rows: Rows, wrong: NDArray[np.bool_], what: str, values: NDArray[np.float64] | None = None) -> None:
        at = np.flatnonzero(wrong)
        self.faults += len(at)
        if len(at) and not self._first:
            number = "" if values is None else f" ({in_nine_digits(values[at[0]])} nats)"
            self._first = f"segment {rows.segment + 1}, event {at[0] + 1}, {what}{number}"

    def checks(self) -> list[Check]:
        """Return the verdict; no check of a table without parts."""
        if not (self.spelled or self.separated or self.faults):
            return []
        bad = f"The parts of rows are wrong {counted(self.faults, 'time')}, first {self._first}." if self.faults else ""
        blank = "the white space before each event" if self.separated else "no white space"
        unseen = f"{counted(self.spelled, self._noun)} of {counted(self.rows, 'event')}"
        good = f"{unseen} pay for their letters, and rows for {blank}; what is left for the event itself is never above 0."
        details = {"faults": self.faults, "spelled": self.spelled, "separators": self.separated}
        return [judge("coverage", "parts", bad=bad, good=good, details=details)]
