"""What runs leave for later ones, as JSON: statistics of task metrics, and records of files that were found sound."""

from __future__ import annotations

import json
import math
import os
import random
import time
from pathlib import Path
from unittest.mock import patch

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.tasks import BLEU, CER, TER, WER, ChrF
from lmgauge.tasks.accumulator import Accumulator
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.checked import rows_of
from tests.fuzz.parsers.model_folders import as_json, files_of
from tests.fuzz.table import Attempt

HYPOTHESES, REFERENCES = ["the cat sat", "", "a dog"], ["the cat", "a", "the dog ran"]


def prepare(folder: Path) -> Attempt:
    metrics = [BLEU(), ChrF(), TER(), WER(), CER()]
    states = []
    for metric in metrics:
        for keep in (True, False):
            part = Accumulator(metric, keep_segments=keep)
            part.add(hypotheses=HYPOTHESES, references=REFERENCES)
            states.append((metric, json.loads(json.dumps(part.to_dict())), part.score().score))
    checked = _checked_model(folder)

    def attempt(chance: random.Random) -> str:
        if chance.random() < 0.2:
            return checked(chance)
        metric, state, score = chance.choice(states)
        content = as_json(changed_value(state, chance, chance.choice([1, 1, 2])))
        content = changed(content, chance, 1) if chance.random() < 0.1 else content
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError("not JSON") from error
        read = Accumulator.from_dict(metric, value).score().score
        assert not math.isnan(read)
        return "same" if read == score else "read"

    return attempt


def _checked_model(folder: Path) -> Attempt:
    """Return what loads a sound model whose record, that it was looked at, is damaged: the same numbers, always."""
    cache, path = folder / "cache", folder / "model"
    model = lmgauge.train("witten-bell", Corpus.from_strings(REFERENCES), order=2)
    model.save(path)
    for file in path.iterdir():  # files that are new are not remembered
        os.utime(file, ns=(0, 0))
    numbers = rows_of(model, REFERENCES)

    def attempt(chance: random.Random) -> str:
        with patch.dict(os.environ, {"XDG_CACHE_HOME": str(cache)}):
            for name, content in records.items():
                value = as_json(changed_value(json.loads(content), chance, 1))
                (cache / name).write_bytes(value if chance.random() < 0.5 else changed(content, chance, 2))
            assert rows_of(lmgauge.load_model(path), REFERENCES) == numbers
        return "same"

    with patch.dict(os.environ, {"XDG_CACHE_HOME": str(cache)}), patch.object(time, "time_ns", lambda: 2**62):
        lmgauge.load_model(path)
    records = files_of(cache)
    assert records
    return attempt
