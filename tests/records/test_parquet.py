"""Rows of Parquet: every column of every type stays as it is, and those of the scores are appended."""

from __future__ import annotations

import datetime
import decimal
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.arrow import skip_unwritable
from tests.filtering.filtered import COLUMNS, Filtered, filter_bytes, filter_table, small_model

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.filtering import filter_file
from lmgauge.records import parquet, records

TEXTS = ["a b", None, "c", "the cat", ""]
COUNT = len(TEXTS)
NAIVE = datetime.datetime(2020, 1, 1)
OTHERS: dict[str, Any] = {
    "struct": pa.array([{"a": 1, "b": ["x", None]}] * 4 + [None]),
    "list": pa.array([[1, 2], [], None, [3], [None]]),
    "lists": pa.array([[["x"]], [], None, [None], [[]]]),
    "large list": pa.array([[1]] * COUNT, pa.large_list(pa.int8())),
    "fixed list": pa.array([[1, 2]] * COUNT, pa.list_(pa.int32(), 2)),
    "map": pa.array([[("a", 1)], [], None, [("b", 2)], []], pa.map_(pa.string(), pa.int64())),
    "time with zone": pa.array([NAIVE] * COUNT, pa.timestamp("ns", "UTC")),
    "seconds": pa.array([1] * COUNT, pa.timestamp("s")),
    "duration": pa.array([1] * COUNT, pa.duration("s")),
    "date": pa.array([NAIVE.date()] * COUNT),
    "date of 64 bits": pa.array([NAIVE.date()] * COUNT, pa.date64()),
    "time": pa.array([1] * COUNT, pa.time32("ms")),
    "decimal": pa.array([decimal.Decimal("1.23")] * COUNT),
    "long decimal": pa.array([decimal.Decimal(1)] * COUNT, pa.decimal256(50, 2)),
    "half": pa.array(np.full(COUNT, 1.5, np.float16)),
    "double": pa.array([float("nan"), float("inf"), -0.0, None, 1e-310]),
    "byte": pa.array([1] * COUNT, pa.uint8()),
    "truth": pa.array([True, None, False, True, True]),
    "binary": pa.array([b"\xff\0"] * COUNT),
    "fixed binary": pa.array([b"ab"] * COUNT, pa.binary(2)),
    "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS, pa.string_view()),
    "binary view": pa.array([b"x"] * COUNT, pa.binary_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "null": pa.nulls(COUNT),
    "uuid": pa.array([b"0123456789abcdef"] * COUNT, pa.uuid()),
}
NOT_TEXT = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a b", b"a \xe2", b"\x82\xac"]).buffers())
"""Strings as an ill-behaved program writes them: the last two are no UTF-8, and would be if they were one."""


def scored_rows(done: Filtered) -> list[tuple[Any, ...]]:
    return list(zip(*(done.table[name].to_pylist() for name in ("text", *COLUMNS)), strict=True))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("rows", ["all", "some", "none"])
def test_other_columns_stay_as_they_are(tmp_path: Path, name: str, rows: str) -> None:
    skip_unwritable(OTHERS[name].type)
    table = pa.table({"text": ["a b"] * COUNT if rows == "all" else TEXTS, name: OTHERS[name]})
    rules = {"all": {}, "some": {"min_bytes": 2}, "none": {"min_bytes": 100}}[rows]
    done = filter_table(tmp_path, table, **rules)
    table = pq.read_table(tmp_path / "in.parquet")
    chosen = {"all": [0, 1, 2, 3, 4], "some": [0, 3], "none": []}[rows]
    expected = pa.concat_tables([table.slice(0, 0), *(table.slice(row, 1) for row in chosen)])
    own = done.table.select(table.column_names)
    assert own.schema.equals(expected.schema, check_metadata=True)
    assert done.table.column_names == [*table.column_names, *COLUMNS]
    if name == "double":  # NaN is not equal to itself
        assert repr(own.to_pylist()) == repr(expected.to_pylist())
    else:
        assert own.equals(expected)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_may_be_of_every_type_of_strings(tmp_path: Path, kind: pa.DataType) -> None:
    skip_unwritable(kind)
    done = filter_table(tmp_path, pa.table({"text": pa.array(TEXTS).cast(kind)}))
    plain = filter_table(tmp_path, pa.table({"text": TEXTS}))
    assert scored_rows(done) == scored_rows(plain)
    assert done.table.schema.field("text").type == kind
    assert [(record["record"], record["reason"], record["raw"]) for record in done.rejects] == [(2, "no text", None)]


def test_a_column_without_any_text_is_no_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.nulls(3)}), tmp_path / "none.parquet")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "one.parquet")
    result = lmgauge.score_documents({"m": small_model()}, str(tmp_path / "*.parquet"), f"{tmp_path}/out/")
    assert (result.records, result.documents, result.problems) == (4, 1, {"no text": 3})
    assert pq.read_schema(tmp_path / "out/none.parquet").names == ["text", *COLUMNS]


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary(), pa.list_(pa.string())])
def test_a_column_of_something_else_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"column 'text' holds .*, not strings: name another field"):
        filter_table(tmp_path, pa.table({"text": pa.array([None], kind)}))


def test_bytes_that_are_no_text_are_put_aside(tmp_path: Path) -> None:
    done = filter_table(tmp_path, pa.table({"text": NOT_TEXT}))
    assert done.table["text"].to_pylist() == ["a b"]
    assert [(record["record"], record["reason"], record["raw_base64"]) for record in done.rejects] == [
        (2, "invalid text", "YSDi"),
        (3, "invalid text", "gqw="),
    ]


def test_ids_and_groups_may_be_anything(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", None], "bad": NOT_TEXT, "list": [[1], [2], [3]], "n": [1, 2, 3], "t": [True] * 3})
    for field, name in (("bad", "\\x82\\xac"), ("list", None), ("n", "3"), ("t", None)):
        done = filter_table(tmp_path, table, id=field, group=field)
        assert [record["id"] for record in done.rejects] == [name]
    assert {group.name for group in filter_table(tmp_path, table, group="bad").result.groups} == {"a b", "a \\xe2"}


def test_metadata_stays(tmp_path: Path) -> None:
    field = pa.field("text", pa.string(), nullable=False, metadata={"k": "v"})
    table = pa.Table.from_arrays([pa.array(["a", "b"])], schema=pa.schema([field], metadata={"z": "1"}))
    done = filter_table(tmp_path, table)
    assert done.table.schema.field("text").equals(field, check_metadata=True)
    assert done.table.schema.metadata == {b"z": b"1"}


def test_an_index_of_pandas_stays(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": ["a b", "c"], "n": [1, 2]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "frame.parquet")
    done = filter_bytes(tmp_path, (tmp_path / "frame.parquet").read_bytes(), "in.parquet")
    back = pd.read_parquet(io.BytesIO(done.output))
    pd.testing.assert_frame_equal(back[["text", "n"]], frame)


@pytest.mark.parametrize("groups", [True, False])
def test_a_file_without_rows_keeps_its_columns(tmp_path: Path, groups: bool) -> None:
    schema = pa.schema([("id", pa.int32()), ("text", pa.string())])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema) as writer:
        if groups:
            writer.write_table(schema.empty_table())
    done = filter_bytes(tmp_path, sink.getvalue(), "in.parquet")
    assert done.table.column_names == ["id", "text", *COLUMNS]
    assert (len(done.table), done.result.records) == (0, 0)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_row_groups_and_blocks_do_not_matter(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": TEXTS * 20, "n": range(100)})
    whole = filter_table(tmp_path, table)
    monkeypatch.setattr(filter_file, "BLOCK_BYTES", 64)
    monkeypatch.setattr(parquet, "_TOGETHER", 500)
    done = filter_table(tmp_path, table, row_group_size=size)
    assert done.table.equals(whole.table)
    assert done.rejects == whole.rejects
    assert done.result.to_dict() == whole.result.to_dict()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["x"], "no column 'text'; the columns are 'x': name one of them"),
        (["text", "text"], "several columns 'text'"),
        (["text", "m_bits"], "there is already a field 'm_bits'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, columns: list[str], message: str) -> None:
    with pytest.raises(InputError, match=f"in.parquet: {message}"):
        filter_table(tmp_path, pa.Table.from_arrays([pa.array(["a"])] * len(columns), columns))
    assert not (tmp_path / "out-in.parquet").exists()


def test_columns_of_one_name_stay(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a", "b"]), pa.array([1, 2]), pa.array([3, 4])], ["text", "x", "x"])
    done = filter_table(tmp_path, table)
    written = pq.ParquetFile(io.BytesIO(done.output)).read()
    assert [written.column(place).to_pylist() for place in range(3)] == [["a", "b"], [1, 2], [3, 4]]


@pytest.mark.parametrize("cut", [0, 4, 100, -1, -8])
def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path, cut: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["a b c"] * 1000}), sink)
    with pytest.raises(InputError, match=r"in.parquet: not a readable Parquet file"):
        filter_bytes(tmp_path, sink.getvalue()[:cut], "in.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_a_damaged_page_is_said_to_be(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": [f"a b {n}" for n in range(1000)]}), sink, compression="zstd", use_dictionary=False)
    content = bytearray(sink.getvalue())
    content[60:120] = b"\xff" * 60
    with pytest.raises(InputError, match=r"in.parquet: "):
        filter_bytes(tmp_path, bytes(content), "in.parquet")


def test_a_block_is_of_some_megabytes() -> None:
    assert 1 << 20 <= records.BLOCK_BYTES <= 1 << 24
