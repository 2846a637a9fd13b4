"""What SECURITY.md promises of the source: nothing that is read can run code, in any room."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "lmgauge"
RUNS_CODE = re.compile(
    r"(?:^|\.)(?:eval|exec|compile|execfile|system|popen|spawnl?v?p?e?|execv?p?e?)$"
    r"|^(?:pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve|runpy|yaml)\.|^torch\.load$|^torch\.hub\."
)
MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "runpy", "yaml"}
HARMLESS = {"re.compile", "model.eval", "network.eval", "self.eval"}
SPAWNING = {"api/doctor.py"}
"""Run this Python with words of their own, none of which comes from a file."""


@cache
def trees() -> dict[Path, ast.Module]:
    """The source of the package; read when the first test asks, as each worker of the suite imports this file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def calls() -> list[tuple[Path, ast.Call, str]]:
    return [
        (path, node, ast.unparse(node.func))
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(PACKAGE).as_posix()}:{getattr(node, 'lineno', 0)}"


def test_nothing_that_is_read_can_run() -> None:
    assert [
        f"{place(path, node)} {name}"
        for path, node, name in calls()
        if RUNS_CODE.search(name) and not (name.endswith((".eval", ".compile")) and (name in HARMLESS or not node.args))
    ] == []
    imported = [
        f"{place(path, node)} {name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name.split(".")[0] in MODULES
    ]
    assert imported == []


def test_arrays_are_read_without_pickle() -> None:
    """NumPy's default; nobody asks for the other."""
    asked = [
        place(path, node)
        for path, node, _ in calls()
        for keyword in node.keywords
        if keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False"
    ]
    assert asked == []


def test_weights_of_networks_are_safetensors_alone() -> None:
    """`AutoModelForCausalLM.from_pretrained` is called in one place, under the name `load`."""
    source = (PACKAGE / "models/network/torch/checkpoint.py").read_text(encoding="utf-8")
    assert source.count("AutoModelForCausalLM.from_pretrained") == 1
    assert source.count("use_safetensors=True") == 1
    elsewhere = [place(path, node) for path, node, name in calls() if name.endswith("Model.from_pretrained")]
    assert elsewhere == []


def test_no_shell_and_no_program_of_a_file() -> None:
    started = {
        place(path, node).partition(":")[0]
        for path, node, name in calls()
        if name.startswith(("subprocess.", "os.exec", "os.spawn", "pty."))
    }
    assert started <= SPAWNING
    assert [place(path, node) for path, node, _ in calls() for keyword in node.keywords if keyword.arg == "shell"] == []


@pytest.mark.parametrize("name", ["eval(text)", "pickle.loads(data)", "torch.load(path)", "os.system(x)", "yaml.load(f)"])
def test_the_rule_sees_what_it_forbids(name: str) -> None:
    call = ast.parse(name, mode="eval").body
    assert isinstance(call, ast.Call)
    assert RUNS_CODE.search(ast.unparse(call.func))
