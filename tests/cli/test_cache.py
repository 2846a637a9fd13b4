"""`lmgauge cache` as users and pipes meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge

DATA = Path(__file__).parents[1] / "data"
LINES = [line for line in (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, held-out text and test text."""
    folder = tmp_path_factory.mktemp("cache")
    for name, part in {"train": LINES[:300], "valid": LINES[300:400], "test": LINES[400:500]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    lmgauge.train("witten-bell", folder / "train.txt", order=2).save(folder / "wb2")
    return folder


def test_a_cache_is_made_measured_and_used(folder: Path, tmp_path: Path) -> None:
    shown = ok("cache", folder / "wb2", folder / "valid.txt", "-o", tmp_path / "a").stdout
    assert "cache2-500" in shown
    assert "held-out perplexity" in shown
    told = json.loads(ok("cache", folder / "wb2", folder / "valid.txt", "-o", tmp_path / "b", "--json").stdout)
    python = lmgauge.cache(folder / "wb2", folder / "valid.txt")
    assert told["fingerprint"] == python.fingerprint
    results = json.loads(ok("eval", "-m", folder / "wb2", "-m", tmp_path / "a", folder / "test.txt", "--json").stdout)
    assert results[1]["perplexity"] < results[0]["perplexity"]
    assert "mix" in ok("info", tmp_path / "a").stdout


def test_weights_and_memories(folder: Path, tmp_path: Path) -> None:
    told = json.loads(ok("cache", folder / "wb2", "--weight", 0.25, "--decay", 0.99, "-o", tmp_path / "a", "--json").stdout)
    assert [component["weight"] for component in told["components"]] == [0.75, 0.25]
    assert told["components"][1]["label"] == "cache2-decay0.99"
    assert "lmgauge-cache" in ok("info", tmp_path / "a" / "component-2", "--json").stdout


def test_what_is_remembered_unless_said_otherwise(folder: Path) -> None:
    assert lmgauge.cache(folder / "wb2").components[1].label == "cache2-500"
    assert lmgauge.cache(folder / "wb2", window=None).components[1].label == "cache2-"


def test_refused(folder: Path, tmp_path: Path) -> None:
    model, out = folder / "wb2", ("-o", tmp_path / "x")
    assert "weight must be a number from 0 to 1" in refused("cache", model, "--weight", 2, *out)
    assert "not both" in refused("cache", model, "--window", 9, "--decay", 0.9, *out)
    assert "decay must be" in refused("cache", model, "--decay", 1, *out)
    assert "would replace" in refused("cache", model, "-o", model)
    assert "is a folder" in refused("cache", model, "-o", tmp_path / "x.arpa")
    assert "no such model" in refused("cache", folder / "nothing", *out)
    assert "no such file" in refused("cache", model, folder / "nothing.txt", *out)
