"""Intervals over documents, against leaving out each document's texts and measuring again."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from tests.tasks.share import Share, compared, statistics

import lmgauge
from lmgauge.numerics.intervals import DOCUMENTS, SEGMENTS, ratio_interval, student_t_quantile
from lmgauge.numerics.resampling import document_sums, in_one_order, jackknife
from lmgauge.tasks.metrics.bleu import BLEU
from lmgauge.tasks.metrics.chrf import ChrF
from lmgauge.tasks.metrics.error_rates import CER, WER
from lmgauge.tasks.metrics.labels import F1
from lmgauge.tasks.metrics.ter import TER


def made_up(documents: int, seed: int) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """References, outputs of three systems that err more in some documents than in others, and names of documents."""
    draw = random.Random(seed)
    words = ["the", "a", "cat", "dog", "mat", "sat", "ran", "on", "under", "house", "big", "red", "it", "rains", "again"]
    references: list[str] = []
    outputs: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    names: list[str] = []
    for document in range(documents):
        rates = {name: draw.uniform(0.02, 0.5) for name in outputs}
        for _ in range(draw.randint(1, 12)):
            reference = draw.choices(words, k=draw.randint(4, 14))
            references.append(" ".join(reference))
            names.append(f"document {document}")
            for name, lines in outputs.items():
                lines.append(" ".join(draw.choice(words) if draw.random() < rates[name] else word for word in reference))
    return references, outputs, names


def without(lines: list[str], names: list[str], name: str) -> list[str]:
    return [line for line, of in zip(lines, names, strict=True) if of != name]


def score_of(metric: Any, hypotheses: list[str], references: list[str]) -> float:
    if isinstance(metric, F1):
        return metric.score(metric.statistics_of(references, hypotheses).sum(axis=0)).score
    return metric.score(statistics(metric, hypotheses, references).sum(axis=0), 1).score


def slow(metric: Any, references: list[str], hypotheses: list[str], first: list[str] | None, names: list[str]) -> Any:
    """The ends of the interval of a score, or of its difference to the first, before they are cut off at 0 and 100."""

    def figure(left_out: str | None) -> float:
        given = [lines if left_out is None else without(lines, names, left_out) for lines in (references, hypotheses)]
        value = score_of(metric, given[1], given[0])
        if first is None:
            return value
        return value - score_of(metric, first if left_out is None else without(first, names, left_out), given[0])

    documents = list(dict.fromkeys(names))
    whole = figure(None)
    moves = [figure(name) - whole for name in documents]
    error = math.sqrt((len(moves) - 1) / len(moves) * sum(move**2 for move in moves))
    return whole, error


@pytest.mark.parametrize("metric", [BLEU(), ChrF(), ChrF(word_order=2), TER(), WER(), CER()], ids=lambda m: m.name)
def test_each_document_is_left_out(metric: Any) -> None:
    references, outputs, names = made_up(9, seed=1)
    found = lmgauge.tasks.score_systems(metric, hypotheses=outputs, references=references, documents=names)
    (rows,) = document_sums([statistics(metric, outputs["a"], references)], codes(names))
    sizes = rows[:, metric.reference_columns].sum(axis=1)
    freedom = math.floor(sizes.sum() ** 2 / (sizes**2).sum() + 1e-6) - 1
    assert 4 < freedom < 8
    t = student_t_quantile(0.95, freedom)
    for item in found:
        score, error = slow(metric, references, outputs[item.system], None, names)
        assert item.score.score == pytest.approx(score, rel=1e-12)
        assert item.half_width == pytest.approx(t * error, rel=1e-9)
        assert item.interval.low == pytest.approx(max(0.0, score - t * error), rel=1e-9)
        assert (item.interval.method, item.interval.unit, item.interval.units) == ("jackknife", DOCUMENTS, 9)
        assert item.mean is None
        if item.system != "a":
            difference, error = slow(metric, references, outputs[item.system], outputs["a"], names)
            ends = item.difference_interval.low, item.difference_interval.high
            assert ends == pytest.approx((difference - t * error, difference + t * error), rel=1e-9)


def test_labels_are_left_out_by_document_too() -> None:
    draw = random.Random(3)
    names = [f"d{i // 7}" for i in range(70)]
    gold = [draw.choice("xyz") for _ in names]
    given = {name: [label if draw.random() < 0.7 else draw.choice("xyz") for label in gold] for name in "ab"}
    found = lmgauge.tasks.score_labels(gold=gold, predicted=given, documents=names)
    score, error = slow(F1(("x", "y", "z")), gold, given["a"], None, names)
    assert found[0].score.score == pytest.approx(score)
    assert found[0].half_width == pytest.approx(student_t_quantile(0.95, 9) * error)
    assert found.to_dict()["independence"] == "10 documents (names) are taken as independent"


def test_an_error_rate_is_the_ratio_of_sums_that_perplexity_is() -> None:
    references, outputs, names = made_up(12, seed=2)
    (item,) = lmgauge.tasks.score_systems(WER(), hypotheses=outputs["a"], references=references, documents=names)
    rows = statistics(WER(), outputs["a"], references)
    expected = ratio_interval(rows[:, 1:].sum(axis=1), rows[:, :3].sum(axis=1), codes(names))
    assert expected is not None
    assert (item.interval.low, item.interval.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def codes(names: list[str]) -> np.ndarray:
    return np.unique(names, return_inverse=True)[1]


@pytest.mark.parametrize("documents", [7, 25])
@pytest.mark.parametrize("metric", [BLEU(), WER()], ids=lambda m: m.name)
def test_names_and_order_of_documents_change_nothing(metric: Any, documents: int) -> None:
    references, outputs, names = made_up(documents, seed=documents)
    once = lmgauge.tasks.score_systems(metric, hypotheses=outputs, references=references, documents=names).to_dict()
    draw = random.Random(5)
    order = draw.sample(range(len(names)), len(names))
    renamed = dict(zip(dict.fromkeys(names), draw.sample(range(1000), documents), strict=True))
    twice = lmgauge.tasks.score_systems(
        metric,
        hypotheses={name: [lines[i] for i in order] for name, lines in outputs.items()},
        references=[references[i] for i in order],
        documents=[str(renamed[names[i]]) for i in order],
    ).to_dict()
    assert once == twice


def test_documents_of_one_segment_each_are_segments() -> None:
    references, outputs, _ = made_up(4, seed=4)
    names = [str(i) for i in range(len(references))]
    found = lmgauge.tasks.score_systems(WER(), hypotheses=outputs, references=references, documents=names)
    assert (found[0].interval.method, found[0].interval.unit, found.unit) == ("jackknife", SEGMENTS, SEGMENTS)
    assert "each is a document (names)" in found.independence
    assert "|independent:segments|" in found.signature


def test_one_document_leaves_segments_and_says_so() -> None:
    references, outputs, names = made_up(6, seed=6)
    told = {"hypotheses": outputs, "references": references}
    plain = lmgauge.tasks.score_systems(WER(), **told).to_dict()
    one = lmgauge.tasks.score_systems(WER(), **told, documents=["all"] * len(names)).to_dict()
    assert one.pop("independence") != plain["independence"]
    assert one.items() <= plain.items()


def test_documents_without_anything_do_not_count() -> None:
    full = np.array([(3, 4), (5, 9), (2, 2)], dtype=np.int64)
    (kept,) = in_one_order([np.concatenate((full[:1], np.zeros((4, 2), dtype=np.int64), full[1:]))])
    assert kept.tolist() == [[2, 2], [3, 4], [5, 9]]


def test_no_interval_where_one_document_has_all_of_the_reference() -> None:
    rows = np.array([(3, 4), *[(1, 0)] * 6], dtype=np.int64)
    assert jackknife(Share().scores, [rows, rows], rows[:, 1] * 1.0, DOCUMENTS) == [(None, None)] * 2


def test_intervals_stay_within_what_scores_can_be() -> None:
    rows = np.array([(0, 100), *[(10, 10)] * 10], dtype=np.int64)
    (found,) = compared(Share(), ["a"], [rows], documents_by="segments")
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.0, 100.0)
    assert found.half_width is not None
    assert found.half_width > 100
