"""What steps of pipelines share: the decisions are those of `lmgauge filter`, in any process."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any

import pyarrow as pa
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.options import FilterRules
from lmgauge.integrations.steps import DocumentFilter, sendable_scorer
from tests.integrations.documents import RULES, make_table


@pytest.mark.parametrize("sent", [lambda step: step, copy.deepcopy, lambda step: pickle.loads(pickle.dumps(step))])
def test_tables_are_judged_as_the_command_does(
    sent: Any, model_path: str, percentiles_path: str, decisions: dict[str, Any]
) -> None:
    step = DocumentFilter(model_path, FilterRules(**RULES), percentiles_path)
    _ = step.plan  # what is loaded is not sent
    scored, reasons = sent(step).judge_table(make_table())
    stay = [row for row, reason in zip(scored.to_pylist(), reasons, strict=True) if reason is None]
    assert {row["id"]: {**row, "score_problem": None} for row in stay} == {
        name: {**record, "score_problem": None} for name, record in decisions.items()
    }
    assert {*reasons} == {None, "no text", "invalid text", "too short", "percentile below", "percentile above"}
    assert {row["wb3_bucket"] for row in stay} == {"head", "middle", "tail"}


def test_a_scorer_is_taken_as_it_is_and_not_changed(model_path: str) -> None:
    scorer = lmgauge.Scorer({"m": model_path}, field="body", threads=3)
    assert (sendable_scorer(scorer).names, sendable_scorer(scorer).threads) == (["m"], 3)
    free = lmgauge.Scorer(model_path)
    assert (sendable_scorer(free).threads, free.threads) == (1, None)
    assert sendable_scorer(model_path).threads == 1


def test_a_model_in_memory_is_refused(model_path: str) -> None:
    with pytest.raises(UsageError, match="each of which loads the model: give its path"):
        sendable_scorer(lmgauge.load_model(model_path))


def test_what_does_not_fit_together_is_refused(model_path: str, percentiles_path: str) -> None:
    with pytest.raises(UsageError, match="percentiles are needed"):
        _ = DocumentFilter(model_path, FilterRules(keep="p10..p70"), None).plan
    with pytest.raises(UsageError, match=r"percentiles\.json"):
        _ = DocumentFilter({"other": model_path}, FilterRules(keep="p10..p70"), percentiles_path).plan
    lines = lmgauge.Scorer(model_path, lines=True)
    with pytest.raises(UsageError, match="lines"):
        _ = DocumentFilter(lines, FilterRules(keep="p10..p70"), percentiles_path).plan
    step = DocumentFilter(model_path, FilterRules(keep="p10..p70"), percentiles_path)
    with pytest.raises(InputError, match="no column 'lang', which the percentiles are grouped by"):
        step.judge_table(pa.table({"text": ["a"]}))


def test_the_text_may_be_in_a_column_of_another_name(model_path: str, percentiles_path: str) -> None:
    """The field that percentiles were learned on is the name in those files."""
    table = make_table()
    body = table.rename_columns(["id", "body", "lang"])
    rules = FilterRules(**RULES)
    scorer = lmgauge.Scorer(model_path, field="body")
    expected = DocumentFilter(model_path, rules, percentiles_path).judge_table(table)[1]
    assert DocumentFilter(scorer, rules, percentiles_path).judge_table(body)[1] == expected


def test_paths_of_other_kinds(model_path: str) -> None:
    assert sendable_scorer(os.path.join(model_path, "")).names == ["wb3"]


def test_a_table_of_what_stays(model_path: str) -> None:
    table = pa.table({"text": ["a", None, "", "a\0"]})
    assert DocumentFilter(model_path, FilterRules())(table)["text"].to_pylist() == ["a", ""]
    assert DocumentFilter(model_path, FilterRules())(table.slice(0, 0)).column_names[-1] == "score_problem"
    for step in (DocumentFilter(model_path, FilterRules()), lmgauge.Scorer(model_path)):
        with pytest.raises(UsageError, match="documents come in Arrow tables, not dict"):
            step({"text": ["a"]})  # type: ignore[arg-type]
