"""What a training says of itself: written by every training, whole lines, and never in its way."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.models.training.test_run import lines, stop_at, train

from lmgauge.models.training import progress_file
from lmgauge.models.training.loop import TrainingEvent
from lmgauge.models.training.progress_file import PROGRESS_FILE, ProgressFile


def entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / PROGRESS_FILE).read_text().splitlines() if line]


def test_a_training_writes_its_figures(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def watch(event: TrainingEvent) -> None:
        seen.extend(entries(tmp_path / "model.training")[-1:])

    train(tmp_path, watch=watch, epochs=2)
    assert [entry["step"] for entry in seen] == sorted(entry["step"] for entry in seen)
    last = seen[-1]
    size = sum(len(line.encode()) for line in lines(60))
    events = sum(len(line.split()) + 1 for line in lines(60))
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"]))
    assert last["bits_per_byte"] == pytest.approx(last["loss"] / math.log(2) * events / size)
    size, events = (sum(len(line.encode()) for line in lines(20, 2)), sum(len(line.split()) + 1 for line in lines(20, 2)))
    assert last["valid_bits_per_byte"] == pytest.approx(math.log2(last["valid_perplexity"]) * events / size)
    assert {"learning_rate", "tokens_per_second", "time", "valid_loss"} <= set(last)
    assert not (tmp_path / "model.training").exists()  # the model is written


def test_a_training_that_is_resumed_goes_on_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, watch=stop_at(75), checkpoint_every=20, epochs=6)
    steps = [entry["step"] for entry in entries(tmp_path / "model.training")]
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, watch=stop_at(100), checkpoint_every=20, epochs=6, resume=True)
    later = [entry["step"] for entry in entries(tmp_path / "model.training")]
    assert later[: len(steps)] == steps
    assert len(later) > len(steps)


def test_a_training_stopped_before_its_first_checkpoint_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, watch=stop_at(25), checkpoint_every=0, epochs=60, batch_size=1)
    assert not (tmp_path / "model.training").exists()
    train(tmp_path, epochs=1)


def test_a_file_that_cannot_be_written_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int, line: bytes) -> int:
        raise OSError(28, "No space left on device")

    with ProgressFile(tmp_path) as progress:
        monkeypatch.setattr(progress_file.os, "write", full)
        progress.write(1, {"loss": 1.0})
        progress.write(2, {"loss": 1.0})
    monkeypatch.undo()
    assert caplog.text.count("No space left") == 1
    (tmp_path / "in-the-way").write_text("a file")
    with ProgressFile(tmp_path / "in-the-way") as progress:
        progress.write(1, {"loss": 1.0})
    assert "training goes on without it" in caplog.text
