"""Logs with a row a sequence: lists of token ids and log-probabilities, as trainers and engines keep them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.evaluation.runs import open_run
from lmgauge.scores import ScoreBatch, join_batches, read_scores
from lmgauge.scores.sequences import SEQUENCES

Rows = list[dict[str, Any]]
VERL: Rows = [
    {"uid": "p", "responses": [5, 6, 0], "response_mask": [1, 1, 0], "rollout_log_probs": [-0.5, -1.0, 0.0],
     "old_log_probs": [-0.5, -1.25, 7.0], "prompt": "a"},
    {"uid": "p", "responses": [7, 0, 0], "response_mask": [1, 0, 0], "rollout_log_probs": [-0.25, 0.0, 0.0],
     "old_log_probs": [None, math.nan, 7.0], "prompt": "a"},
    {"uid": "q", "responses": [7, 8, 9], "response_mask": [1, 1, 1], "rollout_log_probs": [-2.0, -9999.0, 0.00001],
     "old_log_probs": [-2.0, -4.0, -5.0], "prompt": "b"},
]  # fmt: skip


@pytest.fixture(params=["parquet", "jsonl"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Write rows in one of the two formats, and return the file."""

    def write(rows: Rows) -> Path:
        path = tmp_path / f"log.{request.param}"
        if request.param == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def read(path: Path, column: str = "") -> ScoreBatch:
    return join_batches(list(read_scores(path, ("token", "document", "position"), column)))


def test_rollouts_of_verl(kept: Any) -> None:
    batch = read(kept(VERL), "rollout_log_probs")
    assert batch.row_segments().tolist() == [0, 0, 1, 2, 2, 2]
    assert batch.tokens() == ["#5", "#6", "#7", "#7", "#8", "#9"]
    assert batch.logprob.tolist() == [-0.5, -1.0, -0.25, -2.0, -math.inf, 0.0]
    assert batch.extra["document"].tolist() == [0, 0, 0, 1, 1, 1]  # rollouts of one prompt are one document
    assert batch.extra["position"].tolist() == [0, 1, 0, 0, 1, 2]
    assert np.array_equal(open_run(f"{kept(VERL)}:rollout_log_probs").batches().__next__().logprob, batch.logprob)


def test_what_is_masked_or_has_no_score_has_no_row(kept: Any) -> None:
    batch = read(kept([{**row, "old_log_probs": row["old_log_probs"][:1] + [-1.0] * 2} for row in VERL]), "old_log_probs")
    assert batch.row_segments().tolist() == [0, 0, 2, 2, 2]
    assert batch.extra["position"].tolist() == [0, 1, 0, 1, 2]


SLIME = {"tokens": [1, 2, 3, 4], "response_length": 2, "rollout_log_probs": [-1.0, -2.0], "loss_mask": [1, 1], "index": 0}
TRL = {
    "prompt": "x",
    "completion_ids": [3, 4],
    "completion_mask": [1, 1],
    "tool_mask": [1, 0],
    "old_per_token_logps": [-1.0, 0.0],
}
OLD_VERL = {"responses": [3, 4], "attention_mask": [0, 1, 1, 0], "old_log_probs": [-1.0, -2.0]}
VLLM = {"token_ids": [3, 4], "logprobs": [-1.0, -2.0]}


@pytest.mark.parametrize(("row", "tokens"), [(SLIME, 2), (TRL, 1), (OLD_VERL, 1), (VLLM, 2)])
def test_columns_of_other_programs(kept: Any, row: dict[str, Any], tokens: int) -> None:
    assert read(kept([row])).tokens() == ["#3", "#4"][:tokens]


def test_many_rows_are_numbered_on(kept: Any) -> None:
    batch = read(kept([VLLM] * (SEQUENCES + 2)))
    assert batch.row_segments()[[0, -1]].tolist() == [0, SEQUENCES + 1]
    assert len(batch) == 2 * (SEQUENCES + 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout_log_probs": [-0.5, 0.25, -1.0]}, r"(row|line) 3: rollout_log_probs\[1\] is 0.25; it must be the natural"),
        ({"rollout_log_probs": [-0.5, -0.25, math.nan]}, r"(row|line) 3: rollout_log_probs\[2\] is nan"),
        ({"responses": [7, 8]}, "(row|line) 3: responses has 2 values, rollout_log_probs has 3"),
        ({"response_mask": [1]}, "(row|line) 3: response_mask has 1 values, rollout_log_probs has 3"),
    ],
)
def test_wrong_rows_are_named(kept: Any, changes: dict[str, Any], message: str) -> None:
    path = kept([*VERL[:2], VERL[2] | changes])
    with pytest.raises(InputError, match=message):
        read(path, "rollout_log_probs")


def test_a_column_that_is_named_may_be_called_anything(kept: Any) -> None:
    usual = read(kept(VERL), "rollout_log_probs")
    renamed = read(kept([row | {"sampler": row["rollout_log_probs"]} for row in VERL]), "sampler")
    assert renamed.logprob.tolist() == usual.logprob.tolist()


def test_columns_must_be_known(kept: Any) -> None:
    path = kept(VERL)
    with pytest.raises(InputError, match=r"several columns of log-probabilities .* name one: .*:rollout_log_probs$"):
        read(path)
    with pytest.raises(InputError, match="no column 'other' of lists of log-probabilities; it has 'rollout_log_probs'"):
        read(path, "other")
    with pytest.raises(InputError, match="no column has the lists of token ids"):
        read(kept([{"ids": [1], "logprobs": [-1.0]}]))
    with pytest.raises(InputError, match="no such run"):
        open_run(f"{path}x:rollout_log_probs")


def test_replies_of_servers_are_score_tables(tmp_path: Path) -> None:
    path = tmp_path / "replies.json"
    meta = {"input_token_logprobs": [], "output_token_logprobs": [[-0.5, 4, None], [-1.5, 5, " b"]]}
    path.write_text(json.dumps([{"text": "a b", "meta_info": meta}] * 2))
    batch = read(path)
    assert (batch.row_segments().tolist(), batch.tokens()) == ([0, 0, 1, 1], ["#4", " b", "#4", " b"])
    meta["input_token_logprobs"] = [[None, 1, "<s>"], [-0.25, 2, "a"]]
    path.write_text(json.dumps({"text": "a b", "meta_info": meta}))
    assert read(path).tokens() == ["a"]
    path.write_text(json.dumps({"meta_info": {"output_token_logprobs": [4]}}))
    with pytest.raises(InputError, match="token_logprobs are not lists"):
        read(path)


def test_a_column_of_a_table_of_tokens(kept: Any) -> None:
    path = kept([{"segment": 0, "token": "a", "logprob": -1.0, "other": -2.0, "position": "x"}])
    assert read(path).logprob.tolist() == [-1.0]
    assert read(path, "other").logprob.tolist() == [-2.0]
    with pytest.raises(InputError, match="no column 'none' in the score table; it has segment, token, logprob, other"):
        read(path, "none")


def test_commands_that_take_a_run_take_a_log(kept: Any) -> None:
    rows = [
        {"uid": f"{i}", "responses": [5, 6], "rollout_log_probs": [-0.5] * 2, "old_log_probs": [-1.0] * 2} for i in range(8)
    ]
    runs = [f"{kept(rows)}:{column}" for column in ("rollout_log_probs", "old_log_probs")]
    assert lmgauge.diagnose(runs[0]).evaluation.events == 16
    assert lmgauge.audit(run=runs[0]).passed
    assert "only 8 segments: treat the interval as rough" in str(lmgauge.compare(runs))
