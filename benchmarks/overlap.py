"""Test text inside training text: 1.5 million words against 38 million, compared with sets of tuples in plain Python.

The peer counts the test's 13-grams that occur in the training text, and nothing else; lmgauge also finds the longest runs,
their places, and whole duplicates. Both counts must agree, or nothing is printed. Files are in the page cache.

    python benchmarks/overlap.py --runs 3
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import harness
from harness import Goal, Measurement, median

GOAL_SECONDS, GOAL_BYTES = 20, 1e9
N, THREADS = 13, 2
ALL, FOLDED, PEER = "lmgauge overlap", "lmgauge overlap --fold", "sets of tuples"


def _ngrams(path: str) -> Iterator[tuple[str, ...]]:
    """The n-grams of a file's words, across its lines."""
    with open(path, encoding="utf-8") as lines:
        words = (word for line in lines for word in line.split())
        gram = tuple(islice(words, N))
        if len(gram) == N:
            yield gram
        for word in words:
            gram = (*gram[1:], word)
            yield gram


def _child_peer(train: str, test: str) -> None:
    wanted = set(_ngrams(test))
    seen = {gram for gram in _ngrams(train) if gram in wanted}
    counts = {"seen_ngrams": sum(gram in seen for gram in _ngrams(test)), "seen_distinct_ngrams": len(seen)}
    harness.print_json(counts)


def _row(name: str, runs: list[Measurement], peer: float) -> list[str]:
    walls = [one.wall for one in runs]
    cpu, peak = harness.seconds([one.cpu for one in runs]), harness.megabytes(median([one.peak for one in runs]))
    return [name, harness.seconds(walls), f"{peer / median(walls):.1f}", cpu, peak]


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--train", type=Path, metavar="FILE", help="training text (classic-books)")
    options.add_argument("--test", type=Path, metavar="FILE", help="test text (classic-books)")
    arguments = options.parse_args()

    train, test = arguments.train or harness.book_text("train.txt"), arguments.test or harness.book_text("test.txt")
    lmgauge = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(lmgauge)
    ours = [lmgauge, "overlap", str(train), str(test), "--json", "--threads", str(THREADS)]
    commands = {
        ALL: ours,
        FOLDED: [*ours, "--fold"],
        PEER: [sys.executable, __file__, "child", str(train), str(test)],
    }
    measured: dict[str, list[Measurement]] = {name: [] for name in commands}
    for path in (train, test):
        harness.warm(path)
    harness.interleave(list(commands), arguments.runs, lambda name: measured[name].append(harness.run_child(commands[name])))

    answers = {name: json.loads(runs[0].out) for name, runs in measured.items()}
    for count in ("seen_ngrams", "seen_distinct_ngrams"):
        if len({answers[name][count] for name in (ALL, PEER)}) > 1:
            harness.give_up(f"{count} differ: { ({name: answer[count] for name, answer in answers.items()}) }")
    peer = median([one.wall for one in measured[PEER]])
    rows = [_row(name, runs, peer) for name, runs in measured.items()]
    harness.print_table(["program", "wall, s", "x faster", "CPU, s", "peak, MB"], rows)
    wall, peak = (median([getattr(one, name) for one in measured[ALL]]) for name in ("wall", "peak"))
    return harness.report_goals(
        [
            Goal("overlap on two threads", wall, GOAL_SECONDS, at_least=False, unit=" s"),
            Goal("its peak memory", peak / harness.MB, GOAL_BYTES / harness.MB, at_least=False, unit=" MB"),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child_peer(*sys.argv[2:])
    else:
        sys.exit(main())
