"""The page about membership: what it claims, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.numerics.intervals import Interval
from lmgauge.report import blocks as doc
from lmgauge.report import membership as report
from lmgauge.results import Membership

SEEN = [f"the {a} {b} on the {c}" for a in ("cat", "dog", "cow") for b in ("sat", "ran") for c in ("mat", "sea", "hill")]
FRESH = [f"a {a} {b} under the {c}" for a in ("cat", "dog", "cow") for b in ("sat", "ran") for c in ("mat", "sea", "hill")]


@pytest.fixture(scope="module")
def compared() -> Membership:
    model = lmgauge.train("witten-bell", Corpus.from_strings(SEEN), order=2)
    return lmgauge.membership(model, Corpus.from_strings(SEEN), Corpus.from_strings(FRESH), reference=model)


def verdict(result: Membership) -> doc.Verdict:
    (one,) = [block for block in report.blocks(result) if isinstance(block, doc.Verdict)]
    return one


def with_areas(result: Membership, area: float, ends: tuple[float, float], blind: tuple[float, float]) -> Membership:
    """The result with other AUROCs and intervals."""

    def of(low: float, high: float) -> Interval:
        return Interval(low, high, 0.95, "DeLong")

    scores = tuple(
        replace(score, auroc=area, auroc_interval=of(*ends), tells_apart=not ends[0] <= 0.5 <= ends[1])
        for score in result.scores
    )
    alone = tuple(
        replace(score, auroc=sum(blind) / 2, auroc_interval=of(*blind), tells_apart=not blind[0] <= 0.5 <= blind[1])
        for score in result.blind
    )
    return replace(result, scores=scores, blind=alone)


def test_verdicts(compared: Membership) -> None:
    for area, ends, blind, level, words in (
        (
            0.9,
            (0.8, 0.95),
            (0.4, 0.6),
            "bad",
            "more like seen ones than the control texts (loss: AUROC 0.900",
        ),
        (0.1, (0.05, 0.2), (0.4, 0.6), "unknown", "The control texts look more like seen ones"),
        (0.55, (0.45, 0.65), (0.4, 0.6), "unknown", "No score separates the texts from the control texts"),
        (
            0.9,
            (0.8, 0.95),
            (0.7, 0.9),
            "unknown",
            "The two sets differ even without a model (zlib bytes per byte: AUROC 0.800",
        ),
    ):
        one = verdict(with_areas(compared, area, ends, blind))
        assert (one.level, words in one.text) == (level, True), one.text
    alone = lmgauge.membership(lmgauge.train("laplace", Corpus.from_strings(SEEN)), Corpus.from_strings(SEEN))
    assert verdict(alone).text == report.SCORES_ALONE


def test_texts_that_stand_out_come_by_the_reference(compared: Membership) -> None:
    tables = [block for block in report.blocks(compared, examples=3) if isinstance(block, doc.Table)]
    assert "less reference" in tables[-1].title
    assert len(tables[-1].rows) == 3
    assert len([block for block in report.blocks(compared, examples=0) if isinstance(block, doc.Table)]) == 2


def test_shift_of_sets_is_always_spoken_of(compared: Membership) -> None:
    assert "are alike in everything else" in " ".join(str(compared).split())
