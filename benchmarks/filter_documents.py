"""Documents scored by a 5-gram: `lmgauge score` from file to file, a loop over the `kenlm` package, datatrove's step.

All hold the same model: the peers a KenLM binary that lmgauge wrote, lmgauge its own folder and that binary. All read one
JSONL file, by turns, in one process, on one thread; CPU seconds become MB of the file a second. lmgauge and the loop read
and write files: the loop does json.loads, `Model.score`, the division, and json.dumps of the record with bits, perplexity
and tokens, but counts no unseen words, which lmgauge does. A plain JSON pass is the limit of any loop. Perplexities must
agree, or nothing is printed.

    python benchmarks/filter_documents.py --size small --size large --runs 3
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import models
from harness import Goal, median

SAME = 1e-4  # relative; KenLM keeps logarithms in float32
SMALL_WORDS_BYTES = 28_000_000  # 5 million words
FILE_BYTES = 10_000_000
PLAIN, LOOP, DATATROVE = "plain JSON pass", "loop over kenlm", "datatrove's step"
OURS, OURS_KENLM, ALONE = "lmgauge score", "the same, KenLM's file", "Scorer.score_texts"
CONTESTANTS = (PLAIN, LOOP, DATATROVE, OURS, OURS_KENLM, ALONE)
# Documents: the text they are cut from, their length in characters.
SHAPES = {
    "tweets": ("en", 100),
    "web pages": ("en", 3000),
    "articles": ("en", 20_000),
    "German": ("de", 3000),
    "Japanese": ("ja", 1500),
}
TEXTS = {
    "en": ("classic-books/train.txt.zst", "classic-books/test.txt.gz"),
    "de": ("multilingual/de-novels/train.txt.gz", "multilingual/de-novels/test.txt.gz"),
    "ja": ("multilingual/ja/soseki.txt.gz", "multilingual/ja/akutagawa.txt.gz"),
}  # fmt: skip


# --- what runs in a child ---------------------------------------------------------------------------------


def _documents(text: str, length: int) -> Iterator[str]:
    """Documents of whole lines, or of parts of lines where these are longer, each of about this length."""
    gathered = ""
    for line in text.splitlines():
        gathered += ("\n" if gathered else "") + line
        while len(gathered) >= length:
            cut = gathered.find(" ", length) if " " in gathered[length : length + 100] else length
            yield gathered[:cut]
            gathered = gathered[cut:].lstrip()


def _write_file(target: Path, held_out: str, length: int, characters: bool) -> None:
    text = Path(held_out).read_text(encoding="utf-8")
    text = "".join(text.split()) if characters else text
    written = number = 0
    with target.open("w", encoding="utf-8") as out:
        while written < FILE_BYTES:
            for document in _documents(text, length):
                record = {
                    "id": f"doc-{number:08d}",
                    "text": document,
                    "url": f"https://example.com/{number}",
                    "date": "2026-01-01",
                }
                written += out.write(json.dumps(record, ensure_ascii=False) + "\n")
                number += 1
                if written >= FILE_BYTES:
                    break


def _lines(file: Path) -> Iterator[bytes]:
    with file.open("rb") as lines:
        yield from lines


def _datatrove(binary: str) -> Any:
    """What datatrove's perplexity step calls for each document, with this model, and words as they stand."""
    import kenlm
    from datatrove.utils.perplexity import KenlmModel

    class Words:
        def tokenize(self, text: str) -> str:
            return text

    step = KenlmModel("", "")
    step._model, step._tokenizer = kenlm.Model(binary), Words()
    return step


def _turns(folder: str, binary: str, file: Path, work: Path, characters: bool) -> dict[str, Callable[[], float]]:
    """What is measured; each returns the sum of the logarithms of all perplexities, or NaN where it has other ones."""
    import kenlm

    import lmgauge

    peer, step = kenlm.Model(binary), _datatrove(binary)
    scorer = lmgauge.Scorer({"lm": lmgauge.load_model(folder)}, threads=1)
    theirs, serial = lmgauge.load_model(binary), lmgauge.settings.FilterWork(threads=1)

    def plain() -> float:
        return math.nan if sum(len(json.loads(line)["text"]) for line in _lines(file)) else 0.0

    def loop() -> float:
        total = 0.0
        with open(work / "loop.jsonl", "w", encoding="utf-8") as output:
            for line in _lines(file):
                record = json.loads(line)
                words = " ".join(record["text"]) if characters else record["text"]
                log10, tokens = -peer.score(words, bos=True, eos=True), len(words.split()) + 1
                record["lm_bits"], record["lm_tokens"] = log10 / math.log10(2), tokens
                record["lm_perplexity"] = perplexity = 10.0 ** (log10 / tokens)
                output.write(json.dumps(record, ensure_ascii=False) + "\n")
                total += math.log(perplexity)
        return total

    def datatrove_step() -> float:
        for line in _lines(file):
            text = json.loads(line)["text"]
            step.get_perplexity(" ".join(text) if characters else text)
        return math.nan

    def whole(model: Any) -> float:
        output = work / "scored.jsonl"
        lmgauge.score_documents({"lm": model}, str(file), str(output), work=serial)
        return sum(math.log(json.loads(line)["lm_perplexity"]) for line in _lines(output)) if checking else math.nan

    def alone() -> float:
        texts = [json.loads(line)["text"] for line in _lines(file)]
        start = time.process_time()
        scores = scorer.score_texts(texts)
        own_time.append(time.process_time() - start)
        return float(sum(math.log(x) for x in scores.columns()["lm_perplexity"].tolist())) if checking else math.nan

    turns = {PLAIN: plain, LOOP: loop, DATATROVE: datatrove_step, OURS: lambda: whole(folder), ALONE: alone}
    return turns if characters else turns | {OURS_KENLM: lambda: whole(theirs)}  # such a file is read with words


checking = True
own_time: list[float] = []


def _child(folder: str, binary: str, held_out: str, length: str, characters: str, runs: str) -> None:
    global checking
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        file = work / "documents.jsonl"
        _write_file(file, held_out, int(length), characters == "yes")
        turns = _turns(folder, binary, file, work, characters == "yes")
        sums = {name: turn() for name, turn in turns.items()}  # the first time, pages of the models are touched
        checking = False
        seconds: dict[str, list[float]] = {name: [] for name in turns}
        for done in range(int(runs)):
            for name in list(turns) if done % 2 == 0 else reversed(list(turns)):
                start = time.process_time()
                turns[name]()
                seconds[name].append(own_time[-1] if name == ALONE else time.process_time() - start)
        size = file.stat().st_size
    harness.print_json({"bytes": size, "seconds": seconds, "sums": {k: v for k, v in sums.items() if not math.isnan(v)}})


# --- the benchmark ----------------------------------------------------------------------------------------


def _training_text(language: str, size: str) -> Path:
    path = harness.open_corpus(TEXTS[language][0])
    if language != "en" or size == "large":
        return path
    part = harness.cache_folder() / "train-5-million-words.txt"
    if not part.exists():
        with path.open("rb") as source:
            part.write_bytes(source.read(SMALL_WORDS_BYTES).rpartition(b"\n")[0] + b"\n")
    return part


def _models(program: str, language: str, size: str, folder: Path | None) -> tuple[Path, Path]:
    """A model of lmgauge, and the same as KenLM's probing file."""
    text = _training_text(language, size)
    ours = (folder or harness.cache_folder()) / f"documents-{language}-{models.text_key(text, 5)}"
    theirs = ours.with_suffix(".binary")
    if not ours.exists():
        cut = ["--tokenizer", "character"] if language == "ja" else []
        options = ["--order", "5", "--reserved", "escape", *cut]
        harness.run_child([program, "train", "modified-kneser-ney", *options, str(text), "-o", str(ours)])
    if not theirs.exists():
        harness.run_child([program, "convert", str(ours), str(theirs)])
    return ours, theirs


def _forget(path: Path) -> None:
    """Drop a file from memory: a program that then maps it gets huge pages, which a file just written does not have."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--shape", choices=SHAPES, action="append", help="of documents; may be repeated (all)")
    options.add_argument("--size", choices=["small", "large"], action="append", help="of the English model (small)")
    arguments = options.parse_args()
    program = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(program)
    rows, goals = [], []
    for size in arguments.size or ["small"]:
        for shape in arguments.shape or SHAPES:
            language, length = SHAPES[shape]
            if language != "en" and size == "large":
                continue
            ours, theirs = _models(program, language, size, arguments.work)
            for path in (ours / "model.safetensors", theirs):
                _forget(path)
            held_out = harness.open_corpus(TEXTS[language][1])
            fixed = [str(length), "yes" if language == "ja" else "no", str(arguments.runs)]
            harness.note(f"{shape}, {size} model")
            command = [sys.executable, __file__, "child", str(ours), str(theirs), str(held_out), *fixed]
            measured = json.loads(harness.run_child(command).out)
            sums = measured["sums"]
            if not all(math.isclose(value, sums[LOOP], rel_tol=SAME) for value in sums.values()):
                harness.give_up(f"{shape}: sums of log perplexities differ: {sums}")
            rates = {
                name: [measured["bytes"] / harness.MB / s for s in values] for name, values in measured["seconds"].items()
            }
            ratio = median(rates[OURS]) / median(rates[LOOP])
            rows.append(
                [
                    f"{shape}, {size}",
                    *(harness.seconds(rates[name]) if name in rates else "-" for name in CONTESTANTS),
                    f"{ratio:.1f}",
                ]
            )
            if language == "en" and shape != "tweets":
                goals += [
                    Goal(f"{shape}, {size}: MB/s a core", median(rates[OURS]), 100, at_least=True, unit=""),
                    Goal(f"{shape}, {size}: over the loop", ratio, 5, at_least=True),
                ]
    harness.print_table(["documents, model; MB/s of CPU", *CONTESTANTS, "over the loop"], rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
