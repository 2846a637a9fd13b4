"""A small job in shards, as folders to look at and to damage."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmgauge
from lmgauge.text import work_units

LINES = ["the cat sat on the mat", "a dog ran", "", "the dog sat", "a cat and a dog ran far"] * 6


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "UNIT_BYTES", 60)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(LINES[:3]), order=2).save(path)
    return path


@pytest.fixture
def shards(text: Path, model: Path, tmp_path: Path) -> Path:
    """Three shards of an evaluation."""
    job = lmgauge.sharding.EvaluationJob(model, text)
    for rank in range(3):
        lmgauge.sharding.run_shard(job, rank, 3, tmp_path / "shards")
    return tmp_path / "shards"
