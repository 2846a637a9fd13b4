"""How often verdicts err on real text: false alarms and coverage by simulation, for what is taken as independent.

Two trigram models are trained on disjoint documents and score others, once: these documents are the population, and its
ratio is the truth. Each draw takes documents with replacement and each copy counts as a document of its own, so documents
are independent and the truth is known. lmgauge's own functions then test the difference and make the interval, in three
ways: the documents are known; they are unknown, one long text in reading order; every line is taken as independent.
Other methods that could have been chosen are measured too.

* **centered**: false alarms at 5 %; the truth is subtracted from the difference.
* **swapped**: false alarms at 5 %; a coin per document decides whose nats are whose.
* **missed**: intervals at 95 % of the nats per event of one model that do not contain the value of the population.

    python benchmarks/simulate_verdicts.py

Texts come from the folder of LMGAUGE_DATA. 1,000 draws take about 15 minutes of a quiet core; the chance in each rate is
printed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

import harness
import lmgauge
from lmgauge.evaluation.event_sums import EventSums, Paired
from lmgauge.numerics.intervals import ratio_interval, student_t_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Documents = list[list[str]]

LEVEL = 0.05
DOCUMENTS = (6, 12, 25, 50, 100, 161)
LINES = (50, 161, 500, 1500, 5000)
KNOWN, UNKNOWN, AS_LINES = "documents known", "documents unknown", "lines as independent"
BOOTSTRAP, BLOCKS, AUTOMATIC = "percentile bootstrap of documents", "16 blocks, Student's t", "blocks of automatic length"
OURS, OTHERS = (KNOWN, UNKNOWN, AS_LINES), (BOOTSTRAP, BLOCKS, AUTOMATIC)
# A test with the normal curve finds a difference of this many standard errors with a power of 80 %.
EFFECT = 1.959964 + 0.841621


# --- populations ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """What two models gave each line of each document."""

    name: str
    nats: Floats  # [lines, 2]
    events: Floats  # [lines]
    starts: Ints  # [documents + 1]
    sizes: tuple[int, ...]  # numbers of documents to draw


def scored(name: str, texts: Documents, first: Documents, second: Documents, sizes: Sequence[int]) -> Population:
    """Train two trigram models and score the documents with both."""
    columns: list[Floats] = []
    lines = [line for text in texts for line in text]
    for trained in (first, second):
        corpus = lmgauge.Corpus.from_strings([line for text in trained for line in text])
        model = lmgauge.train("modified-kneser-ney", corpus, order=3, reserved="unk")
        tally = EventSums()
        for batch in model.score(lmgauge.Corpus.from_strings(lines)):
            tally.add(batch)
        sums = tally.per_segment()
        columns.append(-sums.nats)
    starts = np.concatenate(([0], np.cumsum([len(text) for text in texts])))
    return Population(name, np.stack(columns, 1), sums.events.astype(np.float64), starts, tuple(sizes))


def unpacked(path: Path) -> list[str]:
    """The lines of a .gz or .zst file."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    with path.open("rb") as file, zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file) as stream:
        return io.TextIOWrapper(stream, "utf-8", newline="\n").read().split("\n")[:-1]


def shuffled(documents: Documents) -> Documents:
    return [documents[i] for i in np.random.default_rng(0).permutation(len(documents))]


def articles(data: Path) -> Documents:
    """WikiText's articles: each begins with " = Title = "."""
    documents: Documents = []
    for line in unpacked(data / "wikitext-2" / "train.txt.gz"):
        if re.fullmatch(r" = [^=].* = ?", line):
            documents.append([])
        if documents:
            documents[-1].append(line)
    return documents


def books(data: Path) -> list[Population]:
    """Books, mostly novels; the titles are in index.tsv. Their openings, cut after 5,000 words and after 300 lines.

    A line is a paragraph, and in some books of verse a whole song: cut by lines, few of the books hold most of what varies.
    """
    with (data / "classic-books" / "index.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["split"] == "train"]
    text = unpacked(data / "classic-books" / "train.txt.zst")
    whole = shuffled([text[int(r["first_line"]) - 1 :][: int(r["lines"])] for r in rows])
    rest = [book for book in whole[80:] if len(book) >= 100]
    by_words = [book[: opening(book, 5000)] for book in rest]
    by_lines = [book[:300] for book in rest]
    return [
        scored("openings of books, 5,000 words", by_words, whole[:40], whole[40:80], DOCUMENTS),
        scored("openings of books, 300 lines", by_lines, whole[:40], whole[40:80], (6, 25, 100)),
    ]


def opening(book: list[str], words: int) -> int:
    """Return how many lines reach a number of words."""
    so_far = np.cumsum([len(line.split()) for line in book])
    return int(np.searchsorted(so_far, words)) + 1


def wiki(data: Path) -> list[Population]:
    """WikiText articles, whole."""
    documents = shuffled(articles(data))
    return [scored("WikiText articles", documents[300:], documents[:150], documents[150:300], DOCUMENTS)]


def calls(data: Path) -> list[Population]:
    """Earnings calls. Their transcripts have no punctuation, so a line is 25 words; models of two kinds of text."""
    rows = [line.split("\t")[1].split() for line in unpacked(data / "asr-earnings21" / "ref.tsv.gz")]
    texts = [[" ".join(words[i : i + 25]) for i in range(0, len(words), 25)] for words in rows]
    wikipedia, novels = unpacked(data / "wikitext-2" / "train.txt.gz"), unpacked(data / "classic-books" / "valid.txt.gz")
    return [scored("earnings calls", texts, [wikipedia], [novels], DOCUMENTS[:4])]


def reviews(data: Path) -> list[Population]:
    """Korean reviews of films: each line is one review by one writer, a document of its own."""
    lines = unpacked(data / "multilingual" / "ko-reviews" / "train.txt.gz")
    texts = [[line] for line in lines[100_000:]]
    return [scored("Korean reviews (lines)", texts, [lines[:50_000]], [lines[50_000:100_000]], LINES)]


POPULATIONS: dict[str, Callable[[Path], list[Population]]] = {
    "books": books, "wiki": wiki, "calls": calls, "reviews": reviews,
}  # fmt: skip


# --- what is simulated ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Documents drawn from a population."""

    nats: Floats
    events: Floats
    documents: Ints

    def paired(self, difference: Floats, documents: Ints | None) -> Paired:
        nothing = np.zeros(len(difference))
        return Paired((difference, nothing), nothing.astype(np.int64), self.events[:, None], documents)


def drawn(population: Population, count: int, generator: np.random.Generator) -> Draw:
    picked = generator.integers(0, len(population.starts) - 1, count)
    begins, ends = population.starts[picked], population.starts[picked + 1]
    rows = np.concatenate([np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)])
    return Draw(population.nats[rows], population.events[rows], np.repeat(np.arange(count), ends - begins))


Measured = dict[str, list[float]]


def p_values(draw: Draw, difference: Floats, way: str, effect: float = 0.0) -> tuple[float, float]:
    """Return the p-value of no difference by `lmgauge compare`, and that of one larger by `effect` nats per event."""
    documents = {KNOWN: draw.documents, UNKNOWN: None, AS_LINES: np.arange(len(difference))}[way]
    (leading,) = draw.paired(difference, documents).spreads()
    if leading is None:
        return 1.0, 1.0
    return leading.p_value, replace(leading, ratio=leading.ratio + effect).p_value


def other(draw: Draw, numerators: Floats, way: str, generator: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % interval of a ratio by a method that lmgauge does not use."""
    lower, total = draw.events, draw.events.sum()
    if way == BOOTSTRAP:
        sums = [np.bincount(draw.documents, column) for column in (numerators, lower)]
        again = generator.integers(0, len(sums[0]), (500, len(sums[0])))
        low, high = np.percentile(sums[0][again].sum(1) / sums[1][again].sum(1), [2.5, 97.5])
        return float(low), float(high)
    ratio = float(numerators.sum() / total)
    residuals = (numerators - ratio * lower) / total
    if way == BLOCKS:  # Ibragimov & Mueller (2010), over 16 contiguous blocks of as many lines
        edges = np.linspace(0, len(lower), 17).astype(int)[:-1]
        if len(lower) < 32:
            return -math.inf, math.inf
        values = np.add.reduceat(numerators, edges) / np.add.reduceat(lower, edges)
        middle, reach = float(values.mean()), student_t_quantile(0.95, 15) * float(values.std(ddof=1)) / 4
        return middle - reach, middle + reach
    reach = 1.959964 * math.sqrt(block_variance(residuals))
    return ratio - reach, ratio + reach


def block_variance(residuals: Floats) -> float:
    """Return the variance of the sum that the moving block bootstrap finds, at the length of Politis & White (2004)."""
    n = len(residuals)
    spectrum = np.abs(np.fft.rfft(residuals, 1 << (2 * n - 1).bit_length())) ** 2
    covariances = np.fft.irfft(spectrum)[:n]
    if not covariances[0] > 0.0:
        return 0.0
    small = np.abs(covariances / covariances[0]) < 2 * math.sqrt(math.log10(n) / n)
    longest = min(n - 1, math.ceil(math.sqrt(n)) + 5)
    first = next((m for m in range(longest) if small[m + 1 : m + 6].all()), longest)
    lags = np.arange(1, min(n - 1, 2 * max(first, 1)) + 1)
    taper = np.minimum(1.0, 2 * (1 - lags / (lags[-1] + 1)))
    level = covariances[0] + 2 * float((taper * covariances[lags]).sum())
    slope = 2 * float((taper * lags * covariances[lags]).sum())
    length = (1.5 * slope * slope / (level * level) * n) ** (1 / 3) if level > 0.0 else 1.0
    length = min(max(length, 1.0), n / 3)
    near = np.arange(1, math.ceil(length))
    return max(0.0, float(covariances[0] + 2 * ((1 - near / length) * covariances[near]).sum()))


def simulate(population: Population, count: int, draws: int, seed: int) -> Measured:
    """Return rates of errors, relative widths and power."""
    generator = np.random.default_rng(seed)
    truth = float(population.nats[:, 0].sum() / population.events.sum())
    gap = float((population.nats[:, 0] - population.nats[:, 1]).sum() / population.events.sum())
    by_document = [np.add.reduceat(column, population.starts[:-1]) for column in (*population.nats.T, population.events)]
    influence = (by_document[0] - by_document[1] - gap * by_document[2]) / by_document[2].mean()
    effect = EFFECT * float(influence.std()) / math.sqrt(count)
    alone = bool((np.diff(population.starts) == 1).all())
    rates: Measured = {}

    def note(name: str, way: str, value: float) -> None:
        rates.setdefault(f"{name} {way}", []).append(value)

    for _ in range(draws):
        draw = drawn(population, count, generator)
        centered = draw.nats[:, 0] - draw.nats[:, 1] - gap * draw.events
        coins = generator.integers(0, 2, count)[draw.documents] * 2.0 - 1.0
        swapped = coins * (draw.nats[:, 0] - draw.nats[:, 1])
        for way in OURS[: 2 if alone else 3]:
            without, with_effect = p_values(draw, centered, way, effect)
            note("centered", way, without < LEVEL)
            note("power", way, with_effect < LEVEL)
            note("swapped", way, p_values(draw, swapped, way)[0] < LEVEL)
            documents = {KNOWN: draw.documents, UNKNOWN: None, AS_LINES: np.arange(len(centered))}[way]
            interval = ratio_interval(draw.nats[:, 0], draw.events, documents)
            low, high = (interval.low, interval.high) if interval else (-math.inf, math.inf)
            note("missed", way, not low <= truth <= high)
            note("width", way, high - low)
        figures = (("centered", centered, 0.0), ("swapped", swapped, 0.0), ("missed", draw.nats[:, 0], truth))
        for way in () if alone else OTHERS:
            for name, values, wanted in figures:
                low, high = other(draw, values, way, generator)
                note(name, way, not low <= wanted <= high)
    return rates


# --- tables -----------------------------------------------------------------------------------------------


def percent(values: Sequence[float] | None) -> str:
    return "-" if values is None else f"{100 * float(np.mean(values)):.1f}"


def tables(rows: Sequence[tuple[Population, int, Measured]]) -> None:
    """Print one table for lmgauge's ways, one for the others, one for widths and power."""
    errors = ("centered", "swapped", "missed")
    for ways in (OURS, OTHERS):
        print("\nPercent: false alarms, centered / swapped / intervals missed\n")
        body = [
            [population.name, f"{count:,}"]
            + [" / ".join(percent(rates.get(f"{error} {way}")) for error in errors) for way in ways]
            for population, count, rates in rows
        ]
        harness.print_table(["population", "documents", *ways], body)
    print("\nMean width of the interval, and power, percent, where the normal curve promises 80 %\n")

    def width(rates: Measured, way: str) -> str:
        return f"{np.mean(rates[f'width {way}']) / np.mean(rates[f'width {KNOWN}']):.2f}" if f"width {way}" in rates else ""

    head = [f"width: {UNKNOWN} / known", f"width: {AS_LINES} / known", f"power: {KNOWN}", f"power: {UNKNOWN}"]
    cells = [
        [
            width(rates, UNKNOWN),
            width(rates, AS_LINES),
            percent(rates[f"power {KNOWN}"]),
            percent(rates[f"power {UNKNOWN}"]),
        ]
        for _, _, rates in rows
    ]
    harness.print_table(
        ["population", "documents", *head],
        [[population.name, f"{count:,}", *cell] for (population, count, _), cell in zip(rows, cells, strict=True)],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000, help="draws per population and number of documents (1000)")
    parser.add_argument("--population", action="append", choices=list(POPULATIONS), help="only this one; repeatable (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (1)")
    arguments = parser.parse_args()
    data = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA, "open")
    if not data.is_dir():
        harness.give_up(f"{data} is not there: set LMGAUGE_DATA to the folder that holds open/")
    rows: list[tuple[Population, int, Measured]] = []
    for name in arguments.population or POPULATIONS:
        for population in POPULATIONS[name](data):
            for count in population.sizes:
                start = time.perf_counter()
                rows.append((population, count, simulate(population, count, arguments.draws, arguments.seed)))
                harness.note(f"{population.name}: {count:,} documents, {time.perf_counter() - start:.0f} s")
    error = 100 * math.sqrt(LEVEL * (1 - LEVEL) / arguments.draws)
    print(f"{arguments.draws:,} draws each: a rate of 5 % has a standard error of {error:.1f} %")
    tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
