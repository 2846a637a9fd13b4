"""Samples of lm-evaluation-harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scores.imports.outputs import ANSWERS, HARNESS, HARNESS_LOGPROBS, LINES
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError


def test_documents(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, HARNESS)
    assert [segment.text for segment in segments] == LINES
    assert [segment.logprob for segment in segments] == [[float(value)] for value in HARNESS_LOGPROBS]
    assert all(segment.document is None for segment in segments)
    assert "4 documents are one row each" in notes


def test_answers_are_of_one_document(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, ANSWERS)
    assert [(segment.text, segment.given, segment.logprob, segment.document) for segment in segments] == [
        (" sat on", "the cat", [-12.25], "0"),
        (" ran", "the cat", [-25.5], "0"),
    ]
    assert "2 answers are one row each" in notes


@pytest.mark.parametrize(
    ("arguments", "resps"),
    [
        ([["a b"]], [["-1.5"]]),
        ([["a b"]], [[-1.5]]),
        ([["a b"]], [-1.5]),
        ([["q", "a b"]], [[[-1.5, False]]]),
        (["a b"], [[-1.5]]),
    ],
)
def test_older_forms(tmp_path: Path, arguments: Any, resps: Any) -> None:
    record = {"doc_id": 3, "doc": {}, "arguments": arguments, "resps": resps}
    [segment] = parsed(tmp_path, json.dumps(record))
    assert (segment.text, segment.logprob) == ("a b", [-1.5])


def test_filters_repeat_documents(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, HARNESS + HARNESS.replace('"none"', '"strict"'))
    assert len(segments) == 4
    assert "4 records repeat a document" in notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"resps": []}, "has 0 replies (resps) to 1 requests (arguments)"),
        ({"resps": [["free text"]]}, "'free text' is not a number"),
        ({"resps": [[]]}, "a reply (resps) is '[]', not a log-probability"),
        ({"resps": [["0.5"]]}, "a log-probability is '0.5'; it must be the logarithm of a probability"),
        ({"resps": 1}, "resps is '1'; was it written by the program"),
        ({"arguments": [["text", {"until": ["\\n"]}]]}, "not a text to score: only loglikelihood and loglikelihood_rolling"),
        ({"doc_id": None}, "doc_id is 'None'"),
    ],
)
def test_what_has_no_score_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    record = json.loads(HARNESS.splitlines()[0]) | change
    with pytest.raises(InputError) as error:
        parsed(tmp_path, json.dumps(record), "lm-evaluation-harness")
    assert words in str(error.value)
    assert "log" in str(error.value)
