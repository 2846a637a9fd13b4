"""`lmgauge doctor`: what it prints, and its exit code; where the libraries it prints with are broken, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lmgauge.api import doctor as door
from lmgauge.api.doctor import Extra, Library
from lmgauge.cli.main import cli


def of_this_place(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lmgauge", "doctor", "--quick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is installed, and what becomes of it when it is imported; changed by tests."""
    state: dict[str, Any] = {
        "core": (Library("numpy", ">=1.26", "2.4", "ok", modules=("numpy",)),),
        "extras": (),
        "errors": {},
    }

    def error_of(code: str) -> str:
        tried = (line.removeprefix("import ") for line in code.splitlines() if line.startswith("import "))
        return next((state["errors"][name] for name in tried if name in state["errors"]), "")

    monkeypatch.setattr("lmgauge.api.doctor.core_and_extras", lambda: (state["core"], state["extras"]))
    monkeypatch.setattr("lmgauge.api.doctor._error_of", error_of)
    return state


def test_this_install_works() -> None:
    done = of_this_place("--json")
    seen = json.loads(done.stdout)
    assert seen["kernels"] == "ok"
    assert [library["state"] for library in seen["core"]] == ["ok"] * len(seen["core"])
    assert done.returncode == (0 if seen["passed"] else 1)
    assert done.stderr == ""


def test_a_library_that_is_broken_is_one_problem(libraries: dict[str, Any]) -> None:
    torch = Library("torch", ">=2.9", "2.13", "ok", modules=("torch",))
    libraries["extras"] = tuple(Extra(name, "networks", (torch,)) for name in ("neural", "lightning"))
    libraries["errors"] = {"torch": "OSError: libcudart.so.12"}
    assert door.doctor().problems == (
        "torch 2.13, which the extras neural, lightning need, is broken: OSError: libcudart.so.12; "
        "pip install --force-reinstall --no-deps 'torch>=2.9'",
    )
    assert door.doctor(quick=True).passed


def test_a_library_that_is_missing_is_none(libraries: dict[str, Any]) -> None:
    libraries["extras"] = (Extra("audit", "a check", (Library("constriction", ">=0.4"),)),)
    assert door.doctor().passed
    libraries["core"] = (Library("pyarrow", ">=17"),)
    assert door.doctor().problems == ("pyarrow, which lmgauge needs, is missing; pip install --upgrade 'pyarrow>=17'",)


def test_what_contributors_need_is_no_problem(libraries: dict[str, Any]) -> None:
    libraries["extras"] = (Extra("test", "tests", (Library("pytest", ">=8.3", "7.0", "too old", modules=("pytest",)),)),)
    libraries["errors"] = {"pytest": "never asked"}
    assert door.doctor().passed
    libraries["extras"] = (Extra("pandas", "frames", (Library("pandas", ">=2.2", "2.1", "too old"),)),)
    assert door.doctor().problems == (
        "pandas 2.1, which the extra pandas needs, is too old; >=2.2 is needed; pip install --upgrade 'pandas>=2.2'",
    )


def test_kernels_that_do_not_work_are_one(libraries: dict[str, Any]) -> None:
    libraries["errors"] = {"lmgauge": "ImportError: undefined symbol"}
    (problem,) = door.doctor().problems
    assert problem.startswith("the compiled kernels do not work: ImportError: undefined symbol; pip install")


def test_the_cause_is_named_and_not_what_follows_from_it(libraries: dict[str, Any]) -> None:
    libraries["errors"] = {"numpy": "ImportError: x", "lmgauge": "ImportError: x"}
    (problem,) = door.doctor().problems
    assert problem.startswith("numpy 2.4, which lmgauge needs, is broken")


HURT = {
    "raises": ('raise OSError("libcudart.so.12: no such file\\nsecond line")', "OSError: libcudart.so.12: no such file"),
    "leaves": ("import sys; sys.exit(3)", "it ended Python with exit code 3"),
    "leaves_well": ("import sys; sys.exit(0)", "it ended Python with exit code 0"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends": ("import os; os._exit(7)", "it ended Python with exit code 7"),
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "it ended Python with exit code -9"),
    "syntax": ("def", "SyntaxError: invalid syntax"),
}
NOISY = {
    "prints": "import sys\nprint('x' * 100000)\nprint('ValueError: noise', file=sys.stderr)\n",
    "closes": "import os; os.close(1); os.close(2)",
    "lives_on": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of libraries that do what none should when they are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, source in [*((name, source) for name, (source, _) in HURT.items()), *NOISY.items()]:
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


@pytest.mark.usefixtures("modules")
def test_each_library_is_judged_for_itself() -> None:
    """Whatever one of them does, the others are tried."""
    libraries = {name: Library(name, "", "1.0", "ok", modules=(name,)) for name in (*HURT, *NOISY)}
    assert door._broken(libraries) == {name: {"state": "broken", "error": why} for name, (_, why) in HURT.items()}
    assert door._broken({name: libraries[name] for name in NOISY}) == {}


def test_one_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_SECONDS", 0.5)
    assert door._error_of("while True: pass") == "it took more than 0.5 s"


def test_a_wrong_answer_is_an_error(modules: Path) -> None:
    (modules / "lmgauge.py").write_text(
        "class Corpus:\n    from_strings = staticmethod(list)\ntrain = lambda *a, **k: None\nperplexity = lambda *a: 2.5\n"
    )
    assert door._error_of(door._KERNEL_CALL) == "ArithmeticError: a perplexity of 2.945285930442359 came out as 2.5"


@pytest.mark.parametrize("program", [None, "", "/nowhere/python"])
def test_a_python_that_cannot_start_another_tries_nothing(program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)
    assert door.doctor().kernels.startswith("not tried")


def test_exit_codes(libraries: dict[str, Any]) -> None:
    libraries["errors"] = {"numpy": "ImportError: x"}
    with pytest.raises(SystemExit) as end:
        cli(["doctor"], prog_name="lmgauge")
    assert end.value.code == 1


@pytest.mark.parametrize(("library", "terminal"), [("rich", ""), ("rich", "1"), ("numpy", "1"), ("pyarrow", "")])
def test_it_speaks_when_what_it_speaks_with_is_broken(library: str, terminal: str, tmp_path: Path) -> None:
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text("raise ZeroDivisionError('hurt')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = of_this_place(PYTHONPATH=path, **({"FORCE_COLOR": terminal} if terminal else {}))
    assert done.returncode == 1
    assert "which lmgauge needs, is broken: ZeroDivisionError: hurt; pip install --force-reinstall" in " ".join(
        done.stdout.split()
    )
    assert "Traceback" not in done.stderr
