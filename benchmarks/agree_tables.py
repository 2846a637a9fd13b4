"""`lmgauge agree` of two Parquet tables of log-probabilities: whole commands on one core, pairs of tokens a second, memory.

Two shapes of the same numbers: a row a token (dictionary of tokens, float64), and a row a sequence (lists, as trainers keep
them, float32). The peer is a script of pandas and numpy with eight figures and nothing else: no intervals, slices, worst
tokens or checks. Its mean must agree before anything is printed. `part` is what nine tenths of the tokens add to the
command, so without its start. Memory must not grow with the table.

    python benchmarks/agree_tables.py --runs 3
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import harness
from harness import Goal, Measurement, median

SIZES, SEQUENCE, TOKENS = (1_000_000, 10_000_000), 1000, 30_000
PER_SECOND, GROWTH = 10e6, 1.15
SHAPES = ("a row a token", "a row a sequence")
OURS, PEER = "lmgauge agree", "pandas and numpy"


def _make(folder: str, count: str) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, n = np.random.default_rng(0), int(count)
    ids = rng.zipf(1.2, n).astype(np.int64) % TOKENS
    first = -rng.exponential(2.0, n)
    tables = {"a": first, "b": np.minimum(first + rng.normal(0, 0.01, n), 0)}
    words = pa.array([f"#{i}" for i in range(TOKENS)])
    tokens = pa.DictionaryArray.from_arrays(pa.array(ids.astype(np.int32)), words)
    offsets = pa.array(np.arange(0, n + 1, SEQUENCE, dtype=np.int32))
    for name, values in tables.items():
        rows = {"segment": np.arange(n) // SEQUENCE, "token": tokens, "logprob": values}
        pq.write_table(pa.table(rows), f"{folder}/{name}-0-{n}.parquet")
        columns = {"token_ids": ids.astype(np.int32), "logprobs": values.astype(np.float32)}
        lists = {key: pa.ListArray.from_arrays(offsets, pa.array(column)) for key, column in columns.items()}
        pq.write_table(pa.table(lists), f"{folder}/{name}-1-{n}.parquet")


def _peer(a: str, b: str) -> None:
    import numpy as np
    import pandas as pd

    first, second = (pd.read_parquet(path) for path in (a, b))
    if "logprobs" in first:
        x, y = (np.concatenate(table["logprobs"].to_numpy()).astype(np.float64) for table in (first, second))
    else:
        x, y = (table["logprob"].to_numpy() for table in (first, second))
    d = y - x
    ratio = np.exp(d)
    figures = [d.mean(), np.abs(d).mean(), np.sqrt((d * d).mean()), np.abs(d).max(), (ratio - 1 - d).mean()]
    outside = ((ratio < 0.9) | (ratio > 1.1)).mean()
    harness.print_json([*figures, outside, *np.quantile(d, [0.05, 0.95])])


def main() -> int:
    os.environ |= {"OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    arguments = harness.parser(__doc__ or "", runs=3).parse_args()
    program = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(program)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    folder = harness.cache_folder() / "agree-tables"
    folder.mkdir(exist_ok=True)
    for size in SIZES:
        if not Path(folder, f"b-1-{size}.parquet").exists():
            harness.run_child([sys.executable, __file__, "make", str(folder), str(size)])
    rows, goals = [], list[Goal]()
    for shape, title in enumerate(SHAPES):
        cpu, peak = dict[tuple[str, int], float](), dict[tuple[str, int], float]()
        for size in SIZES:
            paths = [f"{folder}/{name}-{shape}-{size}.parquet" for name in "ab"]
            commands = {OURS: [program, "agree", *paths, "--json"], PEER: [sys.executable, __file__, "peer", *paths]}
            measured: dict[str, list[Measurement]] = {name: [] for name in commands}

            def run(
                name: str, commands: dict[str, list[str]] = commands, into: dict[str, list[Measurement]] = measured
            ) -> None:
                into[name].append(harness.run_child(commands[name]))

            harness.interleave(list(commands), arguments.runs, run)
            ours = json.loads(measured[OURS][0].out)["figures"]["mean_size"]["value"]
            theirs = json.loads(measured[PEER][0].out.strip().splitlines()[-1])[1]
            if abs(ours / theirs - 1) > 1e-6:
                harness.give_up(f"{title}: mean size {ours} by lmgauge, {theirs} by numpy")
            for name, each in measured.items():
                cpu[name, size] = median([one.cpu for one in each])
                peak[name, size] = median([one.peak for one in each])
        small, large = SIZES
        rate = {name: (large - small) / (cpu[name, large] - cpu[name, small]) for name in (OURS, PEER)}
        for name in (OURS, PEER):
            whole = f"{cpu[name, large]:.2f}"
            memory = [harness.megabytes(peak[name, size]) for size in SIZES]
            rows.append(
                [f"{title}, {name}", whole, f"{large / cpu[name, large] / 1e6:.1f}", f"{rate[name] / 1e6:.1f}", *memory]
            )
        goals.append(
            Goal(f"{title}: million pairs a second, part", rate[OURS] / 1e6, PER_SECOND / 1e6, at_least=True, unit="")
        )
        goals.append(Goal(f"{title}: CPU over {PEER}", cpu[OURS, large] / cpu[PEER, large], 1.0, at_least=False))
        goals.append(
            Goal(f"{title}: memory of 10 times the tokens", peak[OURS, large] / peak[OURS, small], GROWTH, at_least=False)
        )
    head = ["tables of 10 million tokens", "CPU, s", "M pairs/s", "part, M pairs/s", "peak, 1 M", "peak, 10 M"]
    harness.print_table(head, rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        _make(*sys.argv[2:])
    elif sys.argv[1:2] == ["peer"]:
        _peer(*sys.argv[2:])
    else:
        sys.exit(main())
