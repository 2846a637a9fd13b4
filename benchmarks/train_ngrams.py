"""Text to a queryable, saved model: `lmgauge train` against `lmplz` followed by `build_binary probing`.

Both estimate interpolated modified Kneser-Ney of the same order on the same text, nothing pruned, and end with a model
on disk that can be loaded and asked. Text is read from the page cache; lmplz has 4 GB for sorting.

    python benchmarks/train_ngrams.py --order 3 --order 5 --runs 3
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import harness
from cut_text import Shape
from harness import Goal, Measurement, median

SPEED_GOALS = {3: 7.0, 5: 9.0}  # order: times faster in wall time than lmplz and build_binary together
MEMORY_GOAL = 1.5  # times lmplz's own peak
SIZE_GOAL = 1.0  # times the binary's size on disk


@dataclass
class Record:
    """The measurements of one program at one order, a list entry per run."""

    runs: list[Measurement] = field(default_factory=list)
    model_bytes: int = 0

    @property
    def wall(self) -> list[float]:
        return [run.wall for run in self.runs]

    @property
    def peak(self) -> float:
        return median([run.peak for run in self.runs])

    def row(self, order: int, name: str) -> list[str]:
        cpu = harness.seconds([run.cpu for run in self.runs])
        size = harness.megabytes(self.model_bytes) if self.model_bytes else ""
        return [f"{order}", name, harness.seconds(self.wall), cpu, harness.megabytes(self.peak), size]


@dataclass
class Trainer:
    """Trains models of one order by each program, each time from nothing."""

    order: int
    text: Path
    work: Path
    lmgauge: str
    kenlm: dict[str, str]
    threads: int | None
    records: dict[str, Record] = field(default_factory=dict)

    def train(self, contestant: str) -> None:
        if contestant == "lmgauge":
            self._lmgauge()
        else:
            self._kenlm()

    def _lmgauge(self) -> None:
        model = self.work / "lmgauge"
        command = [self.lmgauge, "train", "modified-kneser-ney", "--order", str(self.order), "--reserved", "escape"]
        if self.threads:
            command += ["--threads", str(self.threads)]
        self._record("lmgauge train", harness.run_child([*command, str(self.text), "-o", str(model)]), model)
        shutil.rmtree(model)

    def _kenlm(self) -> None:
        arpa, binary = self.work / "kenlm.arpa", self.work / "kenlm.binary"
        sorting = ["-S", "4G", "-T", str(self.work / "sort")]
        files = ["--text", str(self.text), "--arpa", str(arpa)]
        # Small texts: lmplz stops where a discount cannot be estimated; the option does nothing elsewhere.
        command = [self.kenlm["lmplz"], "-o", str(self.order), *sorting, *files, "--discount_fallback"]
        estimated = harness.run_child(command)
        built = harness.run_child([self.kenlm["build_binary"], "probing", str(arpa), str(binary)])
        self._record("lmplz", estimated, arpa)
        self._record("build_binary", built, binary)
        arpa.unlink()
        binary.unlink()

    def _record(self, name: str, measured: Measurement, model: Path) -> None:
        record = self.records.setdefault(name, Record())
        record.runs.append(measured)
        record.model_bytes = harness.folder_bytes(model)

    def both_walls(self) -> list[float]:
        """Seconds of lmplz and build_binary together, run by run."""
        pairs = zip(self.records["lmplz"].wall, self.records["build_binary"].wall, strict=True)
        return [estimate + build for estimate, build in pairs]

    def rows(self) -> list[list[str]]:
        rows = [self.records[name].row(self.order, name) for name in ("lmgauge train", "lmplz", "build_binary")]
        return [*rows, [f"{self.order}", "lmplz + build_binary", harness.seconds(self.both_walls()), "", "", ""]]

    def goals(self) -> list[Goal]:
        ours = self.records["lmgauge train"]
        speed = median(self.both_walls()) / median(ours.wall)
        memory = ours.peak / self.records["lmplz"].peak
        size = ours.model_bytes / self.records["build_binary"].model_bytes
        speed_goal = SPEED_GOALS.get(self.order, min(SPEED_GOALS.values()))
        return [
            Goal(f"order {self.order}: times faster than lmplz + build_binary", speed, speed_goal, at_least=True),
            Goal(f"order {self.order}: model on disk over the probing binary", size, SIZE_GOAL, at_least=False),
            Goal(f"order {self.order}: peak memory over lmplz's", memory, MEMORY_GOAL, at_least=False),
        ]


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--order", type=int, action="append", metavar="N", help="may be repeated (3 and 5)")
    options.add_argument("--train", type=Path, metavar="FILE", help="plain text, a sentence per line (classic-books)")
    options.add_argument("--train-words", type=int, default=0, metavar="M", help="train on the first M million words (all)")
    options.add_argument("--threads", type=int, help="threads of lmgauge (all cores)")
    arguments = options.parse_args()

    text = arguments.train or harness.book_text("train.txt")
    if arguments.train_words:
        text, _ = Shape(train_words=arguments.train_words).texts(text, harness.book_text("test.txt"))
    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    harness.print_machine(lmgauge)
    trainers = []
    with harness.work_folder(arguments.work) as work:
        for order in arguments.order or [3, 5]:
            trainer = Trainer(order, text, work, lmgauge, kenlm, arguments.threads)
            harness.note(f"order {order}, {harness.megabytes(text.stat().st_size)} MB of text")
            harness.warm(text)
            harness.interleave(["lmgauge", "lmplz + build_binary"], arguments.runs, trainer.train)
            trainers.append(trainer)
    head = ["order", "program", "wall, s", "CPU, s", "peak, MB", "model, MB"]
    harness.print_table(head, [row for trainer in trainers for row in trainer.rows()])
    return harness.report_goals([goal for trainer in trainers for goal in trainer.goals()])


if __name__ == "__main__":
    sys.exit(main())
