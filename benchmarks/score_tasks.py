"""BLEU, chrF, TER and WER compared with sacreBLEU and jiwer, on real translations and transcripts, with identical results.

Each measurement has a process of its own, which reads the texts first; what is timed is the call: tokenization, counting,
score. Both programs get lists of strings and one thread; seconds are the processor's. Every score, interval and count of
errors must agree before anything is printed (a resampled mean within sacreBLEU's float32). Commands are measured whole.

    python benchmarks/score_tasks.py --runs 3
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import task_texts
from harness import Goal, median

OURS, PEER = "lmgauge", "peer"
TRANSCRIPTS = "transcripts"
MEMORY_GOAL = 600 * harness.MB
STREAMED = 2_000_000
CALLS_OF_ONE = 22  # lines of the file of whole calls that one recognizer has
Answer = tuple[float, list[float]]

PIECES, CALLS, JOINED = 0, -1, -2  # in place of a number of segments: earnings calls in pieces, whole, or joined to one pair

# name -> (goal as a ratio or None, segments, what agrees within)
WORK: dict[str, tuple[float | None, int, float]] = {
    "BLEU, 100 segments": (None, 100, 1e-9),
    "BLEU, 2,000 segments": (None, 2_000, 1e-9),
    "BLEU, 20,000 segments": (10, 20_000, 1e-9),
    "BLEU, 200,000 segments": (10, 200_000, 1e-9),
    "BLEU, second system, 20,000 segments": (15, 20_000, 1e-9),
    "paired bootstrap, 3 systems, 20,000 segments": (25, 20_000, 1e-4),
    "paired randomization, 3 systems, 2,000 segments": (None, 2_000, 1e-4),
    "chrF, 20,000 segments": (20, 20_000, 1e-9),
    "chrF++, 20,000 segments": (None, 20_000, 1e-9),
    "chrF, second system, 20,000 segments": (15, 20_000, 1e-9),
    "TER, 2,000 segments": (30, 2_000, 1e-9),
    "TER, 20,000 segments": (30, 20_000, 1e-9),
    "WER and counts, 100,000 utterances": (8, PIECES, 1e-12),
    "CER and counts, 100,000 utterances": (None, PIECES, 1e-12),
    "WER and counts, whole calls": (4, CALLS, 1e-12),
    "WER and counts, one pair of 170,000 words": (None, JOINED, 1e-12),
}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _texts(segments: int) -> dict[str, list[str]]:
    if segments <= 0:
        reference, heard = task_texts.utterances() if segments == PIECES else task_texts.whole_calls()
        texts = {"reference": _lines(reference), "first": _lines(heard)}
        return {name: [" ".join(lines[:CALLS_OF_ONE])] for name, lines in texts.items()} if segments == JOINED else texts
    return {name: _lines(path) for name, path in task_texts.task_texts(segments).items()}


def _timed(work: Callable[[], list[float]]) -> Answer:
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


# --- what runs in a child: the same work, ours and theirs ----------------------------------------------------------------


def _ours(name: str, texts: dict[str, list[str]]) -> Answer:
    import lmgauge
    from lmgauge.tasks.texts import References, Texts

    kind, references = name.split(",")[0], texts["reference"]
    metrics = {
        "BLEU": lmgauge.tasks.BLEU(),
        "chrF": lmgauge.tasks.ChrF(),
        "chrF++": lmgauge.tasks.ChrF(word_order=2),
        "TER": lmgauge.tasks.TER(),
    }
    if kind.startswith("paired"):
        systems = {system: texts[system] for system in task_texts.SYSTEMS}
        test = "sacrebleu-bootstrap" if kind.split()[1] == "bootstrap" else "sacrebleu"
        settings = lmgauge.tasks.ComparisonSettings(significance=test, threads=1)  # type: ignore[arg-type]

        def compare() -> list[float]:
            result = lmgauge.tasks.score_systems(
                metrics["BLEU"], hypotheses=systems, references=references, settings=settings
            )
            means = [item.mean for item in result if test == "sacrebleu-bootstrap" and item.mean is not None]
            return (
                [item.score.score for item in result] + means + [item.p_value for item in result if item.p_value is not None]
            )

        return _timed(compare)
    if name.startswith(("WER", "CER")):
        measure = lmgauge.tasks.wer if name.startswith("WER") else lmgauge.tasks.cer

        def rates() -> list[float]:
            result = measure(hypotheses=texts["first"], references=references, threads=1)
            return [result.score, result.hits, result.substitutions, result.deletions, result.insertions]

        return _timed(rates)
    metric = metrics[kind]
    if "second" in name:
        prepared = References.single(metric.prepared_references(Texts.of_strings(references)))

        def second() -> list[float]:
            rows = metric.statistics(metric.prepared(Texts.of_strings(texts["second"])), prepared, 1)
            return [metric.score(rows.sum(axis=0), 1).score]

        return _timed(second)
    function = getattr(lmgauge.tasks, kind.lower().removesuffix("++"))
    options = {"plus_plus": True} if kind == "chrF++" else {}
    return _timed(lambda: [function(hypotheses=texts["first"], references=references, threads=1, **options).score])


def _peer(name: str, texts: dict[str, list[str]]) -> Answer:
    if name.startswith(("WER", "CER")):
        import jiwer

        process = jiwer.process_words if name.startswith("WER") else jiwer.process_characters

        def rates() -> list[float]:
            result = process(texts["reference"], texts["first"])
            rate = result.wer if name.startswith("WER") else result.cer
            return [rate, result.hits, result.substitutions, result.deletions, result.insertions]

        return _timed(rates)
    from sacrebleu.metrics import BLEU, CHRF, TER

    kind, references = name.split(",")[0], [texts["reference"]]
    kinds = {"BLEU": BLEU, "chrF": CHRF, "chrF++": lambda **settings: CHRF(word_order=2, **settings), "TER": TER}
    if kind.startswith("paired"):
        from sacrebleu.significance import PairedTest

        named = [(system, texts[system]) for system in task_texts.SYSTEMS]
        test = "bs" if kind.split()[1] == "bootstrap" else "ar"

        def compare() -> list[float]:
            _, by_metric = PairedTest(named, {"BLEU": BLEU(references=references)}, None, test_type=test)()
            results: list[Any] = by_metric["BLEU"]
            means = [result.mean for result in results if result.mean is not None]
            return [result.score for result in results] + means + [r.p_value for r in results if r.p_value is not None]

        return _timed(compare)
    if "second" in name:
        metric = kinds[kind](references=references)
        return _timed(lambda: [metric.corpus_score(texts["second"], None).score])
    return _timed(lambda: [kinds[kind]().corpus_score(texts["first"], references).score])


def _child(program: str, name: str) -> None:
    texts = _texts(WORK[name][1])
    seconds, answer = _ours(name, texts) if program == OURS else _peer(name, texts)
    harness.print_json({"seconds": seconds, "answer": answer})


# --- the benchmark -------------------------------------------------------------------------------------------------------


def _row(name: str, runs: int) -> tuple[list[str], float]:
    answers: dict[str, list[dict[str, Any]]] = {OURS: [], PEER: []}

    def run(program: str) -> None:
        answers[program].append(json.loads(harness.run_child([sys.executable, __file__, "child", program, name]).out))

    harness.interleave(list(answers), runs, run)
    ours, theirs = answers[OURS][0]["answer"], answers[PEER][0]["answer"]
    if len(ours) != len(theirs) or any(abs(a - b) > WORK[name][2] for a, b in zip(ours, theirs, strict=True)):
        harness.give_up(f"{name}: lmgauge finds {ours}, the peer {theirs}")
    taken = {program: [answer["seconds"] for answer in runs_of] for program, runs_of in answers.items()}
    ratio = median(taken[PEER]) / median(taken[OURS])
    return [name, harness.seconds(taken[OURS]), harness.seconds(taken[PEER]), f"{ratio:.1f}"], ratio


def _commands(program: str, runs: int) -> tuple[list[list[str]], list[Goal]]:
    """Whole processes: a cold start on 2,000 segments, and memory on many."""
    small, large = task_texts.task_texts(2_000), task_texts.task_texts(200_000)
    theirs = [sys.executable, "-m", "sacrebleu", str(small["reference"]), "-i", str(small["first"])]
    commands = {
        "`lmgauge bleu`, 2,000 segments": [program, "bleu", str(small["reference"]), str(small["first"])],
        "`lmgauge bleu --significance none`": [
            *(program, "bleu", str(small["reference"]), str(small["first"])),
            *("--significance", "none"),
        ],
        "`sacrebleu`, 2,000 segments": theirs,
        "`lmgauge bleu`, 200,000 segments": [program, "bleu", str(large["reference"]), str(large["first"])],
        "`lmgauge bleu`, 200,000 segments, 3 systems": [program, "bleu", *map(str, large.values())],
    }
    measured: dict[str, list[harness.Measurement]] = {name: [] for name in commands}
    harness.interleave(list(commands), runs, lambda name: measured[name].append(harness.run_child(commands[name])))
    with tempfile.TemporaryDirectory() as folder:
        streamed = [_repeated(large[name], Path(folder, name)) for name in ("reference", "first")]
        name = f"`lmgauge bleu`, {STREAMED:,} segments"
        measured[name] = [harness.run_child([program, "bleu", *map(str, streamed)])]
    wall = {name: median([m.wall for m in runs_of]) for name, runs_of in measured.items()}
    peak = {name: max(m.peak for m in runs_of) for name, runs_of in measured.items()}
    rows = [[name, f"{wall[name]:.2f}", harness.megabytes(peak[name])] for name in measured]
    cold, peer, *_ = (wall[name] for name in ("`lmgauge bleu`, 2,000 segments", "`sacrebleu`, 2,000 segments"))
    held = max(peak[name] for name in commands if "200,000" in name)
    return rows, [
        Goal("cold start of `bleu` over `sacrebleu`'s", peer / cold, 1.0, at_least=True),
        Goal("memory at 200,000 segments", held / harness.MB, MEMORY_GOAL / harness.MB, at_least=False, unit=" MB"),
    ]


def _repeated(path: Path, target: Path) -> Path:
    block = path.read_bytes()
    with target.open("wb") as out:
        for _ in range(STREAMED // 200_000):
            out.write(block)
    return target


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--only", metavar="TEXT", help="measure only rows with this text in their name")
    arguments = options.parse_args()
    program = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(program)
    for segments in (100, 2_000, 20_000, 200_000):
        task_texts.task_texts(segments)
    task_texts.utterances()
    task_texts.whole_calls()
    rows, goals = [], []
    for name, (goal, _, _) in WORK.items():
        if arguments.only is None or arguments.only in name:
            row, ratio = _row(name, arguments.runs)
            rows.append(row)
            goals += [] if goal is None else [Goal(name, ratio, goal, at_least=True)]
    harness.print_table(["work", "lmgauge, s", "sacreBLEU or jiwer, s", "times faster"], rows)
    if arguments.only is None:
        whole, more = _commands(program, arguments.runs)
        print()
        harness.print_table(["command", "wall, s", "peak, MB"], whole)
        goals += more
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main())
