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
from lmgauge.cli.main import cli
from lmgauge.installation.requirements import Extra, Library
from lmgauge.installation.trial import KERNELS, Trial


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

    def tried(modules: list[str]) -> dict[str, Trial]:
        return {name: Trial(name, state["errors"].get(name, ""), {}) for name in modules}

    monkeypatch.setattr("lmgauge.installation.requirements.core_and_extras", lambda: (state["core"], state["extras"]))
    monkeypatch.setattr("lmgauge.installation.trial.try_modules", tried)
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
    libraries["extras"] = (Extra("ray", "clusters", (Library("ray", ">=2.40", "2.1", "too old"),)),)
    assert door.doctor().problems == (
        "ray 2.1, which the extra ray needs, is too old; >=2.40 is needed; pip install --upgrade 'ray>=2.40'",
    )


@pytest.mark.parametrize("name", [KERNELS, "lmgauge"])
def test_kernels_that_do_not_work_are_one(name: str, libraries: dict[str, Any]) -> None:
    libraries["errors"] = {name: "ImportError: undefined symbol"}
    (problem,) = door.doctor().problems
    assert problem.startswith("the compiled kernels do not work: ImportError: undefined symbol; pip install")


def test_the_cause_is_named_and_not_what_follows_from_it(libraries: dict[str, Any]) -> None:
    libraries["errors"] = {"numpy": "ImportError: x", KERNELS: "ImportError: x", "lmgauge": "ImportError: x"}
    (problem,) = door.doctor().problems
    assert problem.startswith("numpy 2.4, which lmgauge needs, is broken")


def test_exit_codes(libraries: dict[str, Any]) -> None:
    libraries["errors"] = {KERNELS: "ImportError: undefined symbol"}
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
