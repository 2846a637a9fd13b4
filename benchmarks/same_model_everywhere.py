"""One text trained in memory, within 1 GB, and in two processes: one fingerprint.

python benchmarks/same_model_everywhere.py --order 5 --text large-120-real-12345.txt
python benchmarks/same_model_everywhere.py --order 3 --train-words 1 --within 0.1
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import harness
from cut_text import Shape
from harness import Goal
from models import ngram_count
from train_within_memory import fingerprint
from watch import Watched, run_watched

WAYS = ("in memory", "within a memory", "two processes")


@dataclass(frozen=True)
class Work:
    """What every way trains."""

    train: list[str]  # the command, without where the model is written
    folder: Path
    within: str  # the memory, as the option takes it

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    def command(self, way: str) -> list[str]:
        within = ["--memory", self.within, "--temp", str(self.temporary)]
        more = {
            "in memory": [],
            "within a memory": within,
            "two processes": [*within, "--workers", "2"],
        }
        return [*self.train, *more[way], "-o", str(self.model)]


@dataclass(frozen=True)
class Trained:
    """One model, made one way."""

    way: str
    watched: Watched
    fingerprint: str
    ngrams: int
    model_bytes: int

    def row(self) -> list[str]:
        measured = self.watched.measured
        sizes = [harness.megabytes(size) for size in (self.watched.peak, self.watched.temporary, self.model_bytes)]
        times = [f"{measured.wall:.3g}", f"{measured.cpu:.3g}"]
        ngrams = f"{self.ngrams / 1e6:.1f}"
        return [
            self.way,
            ngrams,
            *times,
            *sizes,
            f"{self.watched.processes}",
            f"{self.watched.load:.1f}",
            self.fingerprint[:16],
        ]


def train(work: Work, way: str) -> Trained:
    """Train one way, and remove the model."""
    work.temporary.mkdir()
    harness.note(way)
    watched = run_watched(work.command(way), work.temporary)
    model = work.model
    trained = Trained(way, watched, fingerprint(model), ngram_count(model), harness.folder_bytes(model))
    harness.note(f"{watched.measured.out.strip()}: {', '.join(trained.row())}")
    shutil.rmtree(work.temporary)
    shutil.rmtree(work.model)
    return trained


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--within", type=float, default=1.0, metavar="GIB", help="memory of all ways but the first (1)")
    options.add_argument("--text", type=Path, metavar="FILE", help="plain text, a sentence per line (classic-books)")
    options.add_argument("--train-words", type=int, default=0, metavar="M", help="the first M million words (all)")
    options.add_argument("--way", choices=WAYS, action="append", help="may be repeated (all)")
    arguments = options.parse_args()

    text = arguments.text or harness.book_text("train.txt")
    if arguments.train_words:
        text, _ = Shape(train_words=arguments.train_words).texts(text, harness.book_text("test.txt"))
    lmgauge = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(lmgauge)
    command = [lmgauge, "train", "modified-kneser-ney", "--order", str(arguments.order), "--reserved", "escape", str(text)]
    trained: list[Trained] = []
    with harness.work_folder(arguments.work) as folder:
        work = Work(command, folder, f"{round(arguments.within * 1024)}M")
        trained.extend(train(work, way) for way in arguments.way or WAYS)
    head = [
        "way",
        "n-grams, M",
        "wall, s",
        "CPU, s",
        "peak, MB",
        "temporary, MB",
        "model, MB",
        "processes",
        "load",
        "fingerprint",
    ]
    harness.print_table(head, [model.row() for model in trained])
    different = len({model.fingerprint for model in trained})
    return harness.report_goals([Goal("different models", different, 1, at_least=False, unit="")])


if __name__ == "__main__":
    sys.exit(main())
