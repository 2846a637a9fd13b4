"""Calls of one process: `lmgauge` beside the `kenlm` package, for programs that ask for a sentence or a word at a time.

Both have loaded a model of the same text, lmgauge its own and kenlm the binary that KenLM made. Sentences are cut from the
held-out text, each another one; every turn asks both for all of them. Sums must agree, or nothing is printed.

    python benchmarks/score_calls.py --order 3 --order 5 --runs 5
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import harness
import models
from harness import Goal, median

SAME_SUM = 1e-4  # relative; KenLM keeps logarithms in float32
SENTENCES, BATCH = 2000, 500
# What is called -> the bound of lmgauge's time over kenlm's, or of kenlm's over lmgauge's.
BATCHES = "500 lines of 20 words, their numbers"
BOUNDS = {"score, 6 words": 1.0, "score, 20 words": 1.0, "a step": 0.7, BATCHES: 4.0}


# --- what runs in a child ---------------------------------------------------------------------------------


def _sentences(text: str, words: int) -> list[str]:
    """Sentences of this number of words each, in the order of the text."""
    with open(text, encoding="utf-8") as lines:
        flow = (word for line in lines for word in line.split())
        return [" ".join(islice(flow, words)) for _ in range(SENTENCES)]


def _kenlm_steps(module: Any, model: Any, sentences: list[list[str]]) -> float:
    before, behind, total = module.State(), module.State(), 0.0
    for words in sentences:
        model.BeginSentenceWrite(before)
        for word in words:
            total += model.BaseScore(before, word, behind)
            before, behind = behind, before
    return total


def _steps(model: Any, sentences: list[list[str]]) -> float:
    total = 0.0
    for words in sentences:
        state = model.begin()
        for word in words:
            logprob, state = model.step(state, word)
            total += logprob
    return total / math.log(10)


def _steps_at_once(model: Any, batches: list[list[list[str]]]) -> float:
    """The first words of all lines in one call, then the second ones, ..."""
    total = 0.0
    for batch in batches:
        states: Any = [model.begin()] * len(batch)
        for words in zip(*batch, strict=True):
            logprobs, states = model.step_batch(states, words)
            total += float(logprobs.sum())
    return total / math.log(10)


def _contests(ours: str, theirs: str, text: str) -> dict[str, tuple[int, Callable[[], float], Callable[[], float]]]:
    """What is called -> calls of a turn, kenlm's turn, lmgauge's turn; both return the sum of log10 probabilities."""
    import kenlm

    import lmgauge
    from lmgauge.integrations import kenlm as ours_as_kenlm

    native, model, compatible = kenlm.Model(theirs), lmgauge.load_model(ours), ours_as_kenlm.Model(ours)
    short, line = _sentences(text, 6), _sentences(text, 20)
    cut = [sentence.split() for sentence in line]
    cut_batches = [cut[at : at + BATCH] for at in range(0, len(line), BATCH)]
    batches = [line[at : at + BATCH] for at in range(0, len(line), BATCH)]
    ten = math.log(10)
    return {
        "score, 6 words": (len(short), lambda: sum(map(native.score, short)), lambda: sum(map(compatible.score, short))),
        "score, 20 words": (len(line), lambda: sum(map(native.score, line)), lambda: sum(map(compatible.score, line))),
        "a step": (20 * len(line), lambda: _kenlm_steps(kenlm, native, cut), lambda: _steps(model, cut)),
        "a step, BaseScore of both": (
            20 * len(line),
            lambda: _kenlm_steps(kenlm, native, cut),
            lambda: _kenlm_steps(ours_as_kenlm, compatible, cut),
        ),
        "500 steps at once, step_batch": (
            20 * len(batches),
            lambda: _kenlm_steps(kenlm, native, cut),
            lambda: _steps_at_once(model, cut_batches),
        ),
        "500 lines of 20 words, score_text": (
            len(batches),
            lambda: sum(sum(map(native.score, batch)) for batch in batches),
            lambda: sum(one.log_probability for batch in batches for one in lmgauge.score_text(model, batch)) / ten,
        ),
        BATCHES: (
            len(batches),
            lambda: sum(sum(map(native.score, batch)) for batch in batches),
            lambda: sum(float(model.score_text(batch).log_probabilities.sum()) for batch in batches) / ten,
        ),
    }


def _child(ours: str, theirs: str, text: str, runs: str) -> None:
    answer: dict[str, Any] = {}
    for name, (calls, *turns) in _contests(ours, theirs, text).items():
        seconds: list[list[float]] = [[], []]
        sums = [turn() for turn in turns]  # the first time, pages of the model are touched
        for done in range(int(runs)):
            for i in (0, 1) if done % 2 == 0 else (1, 0):
                start = time.process_time()
                turns[i]()
                seconds[i].append((time.process_time() - start) / calls)
        answer[name] = {"seconds": seconds, "sums": sums}
    harness.print_json(answer)


# --- the benchmark ----------------------------------------------------------------------------------------


def main() -> int:
    options = harness.parser(__doc__ or "", runs=5)
    options.add_argument("--order", type=int, action="append", metavar="N", help="may be repeated (3)")
    options.add_argument("--train", type=Path, metavar="FILE", help="training text (classic-books)")
    options.add_argument("--test", type=Path, metavar="FILE", help="held-out text (classic-books)")
    arguments = options.parse_args()
    train, test = arguments.train or harness.book_text("train.txt"), arguments.test or harness.book_text("test.txt")
    lmgauge, kenlm = harness.lmgauge_program(arguments.lmgauge), harness.kenlm_programs(arguments.kenlm)
    harness.print_machine(lmgauge)
    rows, goals = [], []
    for order in arguments.order or [3]:
        ours = models.lmgauge_model(lmgauge, train, order, arguments.work)
        theirs = models.kenlm_model(kenlm, train, order, arguments.work)
        command = [sys.executable, __file__, "child", *map(str, (ours, theirs, test, arguments.runs))]
        for name, measured in json.loads(harness.run_child(command).out).items():
            peer, own = measured["sums"]
            if not math.isclose(peer, own, rel_tol=SAME_SUM):
                harness.give_up(f"order {order}, {name}: lmgauge's sum is {own}, kenlm's {peer}")
            microseconds = [[1e6 * second for second in one] for one in measured["seconds"]]
            ratio = median(microseconds[1]) / median(microseconds[0])
            rows.append([f"{order}", name, *map(harness.seconds, microseconds), f"{ratio:.2f}"])
            if name == BATCHES:
                goals.append(Goal(f"order {order}: {name}, times faster", 1 / ratio, BOUNDS[name], at_least=True))
            elif name in BOUNDS:
                goals.append(Goal(f"order {order}: {name}, over kenlm's time", ratio, BOUNDS[name], at_least=False))
    harness.print_table(["order", "call", "kenlm, us of CPU", "lmgauge, us of CPU", "over kenlm's"], rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
