"""`lmgauge baseline` on 1 and 10 MB of training text (`--large`: on 200 MB, too), with `xz -9e` and `lmplz` for scale.

The ladder trains three n-gram models, scores the test text with each, and compresses it, also after the training text.
xz compresses the training text, and lmplz estimates one 5-gram of words from it; neither is a peer of the whole.

    python benchmarks/baseline_ladder.py --runs 3
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import harness
from harness import Goal, Measurement, median

MB = 1_000_000
SIZES, LARGE, TEST_MB = (1, 10), 200, 2
WALL_GOAL = 60.0  # seconds for 10 MB on two cores


def head_of(text: Path, size: int, target: Path) -> Path:
    """The whole lines of a text that begin in its first bytes."""
    with text.open("rb") as source, target.open("wb") as out:
        while out.tell() < size and (line := source.readline()):
            out.write(line)
    return target


def contestants(train: Path, test: Path, work: Path, lmgauge: str, lmplz: str | None) -> dict[str, list[str]]:
    """The command of each program."""
    arpa = work / "lmplz.arpa"
    commands = {"lmgauge baseline": [lmgauge, "baseline", str(train), str(test), "--json"]}
    if (xz := shutil.which("xz")) is not None:
        commands["xz -9e"] = [xz, "-9e", "-k", "-f", str(train)]
    if lmplz is not None:
        files = ["--text", str(train), "--arpa", str(arpa), "--discount_fallback"]
        commands["lmplz, order 5"] = [lmplz, "-o", "5", "-S", "4G", "-T", str(work), *files]
    return commands


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--train", type=Path, metavar="FILE", help="plain text, a sentence per line (classic-books)")
    options.add_argument("--test", type=Path, metavar="FILE", help="plain text (classic-books)")
    options.add_argument("--large", action="store_true", help=f"also {LARGE} MB")
    arguments = options.parse_args()
    train, test = arguments.train or harness.book_text("train.txt"), arguments.test or harness.book_text("test.txt")
    lmgauge = harness.lmgauge_program(arguments.lmgauge)
    lmplz = shutil.which("lmplz", path=None if arguments.kenlm is None else str(arguments.kenlm))
    harness.print_machine(lmgauge)
    rows, walls = [], {}
    with harness.work_folder(arguments.work) as work:
        scored = head_of(test, TEST_MB * MB, work / "test.txt")
        for size in (*SIZES, *((LARGE,) if arguments.large else ())):
            part = head_of(train, size * MB, work / f"train-{size}.txt")
            commands = contestants(part, scored, work, lmgauge, lmplz)
            measured: dict[str, list[Measurement]] = {name: [] for name in commands}

            def run(
                name: str, commands: dict[str, list[str]] = commands, into: dict[str, list[Measurement]] = measured
            ) -> None:
                into[name].append(harness.run_child(commands[name]))

            harness.note(f"{size} MB")
            harness.warm(part)
            harness.interleave(list(commands), arguments.runs, run)
            for name, runs in measured.items():
                wall, cpu = harness.seconds([r.wall for r in runs]), harness.seconds([r.cpu for r in runs])
                rows.append([f"{size}", name, wall, cpu, harness.megabytes(median([r.peak for r in runs]))])
            walls[size] = median([run.wall for run in measured["lmgauge baseline"]])
    harness.print_table(["train, MB", "program", "wall, s", "CPU, s", "peak, MB"], rows)
    return harness.report_goals([Goal("ladder of 10 MB: seconds", walls[10], WALL_GOAL, at_least=False)])


if __name__ == "__main__":
    sys.exit(main())
