"""Held-out text scored by saved models: `lmgauge` against KenLM's `query` and against the `kenlm` package.

Load is excluded by a slope: each program scores the text once and COPIES times over, as a file of that many copies, and
its rate is the tokens between the two divided by the seconds between them. Whole processes are timed; the two Python
interfaces are timed inside a process of their own that has loaded the model. Tokens are words and sentence ends.

Before any rate counts, the numbers must agree: the sums of all ways through lmgauge to the last bit (one thread, two,
the API, the score table written to disk), and its perplexity with that of KenLM's model of the same text.

    python benchmarks/score_text.py --order 3 --order 5 --runs 3
"""

from __future__ import annotations

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
from harness import Goal, median

ONE_THREAD_GOAL, TWO_THREADS_GOAL = 3.0, 6.0  # times the tokens per second of query
PACKAGE_GOAL = 15.0  # times those of the loop over kenlm's Model.score
SAME_PERPLEXITY = 1e-5  # relative; KenLM keeps float32

QUERY, PACKAGE = "query -v summary", "kenlm package"


@dataclass
class Contestant:
    """One way to score a text: measured on the text (`once`) and on copies of it (`over`), seconds run by run."""

    name: str
    tokens: int  # in the copies beyond the first
    once: list[float] = field(default_factory=list)
    over: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Tokens a second of each run, without what a run costs that scores nothing."""
        spans = [over - once for once, over in zip(self.once, self.over, strict=True)]
        if min(spans) <= 0:
            harness.give_up(f"{self.name}: more copies took no longer than the text itself; give more --copies")
        return [self.tokens / span for span in spans]

    def row(self, order: int, base: float) -> list[str]:
        million = [rate / 1e6 for rate in self.rates]
        ratio = f"{median(self.rates) / base:.2f}"
        walls = [harness.seconds(self.once), harness.seconds(self.over)]
        return [f"{order}", self.name, harness.seconds(million), ratio, *walls, harness.megabytes(median(self.peaks))]


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
    contestants: dict[str, Contestant] = field(default_factory=dict)

    def prepare(self, work: Path) -> None:
        """Agree on the numbers first; also counts the tokens."""
        harness.warm(self.ours)
        harness.warm(self.theirs)
        events = self._check_agreement(work)
        for name in self.names():
            self.contestants[name] = Contestant(name, (self.count - 1) * events)

    def names(self) -> list[str]:
        return [QUERY, *(f"lmgauge {way}, {n}" for way in ("eval", "API") for n in ("1 thread", "2 threads")), PACKAGE]

    def score(self, name: str) -> None:
        contestant = self.contestants[name]
        if name == QUERY:
            runs = [harness.run_child(self._query(), stdin=text) for text in (self.text, self.copies)]
            self._add(contestant, [run.wall for run in runs], runs[-1].peak)
        elif name == PACKAGE:
            answer = self._python("package", self.theirs, self.text, self.copies)
            self._add(contestant, answer["seconds"], answer["peak"])
        elif "API" in name:
            answer = self._python("api", self.ours, self.text, self.copies, threads=_threads(name))
            self._add(contestant, answer["seconds"], answer["peak"])
        else:
            measured = [self._eval(text, _threads(name))[1] for text in (self.text, self.copies)]
            self._add(contestant, [run.wall for run in measured], measured[-1].peak)

    def _add(self, contestant: Contestant, walls: list[float], peak: float) -> None:
        contestant.once.append(walls[0])
        contestant.over.append(walls[1])
        contestant.peaks.append(peak)

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
        print(
            f"order {self.order}: {counted}, KenLM's differs by {difference:.1e}; {len(figures)} ways to the same sum"
        )
        return int(ours["events"])

    def rows(self) -> list[list[str]]:
        base = median(self.contestants[QUERY].rates)
        return [contestant.row(self.order, base) for contestant in self.contestants.values()]

    def goals(self) -> list[Goal]:
        rates = {name: median(contestant.rates) for name, contestant in self.contestants.items()}
        found = []
        for way in ("eval", "API"):
            one, two = rates[f"lmgauge {way}, 1 thread"], rates[f"lmgauge {way}, 2 threads"]
            name = f"order {self.order}: {way}"
            found += [
                Goal(f"{name}, 1 thread, over query", one / rates[QUERY], ONE_THREAD_GOAL, at_least=True),
                Goal(f"{name}, 2 threads, over query", two / rates[QUERY], TWO_THREADS_GOAL, at_least=True),
                Goal(f"{name}, 1 thread, over the package", one / rates[PACKAGE], PACKAGE_GOAL, at_least=True),
                Goal(f"{name}, 2 threads, over the package", two / rates[PACKAGE], PACKAGE_GOAL, at_least=True),
            ]
        return found


def _threads(name: str) -> int:
    return 2 if name.endswith("2 threads") else 1


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


def _child_api(model_path: str, threads: int, texts: list[str]) -> None:
    import lmgauge

    model = lmgauge.load_model(model_path)
    lmgauge.evaluate(model, texts[0], threads=threads)  # first touch of the model's pages
    walls, log_probability = [], math.nan
    for text in texts:
        start = time.perf_counter()
        evaluation = lmgauge.evaluate(model, text, threads=threads)
        walls.append(time.perf_counter() - start)
        if text == texts[0]:
            log_probability = evaluation.log_probability
    harness.print_json({"seconds": walls, "peak": harness.peak_bytes(), "log_probability": log_probability})


def _child_package(model_path: str, texts: list[str]) -> None:
    import kenlm

    model = kenlm.Model(model_path)
    walls = []
    for text in texts:
        start = time.perf_counter()
        total = 0.0
        with open(text, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                total += model.score(line)
        walls.append(time.perf_counter() - start)
    harness.print_json({"seconds": walls, "peak": harness.peak_bytes()})


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
    options.add_argument(
        "--copies", type=int, default=8, help="how often over the long text holds the held-out one (8)"
    )
    given = options.parse_args()
    if given.copies < 2:
        harness.give_up(f"--copies {given.copies}: a slope needs 2 or more")

    train, test = given.train or harness.book_text("train.txt"), given.test or harness.book_text("test.txt")
    lmgauge, kenlm = harness.lmgauge_program(given.lmgauge), harness.kenlm_programs(given.kenlm)
    harness.print_machine(lmgauge)
    scorers = []
    with harness.work_folder(given.work) as work:
        copies = _copy(test, given.copies, work / "copies.txt")
        harness.warm(test)
        for order in given.order or [3, 5]:
            ours = models.lmgauge_model(lmgauge, train, order, given.work)
            theirs = models.kenlm_model(kenlm, train, order, given.work)
            scorer = Scorer(order, test, copies, given.copies, lmgauge, kenlm, ours, theirs)
            scorer.prepare(work)
            harness.interleave(scorer.names(), given.runs, scorer.score)
            scorers.append(scorer)
    print()
    head = ["order", "program", "M tokens/s", "x query", "text, s", f"{given.copies} texts, s", "peak, MB"]
    harness.print_table(head, [row for scorer in scorers for row in scorer.rows()])
    return harness.report_goals([goal for scorer in scorers for goal in scorer.goals()])


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
