"""What only some systems have stands behind a question, and text is written and read in the same way everywhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_house_rules import ROOT, SOURCES, TESTS
from tests.trees import tree

ONLY_SOME_HAVE = {
    "os": """chown fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpriority getuid killpg
        lchown mkfifo mknod nice openpty posix_fadvise posix_fallocate pread pwrite sched_getaffinity sched_setaffinity
        sendfile setsid sync sysconf uname wait wait3 wait4 waitid waitpid O_CLOEXEC O_DIRECTORY O_DSYNC O_NOFOLLOW
        O_NONBLOCK O_PATH O_SYNC O_BINARY startfile""",
    "signal": """alarm pthread_kill pthread_sigmask setitimer sigpending sigwait SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL
        SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 SIG_BLOCK SIG_SETMASK SIG_UNBLOCK""",
    "socket": "AF_UNIX SO_REUSEPORT",
    "time": "tzset clock_gettime CLOCK_MONOTONIC",
    "mmap": "MADV_HUGEPAGE MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
}
"""What of the standard library Windows, or macOS, does not have."""
ONLY_MODULES = {"fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "winreg", "_winapi"}
USED_BY_SKIPPED_TESTS = {
    "tests/faults/laws.py": "stops commands of tests that need a shim of Linux",
    "tests/faults/machine.py": "runs commands of the same tests",
    "tests/faults/server.py": "starts commands of tests that need signals",
    "tests/models/network/test_parallel.py": "an engine that ends its own process",
    "tests/models/ngram/test_larger_than_memory.py": "drops a file from memory, on Linux",
    "tests/programs.py": "limits the time that Ray takes to start",
    "tests/work/process_work.py": "tasks of test_executor_processes.py",
    "tests/work/test_folder_engine.py": "a task of a test that needs SIGKILL",
}
"""Files with functions that only tests call which ask, or are skipped: what they do."""
NAMES = {f"{module}.{name}" for module, names in ONLY_SOME_HAVE.items() for name in names.split()}
_QUESTION = re.compile(
    r"\bhasattr\(|\bgetattr\(|\bsys\.platform\b|\bos\.name\b|\bplatform\.system\(|\b(fcntl|resource|msvcrt) is (not )?None\b"
    r"|\bImportError\b|\bAttributeError\b|\bimportorskip\(|\bPOSIX\b"
)


def blocks(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield every node with the nodes around it, the outermost first."""

    def walk(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
        yield node, around
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [*around, node])

    yield from walk(tree, [])


def imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {(node.module or "").partition(".")[0]} if isinstance(node, ast.ImportFrom) and not node.level else set()


def is_asked(around: list[ast.AST], marked: bool) -> bool:
    """Whether a question stands in the function around a name, its decorators included, or around it in the module."""
    near = [
        node for node in around if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If | ast.Try)
    ]
    return marked or any(_QUESTION.search(ast.unparse(node)) for node in near)


def unasked(path: Path) -> list[str]:
    """Places in a file that need what only some systems have, and do not ask for it."""
    module = tree(path)
    marked = any(
        isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node) and _QUESTION.search(ast.unparse(node))
        for node in module.body
    )
    return [
        f"{path.relative_to(ROOT).as_posix()}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}"
        for node, around in blocks(module)
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in NAMES) or imported(node) & ONLY_MODULES
        if not is_asked(around, marked)
    ]


def test_what_only_some_systems_have_is_asked_for() -> None:
    assert [place for path in SOURCES for place in unasked(path)] == []


def test_tests_skip_in_words_where_a_system_lacks_what_they_need() -> None:
    places = {path.relative_to(ROOT).as_posix(): unasked(path) for path in TESTS}
    assert {name: lines for name, lines in places.items() if lines and name not in USED_BY_SKIPPED_TESTS} == {}
    assert [name for name in USED_BY_SKIPPED_TESTS if not places.get(name)] == []


def text_calls(path: Path) -> Iterator[tuple[ast.Call, str, set[str]]]:
    """Yield calls that open, read or write text: the call, its mode (`r`, `w`), the names of its arguments."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        keywords = {keyword.arg or "**" for keyword in node.keywords}
        constants = [
            a.value
            for a in [*node.args, *(k.value for k in node.keywords if k.arg == "mode")]
            if isinstance(a, ast.Constant)
        ]
        modes = [value for value in constants if isinstance(value, str) and re.fullmatch(r"[rwax+bt]{1,3}", value)]
        if "os.devnull" in ast.unparse(node) or ast.unparse(node.func) == "formatter.write_text":  # of click: no file
            continue
        if name == "write_text":
            yield node, "w", keywords
        elif name == "read_text" and (len(node.args) == 0 or isinstance(node.args[0], ast.Constant)):
            yield node, "r", keywords | ({"encoding"} if node.args else set())
        elif name in ("open", "fdopen") and not any("b" in mode for mode in modes):
            is_file = name != "open" or isinstance(node.func, ast.Name) or bool(modes)
            if is_file:
                yield node, "w" if any(set(mode) & set("wax+") for mode in modes) else "r", keywords


def test_text_names_its_encoding_and_its_line_ends() -> None:
    lacking = [
        f"{path.relative_to(ROOT).as_posix()}:{call.lineno} {missing}"
        for path in SOURCES
        for call, mode, keywords in text_calls(path)
        for missing in sorted({"encoding", "newline"} - keywords if mode == "w" else {"encoding"} - keywords)
    ]
    assert lacking == []


def test_processes_are_started_in_the_way_that_every_system_has() -> None:
    started = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (
            (ast.unparse(node.func).endswith("get_context") and ast.unparse(node).find("'spawn'") < 0)
            or (
                ast.unparse(node.func).endswith("ProcessPoolExecutor") and "mp_context" not in {k.arg for k in node.keywords}
            )
            or ast.unparse(node.func) in ("multiprocessing.Process", "multiprocessing.Pool", "os.system", "os.popen")
        )
    ]
    assert started == []


LACKING = """
import mmap, multiprocessing, os, signal, socket, sys, time
import click, numpy, psutil, pyarrow.parquet, rich.console  # which ask for what this system has, once
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for module, names in MISSING.items():
    for name in names.split():
        vars(sys.modules[module]).pop(name, None)
"""
"""Takes away, in a process of its own, what Windows does not have."""
WORK = """
from lmgauge.cli.main import main
def run(*words):
    sys.argv = ["lmgauge", *words]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, (words, end.code)
if __name__ == "__main__":
    run("train", "kneser-ney", "text.txt", "-o", "kn", "--order", "2")
    run("train", "kneser-ney", "text.txt", "-o", "kn2", "--order", "2", "--memory", "1G", "--temp", ".", "--workers", "2")
    run("train", "witten-bell", "text.txt", "-o", "wb", "--order", "2")
    run("eval", "-m", "kn", "-m", "wb", "text.txt", "-o", "run")
    run("compare", "run/kn", "run/wb", "--text", "text.txt")
    run("audit", "run/kn", "--text", "text.txt")
    run("diagnose", "run/kn", "--text", "text.txt")
    run("convert", "kn", "kn.arpa")
    run("train", "witten-bell", "text.txt", "-o", "wb", "--order", "3")
"""


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_commands_run_without_what_windows_lacks(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat für 東京\nthe dog sat\n" * 30, encoding="utf-8", newline="\n")
    # What Python's own processes and pipes need on this system stays.
    stays = {"waitpid", "AF_UNIX", "SIGKILL", "O_NONBLOCK"}
    missing = {module: " ".join(set(names.split()) - stays) for module, names in ONLY_SOME_HAVE.items()}
    program = f"MISSING = {missing!r}\n{LACKING}\n{WORK}"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode(encoding, "replace")
    assert b"Traceback" not in done.stderr
    assert done.stdout.decode(encoding)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "kn",
        "kn.arpa",
        "kn2",
        "program.py",
        "run",
        "text.txt",
        "wb",
    ]


def test_descriptors_that_are_written_to_are_binary() -> None:
    """`os.open` opens text on Windows, and writes two bytes for a line end."""
    text = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in SOURCES
        for node, around in blocks(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.open"
        if re.search("O_WRONLY|O_RDWR", ast.unparse(node))
        and "os.devnull" not in ast.unparse(node)
        and not any(
            isinstance(outer, ast.FunctionDef) and re.search("O_BINARY|fcntl is None", ast.unparse(outer))
            for outer in around
        )
    ]
    assert text == []


def test_temporary_folders_may_hold_files_that_are_mapped() -> None:
    """Windows does not remove a file that is mapped or open: that a folder stays is no reason to lose the result."""
    strict = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("TemporaryDirectory")
        if "ignore_cleanup_errors" not in {keyword.arg for keyword in node.keywords}
    ]
    assert strict == []
