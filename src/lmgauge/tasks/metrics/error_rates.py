"""Word and character error rates of transcripts, with the counts behind them, as jiwer 4 has them.

Each segment is aligned with its reference by an optimal sequence of edits; of several optimal ones the one jiwer (that is,
rapidfuzz) takes, which settles how many edits are substitutions, deletions and insertions.

The formulas take float64 [rows, 4], a row for each text (or resample): hits H, substitutions S, deletions D and insertions
I, summed over the segments; so a rate is always that of the sum, never a mean of rates. The reference has H + S + D units
(words or characters), the hypothesis H + S + I.

Source: Morris, Maier & Green (2004), "From WER and RIL to MER and WIL: improved evaluation measures for connected speech
recognition", Interspeech.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lmgauge._kernels import _native
from lmgauge.tasks.metrics.compiled import CompiledMetric, Kernel, PrintedScore, Stop
from lmgauge.tasks.metrics.protocol import Floats, Statistics
from lmgauge.tasks.normalization import STANDARD, Normalization
from lmgauge.tasks.settings import NormalizationOptions
from lmgauge.tasks.texts import References, Texts

UNITS = {"word": 0, "character": 1}


def error_rates(counts: Floats) -> Floats:
    """Return errors for each unit of the reference, (S + D + I) / (H + S + D): the word or character error rate."""
    # counts: float64 [rows, 4].
    # -> float64 [rows], 0 or more, and more than 1 where there are many insertions; against an empty reference the number
    # of insertions, as jiwer has it.
    # error_rates([[3.0, 1.0, 0.0, 1.0]]) -> [0.5]
    hits, substitutions, deletions, insertions = counts.T
    errors, length = substitutions + deletions + insertions, hits + substitutions + deletions
    return _divided(errors, length, insertions)


def match_error_rates(counts: Floats) -> Floats:
    """Return the share of errors among all matches and errors, (S + D + I) / (H + S + D + I)."""
    # counts: float64 [rows, 4].
    # -> float64 [rows], 0 to 1; 0 where both texts are empty.
    # match_error_rates([[3.0, 1.0, 0.0, 1.0]]) -> [0.4]
    # Morris, Maier & Green (2004): unlike the word error rate it is never above 1.
    hits, substitutions, deletions, insertions = counts.T
    errors = substitutions + deletions + insertions
    return _divided(errors, hits + errors, np.zeros(len(counts)))


def information_preserved(counts: Floats) -> Floats:
    """Return word information preserved: hits by reference length times hits by hypothesis length."""
    # counts: float64 [rows, 4].
    # -> float64 [rows], 0 to 1; 1 where both texts are empty, 0 where one is.
    # information_preserved([[3.0, 1.0, 0.0, 0.0]]) -> [0.5625]
    # Morris, Maier & Green (2004): H / (H + S + D) times H / (H + S + I).
    hits, substitutions, deletions, insertions = counts.T
    reference, hypothesis = hits + substitutions + deletions, hits + substitutions + insertions
    both_empty = (reference + hypothesis == 0).astype(np.float64)
    return _divided(hits, reference, both_empty) * _divided(hits, hypothesis, both_empty)


def information_lost(counts: Floats) -> Floats:
    """Return word information lost: 1 less what is preserved."""
    # counts: float64 [rows, 4].
    # -> float64 [rows], 0 to 1.
    # information_lost([[3.0, 1.0, 0.0, 0.0]]) -> [0.4375]
    return np.asarray(1.0 - information_preserved(counts), dtype=np.float64)


def _divided(numerator: Floats, denominator: Floats, otherwise: Floats) -> Floats:
    # Quotient; `otherwise` where the denominator is 0.
    nonzero = denominator != 0
    return np.where(nonzero, numerator / np.where(nonzero, denominator, 1.0), otherwise)


@dataclass(frozen=True, repr=False)
class ErrorRates(PrintedScore):
    """A word or character error rate and its parts."""

    # All rates are ratios (0.5 is 50 %), of counts summed over the segments.

    STATED: ClassVar[tuple[str, ...]] = ("errors",)

    metric: str
    score: float
    mer: float  # match error rate, errors by all matches and errors
    wil: float
    wip: float  # word information preserved, 1 - wil
    hits: int  # units that are the same in both
    substitutions: int  # units of the reference with another one in their place
    deletions: int  # units of the reference with none in their place
    insertions: int  # units of the hypothesis that stand for none of the reference
    reference_length: int
    hypothesis_length: int
    signature: str  # all choices that move the number

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    def __str__(self) -> str:
        return (
            f"{self.metric}|{self.signature} = {100 * self.score:.2f}% "
            f"(S = {self.substitutions} D = {self.deletions} I = {self.insertions} of {self.reference_length}; "
            f"MER = {100 * self.mer:.2f}% WIL = {100 * self.wil:.2f}%)"
        )


class EditRate(NormalizationOptions, CompiledMetric):
    """What `WER` and `CER` share."""

    unit: ClassVar[Literal["word", "character"]]
    percent: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    is_error_rate: ClassVar[bool] = True
    reference_columns: ClassVar[slice] = slice(0, 3)
    columns: ClassVar[tuple[str, ...]] = ("hits", "substitutions", "deletions", "insertions")

    @property
    def name(self) -> str:
        """ "WER" or "CER"."""
        return type(self).__name__

    @property
    def normalization(self) -> Normalization:
        """The steps that the options stand for."""
        standard = vars(STANDARD) if self.standardize else {}
        # Words are the same without, so that signatures need not tell them apart.
        jiwer_words = self.jiwer_words and self.unit == "word"
        steps = {name: value or standard.get(name, value) for name, value in vars(self).items()}
        steps |= {"standardize": False, "jiwer_words": jiwer_words}
        steps["collapse_spaces"] = steps["collapse_spaces"] and (self.unit == "character" or jiwer_words)
        return Normalization(**steps)

    def prepared(self, texts: Texts) -> Texts:
        """Return the texts after normalization; the same object if nothing is asked for.

        Args:
            texts: one for each segment, as they were written.

        >>> WER(lowercase=True).prepared(Texts.of_strings(["Yes"])).strings()
        ['yes']
        """
        return self.normalization.applied(texts)

    def kernel(self, hypotheses: Texts, references: References, stop: Stop) -> Kernel:
        """Return what counts hits, substitutions, deletions and insertions.

        Of several references the one with the fewest edits counts, the first of equals. Time grows with the product of the
        lengths (a million characters against as many unrelated ones: some minutes), memory with their sum.
        """
        texts = (references.texts.arrays, references.offsets, hypotheses.arrays)
        return lambda begin, end, out: _native.edit_counts(*texts, UNITS[self.unit], begin, end, out.reshape(-1), stop)

    def scores(self, sums: Floats) -> Floats:
        """Return the error rate, a ratio, for each row of sums; float64 [rows, 4] -> float64 [rows]."""
        return error_rates(sums)

    def score(self, sums: Statistics, references: int | None, choices: dict[str, str] | None = None) -> ErrorRates:
        """Return the rate and its parts from one sum of statistics, int64 [4]; see `ScoredSums.score`."""
        hits, substitutions, deletions, insertions = (int(count) for count in sums)
        row = np.asarray(sums, dtype=np.float64)[None]
        return ErrorRates(
            metric=self.name,
            score=float(error_rates(row)[0]),
            mer=float(match_error_rates(row)[0]),
            wil=float(information_lost(row)[0]),
            wip=float(information_preserved(row)[0]),
            hits=hits,
            substitutions=substitutions,
            deletions=deletions,
            insertions=insertions,
            reference_length=hits + substitutions + deletions,
            hypothesis_length=hits + substitutions + insertions,
            signature=self.signature_with(references, choices, {"unit": str(self.unit)} | self.normalization.signature()),
        )


class WER(EditRate):
    """Word error rate: edits of words by words of the reference; its options: `lmgauge.tasks.settings.NormalizationOptions`.

    Words are what `str.split()` makes of a text: white space of any kind splits them. (In jiwer a single tab or no-break
    space does not: "a<TAB>b" is one word there, and with `jiwer_words=True` here.) Source: Morris, Maier & Green (2004).

    Example:
        >>> import lmgauge
        >>> metric = lmgauge.tasks.WER(lowercase=True, remove_punctuation=True)
        >>> lmgauge.tasks.score_systems(metric, hypotheses=["Hello world!"], references=["hello word"])[0].score.score
        0.5
    """

    unit: ClassVar[Literal["word", "character"]] = "word"


class CER(EditRate):
    """Character error rate: edits of code points by code points of the reference; with the options of `WER`.

    White space at both ends is left out; between words it counts, each character of it. Source: Morris, Maier & Green
    (2004).

    Example:
        >>> import lmgauge
        >>> lmgauge.tasks.score_systems(lmgauge.tasks.CER(), hypotheses=["abxd"], references=["abcd"])[0].score.score
        0.25
    """

    unit: ClassVar[Literal["word", "character"]] = "character"
