"""How word surprisal predicts reading times: the Natural Stories corpus, corrected and uncorrected, with any models.

    python benchmarks/natural_stories.py -m kn5/ -m transformer/ --train books.txt

It reads `restricted/natural-stories` of the folder LMGAUGE_DATA (Futrell et al. 2021, CC BY-NC-SA; no text of it is printed
or stored). A word's reading time is its mean over readers, in milliseconds. Regressions are least squares over words, with
the predictors of a word and of the one before it: length, log frequency (of --train), and surprisal. Words without a word
before them in their story, and those whose figures are missing, are left out of all. Printed are, for each model and each
figure, the correlation with reading times, the slopes of both words, and the gain of log-likelihood per word over the
regression without the figure.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import harness
import lmgauge

FIGURES = ("surprisal", "surprisal_corrected", "entropy_before")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """A least-squares regression with normal errors.

    Attributes:
        slopes: float64 [k + 1], the intercept first.
        errors: float64 [k + 1], standard errors of the slopes.
        log_likelihood: nats of all observations, at the variance that fits best.
    """

    slopes: Floats
    errors: Floats
    log_likelihood: float


def fit(observed: Floats, predictors: Sequence[Floats]) -> Fit:
    """Return the regression of observations on predictors, each float64 [n]."""
    design = np.column_stack([np.ones(len(observed)), *predictors])
    slopes, *_ = np.linalg.lstsq(design, observed, rcond=None)
    residuals = observed - design @ slopes
    n, variance = len(observed), float(residuals @ residuals) / len(observed)
    covariance = np.linalg.inv(design.T @ design) * variance * n / (n - design.shape[1])
    return Fit(slopes, np.sqrt(np.diag(covariance)), -0.5 * n * (math.log(2 * math.pi * variance) + 1))


def read_stories(folder: Path) -> tuple[list[str], list[Floats]]:
    """Return the text of each story, its words joined by spaces, and the mean reading time of each word."""
    words: dict[int, dict[int, tuple[str, float]]] = {}
    for row in _rows(folder / "processed_wordinfo.tsv.gz"):
        words.setdefault(int(row["item"]), {})[int(row["zone"])] = row["word"], float(row["meanItemRT"])
    stories = [[story[zone] for zone in sorted(story)] for _, story in sorted(words.items())]
    return [" ".join(word for word, _ in story) for story in stories], [np.array([time for _, time in s]) for s in stories]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


@dataclass(frozen=True)
class Words:
    """The words of all stories, in order: float64 [n] each.

    Attributes:
        times: milliseconds.
        starts: bool [n], the first word of a story.
        length, frequency: predictors besides surprisal.
        figures: of the model, in bits; NaN where one is missing.
    """

    times: Floats
    starts: NDArray[np.bool_]
    length: Floats
    frequency: Floats
    figures: dict[str, Floats]


def measure(model: str, stories: Sequence[str], times: Sequence[Floats], train: Sequence[str]) -> Words:
    """Return the words with what a model makes of them."""
    result = lmgauge.word_surprisal(model, texts=stories, train=list(train))
    for note in result.notes:
        print(f"  note: {note}")
    frame = result.to_pandas()
    if len(frame) != sum(map(len, times)):
        harness.give_up("the words of the stories are not those with reading times")
    figures = {name: frame[name].to_numpy(np.float64) for name in FIGURES}
    starts = frame.word_number.to_numpy() == 1
    columns = (frame.length.to_numpy(np.float64), frame.log_frequency.to_numpy(np.float64))
    return Words(np.concatenate(times), starts, *columns, figures)


def compare(words: Words) -> None:
    """Print a row for each figure of a model."""
    chosen = np.flatnonzero(~words.starts)
    for values in words.figures.values():
        chosen = chosen[np.isfinite(values[chosen]) & np.isfinite(values[chosen - 1])]
    times, before = words.times[chosen], chosen - 1
    control = [column[rows] for column in (words.length, words.frequency) for rows in (chosen, before)]
    without = fit(times, control)
    print(f"  {len(chosen):,} words")
    for name, values in words.figures.items():
        with_it = fit(times, [*control, values[chosen], values[before]])
        gain = (with_it.log_likelihood - without.log_likelihood) / len(chosen)
        r = float(np.corrcoef(values[chosen], times)[0, 1])
        after = float(np.corrcoef(values[before], times)[0, 1])
        slopes = ", ".join(f"{with_it.slopes[-k]:+.3f} ± {with_it.errors[-k]:.3f}" for k in (2, 1))
        print(
            f"  {name:20} r {r:.3f} (of the word before {after:.3f}); ms per bit of the word and the one before: "
            f"{slopes}; gain {1000 * gain:.2f}e-3 nats a word"
        )


def main() -> None:
    """Read the command line, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", action="append", required=True, help="a model, may be given several times")
    parser.add_argument("--train", action="append", required=True, help="text to count words in")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA, "restricted", "natural-stories")
    if not folder.is_dir():
        harness.give_up(f"{folder} is not there: set LMGAUGE_DATA to the folder that holds restricted/natural-stories")
    stories, times = read_stories(folder)
    for model in arguments.model:
        print(model)
        compare(measure(model, stories, times, arguments.train))


if __name__ == "__main__":
    main()
