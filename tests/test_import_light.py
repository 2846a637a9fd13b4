"""Starting up is quick because little is loaded. Held by the modules that are loaded, not by the clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmgauge import evaluate, train

HEAVY_STANDARD = {
    "asyncio",
    "bz2",
    "concurrent.futures",
    "ctypes",
    "http",
    "lzma",
    "multiprocessing",
    "sqlite3",
    "ssl",
    "unittest",
    "urllib.request",
    "xml",
}
"""Parts of the standard library that cost milliseconds each and that a help page does not need."""


NOT_FOR_HELP = {
    *("concurrent.futures", "decimal", "fractions", "hashlib", "json", "logging", "pathlib", "tempfile"),
    *("base.files", "base.json_text", "base.paths", "base.temporaries", "base.threads", "report", "scores.context_policy"),
}
"""What a page of help does without: parts of the standard library, and modules of ours."""


def loaded_by(statement: str) -> set[str]:
    """Names of the modules that `statement` loads in a fresh interpreter, besides those of the start of Python."""
    program = f"""
import io, json, sys
before = set(sys.modules)
keep, sys.stdout = sys.stdout, io.StringIO()
try:
    {statement}
except SystemExit as end:
    if end.code not in (None, 0):
        raise
sys.stdout = keep
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def libraries(modules: set[str]) -> set[str]:
    """Roots of `modules` that are neither of the standard library nor ours."""
    roots = {module.split(".")[0] for module in modules}
    return {root for root in roots - set(sys.stdlib_module_names) if not root.startswith(("lmgauge", "_lmgauge", "__"))}


def test_import_lmgauge_is_light() -> None:
    modules = loaded_by("import lmgauge")
    numpys_own = loaded_by("import numpy")
    assert libraries(modules) <= {"numpy"}
    assert HEAVY_STANDARD & (modules - numpys_own) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_is_light(arguments: list[str]) -> None:
    modules = loaded_by(f"from lmgauge.cli.main import main; main({arguments!r})")
    clicks_own = loaded_by("import click, shutil")  # shutil knows the width of the terminal
    assert libraries(modules) <= {"click", "colorama"}  # click colours through colorama on Windows
    assert HEAVY_STANDARD & (modules - clicks_own) == set()


@pytest.mark.parametrize("command", ["compare", "eval", "filter", "train", "wer"])
def test_the_help_of_a_command_loads_what_is_declared(command: str) -> None:
    modules = loaded_by(f"from lmgauge.cli.main import main; main([{command!r}, '--help'])")
    clicks_own = loaded_by("import click, shutil")
    assert NOT_FOR_HELP & {module.removeprefix("lmgauge.") for module in modules - clicks_own} == set()


def test_an_evaluation_in_json_makes_no_blocks(tmp_path: Path) -> None:
    model, text = tmp_path / "wb", tmp_path / "text.txt"
    text.write_text("the cat sat\n")
    train("witten-bell", text, order=2, output=model)
    words = ["eval", "-m", str(model), str(text), "--json"]
    modules = loaded_by(f"from lmgauge.cli.main import main; main({words!r})")
    assert "lmgauge.evaluation.evaluate" in modules
    assert {"lmgauge.report.blocks", "lmgauge.cli.models_and_texts", "rich"} & modules == set()


def test_the_help_of_no_command_loads_a_library() -> None:
    each = "[cli.main([name, '--help'], standalone_mode=False) for name in COMMANDS]"
    modules = loaded_by(f"from lmgauge.cli.main import COMMANDS, cli; {each}")
    assert "lmgauge.api.filter" in modules
    assert libraries(modules) <= {"click", "colorama"}


@pytest.mark.parametrize("name", ["train", "evaluate", "load_model"])
def test_the_public_names_come_when_asked_for(name: str) -> None:
    assert f"lmgauge.{name}" not in loaded_by("import lmgauge")
    modules = loaded_by(f"import lmgauge; assert callable(lmgauge.{name}) and {name!r} in dir(lmgauge)")
    assert {"pandas", "rich", "click", "tokenizers", "icu4py", "zstandard"} & libraries(modules) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    modules = loaded_by("import lmgauge; assert not hasattr(lmgauge, 'no_such_name')")
    assert "lmgauge" in modules


def test_the_tasks_have_names_of_their_own() -> None:
    modules = loaded_by("import lmgauge; assert 'bleu' in dir(lmgauge.tasks)")
    assert libraries(modules) <= {"numpy"}
    assert not {name for name in modules if name.startswith("lmgauge.tasks.")}
    program = """
    import lmgauge.tasks.metrics.bleu, lmgauge.tasks.metrics.ter
    assert all(callable(getattr(lmgauge.tasks, name)) for name in lmgauge.tasks.__all__)
    try:
        lmgauge.bleu
    except AttributeError as error:
        assert str(error) == "module 'lmgauge' has no attribute 'bleu'; it is lmgauge.tasks.bleu", error
    else:
        raise AssertionError
"""
    assert "lmgauge.tasks" in loaded_by(program)


def test_a_page_of_stored_runs_loads_neither_training_nor_tasks(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "text.txt").write_text("the cat sat\nthe dog sat\n" * 9, encoding="utf-8")
    for order in (1, 2):
        evaluate(
            train("witten-bell", tmp_path / "text.txt", order=order), tmp_path / "text.txt", output=tmp_path / f"{order}"
        )
    runs, page = [str(tmp_path / "1"), str(tmp_path / "2")], str(tmp_path / "page.html")
    modules = loaded_by(f"import lmgauge; lmgauge.report({runs!r}, {page!r})")
    assert "lmgauge.report.overview" in modules
    assert not {
        name for name in modules if name.startswith(("lmgauge.models.training", "lmgauge.api.train", "lmgauge.tasks."))
    }
