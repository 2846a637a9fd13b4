"""The score table: its schema, the way to disk and back, and tables from elsewhere."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.arrow import skip_unwritable

import lmgauge
from lmgauge import Corpus, NgramModel, ScoreBatch
from lmgauge.base.errors import InputError
from lmgauge.scores import KINDS, ScoreWriter, join_batches, read_scores

TEXT = ["a b c", "a b", "", "c a Ärger", "b  b unseen"]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(["a b c", "c a b Ärger", "b b"]), order=3)


@pytest.fixture
def batches(model: NgramModel) -> list[ScoreBatch]:
    return list(model.score(Corpus.from_strings(TEXT, block_bytes=9)))


def test_schema(batches: list[ScoreBatch]) -> None:
    schema = batches[0].to_arrow().schema
    assert [(field.name, str(field.type)) for field in schema] == [
        ("segment", "int64"),
        ("start", "int64"),
        ("end", "int64"),
        ("token", "dictionary<values=string, indices=int32, ordered=0>"),
        ("logprob", "double"),
        ("kind", "dictionary<values=string, indices=int8, ordered=0>"),
        ("context", "uint8"),
    ]


def test_rows(batches: list[ScoreBatch], model: NgramModel) -> None:
    assert len(batches) > 1
    rows = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    tokens = [(row["segment"], row["start"], row["end"], row["token"], row["kind"]) for row in rows]
    assert tokens == [
        (0, 0, 1, "a", "token"), (0, 1, 3, "b", "token"), (0, 3, 5, "c", "token"), (0, 5, 5, "</s>", "eos"),
        (1, 0, 1, "a", "token"), (1, 1, 3, "b", "token"), (1, 3, 3, "</s>", "eos"),
        (2, 0, 0, "</s>", "eos"),
        (3, 0, 1, "c", "token"), (3, 1, 3, "a", "token"), (3, 3, 10, "Ärger", "token"), (3, 10, 10, "</s>", "eos"),
        (4, 0, 1, "b", "token"), (4, 1, 4, "b", "token"), (4, 4, 11, "<unk>", "oov"), (4, 11, 11, "</s>", "eos"),
    ]  # fmt: skip
    assert rows[0]["logprob"] == model.log_distribution([1])[model.vocabulary.id("a")]
    assert rows[0]["context"] == 2  # <s> a was seen
    assert sum(np.count_nonzero(batch.lossy) for batch in batches) == 1


def test_other_programs_take_a_batch_as_it_is(batches: list[ScoreBatch]) -> None:
    taken = pa.record_batch(batches[0])
    assert taken.equals(batches[0].to_arrow())


def write(path: Path, batches: list[ScoreBatch], **metadata: Any) -> Path:
    with ScoreWriter(path, metadata) as writer:
        for batch in batches:
            writer.write(batch)
    return path


def test_parquet_round_trip(batches: list[ScoreBatch], tmp_path: Path) -> None:
    path = write(tmp_path / "scores.parquet", batches, model="kn", n=3)
    table = pq.read_table(path)
    assert json.loads(pq.read_metadata(path).metadata[b"lmgauge"]) == {"model": "kn", "n": 3}
    assert table.num_rows == sum(map(len, batches))
    read = list(read_scores(path))
    for name in ("logprob", "kind", "ends"):
        assert np.array_equal(
            np.concatenate([getattr(b, name) for b in read]), np.concatenate([getattr(b, name) for b in batches])
        )
    tokens = [batch.strings.tokens[i] for batch in read for i in batch.token_ids.tolist()]
    assert tokens == [batch.strings.tokens[i] for batch in batches for i in batch.token_ids.tolist()]
    text = Corpus.from_strings(TEXT)
    assert lmgauge.evaluate_scores(path, text).perplexity == lmgauge.evaluate_scores(batches).perplexity


def test_ids_of_segments_are_a_column_on_disk(batches: list[ScoreBatch], tmp_path: Path) -> None:
    """Other programs join on it; what is read back is the table without it."""
    path = tmp_path / "scores.parquet"
    with ScoreWriter(path, {}) as writer:
        for batch in batches:
            writer.write(batch, [f"id {segment}" for segment in batch.segments.tolist()])
    table = pq.read_table(path)
    assert str(table.schema.field("id").type) == "dictionary<values=string, indices=int32, ordered=0>"
    assert table["id"].to_pylist() == [f"id {segment}" for segment in table["segment"].to_pylist()]
    again = join_batches(list(read_scores(path)))
    np.testing.assert_array_equal(again.logprob, join_batches(batches).logprob)
    assert "id" not in again.extra


def test_nothing_appears_when_writing_fails(batches: list[ScoreBatch], tmp_path: Path) -> None:
    def fail() -> None:
        with ScoreWriter(tmp_path / "scores.parquet", {}) as writer:
            writer.write(batches[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


# -- tables from elsewhere ----------------------------------------------------------------------------------------------


def jsonl(folder: Path, rows: list[Any]) -> Path:
    path = folder / "table.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_the_least_a_foreign_table_needs(tmp_path: Path) -> None:
    rows = [{"segment": 0, "logprob": -1.0}, {"segment": 0, "logprob": -2}, {"segment": 3, "logprob": -0.5, "note": "x"}]
    seen = lmgauge.evaluate_scores(jsonl(tmp_path, rows), name="theirs")
    assert seen.model == "theirs"
    assert seen.events == seen.tokens == 3
    assert seen.perplexity == pytest.approx(math.exp(3.5 / 3), rel=1e-15)
    assert seen.segments == 2
    assert seen.mean_segment_perplexity == pytest.approx((math.exp(1.5) + math.exp(0.5)) / 2, rel=1e-15)


def test_a_full_foreign_table(tmp_path: Path) -> None:
    path = parquet(
        tmp_path,
        segment=pa.array([0, 0, 1, 1], pa.int32()),
        start=[0, 1, 0, 2],
        end=[1, 1, 2, 2],
        token=["a", "</s>", "zz", "</s>"],
        logprob=pa.array([-1.0, -2.0, -math.inf, -0.25], pa.float32()),
        kind=["token", "eos", "oov", "eos"],
        rank=[1, 2, 3, 4],
    )
    (batch,) = read_scores(path)
    assert [KINDS[k] for k in batch.kind.tolist()] == ["token", "eos", "oov", "eos"]
    assert batch.extra["rank"].tolist() == [1, 2, 3, 4]
    seen = lmgauge.evaluate_scores(path, Corpus.from_strings(["a", "zz"]))
    assert (seen.oov, seen.sentence_ends, seen.zero_probability_events) == (1, 2, 1)
    assert seen.perplexity_without_zeros == pytest.approx(math.exp(3.25 / 3), rel=1e-15)
    assert seen.first_zero_probability_events[0].token == "zz"


def test_a_segment_may_go_on_in_the_next_batch(tmp_path: Path) -> None:
    count = (1 << 18) + 100
    path = parquet(tmp_path, segment=np.zeros(count, np.int64), logprob=np.full(count, -0.125))
    assert len(list(read_scores(path))) > 1
    seen = lmgauge.evaluate_scores(path)
    assert seen.segments == 1
    assert seen.cross_entropy == 0.125
    assert seen.mean_segment_perplexity == pytest.approx(math.exp(0.125), rel=1e-12)


GOOD = {"segment": 0, "start": 0, "end": 1, "token": "a", "logprob": -1.0, "kind": "token"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"logprob": -1.0}], "no column 'segment'"),
        ([{"segment": 0, "log_prob": -1.0}], "no column 'logprob'"),
        ([{**GOOD, "logprob": 0.5}], "natural log of a probability"),
        ([{**GOOD, "logprob": "half"}], "not a number"),
        ([GOOD, {**GOOD, "logprob": None}], "logprob"),
        ([{**GOOD, "kind": "word"}], "kind|wrong type"),
        ([GOOD, {**GOOD, "kind": None}], "kind|wrong type"),
        ([{**GOOD, "segment": 0.5}], "wrong type"),
        ([{**GOOD, "segment": 1}, {**GOOD, "segment": 0}], "must not fall"),
        ([{**GOOD, "segment": -1}], "segment"),
        ([GOOD, {**GOOD, "segment": None}], "segment"),
        ([GOOD, {**GOOD, "end": None}], "end"),
        ([{**GOOD, "start": "a"}], "wrong type"),
        ([{**GOOD, "context": "a"}], "wrong type"),
        ([{**GOOD, "context": -1}], "'context' holds -1"),
        ([{**GOOD, "rank": 0}], "'rank' holds 0"),
        ([{**GOOD, "end": -5}], "'end' holds -5"),
        ([{**GOOD, "start": -(2**63)}], "'start' holds -9"),
        ([GOOD | {"rank": 1}, GOOD | {"rank": None}], "rank"),
        ([{**GOOD, "entropy": "a"}], "wrong type"),
        ([GOOD, {**GOOD, "token": None}], "token"),
        ([{**GOOD, "logprob": -1e300}], "log-probability"),
        ([], "cannot be read|no rows|no column"),
        (["{not json"], "not valid JSON"),
        (['{"segment": 0, "logprob": NaN}'], "cannot be read|logprob"),
        ([{**GOOD, "segment": [0]}], "wrong type|cannot be read"),
    ],
    ids=repr,
)
def test_bad_tables_are_errors(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        lmgauge.evaluate_scores(jsonl(tmp_path, rows))
    assert "\n" not in str(raised.value)


def test_a_kind_that_only_some_rows_of_json_have_counts(tmp_path: Path) -> None:
    """Programs write the kinds that are rare; the first row decides nothing, nor does the first lot of 65,536."""
    few = [{"segment": 0, "logprob": -5, "token": "a"}, {"segment": 0, "logprob": -1, "token": "</s>", "kind": "eos"}]
    seen = lmgauge.evaluate_scores(jsonl(tmp_path, few))
    assert (seen.tokens, seen.sentence_ends) == (1, 1)
    assert seen.perplexity_without_eos == pytest.approx(math.exp(5))
    rows = [{"segment": i // 2, "logprob": -1.0} for i in range(1 << 17)]
    for i in range((1 << 16) - 1, 1 << 17, 2):
        rows[i]["kind"] = "eos"
    rows[-2]["kind"] = "oov"
    seen = lmgauge.evaluate_scores(jsonl(tmp_path, rows))
    assert (seen.sentence_ends, seen.oov, seen.events) == ((1 << 15) + 1, 1, 1 << 17)
    for row in rows[: 1 << 16]:
        row.setdefault("kind", "token")
    assert lmgauge.evaluate_scores(jsonl(tmp_path, rows)).sentence_ends == (1 << 15) + 1


@pytest.mark.parametrize(
    ("name", "at"), [("start", 1), ("end", 1 << 16), ("token", 1), ("entropy", 2), ("context", 1), ("logprob", 1)]
)
def test_other_columns_are_in_every_row_of_json_or_in_none(tmp_path: Path, name: str, at: int) -> None:
    whole = GOOD | {"entropy": 1.0, "context": 1}
    lacking = {key: value for key, value in whole.items() if key != name}
    with pytest.raises(InputError, match=f"line {at + 1}: no '{name}', which line 1 has"):
        list(read_scores(jsonl(tmp_path, [*[whole] * at, lacking])))
    if name != "logprob":
        with pytest.raises(InputError, match=f"line 1: no '{name}', which line {at + 1} has"):
            list(read_scores(jsonl(tmp_path, [*[lacking] * at, whole])))


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([0]), pa.array([0]), pa.array([-1.0])], ["segment", "segment", "logprob"])
    pq.write_table(table, tmp_path / "two.parquet")
    with pytest.raises(InputError, match="2 columns called 'segment'"):
        list(read_scores(tmp_path / "two.parquet"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -0.001])
def test_values_that_are_not_entropies_are_errors(tmp_path: Path, value: float) -> None:
    path = parquet(tmp_path, segment=[0, 7], logprob=[-1.0, -1.0], entropy=[0.0, value])
    with pytest.raises(InputError, match=r"entropy is .* in segment 7"):
        list(read_scores(path))
    assert list(read_scores(parquet(tmp_path, segment=[0], logprob=[-1.0], entropy=[-1e-16])))  # rounding


@pytest.mark.parametrize("value", [math.nan, 0.1, math.inf])
def test_values_that_are_no_log_probabilities_are_errors(tmp_path: Path, value: float) -> None:
    path = parquet(tmp_path, segment=[0, 7], logprob=[-1.0, value])
    with pytest.raises(InputError, match="segment 7"):
        lmgauge.evaluate_scores(path)


def test_files_that_are_no_tables_are_errors(tmp_path: Path) -> None:
    files = {"a.parquet": b"PAR1", "b.parquet": b"", "c.jsonl": b"\xff\xfe", "d.txt": b"segment,logprob\n"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            lmgauge.evaluate_scores(tmp_path / name)
    with pytest.raises(InputError, match="none"):
        lmgauge.evaluate_scores(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    "line",
    [
        '{"segment": 99999999999999999999, "logprob": -1}',
        '{"segment": 0, "start": 0, "end": 1e30, "logprob": -1}',
        "{}",
        '{"segment": 0, "token": "\\ud800", "logprob": -1}',
        "\x00",
        "[" * 100_000,
    ],
    ids=["huge", "float", "empty", "surrogate", "NUL", "deep"],
)
def test_json_that_arrow_cannot_hold_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError) as raised:
        list(read_scores(jsonl(tmp_path, [line])))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("groups", [True, False])
def test_a_table_without_rows(tmp_path: Path, groups: bool) -> None:
    schema = pa.schema([("segment", pa.int64()), ("start", pa.int64()), ("end", pa.int64()), ("logprob", pa.float64())])
    path = tmp_path / "table.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        if groups:
            writer.write_table(schema.empty_table())
    assert sum(map(len, read_scores(path))) == 0
    with pytest.raises(InputError, match="the score table has no rows"):
        lmgauge.evaluate_scores(path)


# -- spans --------------------------------------------------------------------------------------------------------------


def test_a_segment_that_goes_on_in_the_next_batch_leaves_nothing_out(tmp_path: Path) -> None:
    """Rows are read so many at a time; where a segment is cut there, its next row starts where the last one ended."""
    n, path = (1 << 18) + 10, tmp_path / "scores.parquet"
    ends = np.arange(1, n + 1)
    rows = {"segment": np.zeros(n, np.int64), "start": ends - 1, "end": ends, "logprob": np.full(n, -1.0)}
    pq.write_table(pa.table(rows), path)
    parts = list(read_scores(path))
    assert len(parts) > 1
    whole = join_batches(parts)
    assert not len(whole.begins)
    assert np.array_equal(whole.starts(), ends - 1)
    for at in (5, n - 1):  # a row that starts elsewhere, before and behind the cut
        only = dict(rows, start=np.where(np.arange(n) == at, 1, ends - 1))
        pq.write_table(pa.table(only), path)
        assert np.array_equal(join_batches(list(read_scores(path))).starts(), only["start"])


def test_spans_that_stand_apart_are_counted_over_batches(tmp_path: Path) -> None:
    """Parquet is read so many rows at a time; where a segment goes on in the next lot is no gap, a gap there is one."""
    count = (1 << 18) + 5
    ends = np.arange(1, count + 1)
    columns = {"segment": np.zeros(count, np.int64), "start": ends - 1, "end": ends, "logprob": np.full(count, -1.0)}
    assert [batch.spans_apart for batch in read_scores(parquet(tmp_path, **columns))] == [0, 0]
    columns["start"][1 << 18] += 1
    assert [batch.spans_apart for batch in read_scores(parquet(tmp_path, **columns))] == [0, 1]
    columns["segment"][1 << 18 :] = 1  # a new segment begins at byte 0
    assert [batch.spans_apart for batch in read_scores(parquet(tmp_path, **columns))] == [0, 1]


def test_ends_alone_tell_of_spans_that_fall(tmp_path: Path) -> None:
    sound, fallen = ([{"segment": 0, "end": end, "logprob": -1.0} for end in ends] for ends in ((1, 2, 2, 4), (2, 1, 2, 4)))
    assert [batch.spans_apart for batch in read_scores(jsonl(tmp_path, sound))] == [0]
    assert [batch.spans_apart for batch in read_scores(jsonl(tmp_path, fallen))] == [1]
    told = lmgauge.evaluate_scores(jsonl(tmp_path, fallen), Corpus.from_strings(["abcd"])).notes
    assert any("do not begin where the one before ended" in note for note in told)


# -- a table and its text -----------------------------------------------------------------------------------------------


def spans(*rows: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [{"segment": s, "start": a, "end": b, "logprob": -1.0} for s, a, b in rows]


def test_a_table_of_another_text_is_an_error(tmp_path: Path) -> None:
    path = jsonl(tmp_path, spans((0, 0, 3), (1, 0, 9)))
    with pytest.raises(InputError, match="the same text"):
        lmgauge.evaluate_scores(path, Corpus.from_strings(["abc", "def"]))
    with pytest.raises(InputError, match="the same text"):
        lmgauge.evaluate_scores(jsonl(tmp_path, spans((0, 0, 9), (0, 9, 3))), Corpus.from_strings(["abc"]))
    with pytest.raises(InputError, match="the same text"):
        lmgauge.evaluate_scores(jsonl(tmp_path, spans((0, 0, 3), (5, 0, 3))), Corpus.from_strings(["abc", "def"]))


def test_bytes_that_were_not_scored_are_told(tmp_path: Path) -> None:
    seen = lmgauge.evaluate_scores(jsonl(tmp_path, spans((0, 0, 3), (1, 0, 2))), Corpus.from_strings(["abc", "def", "x"]))
    assert any("2 of 3 segments are not scored to their end" in note for note in seen.notes)
    assert seen.bytes == 7


@pytest.mark.parametrize(
    "rows",
    [
        spans((0, 1, 3)),  # the first byte belongs to no event
        spans((0, 0, 1), (0, 2, 3)),  # a hole
        spans((0, 0, 2), (0, 1, 3)),  # a byte scored twice
        spans((0, 0, 3), (0, 0, 3)),  # all bytes scored twice: a sliding window that was added up
        spans((0, 0, 3), (0, 3, 2), (0, 2, 3)),  # backwards
    ],
    ids=["late", "hole", "overlap", "twice", "backwards"],
)
def test_spans_that_do_not_tile_the_text_are_not_silent(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Law 1: each byte belongs to exactly one event. Public bugs are of this kind; a table that has them must say so."""
    try:
        seen = lmgauge.evaluate_scores(jsonl(tmp_path, rows), Corpus.from_strings(["abc"]))
    except InputError:
        return
    assert any("span" in note or "not scored" in note or "twice" in note for note in seen.notes)


def test_a_context_beyond_a_byte_is_counted_as_the_longest(tmp_path: Path) -> None:
    found = lmgauge.evaluate_scores(
        jsonl(tmp_path, [{**GOOD, "context": 1024}, {**GOOD, "start": 1, "end": 2, "context": 2}])
    )
    assert [n for n in found.events_by_matched_order if n] == [1, 1]
    assert len(found.events_by_matched_order) == 255


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int64(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_documents_of_tables_are_numbered_by_first_appearance(tmp_path: Path, kind: pa.DataType) -> None:
    skip_unwritable(kind)
    names = ["7", "7", "3", "7"]
    values = [int(name) for name in names] if pa.types.is_integer(kind) else names
    columns = {"segment": [0, 0, 1, 2], "logprob": [-1.0] * 4, "document": pa.array(values).cast(kind)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    rows = [{"segment": s, "logprob": -1, "document": d} for s, d in zip([0, 0, 1, 2], values, strict=True)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("t.parquet", "t.jsonl"):
        (batch,) = read_scores(tmp_path / name)
        assert batch.documents() is not None
        assert batch.documents().tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([1, 2, 3], "segment 0 is in several documents"),
        ([1.5, 1.5, 2.5], "not whole numbers or strings"),
        ([[1], [1], [2]], "not whole numbers or strings"),
        ([1, None, 2], "rows without a value"),
    ],
)
def test_documents_that_are_none_are_refused(tmp_path: Path, documents: list[Any], message: str) -> None:
    rows = [{"segment": s, "logprob": -1, "document": d} for s, d in zip([0, 0, 1], documents, strict=True)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=message):
        list(read_scores(tmp_path / "t.jsonl"))


def test_a_segment_in_several_documents_is_seen_where_its_rows_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmgauge.scores.files.PARQUET_ROWS", 1)
    pq.write_table(pa.table({"segment": [0, 0], "logprob": [-1.0, -1.0], "document": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="segment 0 is in several documents"):
        list(read_scores(tmp_path / "t.parquet"))
