"""Whole distributions of n-gram models: entropy of every event beside plain scoring, divergence of two models.

Commands are measured as whole processes, calls in one process on one thread; all figures are CPU seconds. Entropies and
divergences are first held against sums over all words.

    python benchmarks/distributions_ngram.py --runs 5
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import models
from harness import Goal, median

COMMAND_GOAL = 2.0  # eval with the column, over eval
SAMPLE, ADDED_UP = 5000, 300  # events looked at in tiles; events whose distributions are added up word by word
BARE, PLAIN, ENTROPY = "eval", "eval -o run", "eval -o run --columns entropy"


def _child(a_path: str, b_path: str, text_path: str) -> None:
    import numpy as np

    import lmgauge
    from lmgauge.scores.distributions.reduce import reduce, reduce_pair
    from lmgauge.scores.distributions.reductions import Divergences, Entropy, KullbackLeibler, Rank, TopK, direct

    a, b = lmgauge.load_model(a_path), lmgauge.load_model(b_path)
    text = lmgauge.Corpus.from_files([text_path])
    cpu: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any], share: float = 1.0) -> Any:
        start = time.process_time()
        result = work()
        cpu[name] = (time.process_time() - start) / share
        return result

    def entropies() -> Any:
        return np.concatenate([batch.extra["entropy"] for batch in reduce(a, text, [Entropy()], spans=False, threads=1)])

    def divergences(reduction: Any, events: Any = None) -> Any:
        blocks = reduce_pair(a, b, text, reduction, events=events, threads=1)
        return np.concatenate([columns["kl_ab"] for _, _, columns in blocks])

    list(a.score(text, spans=False, threads=1)), list(b.score(text, spans=False, threads=1))  # pages of the models
    scored = timed("score", lambda: list(a.score(text, spans=False, threads=1)))
    events = sum(len(batch) for batch in scored)
    chosen = np.linspace(0, events - 1, min(SAMPLE, events)).astype(np.int64)
    share = len(chosen) / events
    entropy = timed("entropy, first time", entropies)
    timed("entropy, again", entropies)
    closed = timed("divergence", lambda: divergences(KullbackLeibler()))
    checked = chosen[:: max(1, len(chosen) // ADDED_UP)]
    blocks = [list(m.distributions(text, events=checked, spans=False, threads=1)) for m in (a, b)]
    tiles = [[tile.logprob for block in side for tile in block.tiles()] for side in blocks]
    whole, other = (np.concatenate(side) for side in tiles)
    p = np.exp(whole)
    np.testing.assert_allclose(entropy[checked], -(p * whole).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(closed[checked], [direct(*pair)[0] for pair in zip(whole, other, strict=True)], rtol=1e-9)
    timed("divergence by tiles", lambda: divergences(Divergences(()), chosen), share)
    for name, reduction in {"rank": Rank(), "ten most probable": TopK(10)}.items():
        timed(name, lambda r=reduction: list(reduce(a, text, [r], spans=False, threads=1)))
    harness.print_json({"cpu": cpu, "events": events, "peak": harness.peak_bytes()})


def main() -> int:
    options = harness.parser(__doc__ or "", runs=5)
    options.add_argument("--train", type=Path, metavar="FILE", help="training text (Penn Treebank)")
    options.add_argument("--test", type=Path, metavar="FILE", help="held-out text (Penn Treebank)")
    options.add_argument("--order", type=int, default=5, help="of the model; the other one is Witten-Bell of order 3 (5)")
    arguments = options.parse_args()
    train, test = arguments.train or harness.treebank_text("train"), arguments.test or harness.treebank_text("test")
    program = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(program)
    model = models.lmgauge_model(program, train, arguments.order, arguments.work)
    other = models.lmgauge_model(program, train, 3, arguments.work, smoothing="witten-bell")
    commands: dict[str, list[str]] = {BARE: [], PLAIN: [], ENTROPY: ["--columns", "entropy"]}
    runs: dict[str, list[harness.Measurement]] = {name: [] for name in commands}
    calls: list[dict[str, Any]] = []

    def measure(name: str) -> None:
        if name in commands:
            common = ["eval", "-m", str(model), str(test), "--reserved", "escape", "--threads", "1", *commands[name]]
            with harness.work_folder(arguments.work) as folder:
                out = [] if name == BARE else ["-o", str(folder / "run")]
                runs[name].append(harness.run_child([program, *common, *out]))
        else:
            child = [sys.executable, __file__, "child", str(model), str(other), str(test)]
            calls.append(json.loads(harness.run_child(child).out))

    for path in (model, other, test):
        harness.warm(path)
    harness.interleave([*commands, "calls"], arguments.runs, measure)
    return _report(runs, calls)


def _report(runs: dict[str, list[harness.Measurement]], calls: list[dict[str, Any]]) -> int:
    cpu = {name: median([run.cpu for run in each]) for name, each in runs.items()}
    rows = [
        [name, harness.seconds([run.cpu for run in found]), "", f"{cpu[name] / cpu[PLAIN]:.3g}"]
        for name, found in runs.items()
    ]
    events, plain = calls[0]["events"], median([call["cpu"]["score"] for call in calls])
    for name in calls[0]["cpu"]:
        values = [call["cpu"][name] for call in calls]
        micro = f"{median(values) / events * 1e6:.3g}"
        rows.append([name, harness.seconds(values), micro, f"{median(values) / plain:.3g}"])
    print(f"{events:,} events; calls: peak {harness.megabytes(median([call['peak'] for call in calls]))} MB")
    print()
    harness.print_table(["", "CPU, s", "microseconds an event", "x plain"], rows)
    faster = median([call["cpu"]["divergence by tiles"] / call["cpu"]["divergence"] for call in calls])
    goals = [
        Goal("eval with entropy, over eval", cpu[ENTROPY] / cpu[PLAIN], COMMAND_GOAL, at_least=False),
        Goal("divergence, over tiles", faster if math.isfinite(faster) else 0, 10, at_least=True),
    ]
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
