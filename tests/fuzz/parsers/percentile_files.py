"""Files of percentiles, changed: refused, or percentiles that rise, each within its interval."""

from __future__ import annotations

import json
import random
from pathlib import Path

import lmgauge
from lmgauge import Corpus
from lmgauge.filtering.options import PERCENTS
from lmgauge.filtering.percentiles import Percentiles
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.model_folders import as_json
from tests.fuzz.table import Attempt

WORDS = ["the cat", "a dog", "sat on the mat", "grün 漢字"]


def prepare(folder: Path) -> Attempt:
    path, texts = folder / "p.json", folder / "in.jsonl"
    models = {f"m{order}": lmgauge.train("witten-bell", Corpus.from_strings(WORDS), order=order) for order in (1, 2)}
    rows = [{"text": WORDS[n % 4] + " the" * (n % 7), "lang": ("en", "de")[n % 5 == 0]} for n in range(300)]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lmgauge.learn_percentiles(models, texts, group="lang").save(path)
    whole = path.read_bytes()

    def attempt(chance: random.Random) -> str:
        content = whole
        if chance.random() < 0.9:
            content = as_json(changed_value(json.loads(content), chance, chance.choice([1, 1, 2])))
        path.write_bytes(changed(content, chance, 2) if chance.random() < 0.15 else content)
        read = Percentiles.load(path)
        for group in (None, *read.groups):
            for name in read.models:
                values = [read.value(name, group, percent) for percent in PERCENTS]
                assert values == sorted(values), (name, group, values)
                for percent, value in zip(PERCENTS, values, strict=True):
                    _, low, high = read.row(name, group, percent)
                    assert (value if low is None else low) <= value <= (value if high is None else high)
        again = folder / "again.json"
        assert Percentiles.load(read.save(again)).to_dict() == read.to_dict()
        return "read"

    return attempt
