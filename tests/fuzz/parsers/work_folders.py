"""Folders of unfinished training, stopped at different stages, then damaged and resumed: refused, or the very same model."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lmgauge import Corpus, NgramModel
from lmgauge.models.ngram import training
from lmgauge.models.ngram.limits import MemoryLimits
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.work.engine import FolderEngine
from lmgauge.work.manifest import content_fingerprint
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.model_folders import Files, as_json, changed_array, files_of, put
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"] * 2
KINDS = [NgramTrainingSettings("modified-kneser-ney", order=3, prune=1e-3), NgramTrainingSettings("witten-bell", order=2)]


def prepare(folder: Path) -> Attempt:
    work, target = folder / "model.parts", folder / "model"
    whole = [(settings, files, model) for settings in KINDS for files, model in _stopped(settings, target, work)]

    def attempt(chance: random.Random) -> str:
        settings, files, fingerprint = chance.choice(whole)
        put(_changed(files, chance), work)
        shutil.rmtree(target, ignore_errors=True)
        with _small_partitions():
            assert _trained(settings, target).fingerprint == fingerprint, "another model"
        return "same"

    return attempt


def _trained(settings: NgramTrainingSettings, target: Path) -> NgramModel:
    return training.train_within(settings, Corpus.from_strings(LINES), target, MemoryLimits(1 << 30, resume=True), threads=1)


@contextmanager
def _small_partitions() -> Iterator[None]:
    """As if memory were so small that two partitions and several chunks are needed."""
    partitions = patch.object(training, "number_of_partitions", lambda *types, **sizes: 2)
    with partitions, patch.object(training, "tokens_of_chunk", lambda memory: 20):
        yield


def _stopped(settings: NgramTrainingSettings, target: Path, work: Path) -> list[tuple[Files, str]]:
    """Return what the folder of the work holds before each stage of a training, each with the fingerprint of the model."""
    run, seen = FolderEngine.run, list[Files]()

    def watched(self: FolderEngine, *arguments: Any) -> Any:
        seen.append({name: content for name, content in files_of(work).items() if name != "lock"})
        return run(self, *arguments)

    with _small_partitions(), patch.object(FolderEngine, "run", watched):
        model = _trained(settings, target)
    return [(files, model.fingerprint) for files in seen]


def _changed(files: Files, chance: random.Random) -> Files:
    files = dict(files)
    for _ in range(chance.choice([1, 1, 2])):
        name = chance.choice([*files])
        content, draw = files[name], chance.random()
        if name == "finished.log":
            files[name] = _changed_notes(content, chance)
        elif draw < 0.05 and len(files) > 1:
            del files[name]
        elif draw < 0.1:
            files[name] = files[chance.choice([*files])]
        elif draw < 0.2:
            files[name.replace(".npy", ".unfinished") + chance.choice(["", "x"])] = content[: chance.randrange(len(content))]
        elif draw < 0.3:
            files[name] = changed(content, chance, 2)
        elif name.endswith(".npy"):
            files[name] = _changed_array(content, chance)
        elif name.endswith("work.json") and content.startswith(b"{"):
            with suppress(ValueError, TypeError, AttributeError):  # it is damaged already
                value = changed_value(json.loads(content), chance, 1)
                if chance.random() < 0.5:  # made whole again
                    value["fingerprint"] = content_fingerprint(value)
                files[name] = as_json(value)
    return files


def _changed_notes(content: bytes, chance: random.Random) -> bytes:
    """Return notes as a run leaves them that was killed or whose disk failed: the last ones missing, cut off, or garbage."""
    lines = content.splitlines(keepends=True)
    rest = b"".join(lines[: chance.randint(max(0, len(lines) - 2), len(lines))])
    return rest + chance.choice([b"", changed(lines[-1], chance, 1)[:-1] if lines else b"[", b"\0" * 9 + b"\n"])


def _changed_array(content: bytes, chance: random.Random) -> bytes:
    """Return a file of an array, whose header fits, with other values in it, or fewer."""
    size = 10 + int.from_bytes(content[8:10], "little")
    header, data = content[:size], bytearray(content[size:])
    if not data:
        return content
    array = np.frombuffer(data, "<u4" if len(data) % 4 == 0 else "u1").copy()
    other = changed_array(array, chance)
    return header + other.tobytes() if other.nbytes == len(data) else content[: size + chance.randrange(len(data))]
