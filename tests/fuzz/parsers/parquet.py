"""Parquet files as texts: columns of all types, nested ones, dictionaries, nulls, empty groups of rows; bytes changed."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lmgauge.text.reading_options import ReadingOptions
from tests.arrow import WRITES_VIEWS
from tests.fuzz.mutations import changed, hostile_text
from tests.fuzz.parsers.jsonl import drawn_options
from tests.fuzz.parsers.reading import check_reading
from tests.fuzz.table import Attempt

VIEW = pa.string_view() if WRITES_VIEWS else pa.large_string()
"""Older versions of Arrow write no views of strings."""
STRINGS = [pa.string(), pa.string(), pa.large_string(), VIEW, pa.dictionary(pa.int32(), pa.string())]
OTHERS = [
    *(pa.binary(), pa.int64(), pa.float16(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("ns"), pa.decimal128(9, 2)),
    *(pa.list_(pa.string()), pa.struct([("text", pa.string())]), pa.map_(pa.string(), pa.int32()), pa.binary(4)),
    *(
        pa.dictionary(pa.int8(), pa.int64()),
        pa.list_(pa.struct([("a", pa.list_(pa.int8()))])),
        pa.duration("s"),
        pa.large_binary(),
    ),
]


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        content = written(_table(chance), chance)
        if chance.random() < 0.4:
            content = changed(content, chance, chance.choice([1, 1, 3]))
        return check_reading(
            folder / "rows.parquet", content, ReadingOptions(**drawn_options(chance)), chance, streams=False
        )

    return attempt


def written(table: pa.Table, chance: random.Random) -> bytes:
    """Return a table as a file, in groups of rows of any size and with any of the usual codecs."""
    sink = io.BytesIO()
    codec = chance.choice(["none", "zstd", "snappy", "gzip"])
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression=codec,
        use_dictionary=chance.random() < 0.5,
        data_page_version=chance.choice(["1.0", "2.0"]),
        write_page_checksum=chance.random() < 0.3,
        write_statistics=chance.random() < 0.5,
    ) as writer:
        for _ in range(chance.randint(1, 2)):
            writer.write_table(
                table.slice(0, chance.choice([0, len(table), len(table)])), row_group_size=chance.randint(1, 9)
            )
    return sink.getvalue()


def array_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Return values as an array of a type, nulls where they do not fit."""
    try:
        return pa.array(values, pa.string()).cast(kind, safe=False)
    except (pa.ArrowException, NotImplementedError, TypeError, ValueError):
        return pa.nulls(len(values), kind)


def _table(chance: random.Random) -> pa.Table:
    size = chance.randint(0, 8)
    texts: list[str | None] = [hostile_text(chance, 8).replace("\0", "") for _ in range(size)]
    if chance.random() < 0.1:
        texts = [chance.choice([text, None]) for text in texts]
    columns: dict[str, pa.Array] = {
        "text": array_of(chance.choice(STRINGS if chance.random() < 0.9 else OTHERS), texts),
        "group": array_of(chance.choice(STRINGS), [chance.choice(["news", "law"]) for _ in range(size)]),
        "book": pa.array([i // 3 for i in range(size)], chance.choice([pa.int64(), pa.uint8(), pa.int32()])),
        "id": pa.array([f"r{i}" for i in range(size)]),
        "before": pa.array([chance.choice(["", "the "]) for _ in range(size)]),
    }
    if chance.random() < 0.2:
        name = chance.choice(list(columns))
        columns[name] = array_of(chance.choice(OTHERS), ["1"] * size)
    if chance.random() < 0.3:
        columns["more"] = pa.array([[{"x": 1}]] * size, pa.list_(pa.struct([("x", pa.int8())])))
    if chance.random() < 0.1:
        columns["text"] = _ill_formed(chance, size)
    names = list(columns)
    if chance.random() < 0.05:
        names[chance.randrange(len(names))] = chance.choice(["text", "", "a.b", "\x1b[31m"])
    return pa.Table.from_arrays(list(columns.values()), names=names)


def _ill_formed(chance: random.Random, size: int) -> pa.Array:
    """Return strings whose bytes are not UTF-8, or halves of characters."""
    values = [chance.choice([b"\xc3", b"\xa9", b"\xff", b"a\0", b"a\r\n", b"\xed\xa0\x80", b"ok"]) for _ in range(size)]
    plain = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), size, plain.buffers())
