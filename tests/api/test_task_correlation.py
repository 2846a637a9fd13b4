"""Tables of systems are joined and correlated; a language model may give the perplexities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.api.test_task_scores import BAD, GOOD, REFERENCES, written

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.tasks import BLEU, CorrelationSettings, correlate_tables, score_systems


def test_tables_are_joined_by_the_names_of_systems(tmp_path: Path) -> None:
    found = score_systems(BLEU(order=2), hypotheses={"good": GOOD, "bad": BAD, "worst": BAD[::-1]}, references=REFERENCES)
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps(found.to_dict()), encoding="utf-8")
    table = written(tmp_path / "ppl.tsv", ["system\tperplexity", "worst\t300", "good\t50", "bad\t70", "other\t1"])
    both = correlate_tables(scores, table)
    assert both.systems == ("good", "bad", "worst")
    assert both.x == (50, 70, 300)
    assert (both.spearman, both.kendall, both.log_x) == (-1, -1, True)
    assert "left out, without score: 'other'" in both.notes
    one = written(tmp_path / "one.csv", ["name,ppl,bleu", "a,1,3", "b,2,2", "c,3,1"])
    again = correlate_tables(one, settings=CorrelationSettings("ppl", "bleu", "name", log_x=False))
    assert (again.spearman, again.x_name, again.y_name, again.log_x) == (-1, "ppl", "bleu", False)
    assert again.pearson == -1


@pytest.mark.parametrize("key", ["group", "model"])
def test_groups_or_models_of_an_evaluation_are_systems(tmp_path: Path, key: str) -> None:
    scores = written(tmp_path / "scores.tsv", ["system\tscore", "a\t1", "b\t2", "c\t3"])
    rows = [{"model": "lm", "group": None, "perplexity": 9.0}] * (key == "group")
    rows += [{"model": "lm", key: name, "perplexity": value} for name, value in (("a", 30.0), ("b", 20.0), ("c", 10.0))]
    found = correlate_tables(scores, written(tmp_path / "ppl.jsonl", [json.dumps(row) for row in rows]))
    assert (found.systems, found.spearman) == (("a", "b", "c"), -1)


def test_outputs_under_a_language_model(tmp_path: Path) -> None:
    train = written(tmp_path / "train.txt", REFERENCES * 5)
    lmgauge.train("kneser-ney", train, order=2).save(tmp_path / "lm")
    outputs = [written(tmp_path / f"{name}.txt", lines) for name, lines in (("good", GOOD), ("bad", BAD))]
    outputs.append(written(tmp_path / "same.txt", REFERENCES))
    scores = written(tmp_path / "scores.tsv", ["system\tscore", "bad\t10", "good\t80", "same\t100"])
    found = correlate_tables(scores, model=tmp_path / "lm", outputs=outputs)
    assert (found.systems, found.spearman) == (("bad", "good", "same"), -1)
    model = lmgauge.load_model(tmp_path / "lm")
    assert found.x[2] == pytest.approx(lmgauge.evaluate(model, outputs[2]).perplexity)
    assert np.all(np.array(found.x) > 1)


def test_tables_that_cannot_be_joined(tmp_path: Path) -> None:
    scores = written(tmp_path / "scores.tsv", ["system\tscore", "a\t1", "b\tx"])
    table = written(tmp_path / "ppl.tsv", ["system\tperplexity", "c\t1"])
    with pytest.raises(InputError, match=r"row 2: score of system 'b' is 'x', not a number"):
        correlate_tables(scores, table)
    with pytest.raises(InputError, match="row 1 has no column 'perplexity'"):
        correlate_tables(scores)
    with pytest.raises(InputError, match="no system is in both tables"):
        correlate_tables(written(tmp_path / "good.tsv", ["system\tscore", "a\t1"]), table)
    with pytest.raises(InputError, match="no such file"):
        correlate_tables(tmp_path / "none.tsv")
