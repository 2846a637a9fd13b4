"""The GitHub Action: its script as a step runs it, hostile inputs among them, and action.yml, which hands inputs over."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lmgauge

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".github" / "action" / "check.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="a source distribution has no action")

TEXTS = ["the cat sat on the mat", "the dog ran", "a cat ran off", "the mat sat"] * 4
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    '"; touch pwned; "',
    "' && touch pwned && '",
    "\n::set-env name=PATH::/tmp\n",
    "${{ secrets.GITHUB_TOKEN }}",
    "EOF\npassed=true",
    "<img src=x onerror=alert(1)>",
    "x" * 10_000,
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a good model and of bad ones, and a model, in the folder that a workflow works in."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "test.txt").write_text("\n".join(TEXTS) + "\n")
    corpus = lmgauge.Corpus.from_strings(TEXTS)
    good, bad = lmgauge.train("witten-bell", corpus, order=2), lmgauge.train("laplace", corpus, order=1)
    good.save(folder / "model")
    lmgauge.evaluate(good, folder / "test.txt", output=folder / "good")
    lmgauge.evaluate(bad, folder / "test.txt", output=folder / "bad")
    letters = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat"]), tokenizer="character", order=2)
    lmgauge.evaluate(letters, folder / "test.txt", output=folder / "letters")
    return folder


class Step:
    """A step of a workflow: what it wrote, and how it ended."""

    def __init__(self, workspace: Path, tmp_path: Path, which: str = "check", **inputs: str) -> None:
        temporary = tmp_path / "temp"
        temporary.mkdir(exist_ok=True)
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LMGAUGE_ACTION_")}
        environment |= {f"LMGAUGE_ACTION_{name.upper()}": value for name, value in inputs.items()}
        environment |= {"RUNNER_TEMP": str(temporary)} | {name: str(path) for name, path in files.items()}
        command = [sys.executable, "-I", str(SCRIPT), which]
        done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, encoding="utf-8", check=False)
        self.code, self.log, self.errors = done.returncode, done.stdout, done.stderr
        self.summary, written = (path.read_text("utf-8") if path.exists() else "" for path in reversed(files.values()))
        self.outputs = dict(re.findall(r"^([\w-]+)<<(?:end-[0-9a-f-]{36})\n(.*)\nend-[0-9a-f-]{36}$", written, re.MULTILINE))


def test_runs_that_may_be_compared_pass(runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, command="compare", runs="good\nbad\n")
    assert step.code == 0, step.log + step.errors
    assert step.outputs["verdict"].startswith("Comparable: perplexity")
    assert (step.outputs["passed"], step.outputs["exit-code"], step.outputs["artifact"]) == ("true", "0", "lmgauge")
    assert Path(step.outputs["page"]).read_text("utf-8").startswith("<!doctype html>")
    assert step.summary.startswith("<h2>✅ lmgauge compare</h2>\n<p><b>Comparable: perplexity")
    assert "<th>95 % interval</th>" in step.summary


def test_runs_that_may_not_be_compared_fail(runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, command="compare", runs="good\nletters", fail_on="check", page="both.html")
    assert step.code == 1
    assert (step.outputs["passed"], step.outputs["exit-code"]) == ("false", "1")
    assert "❌ perplexity of letters and good may not be compared: events differ" in step.summary
    assert Path(step.outputs["page"]).name == "both.html"
    assert Step(runs, tmp_path, command="compare", runs="good\nletters", fail_on="never").code == 0


def test_a_run_that_is_worse_fails_where_that_is_asked_for(runs: Path, tmp_path: Path) -> None:
    for order, code in (("good\nbad", 1), ("bad\ngood", 0)):
        step = Step(runs, tmp_path, command="compare", runs=order, fail_on="worse")
        assert step.code == code, step.log
    assert "laplace1 is significantly worse than the first run" in step.summary


def test_an_audit(runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, command="audit", model="model", text="test.txt", options="--levels coverage,causality")
    assert step.code == 0, step.log
    assert step.outputs["verdict"].startswith("PASS: no problem found")
    assert "<td>1 coverage</td><td>PASS</td>" in step.summary
    step = Step(runs, tmp_path, command="audit", runs="good")
    assert (step.code, step.outputs["passed"]) == (0, "true")


def test_an_audit_that_fails(runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, command="audit", model="model", text="test.txt", train="test.txt")
    assert (step.code, step.outputs["exit-code"]) == (1, "1")
    assert step.summary.startswith("<h2>❌ lmgauge audit</h2>\n<p><b>FAIL")


@pytest.mark.parametrize("never", ["check", "never"])
def test_an_error_always_fails(never: str, runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, command="audit", runs="nowhere", fail_on=never)
    assert (step.code, step.outputs["exit-code"], step.outputs["page"]) == (1, "2", "")
    assert "nowhere" in step.outputs["verdict"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"command": "train"}, "command must be one of audit, compare; got 'train'"),
        ({"command": "compare", "runs": "good"}, "runs: compare needs two or more"),
        ({"command": "compare", "runs": "good\nbad", "model": "model"}, "model: compare takes runs"),
        ({"command": "audit"}, "runs: audit needs one, or a model"),
        ({"command": "audit", "runs": "--html=../x"}, "begins with a hyphen: write ./--html=../x"),
        ({"command": "audit", "runs": "good", "options": "--html x"}, "options: --html and --json belong to the action"),
        ({"command": "audit", "runs": "good", "options": "'"}, "options: No closing quotation"),
        ({"command": "audit", "runs": "good", "page": "../x.html"}, "page must be a name that ends in .html"),
        ({"command": "audit", "runs": "good", "page": "x.html\n/etc/passwd"}, "page must be a name that ends in .html"),
        ({"command": "audit", "runs": "good", "fail_on": "sometimes"}, "fail-on must be one of check, worse, never"),
    ],
)
def test_inputs_that_are_not_of_their_form(inputs: dict[str, str], message: str, runs: Path, tmp_path: Path) -> None:
    step = Step(runs, tmp_path, **inputs)
    assert (step.code, step.outputs["passed"]) == (2, "false")
    assert message in step.log
    assert "page" not in step.outputs


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag if not attrs else f"{tag} with attributes")


@pytest.mark.parametrize("name", ["runs", "model", "text", "train", "options", "page", "command", "fail_on"])
def test_nothing_in_an_input_is_run(name: str, runs: Path, tmp_path: Path) -> None:
    """No shell sees it, no line of the log is a command of GitHub, no output begins within another, no tag is made."""
    before = sorted(runs.rglob("*"))
    step = Step(runs, tmp_path, **{"command": "audit", "model": "model", "text": "test.txt", name: "\n".join(HOSTILE)})
    assert step.code in (1, 2), step.log
    assert step.outputs["passed"] == "false"
    first, *_, last = step.log.splitlines()
    assert first.startswith("::stop-commands::stop-")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    tags = _Tags()
    tags.feed(step.summary)
    assert tags.tags <= {"h2", "p", "b", "code", "table", "tr", "th", "td"}
    assert sorted(runs.rglob("*")) == before


def test_names_of_strangers_cannot_write_the_summary(tmp_path: Path) -> None:
    """A run calls its model what it likes; in the summary that is text."""
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]), order=1)
    evil = "![x](http://evil) <script>|`::error::`"
    for name in ("first", "second"):
        run = tmp_path / name
        lmgauge.evaluate({f"{evil}{name}": model}, texts=["a b", "b a"], output=run)
    folders = [str(path.parent.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("evaluation.json"))]
    assert len(folders) == 2
    step = Step(tmp_path, tmp_path, command="compare", runs="\n".join(folders))
    assert "&lt;script&gt;" in step.summary
    assert "<script>" not in step.summary
    assert not re.search(r"\n\s*\n(?!<|$)", step.summary)


@pytest.mark.parametrize(
    ("inputs", "arguments"),
    [
        ({}, ["install", f"{ROOT}[report]"]),
        ({"version": "0.2.0"}, ["install", "lmgauge[report]==0.2.0"]),
        ({"version": "0.2.0rc1", "extras": "audit, neural"}, ["install", "lmgauge[report,audit,neural]==0.2.0rc1"]),
    ],
)
def test_what_is_installed(inputs: dict[str, str], arguments: list[str], tmp_path: Path) -> None:
    environment = os.environ | {f"LMGAUGE_ACTION_{name.upper()}": value for name, value in inputs.items()}
    program = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import check; print(check.install_arguments())"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", "0.2.0 --index-url http://evil"),
        ("version", "0.2.0; touch pwned"),
        ("version", "git+https://evil/x"),
        ("extras", "audit] @ https://evil/x.whl #"),
        ("extras", "--pre"),
    ],
)
def test_nothing_else_is_installed(name: str, value: str, tmp_path: Path) -> None:
    step = Step(tmp_path, tmp_path, "install", **{name: value})
    assert step.code == 2
    assert "must be" in step.log


def test_every_input_is_handed_over_and_never_part_of_a_script() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    scripts = [step["run"] for step in steps if "run" in step]
    assert all("${{" not in script for script in scripts)
    assert all(step["shell"] == "bash" for step in steps if "run" in step)
    source = SCRIPT.read_text("utf-8")
    handed_over = set()
    for step in steps:
        for variable, value in step.get("env", {}).items():
            (name,) = re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", value)
            assert variable == f"LMGAUGE_ACTION_{name.upper().replace('-', '_')}"
            assert f'"{name.upper().replace("-", "_")}"' in source
            handed_over.add(name)
        handed_over |= set(re.findall(r"inputs\.([\w-]+)", str(step.get("with", {}))))
    assert handed_over == set(action["inputs"])
    assert all(set(value) == {"description", "value"} for value in action["outputs"].values())
    outputs = set(re.findall(r"steps\.check\.outputs\.([\w-]+)", str(action)))
    assert outputs == set(re.findall(r'write_output\("([\w-]+)"', source))
    assert all(each.get("required") or "default" in each for each in action["inputs"].values())
