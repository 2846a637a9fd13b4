"""CSV: what is quoted, where records end, and how they are written back; the twin is Python's own reader."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.filtered import COLUMNS, filter_bytes, score_bytes

from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.records.formats import reader_of
from lmgauge.records.lines import line_blocks
from lmgauge.records.records import Fields
from lmgauge.records.sources import find_sources

CELLS = st.text(st.sampled_from('ab",\n\r \t"'), max_size=6)


def written(folder: Path, rows: list[list[str]], name: str = "in.csv") -> Path:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    path = folder / name
    path.write_bytes(file.getvalue().encode())
    return path


@given(rows=st.lists(st.tuples(CELLS, CELLS).filter(any), max_size=6), block=st.integers(1, 30))
def test_records_are_those_of_the_twin(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], block: int
) -> None:
    path = written(tmp_path_factory.mktemp("csv"), [["id", "text"], *map(list, rows)])
    reader = reader_of(find_sources(path)[0], Fields("text", ("id",)))
    found, raw, numbers = [], [], []
    for records in map(reader.parse, reader.blocks(block)):
        assert not records.problems
        texts = [records.texts.text(i).decode() for i in range(len(records))]
        found += list(zip(records.values["id"], texts, strict=True))
        raw += records.raw
        numbers += records.numbers.tolist()
    assert found == rows
    lines = path.read_bytes().split(b"\n")
    assert [lines[number - 1].rstrip(b"\r") for number in numbers] == [one.split(b"\n")[0].rstrip(b"\r") for one in raw]
    assert [tuple(row.fields.values()) for row in reader.rows()] == [row for row in rows if any(row)]


def test_texts_of_columns_by_name_and_number(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'n,text\r\n1,"a, ""b""\r\nc"\r\n\r\n2,d\r\n')
    (block,) = Corpus.from_files(path, id="n")
    assert [block.text(i) for i in range(len(block))] == [b'a, "b"\nc', b"d"]
    assert (block.ids, block.lines().tolist()) == (["1", "2"], [2, 5])
    assert [part.text(0) for part in Corpus.from_files(path, field="2")] == [b"text"]


def test_bad_bytes_leave_out_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'text,n\na,1\n"b\n\xff\n",2\nc,3\n')
    with pytest.raises(InputError, match=r"in\.csv, line 4, byte 14: 0xFF is not valid UTF-8"):
        list(Corpus.from_files(path))
    (block,) = Corpus.from_files(path, errors="skip", id="n")
    assert (block.ids, block.lines().tolist()) == (["1", "3"], [2, 6])


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b"a", "1 column, where the first line has 2"),
        (b"a,1,", "3 columns, where the first line has 2"),
        (b'"a"b,1', "not a record of CSV: ',' expected after '\"'"),
        (b"a\rb,1", "not a record of CSV: a line ends within a cell that is not quoted"),
        (b'1,"a', "not a record of CSV: unexpected end of data"),
    ],
)
def test_a_bad_record_is_put_aside_and_ends_nothing(tmp_path: Path, line: bytes, detail: str) -> None:
    done = filter_bytes(tmp_path, b"text,n\nb,2\n" + line + b"\n", "in.csv")
    assert done.output.split(b",")[:3] == [b"text", b"n", COLUMNS[0].encode()]
    assert len(done.output.splitlines()) == 2
    assert [(one["record"], one["raw"], one["detail"]) for one in done.rejects] == [(3, line.decode(), detail)]


def test_cells_are_put_behind_those_of_a_record(tmp_path: Path) -> None:
    content = b'text,"n,m"\r\n"a, b\n\nc",1\r\n'
    output = score_bytes(tmp_path, content, "in.csv", "out.csv")
    header, row = csv.reader(io.StringIO(output.decode(), newline=""))
    assert header == ["text", "n,m", *COLUMNS]
    assert row[:2] == ["a, b\n\nc", "1"]
    assert len(row) == len(header)
    scored = score_bytes(tmp_path, b'{"text": "a, b\\n\\nc"}\n', "in.jsonl", "out.jsonl")
    assert row[2] in scored.decode()


def test_a_quotation_mark_without_its_other_is_looked_for_a_few_times(tmp_path: Path) -> None:
    """What waits is looked at again only when it is twice as long: the time grows with the file, not with its square."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'text\n"' + b"a b,c\n" * 2000)
    seen: list[int] = []

    def end_of(content: bytes) -> int:
        seen.append(len(content))
        return 5 if content.startswith(b"text") else 0

    blocks = list(line_blocks(find_sources([path])[0], 10, end_of=end_of))
    assert [block.content for block in blocks] == [b"text\n", b'"' + b"a b,c\n" * 2000]
    assert sum(seen) < 3 * path.stat().st_size
