"""Run the fuzzers on kernels that the address and undefined-behavior sanitizers watch.

python -m tests.fuzz.sanitized --minutes 5               # builds them first: minutes, the first time
python -m tests.fuzz.sanitized kernels --index 1234      # all arguments are those of `python -m tests.fuzz`

The kernels are compiled into a folder of their own (`build/sanitized`, or what LMGAUGE_SANITIZED_BUILD says); what is
installed stays as it is. GCC on Linux, with CMake and nanobind: see CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so.6")
"""Loaded before anything else; the last, which Python itself does not need, for the sanitizer to see exceptions."""
WITHOUT_REDIRECTION = (
    '"""Leave out finders of editable installs, which would find other kernels."""\n'
    "import sys\n\n"
    'sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]\n'
)


def main() -> int:
    """Build, and run `python -m tests.fuzz` with the arguments; return its exit status."""
    folder = Path(os.environ.get("LMGAUGE_SANITIZED_BUILD", ROOT / "build" / "sanitized"))
    libraries = [_library(name) for name in LIBRARIES]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (_package(folder), ROOT))),
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return subprocess.run([sys.executable, "-m", "tests.fuzz", *sys.argv[1:]], cwd=ROOT, env=environment).returncode


def _package(folder: Path) -> Path:
    """Return a folder with the package as it stands in the working tree, and watched kernels."""
    import nanobind

    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    options = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CMAKE_CXX_COMPILER": "g++",
        "LMGAUGE_SANITIZE": "ON",
        "Python_EXECUTABLE": sys.executable,
        "SKBUILD_PROJECT_NAME": "lmgauge",
        "SKBUILD_PROJECT_VERSION": "0",
        "nanobind_DIR": nanobind.cmake_dir(),
    }
    compiled = folder / "compiled"
    defined = [f"-D{name}={value}" for name, value in options.items()]
    _run(["cmake", *generator, "-S", str(ROOT), "-B", str(compiled), *defined])
    _run(["cmake", "--build", str(compiled), "--parallel", str(os.cpu_count() or 1)])
    package = folder / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "lmgauge", package / "lmgauge", ignore=shutil.ignore_patterns("_native*.so", "__pycache__")
    )
    (module,) = compiled.glob("_native*.so")
    shutil.copy(module, package / "lmgauge" / "_kernels")
    (package / "sitecustomize.py").write_text(WITHOUT_REDIRECTION)
    return package


def _run(words: list[str]) -> None:
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(words[:3])} failed:\n{run.stdout[-4000:]}{run.stderr[-4000:]}")


def _library(name: str) -> str:
    """Return where the compiler has a library of its own."""
    path = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"g++ has no {name}: install the sanitizers' libraries (Debian: libasan8 libubsan1, by way of g++)")
    return path


if __name__ == "__main__":
    sys.exit(main())
