"""Training within a memory: `lmgauge train --memory` against `lmplz -S` followed by `build_binary probing`.

Both estimate the interpolated modified Kneser-Ney model of the same text, nothing pruned, and end with a model on disk
that can be asked. Measured are wall and CPU seconds, the memory of all processes together, the temporary files at their
largest, and the model. The model that lmgauge makes without a bound is made once more, not timed, and must be the same.

    python benchmarks/train_within_memory.py --order 3 --order 5 --memory 0.5 --memory 1 --memory 2 --memory 4
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
from cut_text import Shape
from harness import Goal, median
from models import type_counts
from watch import Watched, run_watched

GIBI = 2**30  # bytes of the G of lmplz and of lmgauge
MEMORIES = (0.5, 1.0, 2.0, 4.0)  # GiB
SPEED_GOAL = 4.0  # times faster in wall time than lmplz and build_binary together
SPEED_GOAL_MEMORY, SPEED_GOAL_ORDER = 1.0, 5  # where the goal for speed is set; elsewhere the ratio is only printed
PEAK_GOAL = 1.15  # times the memory asked for
TEMPORARY_GOAL = 1.0  # times lmplz's
OURS, PEERS = "lmgauge train", ("lmplz", "build_binary")


@dataclass(frozen=True)
class Place:
    """Where a comparison is made: what both programs are asked for."""

    order: int
    memory: float  # GiB

    @property
    def bytes(self) -> int:
        return round(self.memory * GIBI)

    @property
    def mebibytes(self) -> str:
        return f"{self.bytes >> 20}M"

    def __str__(self) -> str:
        return f"order {self.order}, {self.memory:g} GiB"


@dataclass
class Record:
    """One program at one place, an entry of each list for each run."""

    runs: list[Watched] = field(default_factory=list)
    model_bytes: int = 0
    types: list[int] = field(default_factory=list)  # n-grams of each order, of lmgauge

    @property
    def wall(self) -> list[float]:
        return [run.measured.wall for run in self.runs]

    @property
    def cpu(self) -> list[float]:
        return [run.measured.cpu for run in self.runs]

    @property
    def peak(self) -> float:
        return median([run.peak for run in self.runs])

    @property
    def temporary(self) -> float:
        return median([run.temporary for run in self.runs])

    def figures(self) -> dict[str, object]:
        """What is stored of this program, in seconds and bytes."""
        return {
            "wall": self.wall,
            "cpu": self.cpu,
            "peak": [run.peak for run in self.runs],
            "anonymous": [run.anonymous for run in self.runs],
            "temporary": [run.temporary for run in self.runs],
            "processes": [run.processes for run in self.runs],
            "load": [run.load for run in self.runs],
            "model": self.model_bytes,
            "types": self.types,
        }


@dataclass(frozen=True)
class Programs:
    """What is measured, and with which options."""

    text: Path
    work: Path
    lmgauge: str
    kenlm: dict[str, str]
    options: list[str]  # of lmgauge

    @property
    def temporary(self) -> Path:
        return self.work / "temporary"


@dataclass
class Comparison:
    """Both programs at one place, each time from nothing."""

    place: Place
    programs: Programs
    records: dict[str, Record] = field(default_factory=dict)
    fingerprints: set[str] = field(default_factory=set)

    def train(self, contestant: str) -> None:
        self.programs.temporary.mkdir(exist_ok=True)
        if contestant == OURS:
            self._lmgauge()
        else:
            self._kenlm()
        shutil.rmtree(self.programs.temporary)

    def _lmgauge(self) -> None:
        model = self.programs.work / "lmgauge"
        within = ["--memory", self.place.mebibytes, "--temp", str(self.programs.temporary)]
        self._record(OURS, [*training(self.programs, self.place.order), *within, "-o", str(model)], model)
        self.records[OURS].types = type_counts(model)
        self.fingerprints.add(fingerprint(model))
        shutil.rmtree(model)

    def _kenlm(self) -> None:
        lmplz, build_binary = (self.programs.kenlm[name] for name in PEERS)
        arpa, binary = self.programs.work / "kenlm.arpa", self.programs.work / "kenlm.binary"
        sorting = ["-S", self.place.mebibytes, "-T", str(self.programs.temporary / "sort")]
        files = ["--text", str(self.programs.text), "--arpa", str(arpa)]
        # Small texts: lmplz stops where a discount cannot be estimated; the option does nothing elsewhere.
        self._record("lmplz", [lmplz, "-o", str(self.place.order), *sorting, *files, "--discount_fallback"], arpa)
        self._record("build_binary", [build_binary, "probing", str(arpa), str(binary)], binary)
        arpa.unlink()
        binary.unlink()

    def _record(self, name: str, command: list[str], model: Path) -> None:
        record = self.records.setdefault(name, Record())
        record.runs.append(run_watched(command, self.programs.temporary))
        record.model_bytes = harness.folder_bytes(model)

    def both(self, what: str) -> list[float]:
        """Seconds of lmplz and build_binary together, run by run; `what` is wall or cpu."""
        estimated, built = (getattr(self.records[name], what) for name in PEERS)
        return [sum(pair) for pair in zip(estimated, built, strict=True)]

    def rows(self) -> list[list[str]]:
        return [self._row(name, record) for name, record in self.records.items()]

    def _row(self, name: str, record: Record) -> list[str]:
        sizes = [harness.megabytes(size) for size in (record.peak, record.temporary, record.model_bytes)]
        load = f"{median([run.load for run in record.runs]):.1f}"
        times = [harness.seconds(record.wall), harness.seconds(record.cpu)]
        return [f"{self.place.order}", f"{self.place.memory:g}", name, *times, *sizes, load]

    @property
    def whole(self) -> bool:
        """Return True if both programs were measured."""
        return OURS in self.records and PEERS[0] in self.records

    def ratio(self, what: str) -> float:
        """How many times the seconds of lmgauge both of KenLM's programs take; `what` is wall or cpu."""
        return median(self.both(what)) / median(getattr(self.records[OURS], what))

    def goals(self, speed: bool) -> list[Goal]:
        """The goals of this place; that for speed only where it was set."""
        ours, lmplz = self.records[OURS], self.records["lmplz"]
        peak, temporary = ours.peak / self.place.bytes, ours.temporary / lmplz.temporary
        goals = [
            Goal(f"{self.place}: peak over what was asked", peak, PEAK_GOAL, at_least=False),
            Goal(f"{self.place}: temporary disk over lmplz's", temporary, TEMPORARY_GOAL, at_least=False),
        ]
        if speed and (self.place.order, self.place.memory) == (SPEED_GOAL_ORDER, SPEED_GOAL_MEMORY):
            goals.insert(0, Goal(f"{self.place}: times faster", self.ratio("wall"), SPEED_GOAL, at_least=True))
        return goals


def training(programs: Programs, order: int) -> list[str]:
    """The command that trains a model with lmgauge, without where it is saved and what it may hold."""
    kind = ["modified-kneser-ney", "--order", str(order), "--reserved", "escape"]
    return [programs.lmgauge, "train", *kind, *programs.options, str(programs.text)]


def fingerprint(model: Path) -> str:
    stored: str = json.loads((model / "config.json").read_text(encoding="utf-8"))["fingerprint"]
    return stored


def unbounded_fingerprint(programs: Programs, order: int) -> str:
    """The fingerprint of the model that is trained in memory."""
    harness.note(f"order {order} in memory, not timed")
    model = programs.work / "unbounded"
    harness.run_child([*training(programs, order), "-o", str(model)])
    made = fingerprint(model)
    shutil.rmtree(model)
    return made


def compare(programs: Programs, places: list[Place], contestants: list[str], runs: int) -> list[Comparison]:
    comparisons = []
    for place in places:
        harness.note(str(place))
        harness.warm(programs.text)
        comparison = Comparison(place, programs)
        harness.interleave(contestants, runs, comparison.train)
        comparisons.append(comparison)
    return comparisons


def same_models(programs: Programs, comparisons: list[Comparison]) -> list[Goal]:
    """Goals that say of each order how many different models there are, the one made in memory included."""
    goals = []
    for order in sorted({comparison.place.order for comparison in comparisons}):
        made = {unbounded_fingerprint(programs, order)}
        made.update(*(comparison.fingerprints for comparison in comparisons if comparison.place.order == order))
        goals.append(Goal(f"order {order}: different models, in memory and within", len(made), 1, at_least=False, unit=""))
    return goals


def store(path: Path, comparisons: list[Comparison]) -> None:
    """Add the figures to a file, a line of JSON for each program at each place."""
    with path.open("a", encoding="utf-8") as out:
        for comparison in comparisons:
            for name, record in comparison.records.items():
                place = {"order": comparison.place.order, "memory": comparison.place.memory, "program": name}
                text = {"text": comparison.programs.text.name, "text_bytes": comparison.programs.text.stat().st_size}
                print(json.dumps(place | text | record.figures()), file=out)


def stored_rows(path: Path) -> list[list[object]]:
    """The rows of the table in docs/benchmarks/measured.json, from a file that `store` made; the last figures count."""
    figures = {}
    with path.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            figures[line["order"], line["memory"], line["program"]] = line
    rows = []
    for order, memory in sorted({key[:2] for key in figures}):
        ours, *peers = (figures.get((order, memory, name)) for name in (OURS, *PEERS))
        rows.append([order, memory, *_compared(ours, [peer for peer in peers if peer], memory * GIBI)])
    return rows


def _compared(ours: dict[str, Any] | None, peers: list[dict[str, Any]], asked: float) -> list[object]:
    """Times, ratios and sizes of one row; None where a program was not measured."""
    times = [
        [sum(median(part[what]) for part in parts) if parts else None for what in ("wall", "cpu")]
        for parts in ([ours] if ours else [], peers)
    ]
    ratios = [rounded(theirs / own) if own and theirs else None for own, theirs in zip(*times, strict=True)]
    mine, theirs = (
        [median(one[what]) if one else None for what in ("peak", "temporary")] for one in (ours, peers and peers[0])
    )
    peak = [megabytes(mine[0]), mine[0] and rounded(mine[0] / asked), megabytes(theirs[0])]
    disk = [
        megabytes(mine[1]),
        megabytes(theirs[1]),
        megabytes(ours and ours["model"]),
        megabytes(peers and peers[-1]["model"]),
    ]
    loads = [rounded(median(one["load"])) for one in (ours, *peers) if one]
    return [*map(rounded, times[0]), *map(rounded, times[1]), *ratios, *peak, *disk, max(loads)]


def rounded(value: float | None) -> float | None:
    """Three digits."""
    return None if value is None else float(f"{value:.3g}")


def megabytes(size: float | None) -> int | None:
    return None if not size else round(size / harness.MB)


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--order", type=int, action="append", metavar="N", help="may be repeated (3 and 5)")
    options.add_argument("--memory", type=float, action="append", metavar="GIB", help="may be repeated (0.5, 1, 2, 4)")
    options.add_argument("--train", type=Path, metavar="FILE", help="plain text, a sentence per line (classic-books)")
    options.add_argument("--train-words", type=int, default=0, metavar="M", help="train on the first M million words (all)")
    options.add_argument("--only", choices=["lmgauge", "kenlm"], help="measure one program; no goals then")
    options.add_argument("--threads", type=int, help="threads of lmgauge (all cores)")
    options.add_argument("--store", type=Path, metavar="FILE", help="add the figures to this file, as lines of JSON")
    options.add_argument("--rows", type=Path, metavar="FILE", help="print the rows of such a file, and measure nothing")
    arguments = options.parse_args()
    if arguments.rows:
        print(",\n".join(map(json.dumps, stored_rows(arguments.rows))))
        return 0

    text = arguments.train or harness.book_text("train.txt")
    if arguments.train_words:
        text, _ = Shape(train_words=arguments.train_words).texts(text, harness.book_text("test.txt"))
    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    harness.print_machine(lmgauge)
    places = [Place(order, memory) for order in arguments.order or [3, 5] for memory in arguments.memory or MEMORIES]
    contestants = {"lmgauge": [OURS], "kenlm": ["lmplz + build_binary"], None: [OURS, "lmplz + build_binary"]}
    threads = ["--threads", str(arguments.threads)] if arguments.threads else []
    with harness.work_folder(arguments.work) as work:
        programs = Programs(text, work, lmgauge, kenlm, threads)
        comparisons = compare(programs, places, contestants[arguments.only], arguments.runs)
        compared = [comparison for comparison in comparisons if comparison.whole]
        speed = not (arguments.train or arguments.train_words)  # the goal is for the whole of the books
        goals = [goal for comparison in compared for goal in comparison.goals(speed)]
        goals += same_models(programs, comparisons) if arguments.only != "kenlm" else []
    head = ["order", "memory, GiB", "program", "wall, s", "CPU, s", "peak, MB", "temporary, MB", "model, MB", "load"]
    harness.print_table(head, [row for comparison in comparisons for row in comparison.rows()])
    if compared:
        print()
        ratios = [[str(one.place), f"{one.ratio('wall'):.3g}", f"{one.ratio('cpu'):.3g}"] for one in compared]
        harness.print_table(["lmgauge against lmplz + build_binary", "times faster", "times less CPU"], ratios)
    if arguments.store:
        store(arguments.store, comparisons)
    return harness.report_goals(goals)


if __name__ == "__main__":
    sys.exit(main())
