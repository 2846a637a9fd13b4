"""What small functions of `scores` give for an example each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmgauge.scores import files, spans, table
from lmgauge.scores.imports import replies


def test_files() -> None:
    assert files.table_format(Path("scores.json.gz")) == "jsonl"
    assert files.table_format(Path("scores")) == "parquet"


def test_replies() -> None:
    assert replies.recognizes_vllm(b'{"choices": [], "prompt_logprobs": [null]}') is True
    assert replies.recognizes_openai(b'{"choices": [{"text": "a", "logprobs": {}}]}') is True


def test_reply() -> None:
    assert replies.PromptTokens(["a", " b", "!"], [None, -1.0, -2.0], [None] * 3, generated=None, echoes=True).added_first(
        1
    ) == [1, 0, 2, 3]


def test_spans() -> None:
    assert spans.spellings_of("Ġcafé")[-1] == b" caf\xe9"
    assert spans.spellings_of("<0xE2>")[-1] == b"\xe2"


def test_table() -> None:
    assert table.without_parts(np.array([-3.0]), np.array([-1.0]), np.zeros(0)).tolist() == [-2.0]
    assert table.starts_of(np.array([3, 3, 7]), np.array([1, 2])).tolist() == [0, 0, 3]
    assert table.unescaped("<<unk>>") == "<unk>"
    assert table.unescaped("<unk>") == "<unk>"
    assert table.unescaped("<<unk>") == "<<unk>"
    assert [column.tolist() for column in table.distinct_neighbors(np.array([4, 4, 7, 4]))] == [[4, 7, 4], [2, 1, 1]]
