"""Audits and overlaps from Python: everything that the commands do, with the same result to the letter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import run as command

import lmgauge
from lmgauge.base.json_text import to_json


@pytest.fixture(scope="module")
def shop(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its run on a test text, and the texts; four lines of the test are in the training text."""
    folder = tmp_path_factory.mktemp("doors")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()
    (folder / "train.txt").write_text("\n".join(lines[:400]) + "\n", encoding="utf-8", newline="\n")
    test = lines[400:440] + [line for line in lines[:60] if len(line) > 30][:4]
    (folder / "test.txt").write_text("\n".join(test) + "\n", encoding="utf-8", newline="\n")
    lmgauge.train("witten-bell", folder / "train.txt", order=2).save(folder / "wb2")
    lmgauge.evaluate(folder / "wb2", folder / "test.txt", output=folder / "run")
    return folder


def test_a_run_and_its_model_through_both_doors(shop: Path) -> None:
    options = ("--train", shop / "train.txt", "--contexts", 30, "--compression-bytes", 500, "--json")
    shell = command("audit", shop / "run", "-m", shop / "wb2", *options)
    python = lmgauge.audit(shop / "wb2", run=shop / "run", train=shop / "train.txt", contexts=30, compression_bytes=500)
    assert json.loads(shell.stdout) == json.loads(to_json(python.to_dict()))
    assert shell.exit_code == 1  # four lines are in the training text
    assert [check.level for check in python.failures] == ["contamination"]
    names = {check.name for check in python.checks if check.level == "coverage"}
    assert {"seal", "text", "claims", "model", "stored rows"} <= names


def test_a_run_alone_through_both_doors(shop: Path) -> None:
    shell = command("audit", shop / "run", "--json", "--levels", "coverage")
    python = lmgauge.audit_run(shop / "run", levels="coverage")
    assert json.loads(shell.stdout) == json.loads(to_json(python.to_dict()))


def test_a_model_in_memory_is_held_against_a_run(shop: Path) -> None:
    other = lmgauge.train("kneser-ney", shop / "train.txt", order=2)
    result = lmgauge.audit(other, run=shop / "run", levels="coverage")
    assert {check.name for check in result.failures} == {"model", "stored rows"}


def test_an_audit_without_a_text(shop: Path) -> None:
    with pytest.raises(lmgauge.base.errors.UsageError, match="needs a text"):
        lmgauge.audit(shop / "wb2")


def test_overlap_of_a_run_through_both_doors(shop: Path, tmp_path: Path) -> None:
    shell = command(
        "overlap", shop / "train.txt", "--run", shop / "run", "--ngram", 6, "--write-clean", tmp_path / "shell.txt", "--json"
    )
    python = lmgauge.overlap(shop / "train.txt", run=shop / "run", n=6, write_clean=tmp_path / "python.txt")
    assert shell.exit_code == 0, shell.output
    assert json.loads(shell.stdout) == json.loads(to_json(python.to_dict()))
    assert (tmp_path / "shell.txt").read_bytes() == (tmp_path / "python.txt").read_bytes()
    assert python.run is not None
    assert python.run.contaminated.segments == python.contaminated_segments >= 4
    with pytest.raises(lmgauge.base.errors.CheckFailedError, match="--max-overlap"):
        python.require(0.01)
    assert python.require(0.9) is python


def test_overlap_asked_wrongly(shop: Path) -> None:
    with pytest.raises(lmgauge.base.errors.UsageError, match="needs a test text"):
        lmgauge.overlap(shop / "train.txt")
    with pytest.raises(lmgauge.base.errors.UsageError, match="n must be a whole number"):
        lmgauge.overlap(shop / "train.txt", shop / "test.txt", n=0)
