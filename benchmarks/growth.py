"""How many different n-grams a text has, as it grows, and what training costs: counts, power laws and their residuals.

    python benchmarks/growth.py count --text train.txt --name books --store growth.jsonl
    python benchmarks/growth.py fit --store growth.jsonl

Counting every n-gram of 1,000 million words would need what is to be measured. So n-grams are hashed to 64 bits, and
only those whose hash ends in `--sample-bits` zeros are stored; their number times 2^bits estimates all (words are counted
without a sample). With t types in the sample the relative standard error is 1/sqrt(t): 0.1 % of 64 million types at 6
bits. An n-gram is either in the sample or not, so how often each occurs is known exactly, and with it what a cut-off drops.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import harness

MILLION = 10**6
LINE_END = 0  # its id
POINTS = (2, 4, 8, 16, 32, 38, 64, 120, 250, 500, 1000)  # million words
MOST_DROPPED = 3  # cut-offs counted: n-grams that occur more than 0, 1, 2, 3 times

Hashes = NDArray[np.uint64]


def id_blocks(text: Path) -> Iterator[NDArray[np.uint64]]:
    """The ids of a text's words, with the end of a line after each line, whole lines at a time."""
    numbers: dict[bytes, int] = {b"\n": LINE_END}
    with text.open("rb") as lines:
        while block := lines.readlines(1 << 20):
            tokens = b"".join(block).replace(b"\n", b" \n ").split(b" ")
            yield np.array([numbers.setdefault(token, len(numbers)) for token in tokens if token], np.uint64)


def mixed(keys: Hashes) -> Hashes:
    """Hashes in which every bit depends on all bits of the key (the finalizer of MurmurHash3)."""
    keys = (keys ^ keys >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    keys = (keys ^ keys >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return keys ^ keys >> np.uint64(33)


class Counter:
    """Counts of words, and hashes of the longer n-grams that are in the sample, in the order of the text."""

    def __init__(self, order: int, sample_bits: int) -> None:
        self.order, self.bits = order, sample_bits
        self.hashes: list[list[Hashes]] = [[] for _ in range(order - 1)]  # of order 2, 3, ...
        self.occurrences = np.zeros(1, np.int64)  # of each word
        self.words = 0

    def add(self, ids: NDArray[np.uint64]) -> None:
        """Count a block of whole lines; the end of a line is the last word of one, and stands before the next."""
        occurrences = np.bincount(ids.astype(np.intp), minlength=len(self.occurrences))
        occurrences[: len(self.occurrences)] += self.occurrences
        self.occurrences = occurrences
        self.words = int(occurrences.sum() - occurrences[LINE_END])
        ids = np.concatenate([np.array([LINE_END], np.uint64), ids])
        ends, hashes, inside = ids == LINE_END, mixed(ids + np.uint64(1)), np.ones(len(ids), bool)
        for length in range(2, self.order + 1):
            # Hashes of the words up to each position; `inside` where no end of a line lies between first and last.
            hashes = mixed(hashes[:-1] * np.uint64(0x9E3779B97F4A7C15) + ids[length - 1 :])
            inside = inside[:-1] & ~ends[length - 2 : -1] if length > 2 else inside[:-1]
            drawn = inside & (hashes & np.uint64((1 << self.bits) - 1) == 0)
            self.hashes[length - 2].append(hashes[drawn])

    def row(self) -> dict[str, Any]:
        """Types of each order that occur more than 0, 1, 2, ... times."""
        types = [[int(np.count_nonzero(self.occurrences > most)) for most in range(MOST_DROPPED + 1)]]
        for parts in self.hashes:
            parts[:] = [np.concatenate(parts)]
            counts = np.unique(parts[0], return_counts=True)[1]
            types.append([int(np.count_nonzero(counts > most)) << self.bits for most in range(MOST_DROPPED + 1)])
        return {"words": self.words, "types": types}


def count(text: Path, name: str, order: int, sample_bits: int, out: Path) -> None:
    counter = Counter(order, sample_bits)
    points = [point * MILLION for point in POINTS]
    with out.open("a", encoding="utf-8") as lines:
        for ids in id_blocks(text):
            counter.add(ids)
            if points and counter.words >= points[0]:
                points = [point for point in points if point > counter.words]
                _print(counter, name, lines)
        _print(counter, name, lines)


def _print(counter: Counter, name: str, out: Any) -> None:
    row = {"text": name, "sample_bits": counter.bits, **counter.row()}
    print(json.dumps(row), file=out, flush=True)
    print(json.dumps(row), flush=True)


# --- fits -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PowerLaw:
    """y = factor * x ** exponent, fitted by least squares to logarithms."""

    factor: float
    exponent: float
    residual: float  # the largest, as a share of y

    def __call__(self, x: float) -> float:
        return self.factor * x**self.exponent


def fit(xs: Sequence[float], ys: Sequence[float]) -> PowerLaw:
    """Fit a power law.

    >>> law = fit([1, 10, 100], [2, 20, 200])
    >>> round(law.factor, 6), round(law.exponent, 6), round(law.residual, 6)
    (2.0, 1.0, 0.0)
    """
    exponent, logarithm = np.polyfit(np.log(xs), np.log(ys), 1)
    law = PowerLaw(math.exp(logarithm), float(exponent), 0.0)
    residual = max(abs(law(x) / y - 1) for x, y in zip(xs, ys, strict=True))
    return PowerLaw(law.factor, law.exponent, residual)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["count", "fit"])
    options.add_argument("--text", type=Path, help="plain text, a sentence per line (classic-books)")
    options.add_argument("--name", default="books", help="what the text is called in the file")
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--sample-bits", type=int, default=6)
    options.add_argument("--store", type=Path, required=True, metavar="FILE", help="lines of JSON, added to")
    arguments = options.parse_args()
    if arguments.what == "count":
        text = arguments.text or harness.book_text("train.txt")
        count(text, arguments.name, arguments.order, arguments.sample_bits, arguments.store)
        return 0
    rows = [json.loads(line) for line in arguments.store.open(encoding="utf-8")]
    table = []
    for name in dict.fromkeys(row["text"] for row in rows):
        chosen = [row for row in rows if row["text"] == name]
        for order in range(len(chosen[0]["types"])):
            law = fit([row["words"] for row in chosen], [row["types"][order][0] for row in chosen])
            last = [row["types"][order][0] for row in chosen[-2:]]
            slope = math.log(last[1] / last[0]) / math.log(chosen[-1]["words"] / chosen[-2]["words"])
            figures = [f"{law.factor:.4g}", f"{law.exponent:.4f}", f"{law.residual:.1%}", f"{slope:.4f}"]
            table.append([name, f"{order + 1}", *figures])
    head = ["text", "order", "factor", "exponent", "largest residual", "slope at the end"]
    harness.print_table(head, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
