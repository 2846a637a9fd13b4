"""Parquet files that are not what they say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.records.parquet import refuse_missing_rows


def test_rows_that_arrow_leaves_out_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a", "b", "c"]}), path)
    with pq.ParquetFile(path) as file:
        refuse_missing_rows(file, 3, "rows.parquet")
        with pytest.raises(InputError, match=r"rows\.parquet: damaged: it says that it has 3 rows, and 2 can be read"):
            refuse_missing_rows(file, 2, "rows.parquet")


def test_a_file_without_row_groups_is_a_text_without_segments(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema([("text", pa.string())])).close()
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "one.parquet")
    assert list(Corpus.from_files(tmp_path / "none.parquet")) == []
    assert sum(map(len, Corpus.from_files([tmp_path / "none.parquet", tmp_path / "one.parquet"]))) == 1


def test_a_footer_that_promises_more_rows_is_refused(tmp_path: Path) -> None:
    """Whatever number is changed in the footer: the text as it was, or a refusal; never a part of it."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a", "b", "c"], "group": ["x", "y", "x"]}), path, compression="none")
    content, texts = path.read_bytes(), [b"a", b"b", b"c"]
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    refused = 0
    for at in range(footer, len(content) - 8):
        if content[at] != 2 * len(texts):  # 3, as Thrift writes it
            continue
        path.write_bytes(content[:at] + bytes([2 * len(texts) + 2]) + content[at + 1 :])
        try:
            read = [block.text(i) for block in Corpus.from_files(path) for i in range(len(block))]
        except InputError:
            refused += 1
        else:
            assert read == texts
    assert refused
