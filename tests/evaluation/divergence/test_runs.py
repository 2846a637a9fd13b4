"""Runs of candidates are those of an evaluation, with the divergence from the base in their rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.errors import InputError, UsageError
from lmgauge.information import kl_divergence

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
