"""A text as arrays, and what is known of it."""

from __future__ import annotations

import numpy as np

from lmgauge import Corpus
from lmgauge.models.ngram.reading import ReadText, read_text
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.work.engine import Engine

LINES = ["a b a", "c a"]


def ids(engine: Engine, text: ReadText, order: int) -> list[int]:
    return [token for stored in text.ids for token in engine.read(stored)[1:-order].tolist()]


def test_the_text_is_read_once() -> None:
    engine, settings = Engine(), NgramTrainingSettings("laplace", order=2)
    first = read_text(engine, settings, Corpus.from_strings(LINES), 4, threads=1)
    again = read_text(engine, settings, Corpus.from_strings(["never read"]), 4, threads=1)
    assert ids(engine, first, 2) == [1, 3, 4, 3, 2, 1, 5, 3, 2]
    assert (len(again.ids), again.chunk, again.types, again.report) == (3, 4, first.types, first.report)
    assert again.fitted.vocabulary.tokens == first.fitted.vocabulary.tokens
    assert again.report.segments == 2


def test_rare_words_get_new_ids() -> None:
    engine, settings = Engine(), NgramTrainingSettings("laplace", order=2, min_count=2)
    text = read_text(engine, settings, Corpus.from_strings(LINES), 4, threads=1)
    assert ids(engine, text, 2) == [1, 3, 0, 3, 2, 1, 0, 3, 2]
    assert np.array_equal(text.fitted.counts, [2, 2, 2, 3])
