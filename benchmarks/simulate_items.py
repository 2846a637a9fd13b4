"""How often `lmgauge compare` errs on scores of items: false alarms of equally good models, by what is independent.

Items have a difficulty that two models share. Each model has luck of its own with a cluster (a passage that it knows), with
an item, and with each answer: over new clusters and items both are equally good, so that each `real` difference is a false
alarm, and each interval without 0 misses. The same scores are also tested as if items of a cluster were independent.

    python benchmarks/simulate_items.py

1,000 draws a row take about half a minute of a core; the chance in each rate is 0.7 of a hundred.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import lmgauge
from lmgauge.tasks import ItemScores
from lmgauge.tasks.items.table import ItemsOrigin

LEVEL = 0.05


@dataclass(frozen=True)
class Row:
    """How scores are drawn."""

    name: str
    clusters: int
    size: float = 1.0  # mean items of a cluster
    even: bool = True  # clusters are of one size; else as a geometric distribution has it
    samples: int = 1
    graded: bool = False  # scores are shares of ten points
    models: int = 2


ROWS = (
    *(Row(f"{n} items, 0 or 1", n) for n in (30, 100, 1000)),
    *(Row(f"{n} items, graded", n, graded=True) for n in (30, 100)),
    *(Row(f"{n} items, 4 samples", n, samples=4) for n in (30, 100)),
    *(Row(f"{n} clusters of 8, 0 or 1", n, 8) for n in (6, 10, 30, 100)),
    *(Row(f"{n} clusters of 1 to 40, 0 or 1", n, 8, even=False) for n in (10, 30, 100)),
    *(Row(f"{n} clusters of 8, 4 samples", n, 8, samples=4) for n in (10, 30)),
    Row("100 items, 0 or 1, 5 models", 100, models=5),
)


def drawn(row: Row, generator: np.random.Generator) -> list[ItemScores]:
    """Scores of equally good models."""
    sizes = np.full(row.clusters, int(row.size))
    if not row.even:
        sizes = np.minimum(generator.geometric(1 / row.size, row.clusters), 40)
    clusters = np.repeat(np.arange(row.clusters), sizes)
    shape = (row.models, len(clusters), row.samples)
    luck = generator.normal(size=(row.models, row.clusters))[:, clusters, None] * (row.size > 1)
    ease = generator.normal(size=len(clusters))[None, :, None] + luck + generator.normal(size=shape[:2])[:, :, None]
    chance = 1 / (1 + np.exp(-ease))
    trials = 10 if row.graded else 1
    scores = generator.binomial(trials, np.broadcast_to(chance, shape)) / trials
    items = [str(i) for i in range(len(clusters)) for _ in range(row.samples)]
    named = [f"c{cluster}" if row.size > 1 else "" for cluster in clusters for _ in range(row.samples)]
    numbers, none = np.tile(np.arange(row.samples), len(clusters)), [""] * len(items)
    return [
        ItemScores(ItemsOrigin(f"m{i}", "acc", "drawn"), items, own.ravel(), numbers, none, named, none)
        for i, own in enumerate(scores)
    ]


def rates(row: Row, draws: int) -> Iterator[float]:
    """False alarms, intervals without 0, and false alarms if items were independent, of a hundred."""
    alarms, misses, naive = 0, 0, 0
    for draw in range(draws):
        tests = lmgauge.tasks.compare_items(drawn(row, np.random.default_rng((draw, row.clusters)))).differences
        alarms += any(test.significant for test in tests)
        ends = tests[0].interval
        misses += ends is not None and not ends.low <= 0 <= ends.high
        naive += tests[0].p_value_of_items is not None and tests[0].p_value_of_items < LEVEL
    return (100 * count / draws for count in (alarms, misses, naive))


def main() -> None:
    """Print a row for each way to draw scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print(f"{'of 100 draws of equally good models':36}{'false alarms':>14}{'intervals miss':>16}{'as if no clusters':>19}")
    for row in ROWS:
        alarms, misses, naive = rates(row, draws)
        print(f"{row.name:36}{alarms:14.1f}{misses:16.1f}{f'{naive:.1f}' if row.size > 1 else '-':>19}", flush=True)


if __name__ == "__main__":
    main()
