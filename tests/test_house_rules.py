"""House rules that a program can check: ruff, mypy, lengths, docstrings, and that documents say what runs."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import lzma
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

import lmgauge
from tests.trees import tree

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 450, 65

Function = ast.FunctionDef | ast.AsyncFunctionDef


def place(path: Path, node: ast.AST | None = None) -> str:
    where = path.relative_to(ROOT).as_posix()
    return f"{where}:{node.lineno} {node.name}" if isinstance(node, Function | ast.ClassDef) else where


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def run_tool(*command: str) -> None:
    """Run a tool of the `test` extra over the repository; skipped, visibly, where it is not installed."""
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_is_clean() -> None:
    run_tool("ruff", "check", ".")


def test_mypy_is_clean() -> None:
    run_tool("mypy")


def test_files_are_short() -> None:
    lengths = {place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    """Their docstrings, which are the help of commands, have a budget of their own."""

    def length(node: Function) -> int:
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        return lines - ((node.body[0].end_lineno or 0) - node.body[0].lineno + 1 if ast.get_docstring(node) else 0)

    long = [place(path, node) for path in SOURCES for node in functions(path) if length(node) > LONGEST_FUNCTION]
    assert long == []


def test_public_names_are_documented() -> None:
    def is_overload(node: Function | ast.ClassDef) -> bool:
        return "overload" in {ast.unparse(decorator) for decorator in node.decorator_list}

    bare = [
        place(path, node)
        for path in SOURCES
        for node in tree(path).body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_") and not is_overload(node)
        if not ast.get_docstring(node)
    ]
    modules = [place(path) for path in SOURCES if not ast.get_docstring(tree(path))]
    assert bare + modules == []


def test_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX)\b|\bNotImplementedError")
    sources = [*SOURCES, *(ROOT / "src").rglob("*.cpp"), *(ROOT / "src").rglob("*.hpp")]
    assert [place(path) for path in sources if later.search(path.read_text(encoding="utf-8"))] == []


def test_only_the_command_line_catches_everything() -> None:
    broad = [
        place(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and not isinstance(node.body[-1], ast.Raise)  # cleaning up and passing it on is no swallowing
        and not ast.unparse(node.body[-1]).endswith(".set_exception(error)")  # whoever asks gets it
    ]
    # What other packages raise when they are looked at is anything, and is reported.
    looks_at_others = {"src/lmgauge/api/doctor.py"}
    assert set(broad) <= {"src/lmgauge/cli/main.py", *looks_at_others}


def test_no_pickle() -> None:
    names = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
    loads = [
        place(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Import) and any(alias.name in names for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in names)
    ]
    assert loads == []


def test_every_test_asserts_something() -> None:
    def asserts(node: ast.AST) -> bool:
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        return isinstance(node, ast.Assert | ast.With) or bool(re.search("assert|raises|run_tool", called))

    idle = [
        place(path, node)
        for path in TESTS
        for node in functions(path)
        if node.name.startswith("test_") and not any(asserts(inner) for inner in ast.walk(node))
    ]
    assert idle == []


def test_readme_and_ci_run_the_same_test_command() -> None:
    command = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1]
    assert command.endswith("&& pytest")
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()


def test_public_names_are_sorted_and_there() -> None:
    assert lmgauge.__all__ == sorted(lmgauge.__all__, key=lambda name: (not name.isupper(), name))  # as ruff sorts them
    assert [name for name in lmgauge.__all__ if not hasattr(lmgauge, name)] == []
    tree = ast.parse((ROOT / "src" / "lmgauge" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmgauge")
        for alias in node.names
    }
    assert typed == set(lmgauge.__all__)  # what type checkers see is what there is


def test_version_is_the_same_everywhere() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert lmgauge.__version__ == declared == importlib.metadata.version("lmgauge")
    assert f"## [{declared}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    lines += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    names = {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in lines} - {"lmgauge"}
    page = (ROOT / "docs" / "contributing" / "dependencies.md").read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_contributing_names_files_that_are_there() -> None:
    """By their path or its end; x.py and test_x.py stand for what a contributor adds."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    others = [path for folder in (".", "docs", "benchmarks", "tests") for path in (ROOT / folder).glob("*.*")]
    others += (ROOT / "docs").rglob("*.md")
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in [*SOURCES, *TESTS, *others]]
    named = set(re.findall(r"`([\w./]+\.(?:py|md|toml|txt))`", page))
    new = {name for name in named if name.rpartition("/")[2] in ("x.py", "test_x.py")}
    assert sorted(name for name in named - new if not any(path.endswith(f"/{name}") for path in known)) == []


def is_editable() -> bool:
    """Whether the package is a development install, which runs from the working tree."""
    url = importlib.metadata.distribution("lmgauge").read_text("direct_url.json")
    return bool(url and json.loads(url).get("dir_info", {}).get("editable"))


def test_what_is_tested_is_what_is_installed() -> None:
    if is_editable():
        pytest.skip("a development install runs from the working tree")
    assert not Path(lmgauge.__file__).is_relative_to(ROOT / "src")
    names = {PurePath(file).as_posix() for file in importlib.metadata.files("lmgauge") or []}
    assert {
        "lmgauge/py.typed",
        "lmgauge/_kernels/_native.pyi",
        "lmgauge/data/README.md",
        "lmgauge/data/quickstart-train.txt.xz",
        "lmgauge/data/quickstart-test.txt.xz",
    } <= names
    sources = (".cpp", ".hpp", ".txt", ".o")
    assert [name for name in names if name.startswith("lmgauge/") and name.endswith(sources)] == []
    assert len([name for name in names if re.match(r"lmgauge/_kernels/_native\..*(so|pyd)$", name)]) == 1
    expected = {path.relative_to(ROOT / "src").as_posix() for path in SOURCES}
    assert expected <= names


def test_stubs_name_what_the_kernels_have() -> None:
    from lmgauge._kernels import _native

    stub = ast.parse((ROOT / "src" / "lmgauge" / "_kernels" / "_native.pyi").read_text(encoding="utf-8"))
    declared = {node.name for node in stub.body if isinstance(node, Function | ast.ClassDef)}
    declared |= {ast.unparse(node.target) for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in declared if not name.startswith("_")} == {
        name for name in dir(_native) if not name.startswith("_")
    }


def test_bundled_texts_are_what_their_page_says() -> None:
    folder = ROOT / "src" / "lmgauge" / "data"
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert "public domain" in page
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_500_000
    for path in sorted(folder.glob("*.xz")):
        text = lzma.decompress(path.read_bytes())
        assert f"| `{path.stem}` | `{hashlib.sha256(text).hexdigest()}` |" in page
        assert text.decode("utf-8").endswith("\n")
        assert b"\r" not in text
        assert b"\n\n" not in text
