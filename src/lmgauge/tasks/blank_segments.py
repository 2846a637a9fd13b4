"""Empty outputs and references: counted, shown, and refused where nothing else is left to score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.texts import References, Texts


@dataclass(frozen=True, slots=True)
class Blanks:
    """How many hypotheses and references are blank: nothing, or nothing but white space."""

    segments: int = 0  # how many segments were looked at
    texts: int = 0  # how many references they have together
    hypotheses: int = 0
    references: int = 0
    first_hypothesis: int | None = None  # index of the first segment with a blank hypothesis
    first_reference: int | None = None  # index of the first segment with a blank reference

    @classmethod
    def of(cls, hypotheses: Texts, references: References) -> Blanks:
        """Count the blank ones of texts as they were given, before any preparation."""
        outputs, texts = blank_texts(hypotheses), blank_texts(references.texts)
        first = int(np.searchsorted(references.offsets, texts[0], side="right")) - 1 if len(texts) else None
        first_output = int(outputs[0]) if len(outputs) else None
        return cls(len(hypotheses), len(references.texts), len(outputs), len(texts), first_output, first)

    def joined(self, other: Blanks) -> Blanks:
        """Return the counts of these segments and of those that follow."""
        sums = ("segments", "texts", "hypotheses", "references")
        return Blanks(
            **{name: getattr(self, name) + getattr(other, name) for name in sums},
            first_hypothesis=self._earlier(self.first_hypothesis, other.first_hypothesis),
            first_reference=self._earlier(self.first_reference, other.first_reference),
        )

    def _earlier(self, mine: int | None, later: int | None) -> int | None:
        return mine if mine is not None or later is None else self.segments + later

    def check(self, metric: TaskMetric, system: str = "", *, silence: bool = True) -> None:
        """Refuse to score nothing."""
        # An error rate is a plain number also where one side is blank (all is deleted, or inserted), and silence may be
        # what is measured; a BLEU, chrF or TER of nothing would be a number that says nothing of a system.
        of = f" of {system}" if system else ""
        if not self.segments:
            raise InputError(f"there is no segment{of} to score; give at least one hypothesis and its reference")
        if self.hypotheses == self.segments and not metric.is_error_rate:
            raise InputError(f"all {self.segments:,} hypotheses{of} are blank: there is nothing to score; check the output")
        if self.references == self.texts and not (metric.is_error_rate and silence):
            raise InputError(f"all {self.texts:,} references are blank: there is nothing to score against; check the file")

    def notes(self, system: str = "") -> list[str]:
        """Return a sentence for each side that has blanks."""
        of = f" of {system}" if system else ""
        sides = (
            (self.first_hypothesis, f"{self.hypotheses:,} of {self.segments:,} hypotheses{of}"),
            (self.first_reference, f"{self.references:,} of {self.texts:,} references"),
        )
        return [f"{what} are blank, the first that of segment {first + 1:,}" for first, what in sides if first is not None]


def blank_texts(texts: Texts) -> NDArray[np.int64]:
    """Return which texts are empty or white space and nothing else (as `str.isspace` has it)."""
    # -> int64 [blank texts], their indexes.
    # blank_texts(Texts.of_strings(["a", " ", ""])) -> [1, 2]
    sizes = texts.ends - texts.starts
    inside = np.flatnonzero(sizes)
    first = texts.data[texts.starts[inside]]
    # Most texts are known not to be blank by their first byte: white space is below "!" in ASCII, and in UTF-8 begins with
    # C2 (U+0085, U+00A0), E1 (U+1680), E2 (U+2000 to U+205F) or E3 (U+3000).
    doubtful = inside[(first <= 0x20) | np.isin(first, np.array([0xC2, 0xE1, 0xE2, 0xE3], dtype=np.uint8))]
    # All of these but those of C2 are three bytes, E1 9A, E2 80, E2 81 or E3 80: most kana and Chinese are something else.
    second = texts.data[np.minimum(texts.starts[doubtful] + 1, len(texts.data) - 1)]
    three = texts.data[texts.starts[doubtful]] >= 0xE1
    doubtful = doubtful[~three | np.isin(second, np.array([0x80, 0x81, 0x9A], dtype=np.uint8))]
    blank = sizes == 0
    for i in doubtful.tolist():
        blank[i] = texts.data[texts.starts[i] : texts.ends[i]].tobytes().decode().isspace()
    return np.flatnonzero(blank)
