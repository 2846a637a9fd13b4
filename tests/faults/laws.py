"""What holds after a fault: whole outputs only, and nothing left that the next run does not remove."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.commands import Command
from tests.faults.machine import SHELF, Fault, Machine, Outcome, tree

_TEMPORARY = (".tmp", ".old", "/tmp/lmgauge-")
_PROBE = re.compile("tmp/[a-z0-9_]{8}")  # of Python's tempfile, which tries whether it can write there
_FINISHED = "nothing to resume"
_REFUSED = ("another run is", _FINISHED)
_SECONDS = re.compile(rb'"seconds": [0-9.e-]+')  # that a training took
_QUIET_SECONDS = 2.1
"""Files younger than this are not remembered as sound, and how often a run writes would depend on when it began."""


@dataclass(frozen=True)
class Undisturbed:
    """A command without a fault.

    Attributes:
        command: which.
        counts: of its calls.
        before: all that is below the root before it.
        after: all that is below the root after it.
        older: a copy of what `out` holds before it.
    """

    command: Command
    counts: dict[str, int]
    before: dict[str, bytes | None]
    after: dict[str, bytes | None]
    older: Path


def undisturbed(machine: Machine, command: Command) -> Undisturbed:
    """Run a command without a fault, twice: it must come to the same bytes.

    Raises:
        AssertionError: it fails, writes other files than it says, or other bytes each time.
    """
    older = machine.root.parent / "older" / command.name.replace("/", "-")
    shutil.rmtree(older, ignore_errors=True)
    machine.reset()
    if command.older is not None:
        done = machine.run(command.older.split())
        assert done.code == 0, f"{command.older}: {done.stderr}"
    shutil.copytree(machine.root / "out", older)
    age = time.time() - max(path.stat().st_ctime for path in (machine.root / "in").rglob("*"))
    time.sleep(max(0.0, _QUIET_SECONDS - age))
    results = []
    for _ in range(2):
        machine.reset(older)
        before = tree(machine.root)
        done = machine.run(command.arguments)
        assert done.code == 0, f"{command.line}: {done.stderr}"
        results.append(tree(machine.root))
    after, again = results
    assert done.counts["change"], "the shim counts nothing"
    assert not _difference(after, again), f"{command.line}: not the same each time: {_difference(after, again)}"
    assert all(output in after for output in command.outputs), f"{command.line}: wrote {sorted(after)}"
    assert not [path for path in after if path.startswith("tmp/")], f"{command.line}: left {sorted(after)}"
    return Undisturbed(command, done.counts, before, after, older)


def meets(machine: Machine, plain: Undisturbed, fault: Fault) -> Iterator[str]:
    """Run a command under a fault and once more without, or beside one that is stopped; yield what is wrong.

    Args:
        machine: where.
        plain: the command without a fault.
        fault: what is to happen.
    """
    if fault.mode == "stop":
        yield from _meets_another(machine, plain, fault)
        return
    machine.reset(plain.older)
    outcome = machine.run(plain.command.arguments, fault)
    left = tree(machine.root)
    yield from _halves(plain, left)
    if fault.mode in ("kill", "tear"):
        if outcome.code != -9 and outcome.hit:
            yield f"was not killed: exit code {outcome.code}, {outcome.stderr}"
    elif fault.mode in ("short", "count") or fault.error == errno.EINTR:
        if outcome.code != 0 or _but_cache(left) != _but_cache(plain.after):
            yield f"exit code {outcome.code}, {_difference(plain.after, left)}; {outcome.stderr}"
    else:
        yield from _failure(plain, outcome, left)
    again = machine.run(plain.command.next_arguments)
    if again.code == 2 and _FINISHED in again.stderr and not _difference(plain.after, tree(machine.root)):
        return  # it had come to its end
    if again.code != 0:
        yield f"the next run fails: {again.stderr}"
    elif difference := _difference(plain.after, tree(machine.root)):
        yield f"after the next run: {difference}"


def _meets_another(machine: Machine, plain: Undisturbed, fault: Fault) -> Iterator[str]:
    """Stop a command at a call, run the same command beside it, and let it go on; yield what is wrong.

    Either may be refused in words, as the other one writes there, or as the other one has finished what it was to resume; if
    both come to their end, there is one whole result.
    """
    machine.reset(plain.older)
    first = machine.run(plain.command.arguments, fault)
    if first.code != -signal.SIGSTOP:
        yield f"did not stop: exit code {first.code}, {first.stderr}"
        return
    second = machine.run(plain.command.arguments)
    yield from _halves(plain, tree(machine.root))
    first = machine.go_on()
    for which, own in (("the one that was stopped", first), ("the other", second)):
        if own.code and not (own.code == 2 and any(reason in own.stderr for reason in _REFUSED)):
            yield f"{which}: exit code {own.code}; {own.stderr}"
    if first.code and second.code:
        yield "both were refused"
    if difference := _difference(plain.after, tree(machine.root)):
        yield f"after both: {difference}"


def _failure(plain: Undisturbed, outcome: Outcome, left: dict[str, bytes | None]) -> Iterator[str]:
    """Yield what is wrong with a command that met an error of the operating system, or could do without that call."""
    if outcome.code == 0:
        removing = outcome.hit.startswith(("unlink", "rmdir"))  # what cannot be removed stays, until the next run
        difference = _difference(plain.after, {k: v for k, v in left.items() if k in plain.after} if removing else left)
        if difference:
            yield f"exit code 0, but {difference}; {outcome.stderr}"
        return
    if outcome.code != 2 or "Traceback" in outcome.stderr:
        yield f"exit code {outcome.code}: {outcome.stderr[-1500:]}"
        return
    errors = [line for line in outcome.stderr.splitlines() if line.startswith("lmgauge: error: ")]
    if len(errors) != 1:
        yield f"not one line of error: {outcome.stderr}"
    elif any(word in errors[0] for word in _TEMPORARY) or not any(word in errors[0] for word in ("out", "in/", "tmp")):
        yield f"does not name what was to be written: {errors[0]}"
    if difference := _difference(plain.before, left, plain.command.resumes):
        whole = [path for path in plain.command.outputs if _part(left, path) == _part(plain.after, path)]
        several = plain.before | {name: content for path in whole for name, content in _part(plain.after, path).items()}
        several |= {str(folder): None for path in whole for folder in Path(path).parents}
        there = {name: each for name, each in several.items() if name in left}
        if not whole or _difference(there, left, plain.command.resumes):
            yield f"leaves things behind: {difference}"


def _halves(plain: Undisturbed, left: dict[str, bytes | None]) -> Iterator[str]:
    """Yield the outputs that are neither as before nor as after, and inputs that were changed."""
    left = _but_cache(left)
    for path in ("in", *plain.command.outputs):
        now, before = _part(left, path), _part(_but_cache(plain.before), path)
        if now not in (before, _part(_but_cache(plain.after), path)):
            yield f"{path} is {'gone' if not now else 'half written'}: {sorted(now)}"


def _part(whole: dict[str, bytes | None], path: str) -> dict[str, bytes | None]:
    return {name: content for name, content in whole.items() if name == path or name.startswith(path + "/")}


def _but_cache(whole: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Return all but the bytes of what is in the cache, and but what no two runs have in common."""
    return {
        name: None if name.startswith("cache/") or content is None else _SECONDS.sub(b"", content)
        for name, content in whole.items()
    }


def _difference(wanted: dict[str, bytes | None], seen: dict[str, bytes | None], but: tuple[str, ...] = ()) -> str:
    """Return how two states of the machine differ in words, empty if they do not."""
    wanted, seen = _but_cache(wanted), _but_cache(seen)

    def counts(name: str) -> bool:
        in_cache = name == "cache" or (
            name.startswith("cache/") and (os.path.splitext(name)[1] == ".json" or "." not in name)
        )
        return not in_cache and not any(name == path or name.startswith(path + "/") for path in but)

    lists = {
        "more": [name for name in seen if name not in wanted and counts(name)],
        "missing": [name for name in wanted if name not in seen and counts(name)],
        "other bytes": [name for name in wanted if name in seen and wanted[name] != seen[name]],
    }
    lists["more"] = [name for name in lists["more"] if not _PROBE.fullmatch(name)]
    return "; ".join(f"{what}: {', '.join(names[:6])}" for what, names in lists.items() if names)


__all__ = ["SHELF", "Undisturbed", "meets", "undisturbed"]
