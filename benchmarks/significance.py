"""Significance from 100,000 paired segments: sign flips drawn 10,000 times and an interval, beside NumPy and SciPy.

Each run has a process of its own; only the call is timed. The interval is lmgauge's jackknife and slow waves, which draw
nothing, and the bootstrap of the others. NumPy draws and counts in batches, as one would write it; SciPy's
`permutation_test` and `bootstrap` get the same batches. All three must find the same interval and p-value, up to the chance
in their random numbers, or nothing is printed. SciPy works with fewer resamples and is counted up.

    python benchmarks/significance.py --runs 3
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import harness
from harness import Goal, median

SEGMENTS, RESAMPLES, SCIPY_RESAMPLES = 100_000, 10_000, 500
OURS, OURS_ONE, NUMPY, SCIPY = "lmgauge", "lmgauge, 1 thread", "NumPy", "SciPy"
GOAL_SECONDS = 5.0
# How much worse the second of the two models is, in standard errors of the mean; a test finds this in most cases.
EFFECT = 2.2


def _data() -> tuple[Any, Any]:
    import numpy as np

    generator = np.random.default_rng(1)
    events = generator.integers(5, 60, SEGMENTS).astype(float)
    differences = generator.normal(size=SEGMENTS) * np.sqrt(events)
    return differences + EFFECT * differences.std() / np.sqrt(SEGMENTS), events


def _child_lmgauge(threads: int | None) -> tuple[float, float, float, int]:
    from lmgauge.numerics.intervals import spread
    from lmgauge.numerics.significance import sign_flip_p_value

    differences, events = _data()
    start = time.perf_counter()
    p_value = sign_flip_p_value(differences, resamples=RESAMPLES, threads=threads)
    uncertainty = spread(differences, events)  # documents unknown: independent segments and slow waves
    seconds = time.perf_counter() - start
    if p_value is None or uncertainty is None:
        harness.give_up("lmgauge tested nothing")
    return seconds, p_value, uncertainty.interval().low, RESAMPLES


def _child_numpy() -> tuple[float, float, float, int]:
    import numpy as np

    differences, events = _data()
    start = time.perf_counter()
    generator, batch = np.random.default_rng(2), 50
    ratios, as_far = [], 0
    for _ in range(RESAMPLES // batch):
        signs = generator.integers(0, 2, (batch, SEGMENTS), dtype=np.int8) * 2 - 1
        as_far += int((abs(signs @ differences) >= abs(differences.sum())).sum())
        drawn = generator.integers(0, SEGMENTS, (batch, SEGMENTS)) + SEGMENTS * np.arange(batch)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=batch * SEGMENTS).reshape(batch, SEGMENTS)
        ratios.append((weights @ differences) / (weights @ events))
    low = float(np.percentile(np.concatenate(ratios), 2.5))
    return time.perf_counter() - start, (1 + as_far) / (1 + RESAMPLES), low, RESAMPLES


def _child_scipy() -> tuple[float, float, float, int]:
    import numpy as np
    from scipy import stats

    differences, events = _data()
    start = time.perf_counter()
    test = stats.permutation_test(
        (differences,), lambda d, axis: d.sum(axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=SCIPY_RESAMPLES, batch=50, rng=np.random.default_rng(2),
    )  # fmt: skip
    interval = stats.bootstrap(
        (differences, events), lambda d, n, axis: d.sum(axis=axis) / n.sum(axis=axis), paired=True, vectorized=True,
        n_resamples=SCIPY_RESAMPLES, batch=50, method="percentile", rng=np.random.default_rng(2),
    )  # fmt: skip
    return time.perf_counter() - start, float(test.pvalue), float(interval.confidence_interval.low), SCIPY_RESAMPLES


CHILDREN = {
    OURS: lambda: _child_lmgauge(None),
    OURS_ONE: lambda: _child_lmgauge(1),
    NUMPY: _child_numpy,
    SCIPY: _child_scipy,
}


def _child(name: str) -> None:
    seconds, p_value, low, resamples = CHILDREN[name]()
    harness.print_json(
        {"seconds": seconds * RESAMPLES / resamples, "p_value": p_value, "low": low, "peak": harness.peak_bytes()}
    )


def main() -> int:
    arguments = harness.parser(__doc__ or "", runs=3).parse_args()
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in CHILDREN}

    def run(name: str) -> None:
        answers[name].append(json.loads(harness.run_child([sys.executable, __file__, "child", name]).out))

    harness.interleave(list(CHILDREN), arguments.runs, run)
    for name, of_program in answers.items():
        ours, theirs = answers[OURS][0], of_program[0]
        if (
            abs(ours["p_value"] - theirs["p_value"]) > 0.03
            or abs(ours["low"] - theirs["low"]) > 0.1 * abs(ours["low"]) + 1e-3
        ):
            harness.give_up(f"{name} finds p = {theirs['p_value']:.4f}, low = {theirs['low']:.4g}; lmgauge {ours}")
    taken = {name: median([answer["seconds"] for answer in of_program]) for name, of_program in answers.items()}
    rows = [
        [
            name,
            harness.seconds([answer["seconds"] for answer in of_program]),
            f"{taken[name] / taken[OURS]:.1f}",
            harness.megabytes(median([answer["peak"] for answer in of_program])),
            f"{of_program[0]['p_value']:.4f}",
        ]
        for name, of_program in answers.items()
    ]
    print(f"{RESAMPLES:,} resamples of {SEGMENTS:,} segments, test and interval; SciPy counted up from {SCIPY_RESAMPLES}\n")
    harness.print_table(["program", "seconds", "x lmgauge", "peak, MB", "p"], rows)
    return harness.report_goals(
        [Goal("10,000 resamples of 100,000 segments", taken[OURS], GOAL_SECONDS, at_least=False, unit=" s")]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(sys.argv[2])
    else:
        sys.exit(main())
