"""`lmgauge membership` as users and pipes meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge

LINES = [f"{a} {b} {c} {d}" for a in ("the", "a") for b in ("cat", "dog", "cow") for c in ("sat", "ran") for d in "uvwxyz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the half of the text it has seen, the other half, and both with labels."""
    folder = tmp_path_factory.mktemp("membership")
    for name, part in {"seen": LINES[::2], "fresh": LINES[1::2]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    records = [{"text": line, "label": 1 - i % 2, "name": f"r{i}"} for i, line in enumerate(LINES)]
    (folder / "both.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    lmgauge.train("witten-bell", folder / "seen.txt").save(folder / "wb3")
    return folder


def test_as_people_and_as_programs_read_it(folder: Path) -> None:
    arguments = ["membership", folder / "wb3", folder / "seen.txt", "--control", folder / "fresh.txt"]
    shown = ok(*arguments).stdout
    assert "36 texts, 36 control texts" in shown
    assert "TPR at 1 % FPR" in shown
    found = json.loads(ok(*arguments, "--json", "--k", 0.5, "--fpr", 0.1).stdout)
    assert (found["k"], found["false_alarms"]) == (0.5, 0.1)
    assert [score["name"] for score in found["scores"]] == ["loss", "min_k", "min_k_plus_plus", "zlib"]
    result = lmgauge.membership(folder / "wb3", folder / "seen.txt", folder / "fresh.txt", k=0.5, fpr=0.1)
    assert found["scores"][0]["auroc"] == result.score("loss").auroc
    assert found["signature"] == result.signature


def test_labels_ids_and_rows(folder: Path, tmp_path: Path) -> None:
    arguments = ["membership", folder / "wb3", folder / "both.jsonl", "--label", "label", "--id", "name"]
    assert "36 texts, 36 control texts" in ok(*arguments, "-o", tmp_path / "rows.tsv").stdout
    rows = (tmp_path / "rows.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[1].split("\t")[:2] == ["text", "r0"]
    piped = ok(*arguments, "-o", "-").stdout
    assert piped.splitlines() == rows


def test_standard_input_and_a_reference(folder: Path) -> None:
    shown = ok("membership", folder / "wb3", stdin=b"the cat sat u\n").stdout
    assert "Scores alone prove nothing" in shown
    assert "less reference" in ok("membership", folder / "wb3", folder / "seen.txt", "--reference", folder / "wb3").stdout


def test_refused(folder: Path, tmp_path: Path) -> None:
    model, text = folder / "wb3", folder / "seen.txt"
    assert "are the texts themselves" in refused("membership", model, text, "--control", text)
    assert "is a model, not a text" in refused("membership", model, model)
    assert "no field 'label'" in refused("membership", model, text, "--label", "label")
    assert "not both" in refused("membership", model, folder / "both.jsonl", "--label", "label", "--control", text)
    assert "above 0" in refused("membership", model, text, "--k", 0)
    assert "above 0" in refused("membership", model, text, "--fpr", 1)
    assert "rows are written as" in refused("membership", model, text, "-o", tmp_path / "rows.doc")
    assert "would replace" in refused("membership", model, folder / "both.jsonl", "-o", folder / "both.jsonl")
    assert "no such model" in refused("membership", folder / "nothing", text)
    assert "Missing argument 'MODEL'" in refused("membership")
    assert "names a field" in refused("membership", model, text, "--field", "x")
