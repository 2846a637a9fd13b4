"""How long an installation from source takes, where the time goes, and that an extra on top of it compiles nothing anew.

The sources are copied without earlier builds, and installed into a new virtual environment by the command of README.md;
then once more with an extra. pip takes from its cache what it has there: run twice for figures without the network.

    python benchmarks/install_time.py --extra zstd
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import harness
from harness import Goal

ROOT = Path(__file__).resolve().parent.parent
GOAL = 60.0  # seconds of an installation, on two cores
SLOWEST = 8
# The line of pip or scikit-build-core that ends a phase, and the phase that it begins.
PHASES = {
    r"Installing build dependencies: started": "build tools: download, unpack",
    r"Preparing metadata.*started": "metadata",
    r"Preparing metadata.*finished": "dependencies: resolve, download",
    r"\*\*\* Configuring CMake": "CMake: configure",
    r"\*\*\* Building project": "compile and link",
    r"\*\*\* Installing project into wheel": "pack the wheel",
    r"Installing collected packages: (?!.*scikit)": "install all",
}


class Installation:
    """One run of pip: seconds of each phase, all in all, CPU seconds, and how many files were compiled."""

    def __init__(self, python: Path, what: str, tree: Path) -> None:
        self.phases = dict.fromkeys(["pip: start", *PHASES.values()], 0.0)
        self.compiled = 0
        harness.note(f"pip install '{what}'")
        before, begin = os.times(), time.perf_counter()
        process = subprocess.Popen(
            [str(python), "-u", "-m", "pip", "install", "-v", what],
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        phase, since, lines = "pip: start", begin, []
        for line in process.stdout:
            lines.append(line)
            self.compiled += "Building CXX object" in line
            following = next((name for pattern, name in PHASES.items() if re.search(pattern, line)), None)
            if following is not None:
                now = time.perf_counter()
                self.phases[phase] += now - since
                phase, since = following, now
        if process.wait():
            harness.give_up("".join(lines[-20:]))
        after, end = os.times(), time.perf_counter()
        self.phases[phase] += end - since
        self.wall = end - begin
        self.cpu = sum(after[2:4]) - sum(before[2:4])


def _print_slowest(tree: Path) -> None:
    """The files that take longest to compile, by ninja's log; one that several compete with takes longer."""
    logs = list(tree.glob("build/*/.ninja_log"))
    if not logs:
        print("\nninja did not build: make keeps no times of single files")
        return
    rows = [line.split("\t") for line in logs[0].read_text(encoding="utf-8").splitlines()[1:]]
    spans = sorted(((int(row[1]) - int(row[0])) / 1000, Path(row[3]).name.removesuffix(".o")) for row in rows)
    print(f"\nThe slowest of {len(spans)} steps, {sum(seconds for seconds, _ in spans):.0f} s in all:\n")
    harness.print_table(["file", "seconds"], [[name, f"{seconds:.1f}"] for seconds, name in spans[: -SLOWEST - 1 : -1]])


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--extra", default="zstd", help="the extra installed on top (zstd)")
    options.add_argument("--make", action="store_true", help="let make build, as where no ninja is found")
    arguments = options.parse_args()
    if arguments.make:
        os.environ["CMAKE_GENERATOR"] = "Unix Makefiles"

    with harness.work_folder(arguments.work) as work:
        tree = work / "lmgauge"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns("build", ".git", "*.so", "*.pyd", "__pycache__", ".*_cache")
        )
        venv.create(work / "environment", with_pip=True)
        python = work / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        first = Installation(python, ".", tree)
        second = Installation(python, f".[{arguments.extra}]", tree)
        rows = [[name, f"{first.phases[name]:.1f}", f"{second.phases[name]:.1f}"] for name in first.phases]
        rows += [["all", f"{first.wall:.1f}", f"{second.wall:.1f}"], ["CPU", f"{first.cpu:.1f}", f"{second.cpu:.1f}"]]
        rows += [["files compiled", str(first.compiled), str(second.compiled)]]
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; seconds\n")
        harness.print_table(["phase", "pip install .", f"pip install '.[{arguments.extra}]'"], rows)
        _print_slowest(tree)
    harness.report_goals(
        [
            Goal("pip install .", first.wall, GOAL, at_least=False, unit=" s"),
            Goal("files compiled for the extra", second.compiled, 0, at_least=False, unit=""),
        ]
    )
    return int(second.compiled > 0)  # the time is the machine's


if __name__ == "__main__":
    sys.exit(main())
