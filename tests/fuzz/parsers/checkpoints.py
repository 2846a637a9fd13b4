"""Trainings of networks that were stopped, whose folders are damaged and then resumed: refused, or the very same model."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import lmgauge
from lmgauge import Corpus
from tests.fuzz.mutations import changed
from tests.fuzz.parsers.model_folders import Files, changed_file, files_of, put
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字", "a dog ran"] * 2
TINY: dict[str, Any] = {
    "embedding_size": 4,
    "hidden_size": 4,
    "batch_size": 4,
    "steps": 5,
    "epochs": 4,
    "dropout": 0.1,
    "threads": 1,
    "device": "cpu",
    "checkpoint_every": 2,
}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {"learning_rate": 0.3}),
    ("transformer", {"optimizer": "adamw", "learning_rate": 0.01, "heads": 2, "warmup": 0}),
]


def prepare(folder: Path) -> Attempt:
    target = folder / "model"
    work = folder / "model.training"
    whole = [(kind, options, *_stopped(kind, options, target, work)) for kind, options in KINDS]

    def attempt(chance: random.Random) -> str:
        kind, options, files, weights = chance.choice(whole)
        put(_changed(files, chance), work)
        shutil.rmtree(target, ignore_errors=True)
        _train(kind, options, target, resume=True)
        assert (target / "model.safetensors").read_bytes() == weights, "another model"
        return "same"

    return attempt


def _train(kind: str, options: dict[str, Any], target: Path, **more: Any) -> None:
    valid = Corpus.from_strings(LINES[:3])
    lmgauge.train_neural(kind, Corpus.from_strings(LINES), output=target, valid=valid, **TINY, **options, **more)  # type: ignore[arg-type]


def _stopped(kind: str, options: dict[str, Any], target: Path, work: Path) -> tuple[Files, bytes]:
    """Return what a stopped training leaves, and the weights that it comes to when it is resumed."""

    def stop(event: Any) -> None:
        if event.total_update >= 5:
            raise KeyboardInterrupt

    shutil.rmtree(target, ignore_errors=True)
    with suppress(KeyboardInterrupt):
        _train(kind, options, target, watch=stop)
    files = files_of(work)
    assert files, "nothing is left of a training that was stopped"
    _train(kind, options, target, resume=True)
    return files, (target / "model.safetensors").read_bytes()


def _changed(files: Files, chance: random.Random) -> Files:
    files = dict(files)
    for _ in range(chance.choice([1, 1, 2])):
        name = chance.choice([*files])
        draw = chance.random()
        if draw < 0.05 and len(files) > 1:
            del files[name]
        elif draw < 0.1:
            files[name] = files[chance.choice([*files])]
        elif name.endswith(".jsonl") and files[name]:
            lines = files[name].splitlines(keepends=True)
            with suppress(ValueError):
                lines[-1] = changed(json.dumps(json.loads(lines[-1])).encode(), chance, 1)
            files[name] = b"".join(lines)
        else:
            files[name] = changed_file(name, files[name], chance)
    return files
