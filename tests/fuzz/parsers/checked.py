"""What holds for every model that was read, however damaged its file was."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import lmgauge
from lmgauge import Corpus, LanguageModel

TEXTS = ["the cat sat on the mat", "", "a dog", "<unk> unheard-of cat the the the", "grün 漢字 🙂"]


def check_model(model: LanguageModel, chance: random.Random, texts: Sequence[str] = TEXTS) -> str:
    """Score texts, and hold the rows against what every model promises.

    Raises:
        LmgaugeError: What the file means is refused only now.
        AssertionError: A promise is broken.
    """
    rows = [value for batch in model.score(Corpus.from_strings(texts), threads=1) for value in batch.logprob.tolist()]
    assert not any(math.isnan(value) or value > 0 for value in rows), f"log-probabilities that are none: {rows}"
    if chance.random() > 0.2:  # the whole way costs more than reading
        return "read"
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(texts), threads=1)
    assert evaluation.perplexity >= 1, evaluation.perplexity
    total = evaluation.log_probability
    assert total == math.fsum(rows) or math.isclose(total, math.fsum(rows), rel_tol=1e-9), (total, rows)
    return "read"
