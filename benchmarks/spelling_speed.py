"""What spelling costs: training and scoring a 5-gram with a spelled vocabulary beside the same model without one.

Both are trained and asked for all rows of a held-out text in one process, with one thread, by turns; CPU seconds. The texts
differ in how many of their words the training text does not have, and in how long their lines are.

    python benchmarks/spelling_speed.py --runs 5
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import harness
from harness import Goal, median
from lmgauge import Corpus, LanguageModel, train
from lmgauge.base.choices import VocabularyKind
from lmgauge.scores import SPELLED

TRAINING_BYTES = 10 << 20
SCORING, TRAINING = 0.7, 1.3  # goals: speed with spelling over that without; time with it over that without


def texts() -> Iterator[tuple[str, Path, Path]]:
    """Yield the name, the training text and the held-out text of each pair."""
    yield "books", beginning(harness.book_text("train.txt")), harness.book_text("test.txt")
    wiki = harness.open_corpus("wikitext-2/train.txt.gz")
    yield "WikiText-2", wiki, harness.open_corpus("wikitext-103-evalsets/wiki.test.tokens.gz")
    yield "books, then WikiText", beginning(harness.book_text("train.txt")), harness.open_corpus("wikitext-2/test.txt.gz")


def beginning(path: Path) -> Path:
    """Return the first bytes of a text, whole lines, as a file of its own."""
    part = harness.cache_folder() / f"{path.stem}.{TRAINING_BYTES >> 20}M.txt"
    if not part.exists():
        with path.open("rb") as whole:
            part.write_bytes(whole.read(TRAINING_BYTES).rpartition(b"\n")[0] + b"\n")
    return part


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return what a call takes of this process' processor time."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _trained(text: Path, vocabulary: VocabularyKind) -> LanguageModel:
    return train("modified-kneser-ney", text, order=5, vocabulary=vocabulary, reserved="escape", threads=1)


def _scored(model: LanguageModel, text: Corpus) -> int:
    return sum(len(batch) for batch in model.score(text, threads=1))


def main() -> int:
    options = harness.parser(__doc__ or "", runs=5).parse_args()
    rows, goals = [], []
    for name, training, held_out in texts():
        works: dict[str, Callable[[], object]] = {}
        unseen = 0.0
        kinds: tuple[VocabularyKind, ...] = ("open", "spelled")
        for kind in kinds:
            learn = partial(_trained, training, kind)
            text, model = Corpus.from_files([held_out]), learn()
            unseen = float(np.mean(np.concatenate([batch.kind for batch in model.score(text)]) == SPELLED))
            works |= {f"train {kind}": learn, f"score {kind}": partial(_scored, model, text)}
        taken: dict[str, list[float]] = {what: [] for what in works}
        for _ in range(options.runs):
            for what, work in works.items():
                taken[what].append(cpu_seconds(work))
        times = {what: median(values) for what, values in taken.items()}
        speed = times["score open"] / times["score spelled"]
        slower = times["train spelled"] / times["train open"]
        shown = [f"{100 * unseen:.1f} %", *(f"{value:.3f}" for value in times.values()), f"{speed:.2f}x", f"{slower:.2f}x"]
        rows.append([name, *shown])
        goals.append(Goal(f"{name}: speed of scoring", speed, SCORING, at_least=True))
        goals.append(Goal(f"{name}: time of training", slower, TRAINING, at_least=False))
    head = ["text", "unseen", *(f"{what}, s" for what in ("train", "score", "train spelled", "score spelled"))]
    harness.print_table([*head, "speed", "training"], rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    sys.exit(main())
