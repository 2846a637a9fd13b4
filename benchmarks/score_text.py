"""Held-out text scored by saved models: `lmgauge` against KenLM's `query` and against the `kenlm` package.

Loading is excluded by a slope: each program scores the text once and COPIES times over, as a file of that many copies, and
its rate is the tokens between the two divided by the seconds between them. Whole processes are timed; the two Python
interfaces are timed inside a process of their own that has loaded the model. Tokens are words and sentence ends.

Before any rate counts, the numbers must agree: the sums of all ways through lmgauge to the last bit (one thread, two,
the API, the score table written to disk), and its perplexity with that of KenLM's model of the same text.

    python benchmarks/score_text.py --order 3 --order 5 --runs 3

The ratio depends on the text. --line-words, --train-words and --vocabulary measure other shapes of it, a row for each
combination: scoring alone (one thread by CPU seconds, two by wall time) and whole commands, on the text and its copies.
Every shape has the same goals: scoring alone, and CPU, memory and size on disk of the whole command.

    python benchmarks/score_text.py --order 3 --line-words 5 20 42 70 --train-words 1 5 38 --vocabulary 10 100 800
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
import models
from cut_text import Shape
from harness import Goal, Measurement, median

ONE_THREAD_GOALS = {3: 3.0, 5: 3.5}  # order: times the tokens per second of query
TWO_THREADS_GOAL = 6.0
CPU_GOAL, MEMORY_GOAL, SIZE_GOAL = 0.7, 1.0, 1.0  # of the whole command and its model, times query's
PACKAGE_GOAL = 15.0  # times those of the loop over kenlm's Model.score
SAME_PERPLEXITY = 1e-5  # relative; KenLM keeps float32

QUERY, PACKAGE = "query -v summary", "kenlm package"
EVAL = ("lmgauge eval, 1 thread", "lmgauge eval, 2 threads")
API = ("lmgauge API, 1 thread", "lmgauge API, 2 threads")
ALL, COMMANDS = (QUERY, *EVAL, *API, PACKAGE), (QUERY, *EVAL)
SHAPE_HEAD = ["words a line", "order", "trained on, M words", "vocabulary", "n-grams, M"]
SHAPE_HEAD += ["query, M tokens/s", "eval, 1 thread", "x", "eval, 2 threads", "x"]
SHAPE_HEAD += ["whole command: query, wall (CPU), s", "eval, 2 threads", "x", "copies: query", "eval, 2 threads", "x"]
SHAPE_HEAD += ["peak, MB: query", "eval, 2 threads", "on disk, MB: KenLM", "lmgauge"]


@dataclass
class Contestant:
    """One way to score a text: measured on the text (`once`) and on copies of it (`over`), run by run."""

    name: str
    tokens: int  # in the copies beyond the first
    once: list[Measurement] = field(default_factory=list)
    over: list[Measurement] = field(default_factory=list)

    def rates(self, clock: str = "") -> list[float]:
        """Tokens a second (of "wall" time or "cpu") of each run, without what a run costs that scores nothing."""
        clock = clock or _clock(self.name)
        spans = [getattr(over, clock) - getattr(once, clock) for once, over in zip(self.once, self.over, strict=True)]
        if min(spans) <= 0:
            harness.give_up(f"{self.name}: more copies took no longer than the text itself; give more --copies")
        return [self.tokens / span for span in spans]

    def row(self, order: int, base: Contestant) -> list[str]:
        million = [rate / 1e6 for rate in self.rates()]
        ratio = f"{median(self.rates()) / median(base.rates(_clock(self.name))):.2f}"
        walls = [harness.seconds([run.wall for run in runs]) for runs in (self.once, self.over)]
        peak = harness.megabytes(median([run.peak for run in self.over]))
        return [f"{order}", self.name, harness.seconds(million), ratio, *walls, peak]


@dataclass
class Scorer:
    """All contestants on one order's models."""

    order: int
    text: Path
    copies: Path
    count: int  # copies in `copies`
    lmgauge: str
    kenlm: dict[str, str]
    ours: Path
    theirs: Path
    names: tuple[str, ...]
    shape: Shape
    contestants: dict[str, Contestant] = field(default_factory=dict)

    def prepare(self, work: Path) -> None:
        """Agree on the numbers first; also counts the tokens."""
        harness.warm(self.ours)
        harness.warm(self.theirs)
        events = self._check_agreement(work)
        for name in self.names:
            self.contestants[name] = Contestant(name, (self.count - 1) * events)

    def score(self, name: str) -> None:
        texts = (self.text, self.copies)
        if name == QUERY:
            runs = [harness.run_child(self._query(), stdin=text) for text in texts]
        elif name in EVAL:
            runs = [self._eval(text, _threads(name))[1] for text in texts]
        else:
            way, model = ("package", self.theirs) if name == PACKAGE else ("api", self.ours)
            answer = self._python(way, model, *texts, threads=_threads(name))
            runs = [Measurement(wall, cpu, answer["peak"], "") for wall, cpu in answer["seconds"]]
        self.contestants[name].once.append(runs[0])
        self.contestants[name].over.append(runs[1])

    def _query(self) -> list[str]:
        return [self.kenlm["query"], "-v", "summary", str(self.theirs)]

    def _eval(self, text: Path, threads: int, *more: str) -> tuple[dict[str, Any], harness.Measurement]:
        options = ["--threads", str(threads), "--json", *more]
        measured = harness.run_child([self.lmgauge, "eval", "-m", str(self.ours), *options, str(text)])
        return json.loads(measured.out)[0], measured

    def _python(self, way: str, model: Path, *texts: Path, threads: int = 1) -> dict[str, Any]:
        command = [sys.executable, __file__, "child", way, str(model), str(threads), *map(str, texts)]
        answer: dict[str, Any] = json.loads(harness.run_child(command).out)
        return answer

    def _check_agreement(self, work: Path) -> int:
        figures = {f"eval, {n} threads": self._eval(self.text, n)[0]["log_probability"] for n in (1, 2)}
        run = work / "run"
        ours = self._eval(self.text, 2, "-o", str(run))[0]
        figures["eval with a score table"] = ours["log_probability"]
        figures["sum of the table's rows"] = self._python("table", run)["log_probability"]
        shutil.rmtree(run)
        for n in (1, 2):
            figures[f"API, {n} threads"] = self._python("api", self.ours, self.text, threads=n)["log_probability"]
        if len(set(figures.values())) != 1:
            harness.give_up(f"ways through lmgauge disagree: {figures}")
        summary = _summary(harness.run_child(self._query(), stdin=self.text).out)
        difference = ours["perplexity"] / summary["Perplexity including OOVs"] - 1
        if summary["Tokens"] != ours["events"] or not abs(difference) <= SAME_PERPLEXITY:
            harness.give_up(f"lmgauge and KenLM disagree: {ours['perplexity']}, {ours['events']} events; {summary}")
        counted = f"{ours['events']:,} events, {ours['oov']:,} OOV; perplexity {ours['perplexity']:.6f}"
        print(f"order {self.order}: {counted}, KenLM's differs by {difference:.1e}; {len(figures)} ways to the same sum")
        return int(ours["events"])

    def rows(self) -> list[list[str]]:
        return [contestant.row(self.order, self.contestants[QUERY]) for contestant in self.contestants.values()]

    def shape_row(self) -> list[str]:
        """One row for this shape of the text: rates of scoring alone, and the whole commands on the text itself."""
        query, one, two = (self.contestants[name] for name in COMMANDS)
        vocabulary, ngrams = models.type_counts(self.ours)[0], models.ngram_count(self.ours)
        row = [f"{self.shape.line_words or 'as given'}", f"{self.order}", f"{self.shape.train_words or 'all'}"]
        row += [f"{vocabulary:,}", f"{ngrams / 1e6:.1f}", f"{median(query.rates('cpu')) / 1e6:.2f}"]
        for contestant, clock in ((one, "cpu"), (two, "wall")):
            rate, base = median(contestant.rates(clock)), median(query.rates(clock))
            row += [f"{rate / 1e6:.2f}", f"{rate / base:.2f}"]
        for runs in ("once", "over"):  # the whole command: with starting and loading
            walls = [median([run.wall for run in getattr(contestant, runs)]) for contestant in (query, two)]
            cpus = [median([run.cpu for run in getattr(contestant, runs)]) for contestant in (query, two)]
            row += [f"{wall:.2f} ({cpu:.2f})" for wall, cpu in zip(walls, cpus, strict=True)]
            row.append(f"{walls[0] / walls[1]:.2f} ({cpus[0] / cpus[1]:.2f})")
        peaks = [median([run.peak for run in contestant.once]) for contestant in (query, two)]
        return [*row, *map(harness.megabytes, (*peaks, *map(harness.folder_bytes, (self.theirs, self.ours))))]

    def shape_goals(self) -> list[Goal]:
        """The goals of this shape: scoring alone, and the whole command on the text itself, threads as by default."""
        query, one, two = (self.contestants[name] for name in COMMANDS)
        cpu, peak = (
            median([getattr(run, figure) for run in two.once]) / median([getattr(run, figure) for run in query.once])
            for figure in ("cpu", "peak")
        )
        rate = median(one.rates("cpu")) / median(query.rates("cpu"))
        size = harness.folder_bytes(self.ours) / harness.folder_bytes(self.theirs)
        name = f"order {self.order}, {self.shape}"
        return [
            Goal(f"{name}: scoring alone, 1 thread, CPU", rate, _one_thread_goal(self.order), at_least=True),
            Goal(f"{name}: whole command, CPU over query's", cpu, CPU_GOAL, at_least=False),
            Goal(f"{name}: whole command, memory over query's", peak, MEMORY_GOAL, at_least=False),
            Goal(f"{name}: model on disk over the probing binary", size, SIZE_GOAL, at_least=False),
        ]

    def goals(self) -> list[Goal]:
        rows = []
        for way in ("eval", "API"):
            for threads, bound in ((1, _one_thread_goal(self.order)), (2, TWO_THREADS_GOAL)):
                name = f"lmgauge {way}, {threads} thread{'s' * (threads > 1)}"
                rate = median(self.contestants[name].rates())
                over = {peer: rate / median(self.contestants[peer].rates(_clock(name))) for peer in (QUERY, PACKAGE)}
                name = f"order {self.order}: {name.removeprefix('lmgauge ')}"
                rows += [
                    Goal(f"{name}, over query", over[QUERY], bound, at_least=True),
                    Goal(f"{name}, over the package", over[PACKAGE], PACKAGE_GOAL, at_least=True),
                ]
        return [*rows, *self.shape_goals()[1:]]


def _one_thread_goal(order: int) -> float:
    return ONE_THREAD_GOALS.get(order, min(ONE_THREAD_GOALS.values()))


def _threads(name: str) -> int:
    return 2 if name.endswith("2 threads") else 1


def _clock(name: str) -> str:
    """CPU seconds, which other programs on the machine disturb less; wall time where there are two threads."""
    return "wall" if _threads(name) > 1 else "cpu"


def _summary(text: str) -> dict[str, float]:
    """The figures of `query -v summary`, by name."""
    pairs = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    numbers = {name.strip(): value.strip() for name, value in pairs}
    return {name: float(numbers[name]) for name in ("Perplexity including OOVs", "OOVs", "Tokens")}


def _copy(text: Path, count: int, target: Path) -> Path:
    """Write `count` copies of a text one after the other."""
    with target.open("wb") as out:
        for _ in range(count):
            with text.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
    return target


# --- what runs in a child ---------------------------------------------------------------------------------


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(start: tuple[float, float]) -> list[float]:
    """Seconds of wall time and of the processor since then."""
    return [now - then for now, then in zip(_clocks(), start, strict=True)]


def _child_api(model_path: str, threads: int, texts: list[str]) -> None:
    import lmgauge

    model = lmgauge.load_model(model_path)
    lmgauge.evaluate(model, texts[0], threads=threads)  # first touch of the model's pages
    seconds, log_probability = [], math.nan
    for text in texts:
        start = _clocks()
        evaluation = lmgauge.evaluate(model, text, threads=threads)
        seconds.append(_since(start))
        if text == texts[0]:
            log_probability = evaluation.log_probability
    harness.print_json({"seconds": seconds, "peak": harness.peak_bytes(), "log_probability": log_probability})


def _child_package(model_path: str, texts: list[str]) -> None:
    import kenlm

    model = kenlm.Model(model_path)
    seconds = []
    for text in texts:
        start = _clocks()
        total = 0.0
        with open(text, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                total += model.score(line)
        seconds.append(_since(start))
    harness.print_json({"seconds": seconds, "peak": harness.peak_bytes()})


def _child_table(run: str) -> None:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(Path(run, "scores.parquet"), columns=["logprob"]).column("logprob")
    harness.print_json({"log_probability": math.fsum(rows.to_numpy().tolist())})


def _child(way: str, model: str, threads: str = "1", *texts: str) -> None:
    if way == "api":
        _child_api(model, int(threads), list(texts))
    elif way == "package":
        _child_package(model, list(texts))
    else:
        _child_table(model)


# --- the benchmark ----------------------------------------------------------------------------------------


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--order", type=int, action="append", metavar="N", help="may be repeated (3 and 5)")
    options.add_argument("--train", type=Path, metavar="FILE", help="training text (classic-books)")
    options.add_argument("--test", type=Path, metavar="FILE", help="held-out text (classic-books)")
    options.add_argument("--copies", type=int, default=8, help="copies of the held-out text in the long one (8)")
    options.add_argument("--line-words", type=int, nargs="+", metavar="N", help="cut both texts into lines of N words")
    options.add_argument("--train-words", type=int, nargs="+", metavar="M", help="train on the first M million words")
    options.add_argument(
        "--vocabulary",
        type=int,
        nargs="+",
        metavar="N",
        help="leave the N thousand most frequent words of the training text, and replace others by one, in both texts",
    )
    arguments = options.parse_args()
    if arguments.copies < 2:
        harness.give_up(f"--copies {arguments.copies}: a slope needs 2 or more")

    shaping = (arguments.line_words, arguments.train_words, arguments.vocabulary)
    if min(itertools.chain.from_iterable(values or [1] for values in shaping)) < 1:
        harness.give_up("--line-words, --train-words and --vocabulary: numbers of at least 1")
    shapes = [Shape(*values) for values in itertools.product(*(values or [0] for values in shaping))]
    names = COMMANDS if any(shaping) else ALL
    train, test = arguments.train or harness.book_text("train.txt"), arguments.test or harness.book_text("test.txt")
    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    harness.print_machine(lmgauge)
    scorers = []
    with harness.work_folder(arguments.work) as work:
        for order, shape in itertools.product(arguments.order or [3, 5], shapes):
            text, held_out = shape.texts(train, test)
            copies = _copy(held_out, arguments.copies, work / "copies.txt")
            harness.warm(held_out)
            ours = models.lmgauge_model(lmgauge, text, order, arguments.work)
            theirs = models.kenlm_model(kenlm, text, order, arguments.work)
            scorer = Scorer(order, held_out, copies, arguments.copies, lmgauge, kenlm, ours, theirs, names, shape)
            scorer.prepare(work)
            harness.interleave(scorer.names, arguments.runs, scorer.score)
            scorers.append(scorer)
    print()
    if any(shaping):
        harness.print_table(SHAPE_HEAD, [scorer.shape_row() for scorer in scorers])
        return harness.report_goals([goal for scorer in scorers for goal in scorer.shape_goals()])
    head = ["order", "program", "M tokens/s", "x query", "text, s", f"{arguments.copies} texts, s", "peak, MB"]
    harness.print_table(head, [row for scorer in scorers for row in scorer.rows()])
    return harness.report_goals([goal for scorer in scorers for goal in scorer.goals()])


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
