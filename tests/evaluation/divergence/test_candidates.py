"""Candidates are paired segment by segment, and their runs are those of an evaluation."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.divergence.test_figures import pair_events

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.divergence.candidates import KL, LOG_LOSS, CandidateSums, candidate_tests
from lmgauge.numerics.information import kl_divergence
from lmgauge.numerics.intervals import spread


def sums(name: str, kl: list[list[float]], **options: object) -> CandidateSums:
    return CandidateSums.of(name, pair_events(kl, **options))


def test_the_difference_is_that_of_paired_segments() -> None:
    random = np.random.default_rng(2)
    near = random.random((20, 3))
    far = near + random.random((20, 3)) * 0.2
    tests = candidate_tests([sums("near", near.tolist()), sums("far", far.tolist())])
    assert [(test.first, test.second, test.measure) for test in tests] == [("near", "far", KL), ("near", "far", LOG_LOSS)]
    expected = spread((far - near).sum(axis=1), np.full(20, 3.0))
    assert expected is not None
    test = tests[0]
    assert test.difference == pytest.approx(float((far - near).mean()))
    assert test.interval is not None
    assert test.interval.high == pytest.approx(expected.interval().high)
    assert test.p_value == test.p_value_holm == pytest.approx(expected.p_value)
    assert (test.first_value, test.second_value) == (pytest.approx(near.mean()), pytest.approx(far.mean()))
    assert test.significant
    assert (test.segments, test.left_out) == (20, 0)
    assert (tests[1].difference, tests[1].significant) == (0.0, False)


def test_known_documents_are_what_varies() -> None:
    documents = [f"d{i // 2}" for i in range(20)]
    near, far = [[1.0]] * 20, [[1.0 + i / 10] for i in range(20)]
    (test, _) = candidate_tests([sums("n", near, documents=documents), sums("f", far, documents=documents)])
    expected = spread(np.array([(4 * i + 1) / 10 for i in range(10)]), np.full(10, 2.0), np.arange(10))
    assert expected is not None
    assert test.p_value == pytest.approx(expected.p_value)
    assert test.interval is not None
    assert (test.interval.unit, test.interval.units) == ("documents", 10)


def test_segments_with_infinite_values_are_left_out_and_counted() -> None:
    first = [[1.0, math.inf], [2.0], [1.0], [math.nan]]
    second = [[1.0, 1.0], [3.0], [2.5], [1.0]]
    (test, log_loss) = candidate_tests([sums("a", first), sums("b", second, logprob=(-1.0, -math.inf))])
    assert (test.segments, test.left_out) == (2, 2)
    assert (test.first_value, test.second_value, test.difference) == (1.5, 2.75, 1.25)
    assert (log_loss.segments, log_loss.difference, log_loss.p_value, log_loss.significant) == (0, None, None, None)
    assert (log_loss.first_value, log_loss.second_value) == (None, None)


def test_several_candidates_are_adjusted() -> None:
    random = np.random.default_rng(3)
    candidates = [
        sums(name, (random.random((12, 2)) + shift).tolist()) for name, shift in zip("abc", (0, 0, 1), strict=True)
    ]
    tests = [test for test in candidate_tests(candidates) if test.measure == KL]
    assert [(test.first, test.second) for test in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    for test in tests:
        assert test.p_value is not None
        assert test.p_value_holm is not None
        assert test.p_value <= test.p_value_holm <= 1
    assert [test.significant for test in tests] == [False, True, True]


LINES = ["the cat sat", "a dog ran", "the dog", "", "cat x"] * 3


@pytest.fixture
def models() -> dict[str, lmgauge.NgramModel]:
    text = Corpus.from_strings(LINES)
    return {f"wb{order}": lmgauge.train("witten-bell", text, order=order) for order in (1, 2, 3)}


def test_a_run_is_that_of_an_evaluation_with_two_more_columns(models: dict[str, lmgauge.NgramModel], tmp_path: Path) -> None:
    text = Corpus.from_strings(LINES, documents=[f"d{i // 5}" for i in range(15)])
    base, candidate = models["wb3"], models["wb1"]
    found = lmgauge.divergence(base, {"q": candidate}, text, events=None, output=tmp_path / "run")
    lmgauge.evaluate({"q": candidate}, text, output=tmp_path / "evaluated")
    lmgauge.evaluate(base, text, output=tmp_path / "base")
    ours, theirs = (json.loads((tmp_path / run / "evaluation.json").read_text()) for run in ("run", "evaluated"))
    assert ours["evaluation"] == theirs["evaluation"]
    assert ours["settings"]["columns"] == ["kl", "base_logprob"]
    rows, plain, of_base = (lmgauge.read_run(tmp_path / run, text).per_token() for run in ("run", "evaluated", "base"))
    assert rows[plain.columns].equals(plain)
    assert rows["base_logprob"].tolist() == of_base["logprob"].tolist()
    assert rows["kl"].mean() == pytest.approx(found[0].kl_ab_nats.value, rel=1e-12)
    p, q = (np.exp(model.log_distribution([model.vocabulary.id("<s>")])) for model in (base, candidate))
    assert rows["kl"][0] == pytest.approx(kl_divergence(p / p.sum(), q / q.sum(), unit="nats"), rel=1e-6)
    assert lmgauge.evaluate_scores(tmp_path / "run", text).perplexity == ours["evaluation"]["perplexity"]


def test_several_candidates_have_folders_of_their_own(models: dict[str, lmgauge.NgramModel], tmp_path: Path) -> None:
    base = models.pop("wb3")
    lmgauge.divergence(base, models, Corpus.from_strings(LINES), events=None, output=tmp_path / "runs")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["wb1", "wb2"]
    compared = lmgauge.compare([tmp_path / "runs" / "wb1", tmp_path / "runs" / "wb2"], text=Corpus.from_strings(LINES))
    assert compared[0].verdict("perplexity").comparable


def test_a_run_needs_all_events(models: dict[str, lmgauge.NgramModel], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="add --exhaustive"):
        lmgauge.divergence(models["wb3"], models["wb1"], Corpus.from_strings(LINES), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_divergence_below_zero_is_not_read(tmp_path: Path) -> None:
    table = tmp_path / "scores.jsonl"
    table.write_text('{"segment": 0, "logprob": -1.5, "kl": -0.25}\n')
    with pytest.raises(InputError, match=r"kl is -0.25 in segment 0; a divergence is not below 0"):
        list(lmgauge.read_scores(table))
