"""A command watched while it runs: memory of all its processes together, and what it holds on disk for a while.

The operating system counts the peak of each process alone. Several processes share pages, so their sum is taken by
proportional set size (PSS), several samples a second. Temporary files may have lost their name as soon as they
were made (lmplz's do), so files that a process holds open are counted as well as those in the folder. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import Measurement

PERIOD = 0.1  # seconds between samples, or more:
SHARE = 0.05  # of one core that samples may take
DISK_BLOCK = 512  # bytes of a unit of st_blocks


@dataclass(frozen=True)
class Watched:
    """One command, from its start to its end, with all processes it started."""

    measured: Measurement  # of the process itself and, for CPU, of the children it waited for
    together: float  # bytes of all its processes at most (PSS), sampled
    anonymous: float  # of these, bytes that no file backs
    temporary: int  # bytes at most in the temporary folder, sampled
    processes: int  # at most at a time
    load: float  # load average of the machine at the end

    @property
    def peak(self) -> float:
        """Bytes at most: of one process what the system counted, of several what the samples say."""
        return self.measured.peak if self.processes == 1 else max(self.together, self.measured.peak)


def run_watched(command: Sequence[str], temporary: Path) -> Watched:
    """Run a command to its end; `temporary` is the folder where it puts what it does not keep."""
    watch = _Watch(temporary)
    with watch:
        measured = harness.run_child(command)
    load = os.getloadavg()[0]
    return Watched(measured, watch.together, watch.anonymous, watch.temporary, watch.processes, load)


class _Watch:
    """Samples all descendants of this process, in a thread of its own."""

    def __init__(self, temporary: Path) -> None:
        self.folder = temporary
        self.together = self.anonymous = self.temporary = self.processes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        pause = PERIOD
        while not self._over.wait(pause):
            start = time.thread_time()  # not what it waits for other programs
            ids = list(_descendants(os.getpid()))
            sizes = [_memory(process) for process in ids]
            self.processes = max(self.processes, sum(size > 0 for size, _ in sizes))
            self.together = max(self.together, sum(size for size, _ in sizes))
            self.anonymous = max(self.anonymous, sum(size for _, size in sizes))
            self.temporary = max(self.temporary, _bytes_of(self.folder, ids))
            pause = max(PERIOD, (time.thread_time() - start) / SHARE)


def _descendants(process: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as line:
                for child in map(int, line.read().split()):
                    yield child
                    yield from _descendants(child)


def _memory(process: int) -> tuple[int, int]:
    """Bytes of a process by proportional set size: all, and those that no file backs; 0 where it has ended."""
    sizes = {"Pss": 0, "Pss_Anon": 0}
    with contextlib.suppress(OSError), open(f"/proc/{process}/smaps_rollup", encoding="ascii") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if name in sizes:
                sizes[name] = int(rest.split()[0]) * 1024
    return sizes["Pss"], sizes["Pss_Anon"]


def _bytes_of(folder: Path, processes: Sequence[int]) -> int:
    """Bytes on disk of the files of a folder, those without a name included; each file once."""
    sizes: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            _weigh(os.path.join(place, name), sizes)
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                opened = f"/proc/{process}/fd/{name}"
                with contextlib.suppress(OSError):
                    if os.readlink(opened).startswith(f"{folder}{os.sep}"):
                        _weigh(opened, sizes)
    return sum(sizes.values())


def _weigh(path: str, sizes: dict[tuple[int, int], int]) -> None:
    with contextlib.suppress(OSError):
        status = os.stat(path)
        sizes[status.st_dev, status.st_ino] = status.st_blocks * DISK_BLOCK


def main() -> None:
    """Watch one command: `python benchmarks/watch.py FOLDER COMMAND ...`, for trying out."""
    import sys

    start = time.perf_counter()
    watched = run_watched(sys.argv[2:], Path(sys.argv[1]).resolve())
    print(watched.measured.out, end="")
    print(f"{time.perf_counter() - start:.1f} s wall, {watched.measured.cpu:.1f} s CPU, load {watched.load:.1f}")
    sizes = (watched.measured.peak, watched.together, watched.anonymous, watched.temporary)
    peak, together, anonymous, temporary = map(harness.megabytes, sizes)
    print(f"MB: {peak} at most, {together} together, {anonymous} of them anonymous, {temporary} of temporary files")


if __name__ == "__main__":
    main()
