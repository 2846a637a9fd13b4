"""chrF and chrF++: F scores of character and word n-grams, from sums of their counts; the digits are sacreBLEU 2.6's.

Sources: Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation"; Popović (2017), "chrF++: words
helping character n-grams". sacreBLEU differs from the papers' formula in averaging precision and recall over the orders that
both texts have ("effective order") before the F score is made of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from lmgauge._kernels import _native
from lmgauge.tasks.metrics.compiled import NO_MATCH, CompiledMetric, Kernel, PrintedScore, Stop
from lmgauge.tasks.metrics.protocol import SACREBLEU_VERSION, Floats, Statistics
from lmgauge.tasks.settings import ChrfOptions
from lmgauge.tasks.texts import References, Texts

EPSILON = 1e-16
"""What stands for a precision, a recall or an F score that does not exist, with `eps_smoothing`."""


def chrf_scores(sums: Floats, *, beta: float, eps_smoothing: bool = False) -> Floats:
    """Return chrF times 100: the F score of average precision P and average recall R."""
    # F = (1 + beta^2) P R / (beta^2 P + R) (Popović 2015, equation 1), with P and R averaged over the orders of which both
    # texts have n-grams; 0 where nothing matches. With `eps_smoothing` the mean of the orders' F scores instead, in which
    # an order without n-grams counts with 1e-16, as in chrF++.py, Moses and NLTK.
    # sums: float64 [rows, 3 * orders]: n-grams of the hypothesis, of the reference, and matches, of each order.
    # -> float64 [rows], 0 to 100.
    # float(chrf_scores([[4.0, 5.0, 4.0, 3.0, 4.0, 2.0]], beta=2).round(4)[0]) -> 67.9916
    factor = beta**2
    # One order after the other, not np.sum: its additions come in another order, and the last digit is compared.
    if eps_smoothing:
        return _mean_of_orders(sums, factor)
    precision, recall = chrf_averages(sums)
    below = factor * precision + recall
    return 100 * _ratio((1 + factor) * precision * recall, below, 0.0)


def chrf_averages(sums: Floats) -> tuple[Floats, Floats]:
    """Return precision and recall averaged over the orders of which both texts have n-grams; 0 where there is none."""
    # sums: float64 [rows, 3 * orders], as for `chrf_scores`.
    # -> float64 [rows] each, 0 to 1.
    precisions, recalls, effective = np.zeros(len(sums)), np.zeros(len(sums)), np.zeros(len(sums))
    for hypothesis, reference, matches in _orders(sums):
        # A hypothesis of two characters has no 6-grams: orders that one text lacks say nothing of the other.
        both = (hypothesis > 0) & (reference > 0)
        precisions += np.where(both, _ratio(matches, hypothesis, 0.0), 0.0)
        recalls += np.where(both, _ratio(matches, reference, 0.0), 0.0)
        effective += both
    return _ratio(precisions, effective, 0.0), _ratio(recalls, effective, 0.0)


def _mean_of_orders(sums: Floats, factor: float) -> Floats:
    total = np.zeros(len(sums))
    for hypothesis, reference, matches in _orders(sums):
        precision = _ratio(matches, hypothesis, EPSILON)
        recall = _ratio(matches, reference, EPSILON)
        total += _ratio((1 + factor) * precision * recall, factor * precision + recall, EPSILON)
    orders: int = sums.shape[1] // 3
    return 100 * total / orders


def _orders(sums: Floats) -> list[tuple[Floats, Floats, Floats]]:
    return [(sums[:, at], sums[:, at + 1], sums[:, at + 2]) for at in range(0, sums.shape[1], 3)]


def _ratio(above: Floats, below: Floats, otherwise: float) -> Floats:
    # Above / below where below is positive.
    quotient: Floats = np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)
    return quotient


@dataclass(frozen=True, repr=False)
class ChrfScore(PrintedScore):
    """chrF of a text and the counts it was made of."""

    metric: str  # "chrF2", "chrF2++": the number is beta, and there is a plus for each order of word n-grams
    score: float  # 0 to 100
    precision: float  # average over the orders both texts have, 0 to 100
    recall: float
    hypothesis_ngrams: tuple[int, ...]  # of each order, characters first, then words; 0 where the reference has none
    reference_ngrams: tuple[int, ...]  # of each order; of several references those of the best one of each segment
    matches: tuple[int, ...]  # of each order
    char_order: int
    word_order: int
    beta: float
    signature: str  # all choices that move the number, in sacreBLEU's format


class ChrF(ChrfOptions, CompiledMetric):
    """chrF (Popović 2015), with `lmgauge.tasks.settings.ChrfOptions`, and chrF+ and chrF++ (Popović 2017).

    Example:
        >>> import lmgauge
        >>> metric = lmgauge.tasks.ChrF(word_order=2)
        >>> systems = lmgauge.tasks.score_systems(metric, hypotheses=["the cat sat"], references=["the cat sits"])
        >>> metric.name, round(systems[0].score.score, 2)
        ('chrF2++', 60.39)
    """

    reference_columns: ClassVar[slice] = slice(1, 2)
    zero_means: ClassVar[str] = NO_MATCH

    @property
    def name(self) -> str:
        """chrF, beta and a plus for each order of words, as sacreBLEU has it."""
        whole = math.floor(self.beta)
        return f"chrF{whole if whole == self.beta else self.beta!r}" + "+" * self.word_order

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the statistics: three counts of each order."""
        orders = [f"char{n + 1}" for n in range(self.char_order)] + [f"word{n + 1}" for n in range(self.word_order)]
        return tuple(f"{order}_{count}" for order in orders for count in ("hypothesis", "reference", "matches"))

    def prepared(self, texts: Texts) -> Texts:
        """Return the texts in lower case, if that is asked for.

        Args:
            texts: one for each segment, as they were written.
        """
        return texts.lowered() if self.lowercase else texts

    def kernel(self, hypotheses: Texts, references: References, stop: Stop) -> Kernel:
        """Return what counts n-grams: of the hypothesis, of the reference, and of both, for each order.

        Of several references the one with the best F score counts, the first of equals (so their order may matter); where
        the reference has no n-gram of an order, neither has the hypothesis.

        Args:
            hypotheses: one for each segment, prepared.
            references: one or more for each segment, prepared.
            stop: not looked at.
        """
        options = (self.char_order, self.word_order, float(self.beta**2), self.eps_smoothing, self.whitespace)
        return partial(_native.chrf_statistics, hypotheses.arrays, references.texts.arrays, references.offsets, options)

    def scores(self, sums: Floats) -> Floats:
        """Return chrF of each row of sums, float64 [rows, columns] -> float64 [rows], 0 to 100."""
        return chrf_scores(sums, beta=self.beta, eps_smoothing=self.eps_smoothing)

    def score(self, sums: Statistics, references: int | None, choices: dict[str, str] | None = None) -> ChrfScore:
        """Return the score and its parts from one sum of statistics, int64 [columns]; see `ScoredSums.score`."""
        row = np.asarray(sums, dtype=np.float64)[None]
        precision, recall = chrf_averages(row)
        counts = [int(count) for count in sums]
        keys: dict[str, str | bool] = {"case": "lc" if self.lowercase else "mixed", "eff": not self.eps_smoothing}
        keys |= {"nc": str(self.char_order), "nw": str(self.word_order), "space": self.whitespace}
        keys["version"] = SACREBLEU_VERSION
        return ChrfScore(
            metric=self.name,
            score=float(self.scores(row)[0]),
            precision=100 * float(precision[0]),
            recall=100 * float(recall[0]),
            hypothesis_ngrams=tuple(counts[0::3]),
            reference_ngrams=tuple(counts[1::3]),
            matches=tuple(counts[2::3]),
            char_order=self.char_order,
            word_order=self.word_order,
            beta=self.beta,
            signature=self.signature_with(references, choices, keys),
        )
