"""What holds for every model that was read, however damaged its file was."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import lmgauge
from lmgauge import Corpus, LanguageModel
from lmgauge.text.tokens import Tokenizer
from tests.fuzz.mutations import hostile_text

TEXTS = ["the cat sat on the mat", "", "a dog", "unheard-of cat the the the", "grün 漢字 🙂"]


def rows_of(model: LanguageModel, texts: Sequence[str] = TEXTS) -> list[float]:
    """Return the log-probabilities of all events of the texts, in nats."""
    return [value for batch in model.score(Corpus.from_strings(texts), threads=1) for value in batch.logprob.tolist()]


def check_model(model: LanguageModel, chance: random.Random, texts: Sequence[str] = TEXTS) -> str:
    """Score texts, and hold the rows against what every model promises.

    Raises:
        LmgaugeError: What the file means is refused only now.
        AssertionError: A promise is broken.
    """
    texts = [*texts, "<unk> a"] if chance.random() < 0.1 else texts  # most models refuse it
    rows = rows_of(model, texts)
    assert not any(math.isnan(value) or value > 0 for value in rows), f"log-probabilities that are none: {rows}"
    draw = chance.random()
    if draw < 0.4:
        check_distribution(model, chance)
    if draw < 0.3 or draw > 0.5:  # the whole way costs more than reading
        return "read"
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(texts), threads=1)
    assert evaluation.perplexity >= 1, evaluation.perplexity
    total = evaluation.log_probability
    rounded = 2.0**-69 * len(rows)  # of log-probabilities next to 0, see ExactSum in kernels.hpp
    assert total == math.fsum(rows) or math.isclose(total, math.fsum(rows), rel_tol=1e-9, abs_tol=rounded), (total, rows)
    return "read"


def check_distribution(model: LanguageModel, chance: random.Random) -> None:
    """Hold whole distributions, after contexts that are drawn, against what every model promises."""
    size = len(model.vocabulary)
    for _ in range(3):
        context = [chance.randrange(size) for _ in range(chance.randint(0, 4))]
        values = model.log_distribution(np.array(context, np.uint32))
        assert values.shape == (size,), values.shape
        assert values.max(initial=-np.inf) <= 1e-6, f"after {context}: {values}"  # not so of NaN


def span_of(chance: random.Random, size: int, limits: Sequence[int]) -> tuple[int, int]:
    """Return where one of the parts of a file begins and ends, from where each begins."""
    edges = sorted({0, size, *(limit for limit in limits if 0 < limit < size)})
    return chance.choice(list(pairwise(edges)))


def check_tokenizer(tokenizer: Tokenizer, chance: random.Random) -> str:
    """Cut hostile texts, and hold the tokens against what every tokenizer promises.

    Raises:
        LmgaugeError: What the file means is refused only now.
        AssertionError: A promise is broken.
    """
    texts = [*TEXTS, "<unk> </s>", hostile_text(chance, 12).replace("\0", ""), hostile_text(chance, 4).replace("\0", "")]
    for segments in Corpus.from_strings(texts):
        tokens = tokenizer.tokenize(segments)
        strings = tokens.strings()
        assert len(tokens.counts) == len(segments)
        assert len(strings) == len(tokens.span_ends) == int(tokens.counts.sum())
        at = 0
        for index, count in enumerate(tokens.counts.tolist()):
            ends = tokens.span_ends[at : at + count].tolist()
            assert ends == sorted(ends), f"spans go back: {ends}"
            assert not ends or 0 <= ends[0] <= ends[-1] <= len(segments.text(index)), f"spans leave the text: {ends}"
            at += count
        names = [string.decode() for string in strings]
        tokenizer.detokenize(names)
        assert len(tokenizer.token_bytes(names)) == len(names)
    return "read"
