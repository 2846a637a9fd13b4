"""Records of TSV: cells stay as they are, and those of scores are put behind them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.filtering.filtered import COLUMNS, filter_bytes, score_bytes, small_model

import lmgauge
from lmgauge.base.errors import InputError

TABLE = b"id\ttext\tlang\nx1\ta b\ten\nx2\tzz zz zz\tde\nx3\t\ten\n"


def figures_of(folder: Path, texts: list[str]) -> list[list[object]]:
    """What the same documents get as JSONL."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    written = score_bytes(folder, lines, "same.jsonl", "same-out.jsonl").splitlines()
    return [[json.loads(line)[name] for name in COLUMNS] for line in written]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_every_column_stays_and_figures_are_put_behind(tmp_path: Path, end: bytes, start: bytes) -> None:
    done = filter_bytes(tmp_path, start + TABLE.replace(b"\n", end), "in.tsv", id="id", group="lang")
    rows = [line.split("\t") for line in done.output.decode().splitlines()]
    assert rows[0] == ["id", "text", "lang", *COLUMNS]
    assert [row[:3] for row in rows[1:]] == [line.decode().split("\t") for line in TABLE.splitlines()[1:]]
    expected = figures_of(tmp_path, ["a b", "zz zz zz", ""])
    assert [[float(cell) if cell else None for cell in row[3:]] for row in rows[1:]] == expected
    assert {group.name: group.documents for group in done.result.groups} == {"en": 2, "de": 1}


def test_columns_are_named_by_numbers_where_the_first_line_has_no_names(tmp_path: Path) -> None:
    done = filter_bytes(tmp_path, b"1\ta b\n2\tc\n", "in.tsv", field="2", max_perplexity=1e9)
    assert [line.split(b"\t")[:2] for line in done.lines] == [[b"1", b"a b"], [b"2", b"c"]]
    assert [len(line.split(b"\t")) for line in done.lines] == [7, 7]


def test_what_stays_has_the_names_also_where_nothing_stays(tmp_path: Path) -> None:
    names = "\t".join(["id", "text", "lang", *COLUMNS]) + "\n"
    assert filter_bytes(tmp_path, TABLE, "in.tsv", min_bytes=1000).output.decode() == names
    assert filter_bytes(tmp_path, TABLE[:13], "in.tsv").output.decode() == names
    assert filter_bytes(tmp_path, b"", "in.tsv").output == b""
    packed = filter_bytes(tmp_path, gzip.compress(TABLE), "in.tsv.gz").output
    assert gzip.decompress(packed) == filter_bytes(tmp_path, TABLE, "in.tsv").output


def test_a_bad_record_is_put_aside_and_ends_nothing(tmp_path: Path) -> None:
    done = filter_bytes(
        tmp_path, TABLE + b"x4\ta\nx5\ta\ten\tb\nx6\t\xff\ten\nx7\ta\0\ten\n\nx8\tc\t\xff\n", "in.tsv", id="id"
    )
    assert [(one["record"], one["reason"]) for one in done.rejects] == [
        (5, "bad record"),
        (6, "bad record"),
        (7, "invalid text"),
        (8, "invalid text"),
        (9, "bad record"),
    ]
    assert (done.rejects[0]["raw"], done.rejects[0]["id"], done.rejects[3]["id"]) == ("x4\ta", None, "x7")
    assert "2 columns, where the first line has 3" in done.rejects[0]["detail"]
    assert [line.split(b"\t")[0] for line in done.lines] == [b"id", b"x1", b"x2", b"x3", b"x8"]
    assert done.lines[-1].split(b"\t")[2] == b"\xff"


def test_one_column_may_be_asked_for_twice(tmp_path: Path) -> None:
    done = filter_bytes(tmp_path, TABLE, "in.tsv", id="text", group="text")
    assert [group.name for group in done.result.groups] == ["", "a b", "zz zz zz"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            TABLE,
            {"field": "body"},
            "no column 'body' in its first line, which has 'id', 'text', 'lang': name one of them or",
        ),
        (TABLE, {"group": "4"}, "in.tsv:1: has 3 columns, so no column 4"),
        (TABLE, {"field": "4"}, "in.tsv:1: has 3 columns, so no column 4"),
        (b"text\tm_bits\na\t1\n", {}, "in.tsv:1: there is already a field 'm_bits'"),
    ],
)
def test_a_file_of_other_columns_is_refused(tmp_path: Path, content: bytes, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        filter_bytes(tmp_path, content, "in.tsv", **options)
    assert not (tmp_path / "out-in.tsv").exists()


def test_percentiles_are_those_of_the_same_documents(tmp_path: Path) -> None:
    texts = [" ".join("abc"[: 1 + k % 3]) for k in range(60)]
    (tmp_path / "a.tsv").write_text("text\tlang\n" + "".join(f"{text}\ten\n" for text in texts), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t, "lang": "en"}) + "\n" for t in texts), encoding="utf-8")
    one, two = (
        lmgauge.learn_percentiles({"m": small_model()}, tmp_path / name, group="lang", sample=None)
        for name in ("a.tsv", "a.jsonl")
    )
    assert (one.overall, one.groups) == (two.overall, two.groups)
