"""Figures of BLEU, chrF, TER and error rates of short texts: what the tests of the metrics hold the package against.

Each was measured once with the public tool named, or counted by hand; the tests also ask the tool itself where it is
installed. Tolerances stand with the tests: 1e-9 where a figure has all its digits, else half a unit of its last one.
"""

from __future__ import annotations

from dataclasses import dataclass

# The example of sacreBLEU's README (https://github.com/mjpost/sacrebleu, Apache License 2.0): three segments with two
# references each.
SYSTEM = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
ONE = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
TWO = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]
BOTH = [list(pair) for pair in zip(ONE, TWO, strict=True)]

# sacreBLEU 2.6.0 on it.
BLEU_OF_TOKENIZERS = {"13a": 48.530827009929865, "none": 49.1919566, "intl": 43.91623493}
BLEU_OF_ORDERS = [77.65, 60.5, 53.93, 48.53, 46.14, 43.28]
"""With n-grams up to 1, 2, ... 6; two decimals."""
BLEU_ADD_K = 52.70109002482467
CHRF = 59.72751782684763
CHRF_PLUS_PLUS = 59.15310444399262
TER = 40.0

# sacreBLEU 2.6.0, one reference "a test", without tokenizer, smoothing floor 0.01, effective order. By hand: "test" is
# 100 exp(1 - 2/1); "a little test" has 2 of 3 words, no pair and no triple: 100 (2/3 x 0.01/2 x 0.01/1)^(1/3).
SMALL_BLEU = {"test": 36.7879441171442, "a test": 100.0, "a little test": 3.218297948685433, "none of it": 0.0}

# sacreBLEU 2.6.0, `BLEU.compute_bleu`: matches and n-grams of the orders 1 to 4, lengths of output and reference.
COUNTS = {"correct": [9, 7, 5, 3], "total": [10, 8, 6, 4], "lengths": [11, 11]}
BLEU_OF_COUNTS = 83.75922397

# sacreBLEU 2.6.0 on the output of LIUM for English-German at WMT17 (newstest2017, 3,004 segments): counts, and the scores of
# n-grams up to 1, 2, 3 and 4. No text of it is here.
WMT17 = {
    "correct": [36804, 19234, 11381, 6976],
    "total": [62496, 59492, 56488, 53485],
    "lengths": [62496, 61287],
    "scores": [58.890168970814145, 43.63419030622919, 33.72557446029054, 26.59580468309487],
}


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One pair of texts: jiwer 4.0.0's rates, and the counts by hand.

    counts : hits, substitutions, deletions, insertions.
    """

    reference: str
    hypothesis: str
    counts: tuple[int, int, int, int]
    wer: float
    mer: float
    wil: float


ERROR_CASES = (
    ErrorCase("This is a test", "This test", (2, 0, 2, 0), 0.5, 0.5, 0.5),
    ErrorCase("X", "X X Y Y", (1, 0, 0, 3), 3, 0.75, 0.75),
    ErrorCase("X Y X", "X Z", (1, 1, 1, 0), 2 / 3, 2 / 3, 5 / 6),  # 1 - 1/3 x 1/2
    ErrorCase("X", "Y", (0, 1, 0, 0), 1, 1, 1),
    ErrorCase("X", "Y Z", (0, 1, 0, 1), 2, 1, 1),
)
