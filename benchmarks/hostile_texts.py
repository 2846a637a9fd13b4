"""Time per byte of hostile texts, over that of prose, for every tokenizer, model, task metric and search of lmgauge.

    python benchmarks/hostile_texts.py                  # at 100,000 and 1,000,000 bytes
    python benchmarks/hostile_texts.py --only spelled --text blanks --json out.json

A text that costs many times what prose costs, byte for byte, is a way to keep a server busy, and most often work that
grows with the square of something. A line costs something as such, be it as short as it may: each counts
as 16 bytes more than it has. Each row of the table is a tokenizer, model or metric; each column a size: how many
times as long a byte of the worst text takes as a byte of prose of that size, and which text that is. The models are small,
of the text in tests/data, and everything runs on one thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import harness
import lmgauge
from lmgauge import tasks

GOAL = 10.0
LINE_BYTES = 16
TEXTS_FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data"
TRAINING = TEXTS_FOLDER / "classic-books.train.txt"
SMALL_NETWORK: dict[str, Any] = {
    "embedding_size": 16,
    "hidden_size": 16,
    "num_layers": 1,
    "epochs": 1,
    "checkpoint_every": 0,
}
Work = Callable[[Path], object]


def _repeated(piece: str | bytes) -> Callable[[int], bytes]:
    raw = piece if isinstance(piece, bytes) else piece.encode()
    return lambda size: raw * max(1, size // len(raw))


def _prose(size: int) -> bytes:
    text = TRAINING.read_bytes()
    return (text * (size // len(text) + 1))[:size].decode("utf-8", "ignore").encode()


def _letters(size: int) -> bytes:
    """Letters without an end to their pattern: the digits of a power in base 26."""
    state, out = 1, bytearray()
    for _ in range(size):
        state = (state * 48271) % 2147483647
        out.append(97 + state % 26)
    return bytes(out)


TEXTS: dict[str, Callable[[int], bytes]] = {
    "prose": _prose,
    "prose on one line": lambda size: _prose(size).replace(b"\n", b" "),
    "prose without spaces": lambda size: _prose(size * 2).replace(b" ", b"").replace(b"\n", b"")[:size],
    "blanks": _repeated(" "),
    "blanks between letters": lambda size: b"a" + b" " * (size - 2) + b"b",
    "tabs": _repeated("\t"),
    "blanks and tabs": _repeated(" \t"),
    "no-break spaces": _repeated("\u00a0"),
    "wide spaces": _repeated("\u3000"),
    "spaces of all kinds": _repeated("\u2002 \u2003\t\u00a0\u2028\u3000"),
    "newlines": _repeated("\n"),
    "carriage returns": _repeated("\r"),
    "carriage returns and newlines": _repeated("\r\n"),
    "returns before a newline": lambda size: b"\r" * (size - 1) + b"\n",
    "one letter": _repeated("a"),
    "letters, no pattern": _letters,
    "letters and blanks": _repeated("a "),
    "letters on lines": _repeated("a\n"),
    "one known word": _repeated("the "),
    "digits": _repeated("0123456789"),
    "punctuation": _repeated(".,;:!?'\"()-"),
    "quotation marks": _repeated('"'),
    "apostrophes": _repeated("'"),
    "full stops": _repeated("."),
    "combining marks": lambda size: b"a" + "\u0301\u0316".encode() * (size // 4),
    "marks out of order": lambda size: b"a" + "\u0301\u0316\u05b0".encode() * (size // 6),
    "emoji joined": _repeated("\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d"),
    "joiners": _repeated("\u200d"),
    "flags": _repeated("\U0001f1e9\U0001f1ea"),
    "Chinese": _repeated("我們在學校裡學習語言模型"),
    "Thai": _repeated("ภาษาไทยไม่มีช่องว่างระหว่างคำ"),
    "Hangul parts": _repeated("\u1112\u1161\u11ab"),
    "right to left": _repeated("\u0627\u0644\u0643\u062a\u0627\u0628"),
    "scripts mixed": _repeated("aяあ中ก한א1"),
    "ligatures": _repeated("\ufdfa"),
    "unseen characters": lambda size: "".join(map(chr, range(0x4E00, 0x4E00 + 20000))).encode() * (size // 60000 + 1),
    "invalid UTF-8": _repeated(b"\xff"),
    "broken characters": _repeated(b"\xe2\x82a"),
    "NUL": _repeated(b"\0"),
}


@cache
def _small() -> lmgauge.Corpus:
    return lmgauge.Corpus.from_files([TRAINING])


def _trained(**options: Any) -> Callable[[], Any]:
    return lambda: lmgauge.train("modified-kneser-ney", _small(), reserved="escape", **{"order": 3, **options})


@cache
def _words() -> Any:
    return _trained()()


@cache
def _spelled() -> Any:
    return _trained(vocabulary="spelled", min_count=2)()


def _network() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        options = {"tokenizer": "bpe:500", "reserved": "escape", "valid": TEXTS_FOLDER / "pud.en.txt", "threads": 1}
        text = TEXTS_FOLDER / "pud.en.txt"
        return lmgauge.load_model(
            lmgauge.train_neural("gru", text, output=Path(folder, "m"), **options, **SMALL_NETWORK).path, reserved="escape"
        )


def _mixture() -> Any:
    return lmgauge.mix([_words(), lmgauge.train("witten-bell", _small(), order=2, reserved="escape")], weights=[0.5, 0.5])


MODELS: dict[str, Callable[[], Any]] = {
    "n-gram of words": _words,
    "n-gram, closed": _trained(vocabulary="closed"),
    "n-gram, treebank": _trained(tokenizer="treebank"),
    "n-gram, icu": _trained(tokenizer="icu"),
    "n-gram, ccnet": _trained(normalizer="ccnet"),
    "n-gram of characters": _trained(tokenizer="character", order=5),
    "n-gram of bytes": _trained(tokenizer="byte", order=5),
    "n-gram, spelled": _spelled,
    "n-gram, treebank, spelled": _trained(tokenizer="treebank", vocabulary="spelled", min_count=2),
    "n-gram, icu, spelled": _trained(tokenizer="icu", vocabulary="spelled", min_count=2),
    "characters, spelled": _trained(tokenizer="character", order=5, vocabulary="spelled"),
    "cache": lambda: lmgauge.cache(_words(), weight=0.1),
    "cache, spelled": lambda: lmgauge.cache(_spelled(), weight=0.1),
    "mixture": _mixture,
    "network of subwords": _network,
}
TOKENIZERS = ("whitespace", "treebank", "character", "byte", "icu", "icu:ja", "icu:th")
TASKS: dict[str, Callable[[list[str], list[str]], object]] = {
    "bleu": lambda outputs, references: tasks.bleu(hypotheses=outputs, references=references),
    "bleu, intl": lambda outputs, references: tasks.bleu(hypotheses=outputs, references=references, tokenizer="intl"),
    "bleu, zh": lambda outputs, references: tasks.bleu(hypotheses=outputs, references=references, tokenizer="zh"),
    "bleu, char": lambda outputs, references: tasks.bleu(hypotheses=outputs, references=references, tokenizer="char"),
    "chrf": lambda outputs, references: tasks.chrf(hypotheses=outputs, references=references),
    "chrf++": lambda outputs, references: tasks.chrf(hypotheses=outputs, references=references, word_order=2),
    "ter": lambda outputs, references: tasks.ter(hypotheses=outputs, references=references),
    "wer": lambda outputs, references: tasks.wer(hypotheses=outputs, references=references),
    "cer": lambda outputs, references: tasks.cer(hypotheses=outputs, references=references),
}


def _read(path: Path) -> lmgauge.Corpus:
    return lmgauge.Corpus.from_files([path], errors="replace")


def _scoring(make: Callable[[], Any]) -> Callable[[], Work]:
    def ready() -> Work:
        model = make()
        return lambda path: lmgauge.evaluate(model, _read(path), threads=1)

    return ready


def _cutting(name: str) -> Callable[[], Work]:
    def ready() -> Work:
        from lmgauge.text.tokenizers import make_tokenizer

        tokenizer = make_tokenizer(name)
        return lambda path: [tokenizer.tokenize(block).strings() for block in _read(path)]

    return ready


def _training(**options: Any) -> Work:
    return lambda path: lmgauge.train("modified-kneser-ney", _read(path), reserved="escape", threads=1, **options)


def _task(measure: Callable[[list[str], list[str]], object]) -> Work:
    """Compare the text, line by line, with itself where the first half of each line stands behind the second."""

    def work(path: Path) -> object:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
        return measure([line[len(line) // 2 :] + line[: len(line) // 2] for line in lines], lines)

    return work


def contestants() -> dict[str, Callable[[], Work]]:
    """What is measured: by name, what makes it ready."""
    all_of: dict[str, Callable[[], Work]] = {f"cut: {name}": _cutting(name) for name in TOKENIZERS}
    all_of |= {f"model: {name}": _scoring(make) for name, make in MODELS.items()}
    all_of["train"] = lambda: _training(order=3)
    all_of["train, spelled"] = lambda: _training(order=3, vocabulary="spelled", min_count=2)
    for unit in ("word", "character"):
        all_of[f"overlap: {unit}s"] = lambda unit=unit: (
            lambda path: lmgauge.overlap(_small(), _read(path), overlap_unit=unit, threads=1)
        )
        all_of[f"overlap with itself: {unit}s"] = lambda unit=unit: (
            lambda path: lmgauge.overlap(_read(path), _read(path), overlap_unit=unit, threads=1)
        )
    all_of |= {f"task: {name}": lambda measure=measure: _task(measure) for name, measure in TASKS.items()}
    return all_of


def units(path: Path) -> int:
    """Bytes of a text as it is read, and `LINE_BYTES` more for each line."""
    text = path.read_bytes().decode("utf-8", "replace").replace("\0", "\ufffd")
    return len(text.encode()) + LINE_BYTES * text.count("\n")


def seconds(work: Work, path: Path, runs: int) -> float | None:
    """The least CPU time of several runs; None where the text is refused. What takes long is not run again."""
    best = float("inf")
    for _ in range(runs):
        began = time.process_time()
        try:
            work(path)
        except lmgauge.LmgaugeError:
            return None
        best = min(best, time.process_time() - began)
        if best > 1:
            break
    return best


def main() -> None:
    """Print the table."""
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--size", type=int, action="append", help="bytes of each text (100,000 and 1,000,000)")
    options.add_argument("--only", metavar="WORD", help="what has this in its name")
    options.add_argument("--text", action="append", metavar="NAME", help="this text and prose; may be given several times")
    options.add_argument("--json", type=Path, metavar="FILE", help="all times per byte, in nanoseconds")
    chosen = options.parse_args()
    sizes, beyond = chosen.size or [100_000, 1_000_000], 0
    names = ["prose", *(chosen.text or [name for name in TEXTS if name != "prose"])]
    rows, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths = {(name, size): Path(folder, f"{i}-{size}.txt") for i, name in enumerate(names) for size in sizes}
        for (name, size), path in paths.items():
            path.write_bytes(TEXTS[name](size))
        for contestant, ready in contestants().items():
            if chosen.only and chosen.only not in contestant:
                continue
            work, row = ready(), [contestant]
            work(paths["prose", sizes[0]])  # what is made once
            for size in sizes:
                nanoseconds = {}
                for name in names:
                    spent = seconds(work, paths[name, size], chosen.runs)
                    if spent is not None:
                        nanoseconds[name] = spent / units(paths[name, size]) * 1e9
                prose = nanoseconds.pop("prose")
                order = sorted(nanoseconds, key=lambda name: -nanoseconds[name])
                ratios = {name: nanoseconds[name] / prose for name in order}
                beyond += sum(ratio > GOAL for ratio in ratios.values())
                shown = [name for name in order if ratios[name] > GOAL] or order[:1]
                row += [f"{prose:,.0f}", ", ".join(f"{ratios[name]:,.1f} {name}" for name in shown)]
                times.append({"what": contestant, "bytes": size, "prose": prose, "over_prose": ratios})
            rows.append(row)
            harness.note("  ".join(row))
    head = [f"{what} at {size:,}" for size in sizes for what in ("ns a byte of prose", "worst text over prose")]
    harness.print_table(["what", *head], rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8", newline="\n")
    print(f"\n{beyond} texts cost more than {GOAL:g} times what prose costs")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
