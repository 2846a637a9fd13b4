"""One text trained in memory, within 1 GB, in two processes, and on a cluster that loses a node: one fingerprint.

The cluster is two Ray nodes started on this machine, of one core each. When the training has taken half as long as it took
in two processes, the second node is killed with all that runs on it, and another one joins.

    python benchmarks/same_model_everywhere.py --order 5 --text large-120-real-12345.txt
    python benchmarks/same_model_everywhere.py --order 3 --train-words 1 --within 0.1
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import harness
from cut_text import Shape
from harness import Goal
from models import ngram_count
from train_within_memory import fingerprint
from watch import Watched, run_watched

STORE_BYTES = 1 << 30  # of memory for the arrays of each node of the cluster; Ray writes more to disk
WAYS = ("in memory", "within a memory", "two processes", "cluster")


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
            "cluster": within,
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


def train(work: Work, way: str, kill_after: float) -> Trained:
    """Train one way, and remove the model."""
    work.temporary.mkdir()
    harness.note(way)
    command = work.command(way)
    if way == "cluster":
        # In a child: Ray is large, and what it starts must be watched with it.
        command = [sys.executable, __file__, "on-a-cluster", f"{kill_after}", json.dumps(command)]
    watched = run_watched(command, work.temporary)
    model = work.model
    trained = Trained(way, watched, fingerprint(model), ngram_count(model), harness.folder_bytes(model))
    harness.note(f"{watched.measured.out.strip()}: {', '.join(trained.row())}")
    shutil.rmtree(work.temporary)
    shutil.rmtree(work.model)
    return trained


def on_a_cluster(kill_after: float, command: list[str]) -> None:
    """Run a command on a cluster of two nodes; after `kill_after` seconds the second is killed and another one joins."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**node)
    cluster.wait_for_nodes()
    start = time.perf_counter()
    child = subprocess.Popen([*command, "--ray", cluster.address])
    try:
        child.wait(timeout=kill_after)
        print("the training ended before a node was killed")
    except subprocess.TimeoutExpired:
        cluster.remove_node(second, allow_graceful=False)
        print(f"a node was killed after {time.perf_counter() - start:.0f} s")
        cluster.add_node(**node)
    status = child.wait()
    cluster.shutdown()
    sys.exit(status)


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--within", type=float, default=1.0, metavar="GIB", help="memory of all ways but the first (1)")
    options.add_argument("--text", type=Path, metavar="FILE", help="plain text, a sentence per line (classic-books)")
    options.add_argument("--train-words", type=int, default=0, metavar="M", help="the first M million words (all)")
    options.add_argument("--way", choices=WAYS, action="append", help="may be repeated (all)")
    options.add_argument("--kill-after", type=float, metavar="SECONDS", help="(half of what two processes took)")
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
        for way in arguments.way or WAYS:
            last = trained[-1].watched.measured.wall / 2 if trained else 10.0
            trained.append(train(work, way, arguments.kill_after or last))
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
    if sys.argv[1:2] == ["on-a-cluster"]:
        on_a_cluster(float(sys.argv[2]), json.loads(sys.argv[3]))
    else:
        sys.exit(main())
