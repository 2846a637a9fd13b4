"""Model folders damaged, with the digests as they were: each is refused, or gives the very numbers of the whole one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import lmgauge
from lmgauge import LanguageModel
from tests.fuzz.mutations import PIECES
from tests.fuzz.parsers.checked import rows_of
from tests.fuzz.parsers.model_folders import Files, changed_file, of_another_kind, put, whole_models
from tests.fuzz.table import Attempt

CONTEXTS = [[], [1], [1, 3], [3, 4, 5], [0, 2]]


def prepare(folder: Path) -> Attempt:
    models = whole_models(folder)
    target = folder / "changed"
    numbers = {name: _numbers(lmgauge.load_model(put(files, target))) for name, files in models.items()}

    def attempt(chance: random.Random) -> str:
        name = chance.choice([*models])
        files = _changed(models[name], models[chance.choice([*models])], chance)
        if of_another_kind(files) or any(
            whole.items() <= files.items() for other, whole in models.items() if other != name
        ):  # two files exchanged are all of another model
            return "of another kind"
        end = "same" if files != models[name] else "not changed"
        assert _numbers(lmgauge.load_model(put(files, target))) == numbers[name], "other numbers, and not refused"
        return end

    return attempt


def _numbers(model: LanguageModel) -> list[object]:
    """Return numbers of a model, all of their digits."""
    whole = [model.log_distribution(np.array(context, np.uint32)).tobytes() for context in CONTEXTS]
    return [rows_of(model), [str(token) for token in model.vocabulary], *whole]


def _changed(files: Files, others: Files, chance: random.Random) -> Files:
    files = dict(files)
    for _ in range(chance.choice([1, 1, 1, 2])):
        name = chance.choice([*files])
        draw = chance.random()
        if draw < 0.9:
            files[name] = changed_file(name, files[name], chance)
        elif draw < 0.93:
            files[name] = others.get(name, b"")
        elif draw < 0.95 and not name.endswith("spelling/config.json"):  # without that folder it is the model inside
            del files[name]
        elif draw < 0.98:
            files[name + chance.choice(["", ".tmp", "x"])] = files[chance.choice([*files])]
        else:
            files[name] = chance.choice(PIECES)
    return files
