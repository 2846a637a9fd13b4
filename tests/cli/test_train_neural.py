"""`lmgauge train lstm ...`: what it says, what it refuses, and that it can be stopped and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.commands import run
from tests.programs import running

from lmgauge.cli.training import epoch_line, live_line
from lmgauge.models.training.loop import TrainingEvent

SIZES = {"embedding-size": 6, "hidden-size": 6, "batch-size": 4, "steps": 5, "epochs": 2, "threads": 1, "device": "cpu"}
SMALL = [part for name, value in SIZES.items() for part in (f"--{name}", str(value))]


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str]:
    for name, count in (("train.txt", 60), ("valid.txt", 10)):
        lines = [" ".join(f"w{(i + 3 * j) % 9}" for j in range(6)) for i in range(count)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(tmp_path / "train.txt"), str(tmp_path / "valid.txt")


def invoke(*arguments: str) -> Result:
    return run("train", *arguments)


def test_a_model_is_trained_and_told(texts: tuple[str, str], tmp_path: Path) -> None:
    train, valid = texts
    result = invoke("lstm", train, "--valid", valid, "-o", str(tmp_path / "m"), *SMALL)
    assert result.exit_code == 0, result.output
    assert "epoch 2/2: training perplexity" in result.stderr
    assert "validation perplexity" in result.stderr
    assert "lstm, small, " in result.stderr
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_json(texts: tuple[str, str], tmp_path: Path) -> None:
    train, valid = texts
    result = invoke("ffnn", train, "--valid", valid, "-o", str(tmp_path / "m"), "--order", "3", "--json", *SMALL)
    told = json.loads(result.stdout)
    assert told["settings"]["order"] == 3
    assert told["settings"]["context"] == "stream"
    assert len(told["history"]) == 2


def test_schedules_are_told_in_full(texts: tuple[str, str], tmp_path: Path) -> None:
    chosen = ["--decay", "0.7", "--decay-after", "1", "--warmup", "5", "--clip-norm", "3"]
    told = json.loads(invoke("rnn", texts[0], "-o", str(tmp_path / "m"), "--json", *chosen, *SMALL).stdout)
    names = ("decay", "decay_after", "warmup", "clip_norm")
    assert [told["settings"][name] for name in names] == [0.7, 1, 5, 3]
    assert told["history"][1]["learning_rate"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lstm", "--order", "3"], "order is for n-gram models and ffnn; lstm does not take it"),
        (["gru", "--discount", "0.5"], "--discount is for n-gram models"),
        (["rnn", "--words", "w.txt"], "--words is for n-gram models"),
        (["kneser-ney", "--epochs", "3"], "--epochs is for neural models; kneser-ney does not take it"),
        (["mle", "--preset", "small"], "--preset is for neural models"),
        (["lstm", "--heads", "3"], "heads is for transformer"),
        (["ffnn", "--layers", "3"], "layers is for rnn, lstm, gru, transformer; ffnn does not take it"),
        (["gru", "--nonlinearity", "tanh"], "nonlinearity is for rnn"),
        (["lstm", "--direct-connections"], "direct-connections is for ffnn"),
        (["mle", "--warmup", "3"], "--warmup is for neural models"),
        (["lstm", "--decay", "0"], "decay must be a number from above 0 to 1; got 0"),
    ],
)
def test_options_of_other_kinds_are_refused(
    arguments: list[str], message: str, texts: tuple[str, str], tmp_path: Path
) -> None:
    result = invoke(*arguments, texts[0], "-o", str(tmp_path / "m"))
    assert result.exit_code == 2
    assert message in result.stderr


def test_killed_and_gone_on_with(texts: tuple[str, str], tmp_path: Path) -> None:
    train, valid = texts
    output = tmp_path / "m"
    command = [sys.executable, "-m", "lmgauge", "train", "lstm", train, "--valid", valid, "-o", str(output), *SMALL]
    command += ["--epochs", "300", "--checkpoint-every", "20"]
    folder, environment = tmp_path / "m.training", os.environ | {"OMP_NUM_THREADS": "1"}
    with running(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        waited = time.monotonic()
        while not list(folder.glob("step-*")) and time.monotonic() - waited < 60:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert "--resume continues" in told
    assert not output.exists()
    refused = invoke("lstm", train, "--valid", valid, "-o", str(output), *SMALL, "--epochs", "300")
    assert "continue it with --resume" in refused.stderr
    other = invoke("lstm", train, "--valid", valid, "-o", str(output), *SMALL, "--resume")
    assert "holds other work: settings: epochs is 300 there, and 2 here" in other.stderr


def event(**changes: object) -> TrainingEvent:
    values = {
        "epoch": 1,
        "epochs": 13,
        "update": 50,
        "updates": 100,
        "total_update": 150,
        "perplexity": 256.0,
        "tokens_per_second": 1234.5,
        "seconds_left": 3723.0,
        "learning_rate": 0.5,
    }
    return TrainingEvent(**(values | changes))  # type: ignore[arg-type]


def test_lines() -> None:
    assert "epoch 2/13  50%" in live_line(event())
    assert len(live_line(event(best_perplexity=123.45))) <= 76
    assert " ppl 256.0 (8.00 bits) 1,234 tok/s 1:02:03 left" in live_line(event())
    line = epoch_line(event(valid_perplexity=99.5, best_perplexity=99.5, finished=True))
    assert "validation perplexity 99.50 (best)" in line
    assert " 0:01:00 left" in live_line(event(seconds_left=59.6))
    assert " ? left" in live_line(event(seconds_left=float("inf")))
