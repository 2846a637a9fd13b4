"""`lmgauge audit` as users and pipes meet it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.commands import run
from tests.programs import running

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
MANUAL = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "audit-a-number.md"


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training text, a test text, a model and a run."""
    folder = tmp_path_factory.mktemp("audit")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    (folder / "train.txt").write_text("\n".join(lines[:600]) + "\n", encoding="utf-8", newline="\n")
    (folder / "test.txt").write_text("\n".join(lines[600:660]) + "\n", encoding="utf-8", newline="\n")
    assert run("train", "witten-bell", "--order", 3, folder / "train.txt", "-o", folder / "wb3").exit_code == 0
    assert run("eval", "-m", folder / "wb3", folder / "test.txt", "-o", folder / "run").exit_code == 0
    return folder


def test_a_model_that_passes(folder: Path) -> None:
    result = run("audit", "-m", folder / "wb3", folder / "test.txt")
    assert result.exit_code == 0, result.output
    assert re.search(r"1 coverage\tPASS", result.stdout)
    assert re.search(r"code length\tPASS\tAll [\d,]+ bytes \(60 segments", result.stdout)
    assert re.search(r"training text\tNOT CHECKED\tthe training text was not named \(--train\)", result.stdout)
    last = result.stdout.splitlines()[1]
    assert last.startswith("# PASS: no problem found; verified by compression, event by event, on 100 % of the bytes")
    assert last.endswith("; contamination not checked.")
    assert re.fullmatch(r"# perplexity [\d.]+, bits per byte ≥ [\d.]+, 3\d\d events", result.stdout.splitlines()[2])
    assert "\x1b" not in result.stdout


def test_contamination_exits_with_1(folder: Path) -> None:
    arguments = (
        "audit",
        "-m",
        folder / "wb3",
        folder / "train.txt",
        "--levels",
        "contamination",
        "--train",
        folder / "train.txt",
    )
    result = run(*arguments)
    assert result.exit_code == 1
    assert "100.00 % of the bytes" in result.stdout
    assert result.stdout.splitlines()[1] == "# FAIL at contamination: the test text overlaps the training text."
    assert run(*arguments, "--max-overlap", 1).exit_code == 0
    clean = run(
        "audit", "-m", folder / "wb3", folder / "test.txt", "--levels", "contamination", "--train", folder / "train.txt"
    )
    assert clean.exit_code == 0, clean.output


def test_nothing_was_checked(folder: Path) -> None:
    """Exit code 0, as nothing failed; but the last line says so, and why."""
    (folder / "blank.txt").write_text("\n \n", encoding="utf-8")
    (folder / "zh.txt").write_text("今天天氣很好我們一起去公園散步吧然後再去吃晚飯\n" * 3, encoding="utf-8")
    contamination = ("audit", "-m", folder / "wb3", "--levels", "contamination")
    for arguments, reason in (
        ((folder / "test.txt",), "Nothing was checked: the training text was not named (--train)."),
        ((folder / "test.txt", "--train", folder / "blank.txt"), "Nothing was checked: the training text has no words"),
        ((folder / "zh.txt", "--train", folder / "train.txt"), "name --overlap-unit character."),
    ):
        result = run(*contamination, *arguments)
        assert result.exit_code == 0, result.output
        assert reason in result.stdout.splitlines()[1]
        assert result.stdout.splitlines()[1].startswith("# Nothing was checked: ")
    both = (folder / "zh.txt", "--train", folder / "train.txt", "--overlap-unit", "character")
    assert run(*contamination, *both).stdout.splitlines()[1].startswith("# PASS: ")


def test_the_share_that_was_compressed(folder: Path) -> None:
    result = run("audit", "-m", folder / "wb3", folder / "train.txt", "--levels", "compression", "--compression-bytes", 3000)
    unchecked = "coverage, normalization, causality and contamination not checked"
    verified = re.search(rf"; verified by compression on (\d+) % of the bytes; {unchecked}", result.stdout)
    assert verified is not None
    assert 10 <= int(verified[1]) <= 40


def test_probabilities_above_one_are_a_failed_check(folder: Path) -> None:
    """Back-off weights that do not belong to the probabilities: bad input for `eval`, a finding for an audit."""
    unigrams, bigrams = "-1\t<unk>\t0\n-99\t<s>\t0\n-0.3\ta\t0.6\n-0.5\t</s>\t0\n", "-0.3\ta </s>\n-0.3\t<s> a\n"
    arpa = f"\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n{unigrams}\n\\2-grams:\n{bigrams}\n\\end\\\n"
    (folder / "above.arpa").write_text(arpa, encoding="utf-8", newline="\n")
    (folder / "a.txt").write_text("a a\na\n", encoding="utf-8", newline="\n")
    assert run("eval", "-m", folder / "above.arpa", folder / "a.txt").exit_code == 2
    result = run("audit", "-m", folder / "above.arpa", folder / "a.txt")
    assert result.exit_code == 1, result.output
    assert re.search(r"sums\tFAIL\t.*gives an event the probability 1\.995", result.stdout.replace("\n", " "))
    assert result.stdout.splitlines()[1].startswith("# FAIL at normalization")


def test_json(folder: Path) -> None:
    result = run("audit", "-m", folder / "wb3", folder / "test.txt", "--json", "--contexts", 7, "--seed", 3)
    found = json.loads(result.stdout)
    assert found["passed"] is True
    assert found["model"] == "wb3"
    assert found["levels"]["compression"] == "PASS"
    assert found["settings"]["seed"] == 3
    assert next(check for check in found["checks"] if check["name"] == "sums")["details"]["contexts"] == 7


def test_a_run(folder: Path) -> None:
    result = run("audit", folder / "run")
    assert result.exit_code == 0, result.output
    assert re.search(r"claims\tPASS\t\d+ numbers of evaluation.json come out the same", result.stdout)
    assert result.stdout.splitlines()[1].endswith("normalization, causality, contamination and compression not checked.")
    other = run("audit", folder / "run", "--text", folder / "train.txt")
    assert other.exit_code == 1
    assert "FAIL at coverage" in other.stdout


def test_a_run_and_its_model(folder: Path) -> None:
    result = run("audit", folder / "run", "-m", folder / "wb3", "--contexts", 20)
    assert result.exit_code == 0, result.output
    assert re.search(r"stored rows\tPASS\t[\d,]+ rows of the table are what the model gives", result.stdout)
    assert re.search(r"5 compression\tPASS", result.stdout)
    assert run("train", "witten-bell", "--order", 2, folder / "train.txt", "-o", folder / "wb2").exit_code == 0
    other = run("audit", folder / "run", "-m", folder / "wb2", "--levels", "coverage")
    assert other.exit_code == 1
    assert re.search(r"model\tFAIL\tThe model has fingerprint", other.stdout)
    assert re.search(r"stored rows\tFAIL\tThe table is not what the model gives: segment 1, event", other.stdout)


def test_standard_input(folder: Path) -> None:
    text = (folder / "test.txt").read_bytes()
    assert run("audit", "-m", folder / "wb3", stdin=text).exit_code == 0
    assert run("audit", "-m", folder / "wb3", "-", stdin=text).exit_code == 0
    twice = run("audit", "-m", folder / "wb3", "-", "--train", folder / "train.txt", stdin=text)
    assert twice.exit_code == 2
    assert "save it in a file" in twice.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "none", "{folder}/test.txt"], "none: no such model"),
        (["-m", "{folder}/wb3", "none.txt"], "none.txt"),
        (["-m", "{folder}/wb3", "{folder}/empty.txt"], "nothing to audit"),
        (["-m", "{folder}/wb3", "{folder}/test.txt", "--levels", "truth"], "'truth' is not a level"),
        (["-m", "{folder}/wb3", "{folder}/test.txt", "--levels", ","], "choose from coverage"),
        (["-m", "{folder}/wb3", "{folder}/test.txt", "--text", "x"], "--text belongs to a RUN"),
        ([], "name a model with -m"),
        (["a", "b"], "name a model with -m"),
        (["a.txt"], "name a model with -m"),
        (["none"], "no such run"),
        (["{folder}/wb3"], "wb3 is a model: score a text with it first"),
    ],
)
def test_bad_usage_exits_with_2(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "empty.txt").touch()
    result = run("audit", *(argument.format(folder=folder) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert len([line for line in result.stderr.splitlines() if "rror" in line]) == 1


@POSIX
def test_an_interrupt_ends_it_soon(folder: Path) -> None:
    """Also while threads are coding: no trace, no waiting for them."""
    (folder / "long.txt").write_bytes((folder / "train.txt").read_bytes() * 1000)
    command = [sys.executable, "-m", "lmgauge", "audit", "-m", "wb3", "long.txt", "--levels", "compression", "--exhaustive"]
    with running(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.decode().splitlines()[-1] == "lmgauge: interrupted; no half-written files are left"
    assert b"Traceback" not in errors


def test_the_manual_names_every_option() -> None:
    text = MANUAL.read_text(encoding="utf-8")
    options = {
        "--train",
        "--max-overlap",
        "--levels",
        "--contexts",
        "--compression-bytes",
        "--exhaustive",
        "--text",
        "--json",
        "--seed",
    }
    assert {option for option in options if option not in text} == set()
