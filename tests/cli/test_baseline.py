"""`lmgauge baseline` as users and programs meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge

SMALL = ("--order", 2, "--character-order", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    lines = [f"the {a} {b} {c}" for a in ("cat", "dog", "cow") for b in ("sat", "ran") for c in "uvwxyz"]
    (folder / "train.txt").write_text("\n".join(lines[::2]) + "\n", encoding="utf-8")
    (folder / "test.txt").write_text("\n".join(lines[1::2]) + "\n", encoding="utf-8")
    records = "".join(json.dumps({"body": line}) + "\n" for line in lines[1::2])
    (folder / "test.jsonl").write_text(records, encoding="utf-8")
    return folder


def test_the_shell_and_python_agree(folder: Path) -> None:
    texts = folder / "train.txt", folder / "test.txt"
    printed = json.loads(ok("baseline", *texts, *SMALL, "--json").stdout)
    made = lmgauge.baseline(*texts, order=2, character_order=3)
    assert [(row["name"], row["bits"]) for row in printed["rungs"]] == [(rung.name, rung.bits) for rung in made.rungs]
    shown = ok("baseline", *texts, *SMALL).stdout
    assert "A network must beat" in shown
    assert "word 2-gram" in shown


def test_texts_that_are_refused(folder: Path) -> None:
    texts = folder / "train.txt", folder / "test.txt"
    assert "read only once" in refused("baseline", "-", texts[1])
    assert "in the training text and in the test text" in refused("baseline", texts[0], texts[0])
    assert "no such" in refused("baseline", texts[0], folder / "none.txt").lower()
    assert "field names a field" in refused("baseline", *texts, "--field", "body")
