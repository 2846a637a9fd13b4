"""Laws of caches over random texts: they sum to one, see nothing of what comes later, and score what they predict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.models.combined.cache_model import CacheCounts, CacheModel
from lmgauge.models.model_settings import CacheSettings

BASE = lmgauge.train("witten-bell", Corpus.from_strings(["a b c", "b a", "c c a d"]), order=2)
SETTINGS = st.one_of(
    st.builds(CacheSettings, order=st.integers(1, 3), window=st.one_of(st.none(), st.integers(1, 6))),
    st.builds(CacheSettings, order=st.integers(1, 3), decay=st.floats(0.05, 0.99)),
)
LINES = st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "zzz"]), max_size=4).map(" ".join), min_size=1, max_size=5)


def cached(settings: CacheSettings) -> lmgauge.models.MixtureModel:
    return lmgauge.models.MixtureModel([BASE, CacheModel.beside(BASE, settings)], [0.6, 0.4])


def rows(model: lmgauge.LanguageModel, lines: list[str], block_bytes: int = 1 << 20) -> list[float]:
    text = Corpus.from_strings(lines, block_bytes=block_bytes)
    return [logprob for batch in model.score(text) for logprob in batch.logprob.tolist()]


@given(st.lists(st.integers(2, 6), max_size=30), SETTINGS)
def test_counts_sum_to_one_and_say_the_same_one_by_one(tokens: list[int], settings: CacheSettings) -> None:
    counts = CacheCounts(settings, 7)
    for token in tokens:
        counts.add(token)
    p = counts.distribution()
    assert abs(p.sum() - 1) < 1e-9
    assert (p >= 0).all()
    assert p.tolist() == [counts.probability(token) for token in range(7)]


@given(LINES, LINES, LINES, SETTINGS)
def test_nothing_of_what_comes_later_is_seen(
    lines: list[str], one: list[str], other: list[str], settings: CacheSettings
) -> None:
    model = cached(settings)
    common = len(rows(model, lines))
    assert rows(model, lines + one)[:common] == rows(model, lines + other)[:common]


@given(LINES, SETTINGS)
def test_score_is_what_log_distribution_says_however_the_text_is_cut(lines: list[str], settings: CacheSettings) -> None:
    model = cached(settings)
    scored = rows(model, lines)
    assert rows(model, lines, block_bytes=3) == scored
    ids = [token for batch in model.score(Corpus.from_strings(lines)) for token in batch.token_ids.tolist()]
    for place, (token, logprob) in enumerate(zip(ids, scored, strict=True)):
        distribution = model.log_distribution(np.array([1, *ids[:place]], np.uint32))
        assert distribution[token] == pytest.approx(logprob, rel=1e-12)  # NumPy's logarithm may differ in the last bit
        assert abs(np.exp(distribution).sum() - 1) < 1e-6
