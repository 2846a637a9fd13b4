"""Statistics of task metrics, as `Accumulator.to_dict` gave them and JSON brought them back, with values changed."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from lmgauge.tasks import BLEU, CER, TER, WER, ChrF
from lmgauge.tasks.accumulator import Accumulator
from tests.fuzz.mutations import changed_value
from tests.fuzz.table import Attempt

HYPOTHESES = ["the cat sat", "a dog", "", "für 東京 it"]
REFERENCES = ["the cat sat down", "a dog", "b", "für 東京"]


def prepare(folder: Path) -> Attempt:
    del folder
    metrics = [BLEU(), ChrF(), TER(), WER(), CER()]
    seeds = [(metric, _plain(metric, documents), documents) for metric in metrics for documents in (None, list("aabb"))]

    def attempt(chance: random.Random) -> str:
        metric, plain, documents = chance.choice(seeds)
        plain = changed_value(plain, chance, 1 if chance.random() < 0.7 else 3)
        whole = Accumulator.from_dict(metric, plain)
        before = whole.score().score
        assert not math.isnan(before), before
        again = Accumulator.from_dict(metric, json.loads(json.dumps(whole.to_dict())))
        assert again.score().score == before
        if chance.random() < 0.3:
            whole.add(hypotheses=HYPOTHESES, references=REFERENCES, **({"documents": documents} if documents else {}))
            assert whole.segments == again.segments + len(HYPOTHESES)
            whole.score()
        return "read"

    return attempt


def _plain(metric: Any, documents: list[str] | None) -> dict[str, Any]:
    whole = Accumulator(metric)
    whole.add(hypotheses=HYPOTHESES, references=REFERENCES, **({"documents": documents} if documents else {}))
    plain: dict[str, Any] = json.loads(json.dumps(whole.to_dict()))
    return plain
