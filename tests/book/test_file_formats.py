"""Another program (pyarrow, json, hashlib), after docs/reference/files alone, writes what lmgauge reads, and reads back."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from docs.examples import BOOK

import lmgauge
from lmgauge.scores.files import _COLUMNS

LINES = ["the cat sat", "", "Äpfel und Birnen", "the dog ran", "no"]
TEXT = "".join(f"{line}\n" for line in LINES)
Row = dict[str, Any]


def scored(word_probability: float, *, end_probability: float = 0.5) -> list[Row]:
    """What a model says of LINES that gives every word the same probability; spans are bytes and tile the line."""
    rows: list[Row] = []
    for number, line in enumerate(LINES):
        at = 0
        for word in line.encode().split():
            end = line.encode().index(word, at) + len(word)
            span = {"segment": number, "start": at, "end": end}
            rows.append(span | {"token": word.decode(), "logprob": math.log(word_probability), "kind": "token"})
            at = end
        last = {
            "segment": number,
            "start": at,
            "end": at,
            "token": "</s>",
            "logprob": math.log(end_probability),
            "kind": "eos",
        }
        rows.append(last)
    return rows


def states(name: str) -> Row:
    """What a table may say of its origin."""
    return {
        "model": name,
        "unit": "word",
        "context": "sentence",
        "oov_policy": "closed",
        "vocabulary_size": 12,
        "fingerprints": {"text": hashlib.sha256(TEXT.encode()).hexdigest(), "vocabulary": "twelve words"},
    }


def write_parquet(path: Path, rows: list[Row], name: str, schema: pa.Schema | None = None) -> Path:
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table.replace_schema_metadata({"lmgauge": json.dumps(states(name))}), path)
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_table_of_two_columns_has_a_perplexity(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"segment": [0, 0, 2], "logprob": [-1.0, -2.0, -3.0]}), path)
    assert lmgauge.evaluate_scores(path).perplexity == pytest.approx(math.exp(2.0), rel=1e-15)


def test_a_table_with_all_columns_is_evaluated(tmp_path: Path, text: Path) -> None:
    extra = {"context": 1, "entropy": 1.5, "rank": 2, "document": "one", "id": "a", "of another program": True}
    small = pa.schema(
        [
            *(("segment", pa.int32()), ("start", pa.uint16()), ("end", pa.uint16()), ("token", pa.large_string())),
            *(("logprob", pa.float32()), ("kind", pa.dictionary(pa.int8(), pa.string())), ("context", pa.uint8())),
            *(("entropy", pa.float32()), ("rank", pa.int32()), ("document", pa.string()), ("id", pa.string())),
            ("of another program", pa.bool_()),
        ]
    )
    path = write_parquet(tmp_path / "all.parquet", [row | extra for row in scored(1 / 8)], "all", small)
    result = lmgauge.evaluate_scores(path, text)
    bits = 10 * 3 + 5
    assert (result.model, result.events, result.sentence_ends, result.oov) == ("all", 15, 5, 0)
    assert result.bits_per_byte == pytest.approx(bits / len(TEXT.encode()), rel=1e-6)
    assert not result.bits_per_byte_is_bound
    assert "|unit:word|" in result.signature
    assert "|oov:closed|context:sentence|" in result.signature


def test_tables_that_state_their_origin_are_compared_and_reported(tmp_path: Path, text: Path) -> None:
    tables = [write_parquet(tmp_path / f"{n}.parquet", scored(1 / n), f"one of {n}") for n in (8, 16)]
    (comparison,) = lmgauge.compare(tables, text=text)
    assert comparison.verdict("perplexity").comparable
    assert comparison.verdict("bits_per_byte").comparable
    assert comparison.differences[0].difference == pytest.approx(2 ** (10 / 15), rel=1e-12)
    assert lmgauge.audit_run(tables[0], text=text, levels=["coverage"]).passed
    assert lmgauge.diagnose(tables[0], text=text, only=["slices"]).slices
    pytest.importorskip("jinja2")
    assert "one of 16" in lmgauge.report(tables, tmp_path / "page.html", text=text).html()


@pytest.mark.parametrize("key", ["context", "oov_policy", "text", "vocabulary"])
def test_what_a_table_does_not_state_is_not_compared(tmp_path: Path, text: Path, key: str) -> None:
    first = write_parquet(tmp_path / "first.parquet", scored(1 / 8), "first")
    said = states("second")
    said["fingerprints"].pop(key, None)
    said.pop(key, None)
    second = tmp_path / "second.parquet"
    pq.write_table(pa.Table.from_pylist(scored(1 / 4)).replace_schema_metadata({"lmgauge": json.dumps(said)}), second)
    (comparison,) = lmgauge.compare([first, second])
    assert not comparison.verdict("perplexity").comparable
    assert comparison.verdict("bits_per_byte").comparable is (key != "text")


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json"])
def test_json_lines_are_the_same_table(tmp_path: Path, text: Path, ending: str) -> None:
    rows = scored(1 / 8)
    rows[0]["logprob"] = "-inf"
    path = tmp_path / f"scores.{ending}"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    result = lmgauge.evaluate_scores(path, text)
    assert (result.perplexity, result.zero_probability_events) == (math.inf, 1)
    (comparison,) = lmgauge.compare([path, write_parquet(tmp_path / "a.parquet", scored(1 / 4), "a")], text=text)
    assert not comparison.verdict("perplexity").comparable
    assert comparison.verdict("bits_per_byte").comparable


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([{"segment": 0, "logprob": 0.1}], "natural log of a probability"),
        ([{"segment": 0, "logprob": math.nan}], "natural log of a probability"),
        ([{"segment": 0, "logprob": None}], "without a value"),
        ([{"segment": 1, "logprob": -1.0}, {"segment": 0, "logprob": -1.0}], "segment"),
        ([{"segment": 0, "logprob": -1.0, "kind": "word"}], "kind 'word' is unknown"),
        ([{"segment": 0, "logprob": -1.0, "rank": 0}], "ranks count from 1"),
        ([{"segment": 0, "logprob": -1.0, "document": d} for d in ("a", "b")], "in several documents"),
        ([{"logprob": -1.0}], "no column 'segment'"),
    ],
)
def test_what_breaks_the_rules_of_the_page_is_refused(tmp_path: Path, wrong: list[Row], message: str) -> None:
    path = tmp_path / "wrong.parquet"
    pq.write_table(pa.Table.from_pylist(wrong), path)
    with pytest.raises(lmgauge.base.errors.InputError, match=message):
        lmgauge.evaluate_scores(path)


def test_a_segment_without_rows_is_said_and_not_compared(tmp_path: Path, text: Path) -> None:
    rows = [row for row in scored(1 / 8) if row["segment"] != 2]
    path = write_parquet(tmp_path / "short.parquet", rows, "short")
    assert "1 of 5 segments are not scored to their end" in "".join(lmgauge.evaluate_scores(path, text).notes)
    with pytest.raises(lmgauge.base.errors.InputError, match="no rows for segment 2"):
        lmgauge.compare([path, write_parquet(tmp_path / "whole.parquet", scored(1 / 8), "whole")], text=text)


def test_digests_of_texts_are_those_of_the_page(tmp_path: Path, text: Path) -> None:
    def digest(corpus: lmgauge.Corpus) -> str:
        for _ in corpus:
            pass
        return corpus.report.sha256

    assert digest(lmgauge.Corpus.from_files([text, text])) == hashlib.sha256((TEXT + TEXT).encode()).hexdigest()
    (tmp_path / "open.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode()[:-1])
    assert digest(lmgauge.Corpus.from_files(tmp_path / "open.txt")) == hashlib.sha256(TEXT.encode()).hexdigest()
    records = b"".join(len(line.encode()).to_bytes(8, "little") + line.encode() for line in LINES)
    assert digest(lmgauge.Corpus.from_strings(LINES)) == hashlib.sha256(records).hexdigest()


def test_a_run_folder_is_read_by_another_program(tmp_path: Path, text: Path) -> None:
    model = lmgauge.train("witten-bell", text, order=2)
    result = lmgauge.evaluate(model, text, output=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    table = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert table.column_names == ["segment", "start", "end", "token", "logprob", "kind", "context"]
    logprobs = table.column("logprob").to_pylist()
    assert math.exp(-math.fsum(logprobs) / len(logprobs)) == pytest.approx(result.perplexity, rel=1e-15)
    assert content["evaluation"]["perplexity"] == result.perplexity
    assert set(content) == {"evaluation", "groups", "settings", "environment", "scores_sha256", "fingerprint"}
    table_sha256 = hashlib.sha256((tmp_path / "run" / "scores.parquet").read_bytes()).hexdigest()
    assert content["scores_sha256"] == table_sha256
    seal = content.pop("fingerprint")
    assert hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest() == seal
    origin = json.loads(pq.read_metadata(tmp_path / "run" / "scores.parquet").metadata[b"lmgauge"])
    assert origin["fingerprints"]["text"] == hashlib.sha256(TEXT.encode()).hexdigest()
    known = {"model", "unit", "context", "oov_policy", "vocabulary_size", "lossy_segments", "documents_by", "fingerprints"}
    assert set(origin) == known | {"signature", "lmgauge"}


def test_the_columns_of_the_page_are_those_that_are_read() -> None:
    page = (BOOK / "reference" / "files" / "score-table.md").read_text(encoding="utf-8")
    table = page.partition("## Columns")[2].partition("## Rows")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert named == _COLUMNS | {"id"}
