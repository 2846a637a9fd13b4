"""How often a comparison that stops when it is decided errs on real text, and how soon it stops.

Four small models score the documents of three collections, once: openings of books, earnings calls (long and few, as
hearings are) and articles of the web. What a draw sees are documents in random order, and the nats of two models.

* **false alarms**: a coin per document decides whose nats are whose, so that no model is better; the share of draws in which
  a way of deciding ever says that one is. `lmgauge compare --until decided` looks after each few documents, and makes one
  last test of all of them; beside it the ordinary paired test at 5 %, once at the end and at twenty looks.
* **stopping**: pairs of models whose ordinary test of all documents has p < 1e-4: the share of the documents that are scored
  before it is decided, and how often the other model than over all documents is chosen.

`lmgauge divergence --until decided` asks the same of KL from a base: here the first model, its n-grams pruned in three ways.
Which of two is nearer is simulated as above. Of one and a limit no coin makes a null: the limit is the mean of all
documents, and each draw has as many, drawn with replacement, so that such texts lie around it. The share scored is then
that of a limit a quarter above the mean.

    python benchmarks/simulate_stopping.py

Texts come from the folder of LMGAUGE_DATA; totals of documents are kept in the cache of the benchmarks.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import harness
import lmgauge
from lmgauge.evaluation.comparison.until import LAST, LOOKS
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.numerics.intervals import spread
from lmgauge.numerics.sequential import confidence_sequence
from lmgauge.scores.distributions import KullbackLeibler, reduce_pair
from simulate_verdicts import Documents, articles, opening, shuffled, unpacked

Floats = NDArray[np.float64]
TWENTY, LEVEL, SURE = 20, 0.05, 1e-4
THRESHOLDS, ABOVE = (1e-8, 1e-7, 1.1e-7), 1.25


# --- collections: float64 [documents, models] nats, and events ------------------------------------------------


def starts_of(texts: Documents) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum([len(text) for text in texts])))[:-1]


def totals(texts: Documents, trained: list[Documents]) -> Floats:
    """Train two models (order 3 and Witten-Bell of order 2) on each part, and return nats and events of each document."""
    lines, columns = [line for text in texts for line in text], []
    starts = starts_of(texts)
    for part in trained:
        corpus = lmgauge.Corpus.from_strings([line for text in part for line in text])
        for kind, order in (("modified-kneser-ney", 3), ("witten-bell", 2)):
            tally = EventSums()
            for batch in lmgauge.train(kind, corpus, order=order, reserved="unk").score(lmgauge.Corpus.from_strings(lines)):
                tally.add(batch)
            sums = tally.per_segment()
            columns.append(np.add.reduceat(-sums.nats, starts))
    return np.column_stack([*columns, np.add.reduceat(sums.events.astype(np.float64), starts)])


def divergences(texts: Documents, trained: list[Documents]) -> Floats:
    """Prune a model of the first part in three ways, and return the KL from it and the events of each document."""
    corpus = lmgauge.Corpus.from_strings([line for text in trained[0] for line in text])
    base = lmgauge.train("modified-kneser-ney", corpus, order=3, reserved="unk")
    text, columns = lmgauge.Corpus.from_strings([line for text in texts for line in text]), []
    for threshold in THRESHOLDS:
        nats, events = [], []
        for batch, _, own in reduce_pair(base, lmgauge.prune(base, threshold=threshold).model, text, KullbackLeibler()):
            segments = np.repeat(np.arange(len(batch.segments)), batch.segment_events)
            nats.append(np.bincount(segments, own["kl_ab"], len(batch.segments)))
            events.append(batch.segment_events)
        columns.append(np.add.reduceat(np.concatenate(nats), starts_of(texts)))
    return np.column_stack([*columns, np.add.reduceat(np.concatenate(events).astype(np.float64), starts_of(texts))])


def books(data: Path) -> tuple[Documents, list[Documents]]:
    lines = unpacked(data / "classic-books" / "train.txt.zst")
    rows = [row.split("\t") for row in (data / "classic-books" / "index.tsv").read_text(encoding="utf-8").splitlines()]
    places = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    whole = shuffled([lines[int(r["first_line"]) - 1 :][: int(r["lines"])] for r in places if r["split"] == "train"])
    rest = [book[: opening(book, 5000)] for book in whole[40:] if len(book) >= 100]
    return rest, [whole[:20], whole[20:40]]


def calls(data: Path) -> tuple[Documents, list[Documents]]:
    rows = [line.split("\t")[1].split() for line in unpacked(data / "asr-earnings21" / "ref.tsv.gz")]
    texts = [[" ".join(words[i : i + 25]) for i in range(0, len(words), 25)] for words in rows]
    encyclopedia, novels = unpacked(data / "wikitext-2" / "train.txt.gz"), unpacked(data / "classic-books" / "valid.txt.gz")
    return texts, [[encyclopedia], [novels]]


def web(data: Path) -> tuple[Documents, list[Documents]]:
    documents = shuffled(articles(data))
    return documents[300:], [documents[:150], documents[150:300]]


COLLECTIONS = {"openings of books": books, "earnings calls": calls, "articles": web}


def collection(name: str, data: Path, add_up: Callable[[Documents, list[Documents]], Floats]) -> Floats:
    file = harness.cache_folder() / f"stopping-{add_up.__name__}-{name.replace(' ', '-')}.npy"
    if not file.exists():
        np.save(file, add_up(*COLLECTIONS[name](data)))
    return np.asarray(np.load(file))


# --- what is simulated ----------------------------------------------------------------------------------------


def p_value(apart: Floats, sizes: Floats) -> float:
    leading = spread(apart, sizes, np.arange(len(apart)))
    return 1.0 if leading is None else leading.p_value


def decided_at(apart: Floats, sizes: Floats) -> int | None:
    """Return the number of documents at which it is decided; None if it is not."""
    low, high = confidence_sequence(apart, sizes, LOOKS)
    hits = np.flatnonzero((low > 0) | (high < 0))
    return int(hits[0]) + 1 if len(hits) else len(apart) if p_value(apart, sizes) < LAST else None


def peeked(apart: Floats, sizes: Floats) -> bool:
    looks = np.unique(np.linspace(0, len(apart), TWENTY + 1).astype(int)[1:])
    return any(p_value(apart[:look], sizes[:look]) < LEVEL for look in looks.tolist())


@dataclass(frozen=True)
class Asked:
    """Two models, or one and a limit: the difference of nats of each document, and its size."""

    label: str
    apart: Floats
    sizes: Floats
    coin: bool = True  # makes the null; or the mean is taken off, and documents are drawn with replacement

    def null(self, generator: np.random.Generator, order: NDArray[np.int64]) -> tuple[Floats, Floats]:
        documents = len(self.sizes)
        if self.coin:
            return (self.apart * generator.choice([-1.0, 1.0], documents))[order], self.sizes[order]
        picked = generator.integers(0, documents, documents)
        return (self.apart - self.apart.sum() / self.sizes.sum() * self.sizes)[picked], self.sizes[picked]

    def simulated(self, draws: int, seed: int) -> tuple[list[tuple[bool, bool, bool]], list[float], int]:
        """Return false alarms of three ways to decide, shares of the documents scored, and how often it is wrong."""
        generator = np.random.default_rng(seed)
        alarms, shares, wrong = [], [], 0
        for _ in range(draws):
            order = generator.permutation(len(self.sizes))
            null = self.null(generator, order)
            alarms.append((decided_at(*null) is not None, p_value(*null) < LEVEL, peeked(*null)))
            stop = decided_at(self.apart[order], self.sizes[order])
            shares.append((stop or len(order)) / len(order))
            wrong += stop is not None and self.apart[order][:stop].sum() * self.apart.sum() < 0
        return alarms, shares, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000, help="draws of each pair of models (1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (1)")
    arguments = parser.parse_args()
    data = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA, "open")
    if not data.is_dir():
        harness.give_up(f"{data} is not there: set LMGAUGE_DATA to the folder that holds open/")
    errors, stops = [], []
    for name in COLLECTIONS:
        *nats, sizes = collection(name, data, totals).T
        asked = [Asked(f"{i + 1} / {j + 1}", nats[j] - nats[i], sizes) for i, j in combinations(range(len(nats)), 2)]
        *nats, sizes = collection(name, data, divergences).T
        asked += [Asked(f"KL of {i + 1} / {j + 1}", nats[j] - nats[i], sizes) for i, j in combinations(range(len(nats)), 2)]
        for i, own in enumerate(nats):
            asked.append(Asked(f"KL of {i + 1}, limit", own - ABOVE * own.sum() / sizes.sum() * sizes, sizes, coin=False))
        for one in asked:
            alarms, shares, wrong = one.simulated(arguments.draws, arguments.seed)
            label, whole = [name, f"{len(sizes)}", one.label], p_value(one.apart, sizes)
            errors.append([*label, *(f"{100 * float(rate):.1f}" for rate in np.mean(alarms, axis=0))])
            if whole < SURE:
                cells = [f"{100 * float(share):.0f}" for share in (np.median(shares), np.mean(shares))]
                stops.append([*label, f"{whole:.1e}", *cells, f"{100 * wrong / arguments.draws:.1f}"])
            harness.note(f"{name}: {one.label}")
    print("\nFalse alarms, per cent of draws in which no model is better\n")
    head = ["collection", "documents", "models"]
    harness.print_table([*head, "until decided", "5 % test, once", f"5 % test, {TWENTY} looks"], errors)
    print("\nPer cent of the documents scored before it is decided, and of draws that choose the other model\n")
    harness.print_table([*head, "p of all", "median", "mean", "wrong"], stops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
