"""`python -m tests.faults --minutes N`: each command under each fault at as many calls as fit in N minutes."""

from __future__ import annotations

import argparse
import atexit
import errno
import importlib.util
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.commands import COMMANDS, Command, prepare
from tests.faults.laws import Undisturbed, meets, undisturbed
from tests.faults.machine import Fault, Machine
from tests.faults.orders import why_not

FAULTS = {
    "killed": (Fault("kill", "change"),),
    "killed in a write": (Fault("tear", "space"),),
    "disk full": (Fault("from", "space"), Fault("once", "space")),
    "failed": (Fault("once", "change", error=errno.EIO), Fault("once", "read", error=errno.EIO)),
    "cut short": (Fault("short", "space"), Fault("short", "read")),
    "interrupted": (Fault("once", "read", error=errno.EINTR),),
    "two at once": (Fault("stop", "change"),),
}
"""The faults by their names in the report."""
_FIRST, _LAST = ("command", "calls"), "wrong"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print a table and what is wrong; return 1 if something is."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long; calls are sampled evenly to fit")
    parser.add_argument("--only", action="append", choices=FAULTS, help="only these faults; may be given several times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too; what is there and more stays")
    parser.add_argument("names", nargs="*", help="commands by their names in tests/faults/commands.py; all if not named")
    options = parser.parse_args(arguments)
    if (why := why_not()) is not None:
        print(f"nothing can be done here: {why}")
        return 0
    commands = [one for one in COMMANDS if (not options.names or one.name in options.names) and has_needs(one)]
    wrong, rows = 0, list[list[object]]()
    network = any(one.needs for one in commands)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), ["lmgauge.models.training.run"] if network else [])
        atexit.register(machine.close)
        prepare(machine, network=network)
        names = options.only or list(FAULTS)
        print("| command | calls | " + " | ".join(names) + " |\n" + "| --- " * (2 + len(names)) + "|")
        end = time.monotonic() + 60 * options.minutes
        for number, command in enumerate(commands):
            seconds = (end - time.monotonic()) / (len(commands) - number)
            row, own = _all_faults(machine, command, names, seconds)
            wrong += own
            rows.append([*row, own])
            print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row) + " |", flush=True)
    if options.json is not None:
        _write(options.json, [dict(zip([*_FIRST, *names, _LAST], row, strict=True)) for row in rows])
    print(f"{wrong} faults with a fault of ours")
    return min(wrong, 1)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write the table; of counts of an earlier run the larger ones stay, as each run begins with the same calls."""
    columns, whole = [*_FIRST, *FAULTS, _LAST], dict[object, dict[str, object]]()
    if path.exists():
        there = json.loads(path.read_text(encoding="utf-8"))
        whole = {row[0]: dict(zip(there["columns"], row, strict=True)) for row in there["rows"]}
    for row in rows:
        before = whole.get(row["command"], {})
        counts = {name: max(before.get(name, 0), row.get(name, 0)) for name in columns[2:]}  # type: ignore[type-var]
        whole[row["command"]] = row | counts
    order = [command.name for command in COMMANDS if command.name in whole]
    content = {"columns": columns, "rows": [[whole[name][column] for column in columns] for name in order]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")


def has_needs(command: Command) -> bool:
    """Return True if the modules that a command needs are installed."""
    return all(importlib.util.find_spec(name) for name in command.needs)


def points(plain: Undisturbed, fault: Fault, most: int) -> list[Fault]:
    """Return a fault at each of its calls, or at that many of them, evenly spread, the last one included."""
    count = plain.counts[fault.kind]
    places = range(1, count + 1) if count <= most else sorted({count - number * count // most for number in range(most)})
    return [Fault(fault.mode, fault.kind, place, fault.error) for place in places]


def _all_faults(machine: Machine, command: Command, names: Sequence[str], seconds: float) -> tuple[list[object], int]:
    """Meet all faults at all calls, as far as the seconds go; return a row of counts, and how many had a fault of ours."""
    plain = undisturbed(machine, command)
    all_points = [(name, points(plain, fault, sys.maxsize)) for name in names for fault in FAULTS[name]]
    wanted = list(_in_turn(all_points))
    began, done, wrong = time.monotonic(), Counter[str](), 0
    for name, fault in wanted:
        if time.monotonic() - began > seconds:
            break
        done[name] += 1
        for complaint in meets(machine, plain, fault):
            wrong += 1
            print(f"{command.name}: {fault}: {complaint}", file=sys.stderr, flush=True)
    return [command.name, plain.counts["change"], *(done[name] for name in names)], wrong


def _in_turn(lists: Sequence[tuple[str, list[Fault]]]) -> Iterator[tuple[str, Fault]]:
    """Yield from all lists in turn, those in the middle of what is left first, so that any prefix is an even sample."""
    spread = [(name, [own[place] for place in _spread(len(own))]) for name, own in lists]
    for number in range(max((len(own) for _, own in spread), default=0)):
        for name, own in spread:
            if number < len(own):
                yield name, own[number]


def _spread(count: int) -> list[int]:
    """Return the numbers below a count in an order in which each prefix is spread evenly (van der Corput's).

    >>> _spread(6)
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(1, (count - 1).bit_length())
    return [place for number in range(1 << bits) if (place := int(f"{number:0{bits}b}"[::-1], 2)) < count]


if __name__ == "__main__":
    sys.exit(main())
