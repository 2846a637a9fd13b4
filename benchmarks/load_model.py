"""Loading a saved model: seconds from the call to a model that answers, beside KenLM's of the same model.

Each load has a process of its own, files in the page cache; only the call is timed (Python and its libraries are in
already), then the same call with one question asked. KenLM is timed as its package loads: the memory map filled first.

    python benchmarks/load_model.py --order 3 --order 5 --runs 5
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import harness
import models
from harness import Goal, median

GOAL_SECONDS, GOAL_NGRAMS = 0.1, 10_000_000
OURS, THEIRS = "lmgauge", "kenlm package"


def _child_lmgauge(path: str) -> None:
    import numpy as np

    import lmgauge
    import lmgauge.models.ngram.storage  # the call is measured, not the imports behind it

    start = time.perf_counter()
    model = lmgauge.load_model(path)
    loaded = time.perf_counter() - start
    known = model.log_distribution(np.array([model.vocabulary.id("<s>")]))
    answered = time.perf_counter() - start
    harness.print_json({"loaded": loaded, "answered": answered, "peak": harness.peak_bytes(), "words": len(known)})


def _child_kenlm(path: str) -> None:
    import kenlm

    start = time.perf_counter()
    model = kenlm.Model(path)
    loaded = time.perf_counter() - start
    model.score("the")
    answered = time.perf_counter() - start
    harness.print_json({"loaded": loaded, "answered": answered, "peak": harness.peak_bytes()})


def _measure(order: int, paths: dict[str, Path], runs: int) -> dict[str, list[dict[str, Any]]]:
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in paths}

    def load(name: str) -> None:
        answer = harness.run_child([sys.executable, __file__, "child", name, str(paths[name])])
        answers[name].append(json.loads(answer.out))

    for path in paths.values():
        harness.warm(path)
    harness.note(f"order {order}")
    harness.interleave(list(paths), runs, load)
    return answers


def _row(order: int, name: str, answers: list[dict[str, Any]], ngrams: int, path: Path) -> list[str]:
    loaded = [answer["loaded"] for answer in answers]
    each = median(loaded) * GOAL_NGRAMS / ngrams
    answered = harness.seconds([answer["answered"] for answer in answers])
    size, peak = harness.folder_bytes(path), median([answer["peak"] for answer in answers])
    sizes = [harness.megabytes(size), harness.megabytes(peak)]
    return [f"{order}", name, f"{ngrams / 1e6:.2f}", harness.seconds(loaded), f"{each:.3g}", answered, *sizes]


def main() -> int:
    options = harness.parser(__doc__ or "", runs=5)
    options.add_argument("--order", type=int, action="append", metavar="N", help="may be repeated (3 and 5)")
    options.add_argument("--train", type=Path, metavar="FILE", help="training text (classic-books)")
    arguments = options.parse_args()

    train = arguments.train or harness.book_text("train.txt")
    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    harness.print_machine(lmgauge)
    rows, goals = [], []
    for order in arguments.order or [3, 5]:
        ours = models.lmgauge_model(lmgauge, train, order, arguments.work)
        paths = {OURS: ours, THEIRS: models.kenlm_model(kenlm, train, order, arguments.work)}
        answers = _measure(order, paths, arguments.runs)
        ngrams = models.ngram_count(ours)
        rows += [_row(order, name, answers[name], ngrams, paths[name]) for name in paths]
        loaded = median([answer["loaded"] for answer in answers[OURS]])
        each = loaded * GOAL_NGRAMS / ngrams
        goals.append(Goal(f"order {order}: load of 10 M n-grams", each, GOAL_SECONDS, at_least=False, unit=" s"))
    head = ["order", "program", "M n-grams", "load, s", "per 10 M, s", "load and answer, s", "on disk, MB", "peak, MB"]
    harness.print_table(head, rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child_lmgauge(sys.argv[3]) if sys.argv[2] == OURS else _child_kenlm(sys.argv[3])
    else:
        sys.exit(main())
