"""What the benchmarks share: texts, programs, one measured child process, tables, goals.

The harness imports nothing outside the standard library before a child is measured, and holds no text in memory: Linux
counts what a process held before it became another program towards that program's peak, so a large parent would be
charged to its small children. Anything heavy runs in a child of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BOOKS, TREEBANK = "open/classic-books", "restricted/ptb"
PACKED = {"train.txt": "train.txt.zst", "valid.txt": "valid.txt.gz", "test.txt": "test.txt.gz"}
KENLM_PROGRAMS = ("lmplz", "build_binary", "query")
# Linux counts the peak in KiB, macOS in bytes.
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
MB = 1e6
# Linux's names of them, on x86-64 and on arm64.
VECTOR_INSTRUCTIONS = {
    "sse4_2": "SSE4.2",
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_bf16": "AVX512-BF16",
    "amx_bf16": "AMX-BF16",
    "asimd": "NEON",
    "sve": "SVE",
    "sve2": "SVE2",
    "bf16": "BF16",
}
INSTRUCTION_LIMITS = ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")


# --- options and places -----------------------------------------------------------------------------------


def parser(text: str, *, runs: int) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("--runs", type=int, default=runs, help=f"repetitions, by turns; medians are printed ({runs})")
    options.add_argument(
        "--kenlm", type=Path, metavar="FOLDER", help="folder of lmplz, build_binary and query (default: PATH)"
    )
    options.add_argument(
        "--lmgauge", type=Path, metavar="PROGRAM", help="the lmgauge command to measure (default: of this Python)"
    )
    options.add_argument("--work", type=Path, metavar="FOLDER", help="where models are written (default: the cache folder)")
    return options


def cache_folder() -> Path:
    """Where unpacked texts and trained models stay between runs."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root, "lmgauge-benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def made_network(name: str, script: str, marker: str) -> Path:
    """The folder of a network in the cache folder; `script make FOLDER` makes it where it has no file `marker` yet."""
    folder = cache_folder() / name
    if not (folder / marker).exists():
        note("making a network and its tokenizer")
        run_child([sys.executable, script, "make", str(folder)])
    return folder


def book_text(name: str) -> Path:
    """The path of `train.txt`, `valid.txt` or `test.txt` of classic-books, unpacked once into the cache folder."""
    return _unpacked(f"{BOOKS}/{PACKED[name]}", name)


def treebank_text(part: str) -> Path:
    """The path of the part `train` or `test` of the Penn Treebank, unpacked once into the cache folder."""
    return _unpacked(f"{TREEBANK}/ptb.{part}.txt.gz", f"ptb.{part}.txt")


def open_corpus(name: str) -> Path:
    """The path of a packed text of the folder open/, unpacked once into the cache folder."""
    if name == f"classic-books/{PACKED['train.txt']}":
        return book_text("train.txt")
    return _unpacked(f"open/{name}", name.rsplit(".", 1)[0].replace("/", "-"))


def open_corpus_as_is(name: str) -> Path:
    """The path of a text of the folder open/ that is not packed."""
    path = Path(os.environ.get("LMGAUGE_DATA") or DATA, "open", name)
    if not path.exists():
        give_up(f"{path} is not there: set LMGAUGE_DATA to the folder that holds open/{name}")
    return path


def _unpacked(name: str, target_name: str) -> Path:
    target = cache_folder() / target_name
    if target.exists():
        return target
    packed = Path(os.environ.get("LMGAUGE_DATA") or DATA, name)
    if not packed.exists():
        give_up(f"{packed} is not there: set LMGAUGE_DATA to the folder that holds {name}, or name texts by options")
    unpacked = target.with_suffix(".part")
    # In a child: see the top of this page.
    run_child([sys.executable, __file__, "unpack", str(packed), str(unpacked)])
    unpacked.rename(target)
    return target


def kenlm_programs(folder: Path | None) -> dict[str, str]:
    """The paths of lmplz, build_binary and query: from `folder`, else from PATH."""
    programs = {name: shutil.which(name, path=str(folder) if folder else None) for name in KENLM_PROGRAMS}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        where = folder or "PATH"
        give_up(
            f"KenLM's {', '.join(missing)} not programs in {where}: README.md here says how to build them; --kenlm FOLDER"
        )
    return {name: path for name, path in programs.items() if path is not None}


def lmgauge_program(chosen: Path | None) -> str:
    """The `lmgauge` command: the one chosen, else the one next to this Python, else the one on PATH."""
    beside = Path(sys.executable).with_name("lmgauge")
    program = str(chosen or "") or (str(beside) if beside.exists() else shutil.which("lmgauge"))
    if not program:
        give_up("lmgauge is not installed: run pip install . in the repository, or name the program with --lmgauge PROGRAM")
    return program


@contextlib.contextmanager
def work_folder(chosen: Path | None) -> Iterator[Path]:
    """A folder for this run's models, removed at the end."""
    parent = chosen or cache_folder()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=parent) as folder:
        yield Path(folder)


def give_up(message: str) -> NoReturn:
    """End the program with a one-line message and exit code 2."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


# --- measuring --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """One child process, from its start to its end."""

    wall: float  # seconds
    cpu: float  # seconds, user and system, of all its threads
    peak: float  # bytes resident at most, of this child alone
    out: str  # its standard output


def run_child(command: Sequence[str], *, stdin: Path | None = None) -> Measurement:
    """Run a program to its end and measure it; a program that fails ends the benchmark with what it said."""
    with contextlib.ExitStack() as files:
        source = files.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL
        # Files, not pipes: reading a pipe would be work of ours that competes with the child's.
        out = files.enter_context(tempfile.TemporaryFile())
        err = files.enter_context(tempfile.TemporaryFile())
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=source, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            message = err.read().decode(errors="replace").strip()[-2000:]
            give_up(f"{' '.join(command)} ended with {child.returncode}: {message}")
        text = out.read().decode(errors="replace")
    return Measurement(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * PEAK_UNIT, text)


def interleave(contestants: Sequence[str], runs: int, work: Callable[[str], None]) -> None:
    """`work(contestant)` for each of them, `runs` times, by turns; every other round in reverse.

    What drifts (heat, other people's work) then meets all alike.
    """
    for done in range(runs):
        for contestant in contestants if done % 2 == 0 else reversed(contestants):
            note(f"run {done + 1} of {runs}: {contestant}")
            settle()
            work(contestant)


def settle() -> None:
    """Let the files of the last run reach the disk, so that they do not slow the next one."""
    os.sync()


def warm(path: Path) -> None:
    """Bring a file, or the files of a folder, into the page cache."""
    block = bytearray(1 << 20)
    for file in [path] if path.is_file() else path.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as source:
                while source.readinto(block):
                    pass


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def folder_bytes(path: Path) -> int:
    """Size on disk of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


# --- printing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A figure with a bound it should keep."""

    name: str
    value: float
    bound: float
    at_least: bool
    unit: str = "x"

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def row(self) -> list[str]:
        bound = f"{'>=' if self.at_least else '<='} {self.bound:g}{self.unit}"
        return [self.name, f"{self.value:.3g}{self.unit}", bound, "PASS" if self.met else "MISS"]


def report_goals(goals: Sequence[Goal]) -> int:
    """Print the goals and the processor they were measured on; the exit code: 0 if all are met, 1 if not."""
    if goals:
        print(f"\nOn {_processor()}, {_instructions()}:\n")
        print_table(["goal", "measured", "bound", ""], [goal.row() for goal in goals])
    return 0 if all(goal.met for goal in goals) else 1


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that is Markdown as well: first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cells[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)),
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" if width > 1 else "-" for width in widths[1:])]
    print("\n".join([line(head), line(rule), *(line(row) for row in rows)]))


def seconds(values: Sequence[float]) -> str:
    """The median, with the extremes when there are several."""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def megabytes(size: float) -> str:
    return f"{size / MB:,.0f}"


def note(message: str) -> None:
    """Say on standard error what is going on; standard output keeps the tables only."""
    print(f"... {message}", file=sys.stderr, flush=True)


def print_machine(program: str) -> None:
    """Two lines: what was measured, and on what: rates depend on the processor's vector instructions."""
    versions = run_child([sys.executable, __file__, "versions"]).out.strip()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"{versions} ({program}); {platform.python_implementation()} {platform.python_version()}")
    system = f"{platform.system()} {platform.release()}"
    print(f"{_processor()}, {_instructions()}, {_cores()} cores, {memory:.0f} GiB, {system}; load {load} at start")
    print()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    named = _cpuinfo()
    if not named:
        return platform.processor() or platform.machine()
    kind = f"family {named.get('cpu family')}, model {named.get('model')}, cache {named.get('cache size')}"
    return f"{named.get('model name', 'unknown')} ({kind})"


def _instructions() -> str:
    """The vector instructions, as far as the system tells, and the environment's limits on them."""
    named = _cpuinfo()
    flags = set(f"{named.get('flags', '')} {named.get('Features', '')}".split())
    instructions = [name for flag, name in VECTOR_INSTRUCTIONS.items() if flag in flags] or ["vector instructions not known"]
    limits = [f"{name}={os.environ[name]}" for name in INSTRUCTION_LIMITS if name in os.environ]
    return " ".join([platform.machine(), *instructions, *limits])


def _cpuinfo() -> dict[str, str]:
    """What Linux says of the first core; nothing elsewhere."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        fields = dict(line.split(":", 1) for line in lines.read().split("\n\n")[0].splitlines() if ":" in line)
        return {key.strip(): value.strip() for key, value in fields.items()}
    return {}


# --- what runs in a child ---------------------------------------------------------------------------------


def _unpack(packed: str, target: str) -> None:
    with open(target, "wb") as out:
        if packed.endswith(".gz"):
            with gzip.open(packed) as source:
                shutil.copyfileobj(source, out, 1 << 20)
        else:
            import zstandard

            with open(packed, "rb") as raw:
                zstandard.ZstdDecompressor(max_window_size=2**31).copy_stream(raw, out)


def _versions() -> None:
    from importlib.metadata import PackageNotFoundError, version

    def of(name: str) -> str:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return f"{name} (not installed)"

    print(", ".join(of(name) for name in ("lmgauge", "numpy", "kenlm")))


def peak_bytes() -> int:
    """Most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT


def print_json(result: object) -> None:
    """How a child hands its figures to the benchmark."""
    print(json.dumps(result))


if __name__ == "__main__":
    if sys.argv[1] == "unpack":
        _unpack(*sys.argv[2:])
    else:
        _versions()
