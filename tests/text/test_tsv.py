"""Columns of tab-separated files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lmgauge.base.errors import InputError
from lmgauge.text.documents import Corpus


def texts_of(corpus: Corpus) -> list[str]:
    return [segments.text(i).decode() for segments in corpus for i in range(len(segments))]


def test_a_column_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("1\teins zwei\n2\t\n3\tdrei\n", encoding="utf-8")
    assert texts_of(Corpus.from_files(path, field="2")) == ["eins zwei", "", "drei"]
    assert texts_of(Corpus.from_files(path, field="1")) == ["1", "2", "3"]


def test_a_column_by_its_name_and_a_group(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"speaker\ttext\nanna\tja\nbert\tnein\nanna\tdoch\n"))
    corpus = Corpus.from_files(path, group="speaker")
    codes = [int(code) for segments in corpus for code in (segments.groups if segments.groups is not None else [])]
    assert texts_of(corpus) == ["ja", "nein", "doch"]
    assert codes == [0, 1, 0]
    assert corpus.group_names == ["anna", "bert"]


def test_blocks_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\ttext\n" + "".join(f"{i}\tline {i}\n" for i in range(200)), encoding="utf-8")
    whole = texts_of(Corpus.from_files(path))
    assert len(whole) == 200
    assert texts_of(Corpus.from_files(path, block_bytes=7)) == whole


@pytest.mark.parametrize(
    ("content", "field", "message"),
    [
        ("a\tb\n1\t2\n", "text", "no column 'text' in its first line, which has 'a', 'b'"),
        ("1\tx\n2\n", "2", r"x\.tsv:2: has 1 column, so no column 2"),
        ("text\tb\nx\ty\n\n", "b", r"x\.tsv:3: has 1 column, so no column 2"),
    ],
)
def test_missing_columns_are_named(tmp_path: Path, content: str, field: str, message: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        texts_of(Corpus.from_files(path, field=field))


def test_lists_in_json_lines_keep_their_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": ["a", "b"]}\n{"text": "c"}\n', encoding="utf-8")
    corpus = Corpus.from_files(path, lists=True)
    segments = next(iter(corpus))
    assert [segments.line(i) for i in range(len(segments))] == [1, 1, 2]
    with pytest.raises(InputError, match="field 'text' holds a list, not a string"):
        texts_of(Corpus.from_files(path))
    path.write_text('{"text": []}\n', encoding="utf-8")
    with pytest.raises(InputError, match="a list without a string, not a string or a list of strings"):
        texts_of(Corpus.from_files(path, lists=True))


def test_lines_without_the_column_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("key\ttext\nk1\teins\nk2\nk3\tzwei\n", encoding="utf-8")
    for block_bytes in (1, 1 << 20):
        corpus = Corpus.from_files(path, errors="skip", id="key", block_bytes=block_bytes)
        parts = list(corpus)
        assert [name for part in parts for name in part.identifiers()] == ["k1", "k3"]
        assert [part.line(i) for part in parts for i in range(len(part))] == [2, 4]
        assert (corpus.report.skipped, corpus.report.unusable) == (1, 1)
        assert "a.tsv:3: has 1 column, so no column 2" in corpus.report.notes()[-1]
