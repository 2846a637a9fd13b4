"""BLEU: the geometric mean of n-gram precisions, times a penalty for brevity; the digits are sacreBLEU's.

A row of statistics holds: words of the hypothesis, length of the reference, matching n-grams of order 1 to N, n-grams of the
hypothesis of order 1 to N. The formulas take many rows of sums at a time (segments, groups, resamples).

Sources: Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation", section 2.3; Post (2018),
"A call for clarity in reporting BLEU scores"; the smoothing methods: Chen & Cherry (2014), "A systematic comparison of
smoothing techniques for sentence-level BLEU", methods 1 (floor), 2 (add-k; Lin & Och 2004) and 3 (exp; mteval-v13a). What
the papers leave open (no match at all, no n-grams of an order, the effective order) is as in sacreBLEU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge._kernels import _native
from lmgauge.base.choices import BLEU_SMOOTHING_VALUES, BleuTokenizer, ReferenceLength
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.tasks.metrics.compiled import LENGTH_SCALE, NO_MATCH, CompiledMetric, Kernel, PrintedScore, Stop
from lmgauge.tasks.metrics.protocol import SACREBLEU_VERSION, Floats, Statistics
from lmgauge.tasks.settings import BleuOptions
from lmgauge.tasks.texts import References, Texts
from lmgauge.tasks.tokenizers import check_tokenizer, regex_unicode_version, tokenized, tokenizer_signature


def bleu_scores(sums: ArrayLike, metric: BLEU) -> Floats:
    """Return BLEU times 100 of each row of sums (Papineni et al. 2002, section 2.3)."""
    # sums: [rows, 2 + 2 N]: words of the hypotheses, length of the references, matches of order 1 to N, n-grams of the
    # hypotheses of order 1 to N.
    # -> float64 [rows], 0 to 100; exactly 100 where everything matches.
    rows = _checked(sums, metric.order)
    hits, total, exists = _smoothed(rows, metric)
    ratios = np.divide(hits, total, out=np.zeros(total.shape), where=exists)
    return 100.0 * brevity_penalties(rows[:, 0], rows[:, 1]) * _means(ratios, _orders_counted(exists, metric))


def ngram_precisions(sums: ArrayLike, metric: BLEU) -> Floats:
    """Return the precisions, smoothed, that `bleu_scores` takes the mean of."""
    # sums: [rows, 2 + 2 N], as in `bleu_scores`.
    # -> float64 [rows, N], in per cent; all 0 where nothing matches.
    # ngram_precisions([[6, 6, 5, 3, 1, 6, 5, 4]], BLEU(order=3)).round(2) -> [[83.33, 60.0, 25.0]]
    hits, total, exists = _smoothed(_checked(sums, metric.order), metric)
    return np.divide(100.0 * hits, total, out=np.zeros(total.shape), where=exists)


def brevity_penalties(hypothesis: ArrayLike, reference: ArrayLike) -> Floats:
    """Return 1 for hypotheses at least as long as their references, else exp(1 - r / h) (Papineni et al. 2002, 2.2.2)."""
    # hypothesis: [rows], length of the hypotheses in words; reference: [rows], length of the references in words.
    # -> float64 [rows], 0 to 1.
    # brevity_penalties([10, 5], [8, 10]).round(4) -> [1.0, 0.3679]
    h, r = np.asarray(hypothesis, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    ratio = np.divide(r, h, out=np.full(np.broadcast(h, r).shape, np.inf), where=h > 0)
    return np.where(h < r, np.exp(1.0 - np.maximum(ratio, 1.0)), 1.0)


def _checked(sums: ArrayLike, order: int) -> Floats:
    rows = np.asarray(sums, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 + 2 * order:
        raise UsageError(f"sums of shape {rows.shape} are not BLEU statistics of order {order}: [rows, {2 + 2 * order}]")
    return rows


def _smoothed(rows: Floats, metric: BLEU) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    # Matches and n-grams after smoothing, and which orders have a precision, [rows, N] each.
    # Without any match none has; otherwise those before the first order without n-grams.
    order, value = metric.order, metric.value
    correct, total = rows[:, 2 : 2 + order], rows[:, 2 + order :]
    matched = np.any(correct != 0, axis=1, keepdims=True)
    if metric.smoothing == "add-k":
        pseudocounts = np.where(np.arange(order) > 0, value, 0.0)
        correct, total = correct + pseudocounts, total + pseudocounts
    # n-grams [3, 2, 1, 0] -> [T, T, T, F]: a hypothesis of 3 words has none of order 4, and with `effective_order` these do
    # not count.
    exists = np.logical_and.accumulate(total != 0, axis=1) & matched
    hits = correct
    if metric.smoothing == "exp":
        # matches [5, 0, 0] -> hits [5, 1/2, 1/4]
        hits = np.where(correct == 0, 0.5 ** np.cumsum((correct == 0) & exists, axis=1), correct)
    elif metric.smoothing == "floor":
        hits = np.where(correct == 0, value, correct)
    return hits, total, exists


def _orders_counted(exists: NDArray[np.bool_], metric: BLEU) -> Floats:
    # How many orders the mean of each row is over, float64 [rows]; 0 where nothing matched, and the score is 0.
    counted: Floats = exists.astype(np.float64).sum(axis=1)
    return counted if metric.effective_order else np.where(counted > 0, float(metric.order), 0.0)


def _means(ratios: Floats, counted: Floats) -> Floats:
    # Geometric mean of the first `counted` precisions of each row.
    # By their product and not by logarithms, so that 1 and 1/2 come out as they are; exponents apart, against underflow.
    product = np.ones(len(ratios))
    exponent = np.zeros(len(ratios))
    for n in range(ratios.shape[1]):
        # frexp(0.75) = (0.75, 0), frexp(3) = (0.75, 2): the product of mantissas stays near 1, and exponents are added as
        # whole numbers.
        factor, power = np.frexp(np.where(n < counted, ratios[:, n], 1.0))
        product, carried = np.frexp(product * factor)
        exponent += power + carried
    roots = np.maximum(counted, 1.0)
    # (m 2^7)^(1/4) = (m 2^3)^(1/4) 2^1: what of the exponent is a multiple of 4 stays outside of the root, and is exact.
    whole = np.floor(exponent / roots)
    means = np.ldexp(np.ldexp(product, (exponent - whole * roots).astype(np.int64)) ** (1.0 / roots), whole.astype(np.int64))
    return np.where(counted > 0, means, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class BleuScore(PrintedScore):
    """A BLEU score and the parts it was made of."""

    score: float  # 0 to 100
    counts: tuple[int, ...]  # matching n-grams of order 1 to N, as counted (smoothing adds nothing to them here)
    totals: tuple[int, ...]  # n-grams of the hypotheses of order 1 to N, as counted
    precisions: tuple[float, ...]  # of order 1 to N, in per cent, smoothed
    brevity_penalty: float  # 0 to 1
    hypothesis_length: int  # words of the hypotheses
    reference_length: float  # of the references, in words; no whole number where it is an average
    signature: str  # all choices that move the score
    metric: ClassVar[str] = "BLEU"

    @property
    def order(self) -> int:
        """Return the longest n-grams."""
        return len(self.counts)

    @property
    def ratio(self) -> float:
        """Length of the hypotheses by that of the references; 0 without references."""
        return self.hypothesis_length / self.reference_length if self.reference_length else 0.0

    def line(self, decimals: int = 1) -> str:
        """Return the line people paste, as sacreBLEU prints it."""
        precisions = "/".join(f"{p:.1f}" for p in self.precisions)
        whole = self.reference_length == int(self.reference_length)
        reference = f"{int(self.reference_length):d}" if whole else f"{self.reference_length:.2f}"
        return (
            f"BLEU|{self.signature} = {self.score:.{decimals}f} {precisions} (BP = {self.brevity_penalty:.3f} "
            f"ratio = {self.ratio:.3f} hyp_len = {self.hypothesis_length:d} ref_len = {reference})"
        )

    def __str__(self) -> str:
        return self.line()

    def to_dict(self) -> dict[str, Any]:
        """Return the score and its parts, flat: `count_1` to `count_N`, `total_1` ..., `precision_1` ..."""
        names = ("metric", "score", "brevity_penalty", "ratio", "hypothesis_length", "reference_length", "order")
        parts = {name: getattr(self, name) for name in names}
        for name, values in (("precision", self.precisions), ("count", self.counts), ("total", self.totals)):
            parts |= {f"{name}_{n}": value for n, value in enumerate(values, 1)}
        return parts | {"signature": self.signature}


@settings
class BLEU(BleuOptions, CompiledMetric):
    """BLEU, with `lmgauge.tasks.settings.BleuOptions`; the defaults are sacreBLEU's (Papineni et al. 2002; Post 2018).

    Example:
        >>> import lmgauge
        >>> metric = lmgauge.tasks.BLEU(order=3, lowercase=True)
        >>> systems = lmgauge.tasks.score_systems(metric, hypotheses=["the cat sat on it"], references=["The cat sat on it"])
        >>> round(systems[0].score.score, 2), metric.name
        (100.0, 'BLEU')
    """

    tokenizer: BleuTokenizer = "13a"

    name: ClassVar[str] = "BLEU"
    reference_columns: ClassVar[slice] = slice(1, 2)
    zero_means: ClassVar[str] = NO_MATCH

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokenizer", self.tokenizer or "13a")
        BleuOptions.__post_init__(self)
        check_tokenizer(self.tokenizer)

    @property
    def value(self) -> float:
        """The value of the smoothing method; 0 where it takes none."""
        default = BLEU_SMOOTHING_VALUES[self.smoothing]
        return float((default if self.smoothing_value is None else self.smoothing_value) or 0.0)

    @property
    def averages_lengths(self) -> bool:
        """Whether the reference length of a segment is the average over its references."""
        return self.reference_length == "average"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the statistics: lengths, matches and n-grams by order."""
        orders = range(1, self.order + 1)
        scaled = "reference_length_x720720" if self.averages_lengths else "reference_length"
        return ("hypothesis_length", scaled, *(f"count_{n}" for n in orders), *(f"total_{n}" for n in orders))

    def prepared(self, texts: Texts, threads: int = 1) -> Texts:
        """Return texts in lower case, if asked for, and with white space between tokens.

        Args:
            texts: as they were written.
            threads: to share them among.

        Raises:
            MissingExtraError: the tokenizer needs a library that is not installed.
            InputError: the tokenizer's model is missing or damaged.

        >>> BLEU(lowercase=True).prepared(Texts.of_strings(["The mat."])).strings()[0].split()
        ['the', 'mat', '.']
        """
        return tokenized(texts.lowered() if self.lowercase else texts, self.tokenizer, threads)

    def kernel(self, hypotheses: Texts, references: References, stop: Stop) -> Kernel:
        """Return what counts lengths, matches and n-grams; an average reference length in parts of 1/720720 of a word."""
        length = get_args(ReferenceLength).index(self.reference_length)
        texts = (hypotheses.arrays, references.texts.arrays, references.offsets, self.order, length)
        return lambda begin, end, out: _native.bleu_statistics(*texts, begin, end, out.reshape(-1))

    def scores(self, sums: Floats) -> Floats:
        """Return BLEU of each row of sums.

        Args:
            sums: float64 [rows, 2 + 2 N].

        Returns:
            float64 [rows], 0 to 100.

        Raises:
            UsageError: the number of columns does not belong to the order.

        >>> BLEU(order=3).scores(np.array([[6.0, 6, 5, 3, 1, 6, 5, 4]])).tolist()
        [50.0]
        """
        return bleu_scores(self._in_words(sums), self)

    def score(self, sums: Statistics, references: int | None, choices: dict[str, str] | None = None) -> BleuScore:
        """Return BLEU and its parts from one sum of statistics, int64 [2 + 2 N]; see `ScoredSums.score`.

        Raises:
            UsageError: the number of statistics does not belong to the order.
            MissingExtraError: the tokenizer needs a library that is not installed.
            InputError: the tokenizer's model is missing or damaged.
        """
        row = self._in_words(np.asarray(sums)[None, :])
        counts, totals = np.split(np.asarray(sums)[2:], 2)
        length = float(row[0, 1])
        return BleuScore(
            score=float(bleu_scores(row, self)[0]),
            counts=tuple(counts.tolist()),
            totals=tuple(totals.tolist()),
            precisions=tuple(ngram_precisions(row, self)[0].tolist()),
            brevity_penalty=float(brevity_penalties(row[:, 0], row[:, 1])[0]),
            hypothesis_length=int(sums[0]),
            reference_length=length if self.averages_lengths else int(length),
            signature=self.signature(references, choices),
        )

    def _in_words(self, sums: NDArray[Any]) -> Floats:
        rows = np.array(sums, dtype=np.float64)
        if self.averages_lengths:
            rows[:, 1] /= LENGTH_SCALE
        return rows

    def signature(self, references: int | None, choices: dict[str, str] | None = None) -> str:
        """Return all choices that move the score, in sacreBLEU's format; keys it lacks only where they change something.

        Args:
            references: how many each segment has, None where the number varies.
            choices: further keys and their values, which come behind the number of references.

        Raises:
            MissingExtraError: the tokenizer is `intl`, and the regex package is not installed.

        >>> BLEU(lowercase=True).signature(1).rpartition("|version")[0]
        'nrefs:1|case:lc|eff:no|tok:13a|smooth:exp'
        """
        keys: dict[str, str | bool] = {"case": "lc" if self.lowercase else "mixed", "eff": self.effective_order}
        keys |= {"tok": tokenizer_signature(self.tokenizer), "smooth": self._smoothing_name()}
        if self.order != BLEU.order:
            keys["order"] = str(self.order)
        if self.reference_length != BLEU.reference_length:
            keys["reflen"] = self.reference_length
        if self.tokenizer == "intl":
            keys["unicode"] = regex_unicode_version()
        return self.signature_with(references, choices, keys | {"version": SACREBLEU_VERSION})

    def _smoothing_name(self) -> str:
        if self.smoothing not in ("floor", "add-k"):
            return self.smoothing
        value = self.value
        # sacreBLEU prints two decimals, which would hide the rest of 0.001.
        printed = f"{value:.2f}" if float(f"{value:.2f}") == value else repr(value)
        return f"{self.smoothing}[{printed}]"
