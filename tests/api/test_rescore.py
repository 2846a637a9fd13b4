"""`lmgauge.rescore`: scores are the models' own, both ways to weights, and files that read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, LmgaugeError
from lmgauge.base.errors import InputError, UsageError
from lmgauge.settings import NbestReading, RescoreSettings

TRAIN = ["a dog barks", "the dog sleeps", "a cat sleeps", "the cat barks"] * 3
DEV = {"d1": [("a dock barks", -3.0), ("a dog barks", -3.1)], "d2": [("the cat sleep", -1.0), ("the cat sleeps", -1.2)]}
DEV_REF = {"d1": "a dog barks", "d2": "the cat sleeps"}
TEST = {f"t{i}": [("the dock sleeps", -4.0), ("the dog sleeps", -4.2), ("the dock sleeps", -5.0)] for i in range(4)}
TEST_REF = {f"t{i}": "the dog sleeps" for i in range(4)}


@pytest.fixture(scope="module")
def models() -> dict[str, lmgauge.NgramModel]:
    return {
        "kn": lmgauge.train("kneser-ney", Corpus.from_strings(TRAIN), order=3),
        "chars": lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=4, tokenizer="character"),
    }


def test_scores_are_those_of_score_text(models: dict[str, lmgauge.NgramModel]) -> None:
    result = lmgauge.rescore(TEST, models, weights={"score": 1, "kn": 0.5, "chars": 0.2})
    for row, model in zip(result.nats, models.values(), strict=True):
        assert row.tolist() == [model.score_text(text).log_probability for text in result.lists.texts]
    rows = result.to_rows()
    assert rows[1]["total"] == pytest.approx(-4.2 + 0.5 * rows[1]["kn"] + 0.2 * rows[1]["chars"])
    assert [row["best"] for row in rows[:3]] == [False, True, False]
    assert result.ranks == (2, 2, 2, 2)
    assert [(one.unknown, one.words) for one in result.unknown] == [(1, 6), (0, 6)]  # "dock" in two different texts


def test_tuned_weights_and_the_test(models: dict[str, lmgauge.NgramModel]) -> None:
    calls = {f"t{i}": f"call{i // 2}" for i in range(4)}
    result = lmgauge.rescore(TEST, models, tune=DEV, ref=DEV_REF, test_ref=TEST_REF, seed=3, document=calls)
    assert result.tuning is not None
    assert result.systems is not None
    assert (result.tuning.first.errors, result.tuning.best.errors) == (2, 0)
    assert [item.score.errors for item in result.systems] == [4, 0]
    assert (result.systems.unit, result.systems[1].p_value) == (None, None)  # of two calls
    assert (result.oracle.errors, result.worst.errors) == (0, 4)  # type: ignore[union-attr]
    assert result.changed == 4
    assert result.charts[0] == "systems"
    given = lmgauge.rescore(TEST, models, weights=result.weights)
    assert given.texts == result.texts
    assert (given.totals == result.totals).all()


def test_the_same_from_files_and_from_memory(models: dict[str, lmgauge.NgramModel], tmp_path: Path) -> None:
    first = lmgauge.rescore(TEST, models, weights={"score": 1, "kn": 1})
    first.write_scores(tmp_path / "all.jsonl")
    first.write_best(tmp_path / "best.txt")
    first.write_best(tmp_path / "best.jsonl")
    assert (tmp_path / "best.txt").read_text().split("\n")[:2] == ["t0 the dog sleeps", "t1 the dog sleeps"]
    best = json.loads((tmp_path / "best.jsonl").read_text().split("\n")[0])
    assert (best["id"], best["rank"], best["scores"]["score"]) == ("t0", 2, -4.2)
    again = lmgauge.rescore(tmp_path / "all.jsonl", [], weights={"score": 1, "kn": 1})
    assert again.lists.score_names == ("score", "kn", "chars")
    assert (again.totals == first.totals).all()
    one = lmgauge.rescore(tmp_path / "all.jsonl", weights={"kn": 1}, reading=NbestReading(score=("kn",)))
    assert one.lists.score_names == ("kn",)


def test_costs_are_written_as_they_were_read(tmp_path: Path) -> None:
    lists = {"u": [("a", {"ac_cost": 3.0}), ("b", {"ac_cost": 2.0})]}
    result = lmgauge.rescore(lists, [], weights={"ac_cost": 1})
    assert result.texts == ("b",)
    result.write_scores(tmp_path / "all.jsonl")
    assert json.loads((tmp_path / "all.jsonl").read_text().split("\n")[0])["scores"] == {"ac_cost": 3.0}


def test_errors_may_ignore_case_and_models_do_not(models: dict[str, lmgauge.NgramModel]) -> None:
    lists = {"u": [("The Dog sleeps", -1.1)]}
    result = lmgauge.rescore(
        lists, {"kn": models["kn"]}, weights={"kn": 1}, test_ref={"u": "the dog sleeps"}, lowercase=True
    )
    assert result.nats[0, 0] == models["kn"].score_text("The Dog sleeps").log_probability
    assert result.systems is not None
    assert result.systems[1].score.errors == 0


def test_weights_do_not_depend_on_threads(models: dict[str, lmgauge.NgramModel]) -> None:
    results = [lmgauge.rescore(TEST, models, tune=DEV, ref=DEV_REF, threads=n) for n in (1, 3)]
    assert results[0].weights == results[1].weights
    assert np.array_equal(results[0].nats, results[1].nats)


def test_tuning_on_what_is_measured_is_said(models: dict[str, lmgauge.NgramModel]) -> None:
    result = lmgauge.rescore(DEV, models, tune=DEV, ref=DEV_REF, test_ref=DEV_REF)
    assert "2 utterances are among those that the weights were tuned on, so their error rate is too low" in result.notes


def test_a_text_that_a_model_rules_out(tmp_path: Path) -> None:
    model = lmgauge.train("mle", Corpus.from_strings(TRAIN), order=2)
    lists = {"u": [("barks dog a", -1.0), ("a dog barks", -9.0)]}
    result = lmgauge.rescore(lists, {"mle": model}, weights={"score": 1})
    assert result.texts == ("a dog barks",)
    assert "1 of 2 hypotheses have probability 0 under a model, and are not chosen while others are left" in result.notes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "neither is here"),
        ({"weights": {"kn": 1}, "tune": DEV, "ref": DEV_REF}, "both are here"),
        ({"tune": DEV}, "--tune needs the references"),
        ({"weights": {"kn": 1}, "ref": DEV_REF}, "those of NBEST are --test-ref"),
        ({"weights": {"x": 1}}, "there is no weight 'x'"),
        ({"weights": {"kn": 1}, "starts": 3}, "starts is for tuning"),
        ({"weights": {"kn": 1}, "document": {"t0": "call"}}, "are for the test"),
        ({"weights": {"kn": 1}, "test_ref": {}}, "has no reference of 't0', 't1', 't2' and 1 more"),
        ({"tune": DEV, "ref": {"d1": "a"}}, "has no reference of 'd2'"),
    ],
)
def test_what_is_refused(models: dict[str, lmgauge.NgramModel], arguments: dict, says: str) -> None:
    with pytest.raises(LmgaugeError, match=says):
        lmgauge.rescore(TEST, {"kn": models["kn"]}, **arguments)


def test_more_that_is_refused(models: dict[str, lmgauge.NgramModel], tmp_path: Path) -> None:
    stream = lmgauge.train("kneser-ney", Corpus.from_strings(TRAIN), order=3, context="stream")
    with pytest.raises(UsageError, match="context continues from one text to the next"):
        lmgauge.rescore(TEST, {"kn": stream}, weights={"kn": 1})
    with pytest.raises(InputError, match="no such file"):
        lmgauge.rescore(tmp_path / "none", models, weights={"kn": 1})
    with pytest.raises(UsageError, match="starts must be"):
        RescoreSettings(starts=-1)
    spaced = lmgauge.rescore({"a b": ["x"]}, models, weights={"kn": 1})
    with pytest.raises(UsageError, match="has white space"):
        spaced.write_best(tmp_path / "best.txt")
