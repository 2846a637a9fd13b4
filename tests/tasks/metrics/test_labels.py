"""Precision, recall and F1 of labels against scikit-learn, whole and resampled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.api.task_scores import score_labels
from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.metrics.labels import F1, Average, label_scores

sklearn_metrics = pytest.importorskip("sklearn.metrics")

GOLD = ["cat", "dog", "cat", "bird", "cat", "dog"]
PREDICTED = ["cat", "cat", "cat", "dog", "dog", "dog"]
NAMES = ["a", "b", "ab", "c\u4e2d", "", " "]
pairs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=30)


@given(
    pairs,
    st.lists(st.sampled_from([*NAMES, "never"]), min_size=1, unique=True),
    st.sampled_from(["macro", "micro", "weighted"]),
)
def test_sums_give_scikit_learn_s_f1(labelled: list[tuple[str, str]], labels: list[str], average: Average) -> None:
    gold, predicted = [g for g, _ in labelled], [p for _, p in labelled]
    metric = F1(tuple(labels), average)
    rows = metric.statistics_of(gold, predicted)
    assert rows.shape == (len(gold), len(metric.columns))
    draws = np.random.default_rng(1).integers(len(gold), size=(4, len(gold)))
    draws[0] = np.arange(len(gold))
    found = metric.scores(np.array([rows[draw].sum(axis=0) for draw in draws], dtype=np.float64))
    expected = [
        sklearn_metrics.f1_score(
            np.array(gold, dtype=object)[draw],
            np.array(predicted, dtype=object)[draw],
            labels=labels,
            average=average,
            zero_division=0,
        )
        for draw in draws
    ]
    assert np.allclose(found, expected, rtol=0, atol=1e-12, equal_nan=True)


@given(pairs)
def test_the_figures_are_scikit_learn_s(labelled: list[tuple[str, str]]) -> None:
    gold, predicted = [g for g, _ in labelled], [p for _, p in labelled]
    found = label_scores(gold, predicted)
    assert found.labels == tuple(sorted({*gold, *predicted}))
    report = sklearn_metrics.classification_report(gold, predicted, output_dict=True, zero_division=0)
    for row in found.to_rows():
        expected = report[row["label"]]
        told = [row["precision"], row["recall"], row["f1"], row["support"]]
        assert np.allclose(told, list(expected.values()), rtol=0, atol=1e-12, equal_nan=True)
    macro = [report["macro avg"][name] for name in ("precision", "recall", "f1-score")]
    assert np.allclose(found.macro, macro, rtol=0, atol=1e-12, equal_nan=True)
    assert found.accuracy == pytest.approx(report["accuracy"], abs=1e-12)
    assert found.micro == pytest.approx((found.accuracy,) * 3, abs=1e-12)


def test_by_hand() -> None:
    found = label_scores(GOLD, PREDICTED)
    assert found.labels == ("bird", "cat", "dog")
    assert found.precision == pytest.approx((0, 2 / 3, 1 / 3))
    assert found.recall == pytest.approx((0, 2 / 3, 1 / 2))
    assert found.support == (1, 3, 2)
    assert found.predicted == (0, 3, 3)
    assert found.accuracy == 0.5
    assert found.macro[2] == pytest.approx((0 + 2 / 3 + 2 / 5) / 3)
    assert found.weighted[2] == pytest.approx((3 * 2 / 3 + 2 * 2 / 5) / 6)


def test_no_zero_is_silent() -> None:
    found = label_scores(GOLD, PREDICTED, labels=["bird", "cat", "fish"])
    assert found.notes == (
        "never predicted, precision set to 0: 'bird', 'fish'",
        "never gold, recall set to 0: 'fish'",
        "neither gold nor predicted, F1 set to 0: 'fish'",
        "not counted: 'dog'",
    )
    assert "\n".join([*found.notes, f"F1|{found.signature}"]) in str(found)
    assert found.signature.startswith("labels:3|zero:0|lmgauge:")
    assert label_scores(["a"] * 3, ["a"] * 3).notes == ()


def test_many_labels_in_a_note_are_a_number() -> None:
    found = label_scores([f"l{i}" for i in range(9)], ["l0"] * 9)
    assert found.notes[0].endswith("'l1', 'l2', 'l3', 'l4', 'l5' and 3 more")


def test_everything_in_a_dictionary() -> None:
    told = label_scores(GOLD, PREDICTED).to_dict()
    assert told["macro_f1"] == pytest.approx(0.3555555555)
    assert told["segments"] == 6
    assert told["labels"][0]["label"] == "bird"


def test_micro_needs_three_columns() -> None:
    labels = tuple(f"l{i}" for i in range(10_000))
    rows = F1(labels, "micro").statistics_of([*labels[:5000]] * 20, [*labels[1:5001]] * 20)
    assert rows.sum(axis=0).tolist() == [0, 100_000, 100_000]
    with pytest.raises(UsageError, match=r"10,000 labels over 100,000 segments needs a table of 22\.4 GiB"):
        F1(labels).statistics_of(["l0"] * 100_000, ["l0"] * 100_000)


def test_what_it_is_called() -> None:
    metric = F1(("a", "b"), "weighted")
    assert (metric.name, metric.signature().rpartition("|")[0]) == ("weighted F1", "average:weighted|labels:2|zero:0")
    assert metric.columns[:3] == ("a: true positives", "a: predicted", "a: gold")


@pytest.mark.parametrize(
    ("gold", "predicted", "words"),
    [
        (["a"], ["a", "b"], "1 gold labels and 2 predicted"),
        ([], [], "no labels"),
        (["a"], [1], "predicted label 1 is 1"),
        ("ab", ["a", "b"], "gold is one string"),
        (iter("ab"), ["a", "b"], "gold is str_ascii_iterator, not a list"),
        (["a", None], ["a", "b"], "gold label 2 is None"),
    ],
)
def test_bad_lists(gold: list[str], predicted: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        label_scores(gold, predicted)
    with pytest.raises(InputError, match=words):
        score_labels(gold=gold, predicted=predicted)
    with pytest.raises(InputError, match=words):
        F1(("a",)).statistics_of(gold, predicted)


def test_empty_labels_are_told() -> None:
    assert label_scores(["a", ""], ["a", "b"]).notes[-1] == "nothing is a label too: gold 1 times, predicted 0 times"


def test_bad_options() -> None:
    with pytest.raises(UsageError, match="average 'mean'"):
        F1(("a",), "mean")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="given twice"):
        F1(("a", "a"))
    with pytest.raises(UsageError, match="one label or more"):
        F1(())
