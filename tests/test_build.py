"""Building from source: what is missing is said in words, and a second installation compiles only what changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def configured(build: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """CMake's first step on the sources, in the folder `build`."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None:
        pytest.skip("cmake is not installed")
    if not shutil.which("make") and not shutil.which("ninja"):
        pytest.skip("neither make nor ninja is installed")
    generator = "Unix Makefiles" if shutil.which("make") else "Ninja"
    done = subprocess.run(
        [cmake, "-S", str(ROOT), "-B", str(build), "-G", generator, *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if older := re.search(r"CMake [\d.]+ or higher is required", done.stderr):
        pytest.skip(f"{older[0]}, and {cmake} is older")
    return done


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.skipif(os.name == "nt", reason="Visual Studio generators find their compiler without CXX")
def test_without_a_compiler_the_message_says_what_to_install(tmp_path: Path) -> None:
    done = configured(tmp_path / "build", CXX=str(tmp_path / "no-such-compiler"))
    message = words(done.stderr)
    assert done.returncode != 0
    assert "lmgauge needs a C++20 compiler to be built from source and none was found." in message
    assert "apt install g++" in message
    assert message.count("CMake Error") == 1


@pytest.mark.skipif(os.name == "nt", reason="Visual Studio generators find their compiler without CXX")
@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (["-DCMAKE_SIZEOF_VOID_P=4"], "lmgauge needs a 64-bit machine; this compiler builds for 32 bits."),
        (
            ["-DCMAKE_SIZEOF_VOID_P=8", "-DCMAKE_CXX_BYTE_ORDER=BIG_ENDIAN"],
            "lmgauge needs a little-endian machine (x86-64, arm64); this compiler builds for a big-endian one.",
        ),
    ],
)
def test_a_compiler_for_another_kind_of_machine_is_refused(tmp_path: Path, machine: list[str], message: str) -> None:
    # CMake takes the compiler for granted and its machine from the options.
    done = configured(tmp_path / "build", "-DCMAKE_CXX_COMPILER_FORCED=ON", *machine)
    assert done.returncode != 0
    assert message in words(done.stderr)
    assert words(done.stderr).count("CMake Error") == 1


@pytest.mark.parametrize(
    ("pretended", "kind"),
    [("sys.byteorder = 'big'", "64-bit and big-endian"), ("sys.maxsize = 2**31 - 1", "32-bit and little-endian")],
)
def test_an_interpreter_of_another_kind_of_machine_is_refused(pretended: str, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {pretended}; import lmgauge"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ImportError: lmgauge needs a 64-bit, little-endian machine (x86-64 or arm64) and a 64-bit Python; "
        f"this Python is {kind}\n"
    )


def compiled(build: Path, nanobind: Path, **environment: str) -> tuple[list[str], dict[str, int]]:
    """What decides if anything is compiled anew: each command, and when each file of nanobind was last written."""
    shutil.rmtree(build / "CMakeFiles", ignore_errors=True)  # as scikit-build-core does in each isolated environment of pip
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    options = [f"-Dnanobind_DIR={nanobind / 'cmake'}", f"-DPython_EXECUTABLE={sys.executable}"]
    done = configured(build, *options, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=Release", **environment)
    assert done.returncode == 0, done.stderr
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    assert all(Path(command["output"]).parts[0] == "kernels" for command in commands)  # outside the folder that is cleared
    copy = build / "kernels" / "nanobind"
    files = {str(path.relative_to(copy)): path.stat().st_mtime_ns for path in copy.rglob("*") if path.is_file()}
    return [command["command"] for command in commands], files


@pytest.mark.skipif(os.name == "nt", reason="Visual Studio generators write no compile_commands.json")
def test_a_second_installation_compiles_only_what_changed(tmp_path: Path) -> None:
    nanobind = pytest.importorskip("nanobind")
    home, moved = Path(nanobind.include_dir()).parent, tmp_path / "another" / "nanobind"
    shutil.copytree(home, moved, copy_function=shutil.copyfile)  # dates of now, as pip leaves them
    header = moved / "include" / "nanobind" / "nb_misc.h"
    header.write_text(header.read_text(encoding="utf-8") + "// another nanobind\n", encoding="utf-8")
    commands, files = compiled(tmp_path / "build", home)
    same_commands, later = compiled(tmp_path / "build", moved)
    assert same_commands == commands
    assert {name for name in files if files[name] != later[name]} == {"include/nanobind/nb_misc.h"}

    other = tmp_path / "other-c++"
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler is not None
    other.write_text(f'#!/bin/sh\nexec {compiler} "$@"\n', encoding="utf-8")
    other.chmod(0o755)
    changed, _ = compiled(tmp_path / "build", moved, CXX=str(other), CXXFLAGS="-DOTHER_FLAGS")
    assert all(command.startswith(f"{other} ") and "-DOTHER_FLAGS" in command for command in changed)


def test_a_source_distribution_has_the_files_of_the_repository(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("git lists the files of the repository; this is not one, or git is not installed")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, check=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    # Compiled modules and folders of builds stand in no list of git: .gitignore names them.
    assert names == {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()} | {"PKG-INFO"}
