"""Which forms are read, and what they can be written as."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.filtering.filtered import filter_bytes, score_bytes

from lmgauge.base.errors import UsageError
from lmgauge.records.formats import format_of


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.jsonl", "jsonl"),
        ("a.JSONL.GZ", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.txt", "text"),
        ("a", "text"),
        ("jsonl", "text"),
    ],
)
def test_the_ending_of_a_name_says_its_form(name: str, form: str) -> None:
    assert format_of(name, "text") == form


@pytest.mark.parametrize(
    ("source", "target", "forms"),
    [("in.jsonl", "out.parquet", "jsonl"), ("in.txt", "out.parquet", "text or jsonl"), ("in.tsv", "out.jsonl", "tsv")],
)
def test_a_form_that_cannot_be_written_is_refused(tmp_path: Path, source: str, target: str, forms: str) -> None:
    with pytest.raises(UsageError, match=f"{target}: what is in .*{source} is written as {forms}, not as"):
        filter_bytes(tmp_path, b'{"text": "a"}\n', source, target)
    assert [path.name for path in tmp_path.iterdir()] == [source]


def test_a_format_of_all_files_goes_before_their_names(tmp_path: Path) -> None:
    assert filter_bytes(tmp_path, b'{"text": "a"}\n', "in.data", "out.data", format="jsonl").output.startswith(
        b'{"text": "a", '
    )
    assert filter_bytes(tmp_path, b'{"text": "a"}\n', "in.jsonl", "out.txt", format="text").output == b'{"text": "a"}\n'


def test_lines_are_written_as_objects_where_the_name_says_so(tmp_path: Path) -> None:
    assert filter_bytes(tmp_path, b"a b\n", "in.txt", "out.jsonl").output == score_bytes(
        tmp_path, b"a b\n", "in.txt", "s.jsonl"
    )
