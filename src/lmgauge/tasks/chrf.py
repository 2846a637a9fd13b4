"""chrF and chrF++ of texts: statistics per segment, and the score with its parts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.metrics.chrf import chrf_averages, chrf_scores
from lmgauge.tasks.metric import SACREBLEU_VERSION, Statistics
from lmgauge.tasks.sharding import count_segments
from lmgauge.tasks.texts import References, Texts
from lmgauge.version import __version__

__all__ = ["ChrF", "ChrfScore"]


LARGEST_ORDER = 64


@dataclass(frozen=True)
class ChrfScore:
    """chrF of a text and the counts it was made of.

    Attributes:
        metric: "chrF2", "chrF2++": the number is beta, and there is a plus for each order of word n-grams.
        score: 0 to 100.
        precision: average over the orders both texts have, 0 to 100.
        recall: the same for recall.
        hypothesis_ngrams: of each order, characters first, then words; 0 where the reference has none.
        reference_ngrams: of each order; of several references those of the best one of each segment.
        matches: of each order.
        char_order, word_order, beta: the options.
        signature: all choices that move the number, in sacreBLEU's format.
    """

    metric: str
    score: float
    precision: float
    recall: float
    hypothesis_ngrams: tuple[int, ...]
    reference_ngrams: tuple[int, ...]
    matches: tuple[int, ...]
    char_order: int
    word_order: int
    beta: float
    signature: str

    def __str__(self) -> str:
        """Return sacreBLEU's line, with one decimal."""
        return f"{self.metric}|{self.signature} = {self.score:.1f}"

    def to_dict(self) -> dict[str, Any]:
        """The score and its parts; counts are lists, an entry for each order."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


@dataclass(frozen=True)
class ChrF:
    """The options of chrF (Popović 2015) and, with word n-grams, chrF+ and chrF++ (Popović 2017).

    Attributes:
        char_order: n-grams of 1 to so many characters, 0 to 64.
        word_order: n-grams of 1 to so many words, 0 to 64; 2 makes it chrF++. The last character of a word, or else the
            first, is a word of its own if it is ASCII punctuation.
        beta: how many times recall weighs as much as precision.
        lowercase: compare lower-case texts.
        whitespace: white space counts as characters.
        eps_smoothing: the mean of the orders' F scores, with 1e-16 for what does not exist, instead of the F score of
            their averages.
    """

    char_order: int = 6
    word_order: int = 0
    beta: float = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    percent: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = True
    reference_columns: ClassVar[slice] = slice(1, 2)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: an order or beta is out of range, or there are no n-grams at all.
        """
        for name, order in (("character", self.char_order), ("word", self.word_order)):
            if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= LARGEST_ORDER:
                raise UsageError(f"{name} order {order!r}: give a whole number from 0 to {LARGEST_ORDER}")
        if not self.char_order + self.word_order:
            raise UsageError(
                "character order and word order are both 0: there are no n-grams to compare; the usual is 6 and 0"
            )
        number = isinstance(self.beta, (int, float)) and not isinstance(self.beta, bool)
        # Its square has to be a float with something left beside 1.
        if not number or not 0 < self.beta <= 1e6:
            raise UsageError(f"beta {self.beta!r}: give a positive number up to a million; the usual is 2")

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
        """The texts in lower case, if that is asked for."""
        return texts.lowered() if self.lowercase else texts

    def prepared_references(self, texts: Texts) -> Texts:
        """The references after the same."""
        return self.prepared(texts)

    def statistics(self, hypotheses: Texts, references: References, threads: int | None = None) -> Statistics:
        """Counts of n-grams: of the hypothesis, of the reference, and of both, for each order.

        Of several references the one with the best F score counts, the first of equals (so their order may matter); where
        the reference has no n-gram of an order, neither has the hypothesis.

        Args:
            hypotheses: one for each segment, prepared.
            references: one or more for each segment, prepared.
            threads: how many to use; the result does not depend on it.

        Returns:
            int64 [segments, 3 * orders], columns as `columns`.

        Raises:
            InputError: hypotheses and references are not equally many, or a segment has no reference.
        """
        options = (self.char_order, self.word_order, float(self.beta**2), self.eps_smoothing, self.whitespace)

        def count(begin: int, end: int, out: Statistics) -> None:
            _native.chrf_statistics(hypotheses.arrays, references.texts.arrays, references.offsets, options, begin, end, out)

        return count_segments(hypotheses, references, len(self.columns), threads, count)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """chrF of each row of sums, float64 [rows, columns] -> float64 [rows], 0 to 100."""
        return chrf_scores(sums, beta=self.beta, eps_smoothing=self.eps_smoothing)

    def score(self, sums: NDArray[np.int64], references: int | None, choices: dict[str, str] | None = None) -> ChrfScore:
        """The score and its parts from one sum of statistics.

        Args:
            sums: int64 [columns].
            references: references per segment, None where the number varies.
            choices: further keys of the signature.
        """
        row = np.asarray(sums, dtype=np.float64)[None]
        precision, recall = chrf_averages(row)
        counts = [int(count) for count in sums]
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
            signature=self._signature(references, choices or {}),
        )

    def _signature(self, references: int | None, choices: dict[str, str]) -> str:
        keys = {
            "nrefs": "var" if references is None else str(references),
            **choices,
            "case": "lc" if self.lowercase else "mixed",
            "eff": "no" if self.eps_smoothing else "yes",
            "nc": str(self.char_order),
            "nw": str(self.word_order),
            "space": "yes" if self.whitespace else "no",
            "version": SACREBLEU_VERSION,
            "lmgauge": __version__,
        }
        return "|".join(f"{key}:{value}" for key, value in keys.items())
