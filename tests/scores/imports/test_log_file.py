"""Files in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scores.imports.outputs import written

from lmgauge.base.errors import InputError
from lmgauge.scores.imports import log
from lmgauge.scores.imports.log import LogFile


@given(content=st.binary(max_size=60), chunk=st.integers(1, 7))
def test_cells_are_those_of_lines(tmp_path_factory: pytest.TempPathFactory, content: bytes, chunk: int) -> None:
    """However the file is read in chunks; the twin splits all of it at once."""
    path = written(tmp_path_factory.mktemp("log"), content)
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    cells = [
        (i, cell, n == line.count(b"\t")) for i, line in enumerate(lines, 1) for n, cell in enumerate(line.split(b"\t"))
    ]
    if cells and not content.endswith(b"\n") and cells[-1][1] == b"":
        cells.pop()  # nothing stands after the last tab
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_CHUNK", chunk)
        found = list(LogFile(path).cells())
    assert [(line, cell.encode("utf-8", "surrogateescape"), last) for line, cell, last in found] == cells


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n', [{"a": 1}]),
        ('{"a":\n 1}', [{"a": 1}]),
        ('{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('[\n{"a": 1}]', [{"a": 1}]),
        ("[1]\n[2]\n", [[1], [2]]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
    ],
)
def test_json_values(tmp_path: Path, content: str, values: list[Any]) -> None:
    assert [value for _, value in LogFile(written(tmp_path, content)).values()] == values


@pytest.mark.parametrize("content", ["{", '{"a": 1}\n{', "[" * 100_000, '{"a": 1}\n' + "[" * 100_000, "[1, 2", "\ud800"])
def test_what_is_not_json(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="is not JSON"):
        list(LogFile(written(tmp_path, content.encode("utf-8", "surrogatepass"))).values())


def test_large_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_LARGEST_VALUE", 10)
    with pytest.raises(InputError, match="is one JSON value of more than 10 bytes; write it as JSON lines"):
        list(LogFile(written(tmp_path, "[" + " " * 18 + "]")).values())
    monkeypatch.setattr(log, "_LONGEST_CELL", 5)
    with pytest.raises(InputError, match="line 2: has 8 bytes without a tab"):
        list(LogFile(written(tmp_path, "a\tb\n" + "c" * 8)).cells())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(InputError, match=words):
            _ = LogFile(path).head
    with pytest.raises(InputError, match="is empty"):
        _ = LogFile(written(tmp_path, " \n")).head
