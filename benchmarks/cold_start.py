"""What a short command costs, process start to end: a small evaluation, `--help`, and the bare import.

The model has about a million n-grams, the text 1 MB; files are in the page cache. Commands take turns, medians count.

    python benchmarks/cold_start.py --runs 11
"""

from __future__ import annotations

import sys
from pathlib import Path

import harness
import models
from harness import Goal, Measurement, median

EVAL_GOAL, IMPORT_GOAL, HELP_GOAL = 0.6, 0.1, 0.15  # seconds; of the import: beyond NumPy's own
TRAIN_BYTES, TEST_BYTES = 4_000_000, 1_000_000
BARE, NUMPY, PACKAGE, HELP, EVAL, QUERY = (
    "python -c pass",
    "import numpy",
    "import lmgauge",
    "lmgauge --help",
    "lmgauge eval",
    "query -v summary",
)


def _head_bytes(text: Path, size: int, name: str) -> Path:
    """The first lines of a text, `size` bytes or a little less, kept in the cache folder."""
    target = harness.cache_folder() / name
    if not target.exists():
        # In a child, so that this process stays small: see harness.py.
        harness.run_child([sys.executable, __file__, "head", str(text), str(size), str(target)])
    return target


def _write_head(text: str, size: str, target: str) -> None:
    with open(text, "rb") as source:
        head = source.read(int(size))
    Path(target).write_bytes(head[: head.rfind(b"\n") + 1])


def main() -> int:
    options = harness.parser(__doc__ or "", runs=11)
    options.add_argument("--order", type=int, default=3, metavar="N", help="order of the model (3)")
    arguments = options.parse_args()

    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    train = _head_bytes(harness.book_text("train.txt"), TRAIN_BYTES, "train-4MB.txt")
    test = _head_bytes(harness.book_text("test.txt"), TEST_BYTES, "test-1MB.txt")
    harness.print_machine(lmgauge)
    ours = models.lmgauge_model(lmgauge, train, arguments.order, arguments.work)
    theirs = models.kenlm_model(kenlm, train, arguments.order, arguments.work)
    ngrams = models.ngram_count(ours)
    print(f"model: order {arguments.order}, {ngrams:,} n-grams; text: {test.stat().st_size:,} bytes\n")

    commands = {
        BARE: [sys.executable, "-c", "pass"],
        NUMPY: [sys.executable, "-c", "import numpy"],
        PACKAGE: [sys.executable, "-c", "import lmgauge"],
        HELP: [lmgauge, "--help"],
        EVAL: [lmgauge, "eval", "-m", str(ours), str(test)],
        QUERY: [kenlm["query"], "-v", "summary", str(theirs)],
    }
    measured: dict[str, list[Measurement]] = {name: [] for name in commands}

    def run(name: str) -> None:
        stdin = test if name == QUERY else None
        measured[name].append(harness.run_child(commands[name], stdin=stdin))

    for name in commands:  # once unmeasured: files into the page cache, bytecode written
        harness.run_child(commands[name], stdin=test if name == QUERY else None)
    harness.interleave(list(commands), arguments.runs, run)

    walls = {name: median([one.wall for one in runs]) for name, runs in measured.items()}
    rows = []
    for name, runs in measured.items():
        cpu, peak = [one.cpu for one in runs], median([one.peak for one in runs])
        ratio = f"{walls[name] / walls[NUMPY]:.2f}"
        rows.append(
            [name, harness.seconds([one.wall for one in runs]), ratio, harness.seconds(cpu), harness.megabytes(peak)]
        )
    harness.print_table(["command", "wall, s", "x import numpy", "CPU, s", "peak, MB"], rows)
    return harness.report_goals(
        [
            Goal("lmgauge eval of 1 MB", walls[EVAL], EVAL_GOAL, at_least=False, unit=" s"),
            Goal(
                "import lmgauge beyond import numpy",
                walls[PACKAGE] - walls[NUMPY],
                IMPORT_GOAL,
                at_least=False,
                unit=" s",
            ),
            Goal("lmgauge --help", walls[HELP], HELP_GOAL, at_least=False, unit=" s"),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["head"]:
        _write_head(*sys.argv[2:])
    else:
        sys.exit(main())
