"""BLEU: n-gram matches of each segment, and sacreBLEU's number from their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.choices import REFERENCE_LENGTHS
from lmgauge.errors import UsageError
from lmgauge.metrics.bleu import BleuFormula, bleu_scores, brevity_penalties, ngram_precisions
from lmgauge.metrics.reference_length import LENGTH_SCALE, MOST_AVERAGED
from lmgauge.tasks.metric import SACREBLEU_VERSION, Statistics
from lmgauge.tasks.sharding import count_segments
from lmgauge.tasks.texts import References, Texts
from lmgauge.tasks.tokenizers import check_tokenizer, regex_unicode_version, tokenized, tokenizer_signature
from lmgauge.version import __version__

__all__ = ["BLEU", "BleuScore"]


@dataclass(frozen=True, slots=True)
class BleuScore:
    """A BLEU score and the parts it was made of.

    Attributes:
        score: 0 to 100.
        counts: matching n-grams of order 1 to N, as counted (smoothing adds nothing to them here).
        totals: n-grams of the hypotheses of order 1 to N, as counted.
        precisions: of order 1 to N, in per cent, smoothed.
        brevity_penalty: 0 to 1.
        hypothesis_length: words of the hypotheses.
        reference_length: of the references, in words; no whole number where it is an average.
        signature: all choices that move the score.
    """

    score: float
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    precisions: tuple[float, ...]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: float
    signature: str

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return "BLEU"

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return len(self.counts)

    @property
    def ratio(self) -> float:
        """Length of the hypotheses by that of the references; 0 without references."""
        return self.hypothesis_length / self.reference_length if self.reference_length else 0.0

    def line(self, decimals: int = 1) -> str:
        """The line people paste, as sacreBLEU prints it.

        Args:
            decimals: of the score.
        """
        precisions = "/".join(f"{p:.1f}" for p in self.precisions)
        whole = self.reference_length == int(self.reference_length)
        reference = f"{int(self.reference_length):d}" if whole else f"{self.reference_length:.2f}"
        return (
            f"BLEU|{self.signature} = {self.score:.{decimals}f} {precisions} (BP = {self.brevity_penalty:.3f} "
            f"ratio = {self.ratio:.3f} hyp_len = {self.hypothesis_length:d} ref_len = {reference})"
        )

    def __str__(self) -> str:
        """Return the line people paste, with one decimal as sacreBLEU's command has it."""
        return self.line()

    def to_dict(self) -> dict[str, Any]:
        """The score and its parts, flat: `count_1` to `count_N`, `total_1` ..., `precision_1` ... (per cent)."""
        parts: dict[str, Any] = {
            "metric": self.metric,
            "score": self.score,
            "brevity_penalty": self.brevity_penalty,
            "ratio": self.ratio,
            "hypothesis_length": self.hypothesis_length,
            "reference_length": self.reference_length,
            "order": self.order,
        }
        for name, values in (("precision", self.precisions), ("count", self.counts), ("total", self.totals)):
            parts |= {f"{name}_{n}": value for n, value in enumerate(values, 1)}
        return parts | {"signature": self.signature}


@dataclass(frozen=True)
class BLEU:
    """BLEU and its options; the defaults are sacreBLEU's (Papineni et al. 2002; Post 2018, "A call for clarity").

    Attributes:
        order: the longest n-grams, 1 to 64.
        weights: of orders 1 to `order`, their sum is 1; None: all the same.
        smoothing: "exp", "floor", "add-k" or "none": see `metrics.bleu.BleuFormula`.
        smoothing_value: for "floor" (default 0.1) and "add-k" (default 1).
        effective_order: only orders of which a hypothesis has n-grams count: for single sentences.
        lowercase: whether to compare in lower case.
        tokenizer: "13a", "intl", "zh", "char", "none", or one of those with models: see `tasks.tokenizers`.
        reference_length: which of several references the length is compared with: the "closest" (of two equally close the
            shorter), the "shortest", or their "average".
    """

    order: int = 4
    weights: tuple[float, ...] | None = None
    smoothing: str = "exp"
    smoothing_value: float | None = None
    effective_order: bool = False
    lowercase: bool = False
    tokenizer: str = "13a"
    reference_length: str = "closest"

    percent: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = True
    reference_columns: ClassVar[slice] = slice(1, 2)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: one is out of range, or two contradict each other.
            MissingExtraError: the tokenizer needs a library that is not installed.
            InputError: the tokenizer's model is missing.
        """
        if self.weights is not None:
            object.__setattr__(self, "weights", _as_weights(self.weights))
        if self.reference_length not in REFERENCE_LENGTHS:
            known = ", ".join(REFERENCE_LENGTHS)
            raise UsageError(f"reference_length: {self.reference_length!r} is not known; give one of {known}")
        _ = self.formula
        check_tokenizer(self.tokenizer)

    @cached_property
    def formula(self) -> BleuFormula:
        """The choices that matter once n-grams are counted."""
        return BleuFormula(self.order, self.smoothing, self.smoothing_value, self.effective_order, self.weights)

    @property
    def name(self) -> str:
        """What signatures and tables call it."""
        return "BLEU"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the statistics: lengths, matches and n-grams by order."""
        orders = range(1, self.order + 1)
        scaled = "reference_length_x720720" if self.reference_length == "average" else "reference_length"
        return ("hypothesis_length", scaled, *(f"count_{n}" for n in orders), *(f"total_{n}" for n in orders))

    def prepared(self, texts: Texts, threads: int = 1) -> Texts:
        """Texts in lower case, if asked for, and with white space between tokens.

        Args:
            texts: as they were written.
            threads: to share them among.
        """
        return tokenized(texts.lowered() if self.lowercase else texts, self.tokenizer, threads)

    def prepared_references(self, texts: Texts) -> Texts:
        """The references after the same."""
        return self.prepared(texts)

    def statistics(self, hypotheses: Texts, references: References, threads: int | None = None) -> Statistics:
        """Lengths, matches and n-grams of each segment.

        Args:
            hypotheses: prepared.
            references: prepared, of as many segments.
            threads: how many to use; the result does not depend on it.

        Returns:
            int64 [segments, 2 + 2 `order`]: the columns that `columns` names. An average reference length is counted in
            parts of 1/720720.

        Raises:
            InputError: numbers of segments differ, or a segment has no reference.
            UsageError: a segment has more than 16 references, and their average is asked for.
        """
        self._check_counts(np.diff(references.offsets))
        length = REFERENCE_LENGTHS.index(self.reference_length)

        def count(begin: int, end: int, out: Statistics) -> None:
            _native.bleu_statistics(
                hypotheses.arrays,
                references.texts.arrays,
                *(references.offsets, self.order, length, begin, end, out.reshape(-1)),
            )

        return count_segments(hypotheses, references, len(self.columns), threads, count)

    def _check_counts(self, counts: NDArray[np.int64]) -> None:
        if self.reference_length == "average" and len(counts) and counts.max() > MOST_AVERAGED:
            raise UsageError(
                f"segment {int(np.argmax(counts)) + 1} has {counts.max()} references; reference_length average takes up to "
                f"{MOST_AVERAGED}: choose closest or shortest"
            )

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """BLEU of each row of sums.

        Args:
            sums: float64 [rows, 2 + 2 `order`]: sums of statistics.

        Returns:
            float64 [rows], 0 to 100.
        """
        return bleu_scores(self._in_words(sums), self.formula)

    def score(self, sums: NDArray[np.int64], references: int | None, choices: dict[str, str] | None = None) -> BleuScore:
        """BLEU and its parts.

        Args:
            sums: int64 [2 + 2 `order`]: the sum of the statistics of some segments.
            references: how many each segment has, None where the number varies; for the signature.
            choices: further keys of the signature, such as {"bs": "1000", "seed": "12345"}.
        """
        row = self._in_words(np.asarray(sums)[None, :])
        counts, totals = np.split(np.asarray(sums)[2:], 2)
        length = float(row[0, 1])
        return BleuScore(
            score=float(bleu_scores(row, self.formula)[0]),
            counts=tuple(counts.tolist()),
            totals=tuple(totals.tolist()),
            precisions=tuple(ngram_precisions(row, self.formula)[0].tolist()),
            brevity_penalty=float(brevity_penalties(row[:, 0], row[:, 1])[0]),
            hypothesis_length=int(sums[0]),
            reference_length=length if self.reference_length == "average" else int(length),
            signature=self.signature(references, choices),
        )

    def _in_words(self, sums: NDArray[Any]) -> NDArray[np.float64]:
        rows = np.asarray(sums, dtype=np.float64)
        if self.reference_length != "average":
            return rows
        scaled = rows.copy()
        scaled[:, 1] /= LENGTH_SCALE
        return scaled

    def signature(self, references: int | None, choices: dict[str, str] | None = None) -> str:
        """All choices that move the score, in sacreBLEU's format; keys it does not have only where they change something.

        Args:
            references: how many each segment has, None where the number varies.
            choices: further keys and their values, which come behind the number of references.
        """
        keys = {"nrefs": "var" if references is None else str(references)} | (choices or {})
        keys["case"] = "lc" if self.lowercase else "mixed"
        keys["eff"] = "yes" if self.effective_order else "no"
        keys["tok"] = tokenizer_signature(self.tokenizer)
        keys["smooth"] = self._smoothing_name()
        if self.order != BLEU.order:
            keys["order"] = str(self.order)
        if self.weights is not None and not self.formula.uniform:
            keys["weights"] = ",".join(f"{w!r}" for w in self.weights)
        if self.reference_length != BLEU.reference_length:
            keys["reflen"] = self.reference_length
        if self.tokenizer == "intl":
            keys["unicode"] = regex_unicode_version()
        keys |= {"version": SACREBLEU_VERSION, "lmgauge": __version__}
        return "|".join(f"{key}:{value}" for key, value in keys.items())

    def _smoothing_name(self) -> str:
        if self.smoothing not in ("floor", "add-k"):
            return self.smoothing
        value = self.formula.value
        # sacreBLEU prints two decimals, which would hide the rest of 0.001.
        printed = f"{value:.2f}" if float(f"{value:.2f}") == value else repr(value)
        return f"{self.smoothing}[{printed}]"


def _as_weights(weights: Sequence[float]) -> tuple[float, ...]:
    try:
        return tuple(float(w) for w in weights)
    except (TypeError, ValueError) as error:
        raise UsageError(f"weights: {weights!r} are not numbers; give one for each order") from error
