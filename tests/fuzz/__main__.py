"""Give the parsers damaged input for as long as is asked.

python -m tests.fuzz --minutes 30                        # all of them, in turns
python -m tests.fuzz arpa --inputs 1000000               # one of them
python -m tests.fuzz arpa --index 1234 --folder look     # one input again; its files stay in the folder
python -m tests.fuzz --minutes 30 --record counts.json   # goes on where that file's counts end, and adds to them
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.runner import Outcome, try_in_processes, try_one
from tests.fuzz.table import PARSERS, Parser

SLICE = 60.0
"""Seconds that a parser has before the next one's turn."""


def main() -> int:
    """Run; return 1 where a fault was met."""
    asked = _arguments()
    unknown = set(asked.parsers) - {parser.name for parser in PARSERS}
    if unknown:
        print(
            f"no parser {', '.join(sorted(unknown))}; there are {', '.join(parser.name for parser in PARSERS)}",
            file=sys.stderr,
        )
        return 2
    chosen = [parser for parser in PARSERS if not asked.parsers or parser.name in asked.parsers]
    if asked.index is not None:
        return _once_again(chosen, asked)
    counts: dict[str, Any] = json.loads(asked.record.read_text()) if asked.record and asked.record.exists() else {}
    ready = [parser for parser in chosen if not _left_out(parser)]
    met = 0
    for parser, outcome in _in_turns(ready, asked, counts):
        for fault in outcome.faults:
            print(f"{fault['parser']} --seed {fault['seed']} --index {fault['index']}\n{fault['fault']}\n", flush=True)
        met += len(outcome.faults)
        _add(counts.setdefault(parser.name, _nothing(parser)), outcome, str(asked.seed))
        if asked.record:
            asked.record.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
    for name in sorted(counts):
        entry = counts[name]
        print(
            f"{name:24} {entry['inputs']:>10,} inputs  {entry['faults']} faults  "
            + ", ".join(f"{count:,} {end}" for end, count in entry["ends"].items())
        )
    return 1 if met else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parsers", nargs="*", help="names; all where none is named")
    parser.add_argument("--minutes", type=float, default=1.0, help="for all parsers together (default 1)")
    parser.add_argument(
        "--inputs", type=int, default=10**9, help="for each parser, those of --record counted; it ends when they are reached"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--index", type=int, help="try this input alone, in this process")
    parser.add_argument("--folder", type=Path, help="where files are made (default: a temporary one)")
    parser.add_argument("--record", type=Path, help="a JSON file of counts, to go on from and to add to")
    return parser.parse_args()


def _left_out(parser: Parser) -> bool:
    missing = parser.missing()
    if missing:
        print(f"{parser.name} is left out: {', '.join(missing)} not installed", file=sys.stderr)
    return bool(missing)


def _once_again(parsers: list[Parser], asked: argparse.Namespace) -> int:
    (parser,) = parsers
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        end, fault = try_one(parser, parser.prepare(folder), asked.seed, asked.index)
    print(end if fault is None else fault)
    return 0 if fault is None else 1


def _in_turns(parsers: list[Parser], asked: argparse.Namespace, counts: dict[str, Any]) -> Any:
    """Yield (parser, what a process of it came to): a slice of time each, until all time or all inputs are used."""
    end = time.monotonic() + 60 * asked.minutes
    slice_seconds = min(SLICE, 60 * asked.minutes / max(1, len(parsers)))
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        while parsers and time.monotonic() < end:
            for parser in list(parsers):
                first = counts.get(parser.name, {}).get("next", {}).get(str(asked.seed), 0)
                left = min(slice_seconds, end - time.monotonic())
                if first >= asked.inputs or left <= 0:
                    parsers.remove(parser)
                    continue
                for outcome in try_in_processes(parser, asked.seed, range(first, asked.inputs), left, Path(folder)):
                    yield parser, outcome


def _nothing(parser: Parser) -> dict[str, Any]:
    return {"reads": parser.reads, "inputs": 0, "faults": 0, "ends": {}, "next": {}, "resident": [0.0, 0.0]}


def _add(entry: dict[str, Any], outcome: Outcome, seed: str) -> None:
    entry["next"][seed] = entry["next"].get(seed, 0) + outcome.inputs
    entry["inputs"] += outcome.inputs
    entry["faults"] += len(outcome.faults)
    entry["ends"] = dict(sorted((Counter(entry["ends"]) + outcome.ends).items()))
    if outcome.resident[1] - outcome.resident[0] >= entry["resident"][1] - entry["resident"][0] and outcome.resident[0]:
        entry["resident"] = [round(value, 1) for value in outcome.resident]


if __name__ == "__main__":
    sys.exit(main())
