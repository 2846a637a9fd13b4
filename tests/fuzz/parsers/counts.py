"""Counts of n-grams, lines changed: refused, or a model whose distributions sum to one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lmgauge
from lmgauge import Corpus
from tests.fuzz.mutations import changed, changed_lines
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"]


def prepare(folder: Path) -> Attempt:
    path = folder / "counts"
    lmgauge.models.count_ngrams(Corpus.from_strings(LINES), output=path, order=3)
    whole = path.read_bytes()

    def attempt(chance: random.Random) -> str:
        content = changed_lines(whole, chance, 1) if chance.random() < 0.6 else whole
        path.write_bytes(changed(content, chance, 2) if chance.random() < 0.4 else content)
        kind = chance.choice(["witten-bell", "kneser-ney", "good-turing", "mle"])
        options: dict[str, Any] = chance.choice([{}, {"min_count": 2}, {"eos": False}, {"context": "stream"}, {"order": 1}])
        return check_model(lmgauge.train(kind, counts=path, **options), chance)  # type: ignore[call-overload]

    return attempt
