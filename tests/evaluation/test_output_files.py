"""Rows of an evaluation: they add up to it, and say which segment of the source they are about."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.base.result_list import ROW_FILES, write_table
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.output_files import SEGMENT_COLUMNS, segment_rows, token_rows
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.documents import Corpus

RECORDS = [
    {"text": "a b", "key": "k1", "talk": "x"},
    {"text": "", "key": "k2", "talk": "y"},
    {"text": "zürich b b", "key": 3, "talk": "x"},
]


@pytest.fixture(scope="module")
def model() -> Any:
    return lmgauge.train("witten-bell", Corpus.from_strings(["a b", "b a b"]), order=2)


def rows_of(model: Any, corpus: Corpus, context: str = "sentence") -> tuple[Any, dict[str, list[Any]], dict[str, list[Any]]]:
    """The evaluation, its rows a segment and its rows a token."""
    segments: dict[str, list[Any]] = {}
    tokens: dict[str, list[Any]] = {}

    def add(rows: dict[str, list[Any]], more: dict[str, Sequence[Any]]) -> None:
        for name, values in more.items():
            rows.setdefault(name, []).extend(values)

    def watch(_: int, block: Any, batch: Any, tally: EventSums) -> None:
        add(segments, segment_rows("m", batch, tally.per_segment(), block, corpus.group_names, ContextPolicy.parse(context)))
        add(tokens, token_rows("m", batch, block))

    (result,) = evaluate([model], corpus, spans=True, watch=watch)
    return result, segments, tokens


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    return path


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_rows_of_segments_add_up(model: Any, tmp_path: Path, block_bytes: int) -> None:
    (tmp_path / "a.txt").write_text("a b\n\nzürich b b\nb", encoding="utf-8")
    result, rows, _ = rows_of(model, Corpus.from_files(tmp_path / "a.txt", block_bytes=block_bytes))
    assert set(rows) == set(SEGMENT_COLUMNS)
    for name in ("events", "tokens", "oov", "bytes"):
        assert sum(rows[name]) == getattr(result, name), name
    assert math.fsum(rows["logprob"]) == pytest.approx(result.log_probability, rel=1e-14)
    assert rows["oov"] == [0, 0, 1, 0]
    assert rows["tokens"] == [2, 0, 3, 1]
    assert rows["bytes"] == [4, 1, 12, 2]
    assert rows["document"] == [""] * 4
    assert rows["id"] == [f"{tmp_path / 'a.txt'}:{line}" for line in (1, 2, 3, 4)]


def test_line_ends_that_were_not_scored_are_no_bytes(model: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\n\n", encoding="utf-8")
    _, rows, _ = rows_of(model, Corpus.from_files(tmp_path / "a.txt"), "sentence,end=none")
    assert rows["bytes"] == [3, 0]


def test_rows_name_group_document_and_id(model: Any, records: Path) -> None:
    corpus = Corpus.from_files(records, group="talk", document="talk", id="key", block_bytes=1)
    _, rows, tokens = rows_of(model, corpus)
    assert rows["group"] == ["x", "y", "x"]
    assert rows["document"] == [0, 1, 0]
    assert rows["id"] == ["k1", "k2", "3"]
    assert tokens["id"] == [rows["id"][i] for i in tokens["segment"]]
    assert len(tokens["id"]) == sum(rows["events"])


def test_without_a_field_the_id_is_the_place(model: Any, records: Path) -> None:
    _, rows, _ = rows_of(model, Corpus.from_files(records))
    assert rows["id"] == [f"{records}:{line}" for line in (1, 2, 3)]


@pytest.mark.parametrize("ending", ROW_FILES)
def test_rows_that_are_all_at_hand(tmp_path: Path, ending: str) -> None:
    """Every kind of file holds the same rows; lists are JSON where a cell is text."""
    rows = {"id": ["a", "b\tc"], "bits": [1.5, None], "both": [[1, 2], []]}
    path = tmp_path / f"rows{ending}"
    write_table(str(path), rows)
    if ending == ".parquet":
        assert pq.read_table(path).to_pydict() == rows
    elif ending == ".jsonl":
        read = [json.loads(line) for line in path.read_text().splitlines()]
        assert read == [{name: values[i] for name, values in rows.items()} for i in range(2)]
    elif ending == ".tsv":
        assert path.read_text() == "id\tbits\tboth\na\t1.5\t[1, 2]\nb\\tc\t\t[]\n"
    else:
        assert list(csv.reader(path.read_text().splitlines())) == [
            ["id", "bits", "both"],
            ["a", "1.5", "[1, 2]"],
            ["b\tc", "", "[]"],
        ]


def test_rows_of_no_known_kind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rows\.xlsx: rows are written as"):
        write_table(str(tmp_path / "rows.xlsx"), {"id": ["a"]})
    assert not list(tmp_path.iterdir())
