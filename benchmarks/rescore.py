"""Rescoring n-best lists: seconds for 100,000 hypotheses, and what it is worth on lists of real recognizers.

Lists are made of what four recognizers wrote of 22 earnings calls (see `nbest_lists.py`). A third of the calls trains a
trigram model, a third tunes the weights, a third is the test: the error rate of the vote of the recognizers before, and
of the rescored lists after, with whole calls swapped (all ways to swap them are counted).

For the time, 100,000 hypotheses (each list repeated with its words turned round, if need be) are scored by lmgauge and by
a loop over `model.score` of the kenlm package, with the same model (ARPA) and by turns, CPU seconds; both must agree.

    python benchmarks/rescore.py --runs 5
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
from harness import Goal, median
from nbest_lists import Piece, pieces, read_calls, words_of

RECOGNIZERS = ("amazon", "google", "microsoft", "speechmatics")
HYPOTHESES, MOST = 100_000, 30
OURS, SCORES, PEER = "lmgauge.rescore, all of it", "its scoring alone", "kenlm, a loop"
GOAL_RATIO, GOAL_SECONDS = 1.5, 10.0
AGREE = 1e-4  # relative: kenlm holds float32


def _sentences(folder: Path, calls: set[str]) -> list[str]:
    """The references of calls, a sentence a line, as the lists are written."""
    text = read_calls(folder, "ref")
    lines = (" ".join(words_of(line)) for call in sorted(calls) for line in re.split(r"(?<=[.?!]) ", text[call]))
    return [line for line in lines if line]


def _lists(some: list[Piece]) -> tuple[dict[str, Any], dict[str, str]]:
    return {piece.id: piece.hypotheses for piece in some}, {piece.id: piece.reference for piece in some}


def _gain(model: Any, all_pieces: list[Piece], parts: list[set[str]]) -> None:
    """Print what rescoring is worth."""
    import lmgauge

    tune, ref = _lists([piece for piece in all_pieces if piece.call in parts[1]])
    test, test_ref = _lists([piece for piece in all_pieces if piece.call in parts[2]])
    calls = {piece.id: piece.call for piece in all_pieces}
    started = time.process_time()
    result = lmgauge.rescore(test, {"calls": model}, tune=tune, ref=ref, test_ref=test_ref, document=calls)
    print(result)
    count = sum(map(len, tune.values())) + sum(map(len, test.values()))
    harness.note(f"{count:,} hypotheses scored, weights tuned, tested: {time.process_time() - started:.2f} CPU s")


def _hundred_thousand(all_pieces: list[Piece]) -> list[str]:
    """Different hypotheses, as many as are asked for."""
    texts = list(dict.fromkeys(text for piece in all_pieces for text, _ in piece.hypotheses))
    turned = (" ".join(reversed(text.split())) for text in texts)
    return list(dict.fromkeys([*texts, *turned]))[:HYPOTHESES]


def _seconds(model: Any, texts: list[str], runs: int) -> dict[str, list[float]]:
    """CPU seconds of both, by turns; gives up if they do not agree."""
    import kenlm

    import lmgauge
    from lmgauge.evaluation.choices.multiple_choice import log_probabilities

    with tempfile.TemporaryDirectory() as folder:
        lmgauge.models.write_arpa(model, f"{folder}/model.arpa")
        peer = kenlm.Model(f"{folder}/model.arpa")
    lists = {str(i): texts[i : i + 100] for i in range(0, len(texts), 100)}
    taken: dict[str, list[float]] = {OURS: [], SCORES: [], PEER: []}

    def work(name: str) -> None:
        started = time.process_time()
        if name == OURS:
            result = lmgauge.rescore(lists, {"m": model}, weights={"m": 1})
            taken[name].append(time.process_time() - started)
            sums[name] = result.nats[0].tolist()
        elif name == SCORES:
            sums[name] = log_probabilities([model], texts)[0][0].tolist()
            taken[name].append(time.process_time() - started)
        else:
            sums[name] = [peer.score(text) * 2.302585092994046 for text in texts]
            taken[name].append(time.process_time() - started)

    sums: dict[str, list[float]] = {}
    harness.interleave([OURS, SCORES, PEER], runs, work)
    if any(abs(a - b) > AGREE * abs(b) for a, b in zip(sums[OURS], sums[PEER], strict=True)):
        harness.give_up("lmgauge and kenlm do not agree")
    return taken


def main() -> int:
    options = harness.parser(__doc__ or "", runs=5)
    options.add_argument("--data", type=Path, default=None, help="the folder open/asr-earnings21")
    chosen = options.parse_args()
    folder = chosen.data or Path(harness.os.environ.get("LMGAUGE_DATA") or harness.DATA, "open/asr-earnings21")
    import lmgauge

    all_pieces = list(pieces(folder, MOST, RECOGNIZERS))
    calls = list(dict.fromkeys(piece.call for piece in all_pieces))
    parts = [set(calls[k::3]) for k in range(3)]
    corpus = lmgauge.Corpus.from_strings(_sentences(folder, parts[0]))
    model = lmgauge.train("modified-kneser-ney", corpus, order=3)
    _gain(model, all_pieces, parts)
    texts = _hundred_thousand(all_pieces)
    taken = _seconds(model, texts, chosen.runs)
    rows = [[name, harness.seconds(values)] for name, values in taken.items()]
    print()
    harness.print_table([f"{len(texts):,} hypotheses", "CPU s"], rows)
    ratio = median(taken[SCORES]) / median(taken[PEER])
    goals = [
        Goal("scoring alone by kenlm's loop, CPU", ratio, GOAL_RATIO, at_least=False),
        Goal("seconds of lmgauge", median(taken[OURS]), GOAL_SECONDS, at_least=False, unit=" s"),
    ]
    return harness.report_goals(goals)


if __name__ == "__main__":
    sys.exit(main())
