"""How well scores tell two groups apart: against scikit-learn, by hand, and by simulation."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from lmgauge.numerics.detection import Group, Separation
from lmgauge.numerics.intervals import DOCUMENTS, UNKNOWN

NORMAL = NormalDist()


def of(members: list[float], others: list[float]) -> Separation:
    return Separation(Group(np.array(members, np.float64)), Group(np.array(others, np.float64)))


def drawn(rng: np.random.Generator, n: int, m: int, shift: float) -> Separation:
    """Two groups of independent normal scores."""
    return Separation(Group(rng.normal(shift, 1, n), np.arange(n)), Group(rng.normal(0, 1, m), np.arange(m)))


def test_by_hand() -> None:
    # Pairs (3, 1), (3, 2) won, (3, 3) a tie; (4, ...) and (9, ...) won: 8.5 of 9.
    assert of([3, 4, 9], [1, 2, 3]).auroc == 8.5 / 9
    assert of([1, 2], [3, 4]).auroc == 0
    assert of([1, 1], [1]).auroc == 0.5
    assert of([-np.inf, 2], [-np.inf, 1]).auroc == (0.5 + 2) / 4


def test_as_scikit_learn_has_it() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    for _ in range(50):
        n, m = rng.integers(2, 60, 2)
        both = of(rng.integers(0, 9, n).tolist(), rng.integers(0, 7, m).tolist())
        truth = np.repeat([1, 0], [n, m])
        scores = np.concatenate((both.members.scores, both.others.scores))
        assert both.auroc == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-13)
        false_alarms, hits, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
        for rate in (0.01, 0.05, 0.1, 0.3):
            assert both.hits(rate) == pytest.approx(hits[false_alarms <= rate + 1e-12].max())


@pytest.mark.parametrize(("n", "m", "shift"), [(12, 12, 0.0), (15, 40, 1.0), (30, 30, 2.5), (300, 600, 1.0)])
def test_intervals_cover(n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(7)
    area = NORMAL.cdf(shift / 2**0.5)
    hits = 1 - NormalDist(shift, 1).cdf(NORMAL.inv_cdf(0.99))
    covered = np.zeros(2)
    for _ in range(300):
        both = drawn(rng, n, m, shift)
        ends = both.auroc_interval()
        assert ends is not None
        at_rate = both.hits_interval(0.01)
        covered += (ends.low <= area <= ends.high, at_rate.low <= hits <= at_rate.high)
    assert covered[0] >= 300 * 0.92
    assert covered[1] >= 300 * 0.94


def test_documents_make_intervals_wider() -> None:
    rng = np.random.default_rng(3)
    covered = {"documents": 0, "each": 0}
    for _ in range(200):
        groups = {name: ([], []) for name in covered}
        for shift in (0.0, 0.0):
            documents = np.repeat(np.arange(25), 8)
            scores = shift + rng.normal(0, 1, 25)[documents] + rng.normal(0, 0.5, 200)
            groups["documents"][0].append(Group(scores, documents))
            groups["each"][0].append(Group(scores, np.arange(200)))
        for name, (pair, _) in groups.items():
            ends = Separation(*pair).auroc_interval()
            assert ends is not None
            covered[name] += ends.low <= 0.5 <= ends.high
    assert covered["documents"] >= 200 * 0.91
    assert covered["each"] < 200 * 0.75


def test_separate_groups_still_have_an_interval() -> None:
    shuffled = np.random.default_rng(2).permutation(100)
    few, more = of([7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5, 6]), of((shuffled + 100).tolist(), shuffled.tolist())
    for both in (few, more):
        ends = both.auroc_interval()
        assert ends is not None
        assert (both.auroc, ends.high, ends.method) == (1.0, 1.0, "Newcombe")
    assert few.auroc_interval().low < 0.7 < 0.95 < more.auroc_interval().low < 1  # type: ignore[union-attr]
    below = of([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]).auroc_interval()
    assert below is not None
    assert below.low == 0 < 0.3 < below.high


def test_fewer_than_six_texts_have_no_interval() -> None:
    few = of([1, 2, 3, 4, 5], list(range(20)))
    assert few.auroc_interval() is None
    assert few.hits_interval(0.01) is None


def test_ties_everywhere() -> None:
    ends = of([1] * 9, [1] * 9).auroc_interval()
    assert ends is not None
    assert ends.low < 0.5 < ends.high
    assert of([1] * 9, [1] * 9).hits(0.01) == 0


def test_few_others_leave_the_threshold_open() -> None:
    rng = np.random.default_rng(5)
    assert drawn(rng, 200, 100, 6.0).hits_interval(0.01).low == 0
    assert drawn(rng, 200, 2000, 6.0).hits_interval(0.01).low > 0.8


def test_the_weaker_group_names_the_unit() -> None:
    rng = np.random.default_rng(9)
    known, unknown = Group(rng.normal(size=40), np.repeat(np.arange(10), 4)), Group(rng.normal(size=50))
    for both, unit in ((Separation(known, known), DOCUMENTS), (Separation(known, unknown), UNKNOWN)):
        ends = both.auroc_interval()
        assert ends is not None
        assert ends.unit == unit


def test_effective_texts() -> None:
    rng = np.random.default_rng(11)
    documents = np.repeat(np.arange(30), 10)
    alike = Group(rng.normal(size=30)[documents] + rng.normal(0, 0.01, 300), documents)
    assert 15 < alike.effective < 60
    assert Group(rng.normal(size=300), np.arange(300)).effective > 290
    assert Group(np.ones(20)).effective == 20
