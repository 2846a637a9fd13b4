"""What a cache remembers, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.errors import UsageError
from lmgauge.models.cache.counts import CacheCounts
from lmgauge.models.cache.settings import CacheSettings

A, B, C = 3, 4, 5
UNIGRAMS = {"order": 1, "window": None}


def after(tokens: list[int], **settings: float) -> CacheCounts:
    counts = CacheCounts(CacheSettings(**UNIGRAMS | settings), 6)  # type: ignore[arg-type]
    for token in tokens:
        counts.add(token)
    return counts


def test_nothing_went_by() -> None:
    for order in (1, 3):
        p = after([], order=order).distribution()
        assert p.tolist() == [0.2, 0.0, 0.2, 0.2, 0.2, 0.2]  # all but <s>


def test_shares_of_what_went_by() -> None:
    counts = after([A, B, A, 2])
    assert [counts.probability(token) for token in (2, A, B, C)] == [0.25, 0.5, 0.25, 0.0]


def test_a_window_forgets() -> None:
    counts = after([A, A, A, B, C], window=3)
    assert [counts.probability(token) for token in (A, B, C)] == [1 / 3, 1 / 3, 1 / 3]
    assert after([A] * 5 + [B, B], window=2).probability(B) == 1


def test_a_decay_fades() -> None:
    # a counts 1/4, b 1/2, c 1.
    counts = after([A, B, C], decay=0.5)
    assert [counts.probability(token) for token in (A, B, C)] == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_what_came_after_what() -> None:
    # After a came b twice and c once: (2 + p_1(b)) / (3 + 1) with p_1(b) = 2 / 7.
    counts = after([A, B, A, B, A, C, A], order=2)
    assert counts.probability(B) == (2 + 2 / 7) / 4
    assert counts.probability(C) == (1 + 1 / 7) / 4
    # After an event that nothing came after, what went by.
    counts = after([A, B, C], order=2)
    assert counts.probability(A) == (0 + 1 / 3) / 1


def test_a_window_takes_back_pairs_too() -> None:
    # Of the last three events b, a, c only a came after b, and c after a.
    counts = after([A, B, A, C, A], order=2, window=3)
    assert counts.probability(C) == (1 + 1 / 3) / (1 + 1)
    assert counts.probability(B) == 0  # its own event has left


@pytest.mark.parametrize(
    "settings", [{"order": 3, "window": 4}, {"order": 2, "window": 1}, {"order": 4}, {"order": 2, "decay": 0.6}]
)
def test_against_counts_made_anew(settings: dict[str, float]) -> None:
    """A twin that keeps all events, and counts them anew at each."""
    rng = np.random.default_rng(3)
    tokens = rng.integers(2, 6, 60).tolist()
    counts = after([], **settings)
    order, window, decay = int(settings.get("order", 1)), settings.get("window"), settings.get("decay")
    for i in range(len(tokens)):
        for token in range(6):
            assert counts.probability(token) == pytest.approx(slow(tokens[:i], token, order, window, decay), abs=1e-12)
        p = counts.distribution()
        assert p.tolist() == [counts.probability(token) for token in range(6)]
        assert p.sum() == pytest.approx(1, abs=1e-12)
        counts.add(tokens[i])


def slow(seen: list[int], token: int, order: int, window: float | None, decay: float | None) -> float:
    p = 0.0 if token == 1 else 0.2
    first = 0 if window is None else max(0, len(seen) - int(window))
    for k in range(order):
        if k > len(seen):
            break
        context = seen[len(seen) - k :]
        places = [i for i in range(max(first, k), len(seen)) if seen[i - k : i] == context]
        weights = {i: 1.0 if decay is None else decay ** (len(seen) - 1 - i) for i in places}
        total, count = sum(weights.values()), sum(weights[i] for i in places if seen[i] == token)
        if k:
            p = (count + p) / (total + 1)
        elif total:
            p = count / total
    return p


def test_long_texts_do_not_overflow() -> None:
    counts = after([A, B] * 2000, decay=0.5)
    assert counts.probability(B) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("settings", "label"),
    [({}, "cache"), ({"window": 500}, "cache500"), ({"order": 2, "decay": 0.998}, "cache2-decay0.998")],
)
def test_labels(settings: dict[str, float], label: str) -> None:
    assert CacheSettings(**UNIGRAMS | settings).label == label  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"order": 0}, {"order": 9}, {"window": 0}, {"decay": 1.0}, {"decay": 0.0}, {"window": 5, "decay": 0.5}]
)
def test_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        CacheSettings(**wrong)  # type: ignore[arg-type]
