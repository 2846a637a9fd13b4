"""The random inputs of tests/fuzz for ARPA files, given to lmgauge and to KenLM: how many each reads, refuses, or dies of.

    python benchmarks/fuzzed_peers.py --inputs 10000 [--json docs/reliability/fuzzed-peers.json]

KenLM reads in processes of its own: one that a file ends is counted, and the next one goes on behind it. A model that was
read scores five lines; NaN and log-probabilities above 0 are counted.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import harness

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
BATCH, SECONDS = 500, 20
TEXTS = ["the cat sat on the mat", "", "a dog", "unheard-of cat the the the", "grün 漢字 🙂"]


class _Taken(Exception):
    """Raised in place of reading a file."""


def files(first: int, count: int, folder: Path) -> Iterator[Path]:
    """Write the inputs of these numbers, and yield their files."""
    from tests.fuzz.runner import chance_of
    from tests.fuzz.table import named

    import lmgauge

    parser = named("arpa")
    attempt = parser.prepare(folder)
    for index in range(first, first + count):
        target = folder / f"{index}.arpa"

        def take(path: Path, target: Path = target) -> None:
            os.replace(path, target)
            raise _Taken

        with mock.patch.object(lmgauge, "load_model", take), contextlib.suppress(_Taken):
            attempt(chance_of(parser, 0, index))
        yield target


def peers_counts(batch: list[Path]) -> Counter[str]:
    """Return what KenLM made of files."""
    counts: Counter[str] = Counter()
    while batch:
        progress = batch[0].with_name("progress")
        progress.write_text("0", encoding="utf-8")
        command = [sys.executable, __file__, "child", str(progress), *map(str, batch)]
        late = False
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS + len(batch), check=False)
            ended = done.returncode
        except subprocess.TimeoutExpired:
            ended, late = 1, True
        lines = progress.with_suffix(".out").read_text(encoding="utf-8").split("\n")[:-1]
        counts.update(lines)
        if ended == 0:
            return counts
        counts["no end" if late else f"crash (signal {-ended})" if ended < 0 else "ended"] += 1
        batch = batch[len(lines) + 1 :]
    return counts


def own_counts(batch: list[Path]) -> Counter[str]:
    """Return what lmgauge made of files."""
    import lmgauge

    counts: Counter[str] = Counter()
    for path in batch:
        try:
            batches = lmgauge.load_model(path).score(lmgauge.Corpus.from_strings(TEXTS), threads=1)
            values = [value for rows in batches for value in rows.logprob.tolist()]
            counts[_kind(values)] += 1
        except lmgauge.base.errors.LmgaugeError:
            counts["refused"] += 1
    return counts


def _kind(values: list[float]) -> str:
    if any(math.isnan(value) for value in values):
        return "read, NaN"
    return "read, log-probability above 0" if any(value > 0 for value in values) else "read"


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--inputs", type=int, default=10_000, help="how many (10,000)")
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the table there")
    chosen = options.parse_args()
    counts: dict[str, Counter[str]] = {"lmgauge": Counter(), "KenLM": Counter()}
    for first in range(0, chosen.inputs, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            batch = list(files(first, min(BATCH, chosen.inputs - first), Path(folder)))
            counts["lmgauge"] += own_counts(batch)
            counts["KenLM"] += peers_counts(batch)
        harness.note(f"{first + len(batch)}: {dict(counts['KenLM'])}")
    rows = [[name, outcome, count] for name, several in counts.items() for outcome, count in sorted(several.items())]
    harness.print_table(["program", "outcome", "inputs"], [[*row[:2], str(row[2])] for row in rows])
    if chosen.json:
        content = {"columns": ["program", "outcome", "ARPA files"], "rows": rows}
        chosen.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")
    return 0


def _child(progress: Path, paths: list[str]) -> None:
    import kenlm

    with progress.with_suffix(".out").open("w", encoding="utf-8", buffering=1) as out:
        for path in paths:
            try:
                model = kenlm.Model(path)
            except (OSError, RuntimeError):
                out.write("refused\n")
                continue
            except UnicodeDecodeError:  # it refuses, and cannot say why
                out.write("refused, its message cannot be decoded\n")
                continue
            out.write(_kind([score for text in TEXTS for score, *_ in model.full_scores(text)]) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(Path(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(main())
