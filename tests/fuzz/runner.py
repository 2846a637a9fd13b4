"""Trying a parser: in this process for the suite, in processes that may die for long runs."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmgauge.base.errors import LmgaugeError
from tests.fuzz.table import Attempt, Parser, named

SECONDS_EACH = 60.0
"""An input that takes longer is a hang; most take milliseconds, but other work may take the machine."""
MEMORY = 2 << 30
"""Bytes of address space that a process may take beyond what it began with."""
PREPARING = -2
"""Stands where the index of the last input is looked for, before the first."""
WARM = 2000
"""Inputs after which a process has loaded and cached what it needs; its memory should not grow any more."""
LONGEST_MESSAGE = 4000
"""Characters of a message; one that is longer repeats the input."""


@dataclass
class Outcome:
    """What came out of a number of inputs.

    Attributes:
        ends: How often each end was met: "read", "refused" ...
        faults: A line for each input that ended otherwise, and the last lines of its traceback.
        resident: Mebibytes of memory the process had after the first `WARM` inputs, and at the end.
    """

    ends: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, Any]] = field(default_factory=list)
    resident: tuple[float, float] = (0.0, 0.0)

    @property
    def inputs(self) -> int:
        """How many inputs were tried."""
        return sum(self.ends.values())


def chance_of(parser: Parser, seed: int, index: int) -> random.Random:
    """Return what input `index` is drawn from: the same on every machine, and in whatever order inputs are tried."""
    return random.Random(f"{parser.name} {seed} {index}")


def try_one(parser: Parser, attempt: Attempt, seed: int, index: int) -> tuple[str, str | None]:
    """Return how an input ended, and the fault if it is one."""
    try:
        end = attempt(chance_of(parser, seed, index))
    except LmgaugeError as error:
        message = str(error)
        if not message.strip():
            return "fault", "an error without a message"
        if len(message) > LONGEST_MESSAGE:
            return "fault", f"a message of {len(message)} characters: {message[:200]!r}"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", message):
            return "fault", f"a message with control characters: {message[:300]!r}"
        return "refused", None
    except MemoryError:
        return "fault", "out of memory: " + traceback.format_exc(limit=-6)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # pyo3's panics are no Exception
        return "fault", traceback.format_exc(limit=-8)
    return end, None


def try_many(parser: Parser, seed: int, indices: range, folder: Path) -> Outcome:
    """Try inputs in this process.

    Args:
        parser: Which.
        seed: A number that all inputs depend on.
        indices: Which inputs.
        folder: Where files are made; the last input stays there.
    """
    outcome = Outcome()
    attempt = parser.prepare(folder)
    try:
        for index in indices:
            _count(outcome, parser, attempt, seed, index)
    finally:
        ended(attempt)
    return outcome


def ended(attempt: Attempt) -> None:
    """Let an attempt close what it holds open, where it has a function `close`."""
    getattr(attempt, "close", lambda: None)()


def _count(outcome: Outcome, parser: Parser, attempt: Attempt, seed: int, index: int) -> None:
    end, fault = try_one(parser, attempt, seed, index)
    outcome.ends[end] += 1
    if fault is not None:
        outcome.faults.append({"parser": parser.name, "seed": seed, "index": index, "fault": fault})


def work(parser: Parser, seed: int, indices: range, seconds: float, state: Path) -> Outcome:
    """Be a process of a long run: note each index before it is tried, so that who looks on knows which one was the last."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(dir=state.parent) as folder, open(state, "r+b") as file:
        place = mmap.mmap(file.fileno(), 16)
        attempt = parser.prepare(Path(folder))
        if parser.bounded:
            _limit_memory()
        end, early = time.monotonic() + seconds, 0.0
        for index in indices:
            place[:16] = struct.pack("<qd", index, time.monotonic())
            _count(outcome, parser, attempt, seed, index)
            if len(outcome.faults) >= 20 or time.monotonic() > end:
                break
            if index - indices.start == WARM:
                early = resident()
        place[:16] = struct.pack("<qd", -1, time.monotonic())
        outcome.resident = (early, resident())
        ended(attempt)
    return outcome


def resident() -> float:
    """Return the mebibytes of memory that this process holds, 0 where the system does not say so."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE / (1 << 20)
    return 0.0


def _limit_memory() -> None:
    if "asan" in os.environ.get("LD_PRELOAD", ""):  # its shadow takes terabytes of addresses
        return
    with suppress(ImportError, OSError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def try_in_processes(parser: Parser, seed: int, indices: range, seconds: float, folder: Path) -> Iterator[Outcome]:
    """Try inputs in one process after another: one that dies or hangs is a fault, and the next goes on behind it.

    Args:
        parser: Which.
        seed: A number that all inputs depend on.
        indices: Which inputs.
        seconds: How long; inputs that were not reached are left out.
        folder: Where files are made.

    Yields:
        What each process came to.
    """
    state, first, end = folder / f"{parser.name}.state", indices.start, time.monotonic() + seconds
    while first < indices.stop and (left := end - time.monotonic()) > 0:
        state.write_bytes(struct.pack("<qd", PREPARING, time.monotonic()))
        words = [parser.name, str(seed), str(first), str(indices.stop), str(left), str(state)]
        process, hung, output, errors = _watched(words, state)
        if process.returncode == 0 and not hung:
            written = json.loads(output.splitlines()[-1])
            outcome = Outcome(Counter(written["ends"]), written["faults"], tuple(written["resident"]))
            first += outcome.inputs
        else:
            last = struct.unpack("<qd", state.read_bytes()[:16])[0]
            if last == PREPARING:
                raise RuntimeError(f"{parser.name} could not be prepared\n{errors[-3000:]}")
            why = f"no end within {SECONDS_EACH:g} s" if hung else f"the process ended with {process.returncode}"
            fault = {"parser": parser.name, "seed": seed, "index": last, "fault": f"{why}\n{errors[-3000:]}"}
            outcome = Outcome(Counter({"read or refused, before a fault": last - first, "fault": 1}), [fault])
            first = last + 1
        yield outcome


def _watched(words: list[str], state: Path) -> tuple[subprocess.Popen[bytes], bool, str, str]:
    """Return a process that has ended, whether it hung, and what it wrote."""
    # Files, as nobody reads a pipe meanwhile, and libraries say much of what they do not like.
    with tempfile.TemporaryFile(dir=state.parent) as output, tempfile.TemporaryFile(dir=state.parent) as errors:
        command = [sys.executable, "-m", "tests.fuzz.runner", *words]
        environment = os.environ | {"RUST_BACKTRACE": "0"}
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        hung = _watch(process, state)
        written = []
        for file in (output, errors):
            file.seek(0)
            written.append(file.read().decode("utf-8", "replace"))
    return process, hung, written[0], written[1]


def _watch(process: subprocess.Popen[bytes], state: Path) -> bool:
    """Wait for a process; kill it when one input takes too long, and say so."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return False
        index, since = struct.unpack("<qd", state.read_bytes()[:16])
        if index >= 0 and time.monotonic() - since > SECONDS_EACH * (4 if "asan" in os.environ.get("LD_PRELOAD", "") else 1):
            process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))  # faulthandler says where it was
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
                return True
            process.kill()
            process.wait()
            return True


def main() -> None:
    """Be one process of a long run; the last line of output is what came out, as JSON."""
    import faulthandler

    faulthandler.enable()
    parser = argparse.ArgumentParser(description=main.__doc__)
    for word in ("name", "seed", "first", "stop", "seconds", "state"):
        parser.add_argument(word)
    asked = parser.parse_args()
    indices = range(int(asked.first), int(asked.stop))
    outcome = work(named(asked.name), int(asked.seed), indices, float(asked.seconds), Path(asked.state))
    print("\n" + json.dumps({"ends": outcome.ends, "faults": outcome.faults, "resident": outcome.resident}))


if __name__ == "__main__":
    main()
