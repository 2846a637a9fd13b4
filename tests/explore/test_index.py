"""The index: any segment with its text and rows, whatever the file of the table looks like; what is wrong is said."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.explore.conftest import Served, corpus, models, serving, texts

from lmgauge import Corpus, evaluate
from lmgauge.base.errors import InputError, UsageError
from lmgauge.explore.launch import open_explorer
from lmgauge.scores import RowReader, join_batches, read_scores


def test_the_tables_have_several_groups_of_rows(folder: Path) -> None:
    assert pq.ParquetFile(folder / "a" / "scores.parquet").num_row_groups > 5


def test_all_pages_are_the_text(two: Served) -> None:
    items = two.all()
    assert [item["text"] for item in items] == texts()
    assert [item["where"] for item in items] == [f"n{i:03}" for i in range(300)]
    assert [item["group"] for item in items] == [["news", "law"][i % 5 == 0] for i in range(300)]
    assert [len(item["runs"]) for item in items] == [2] * 300


def test_rows_are_read_by_their_place(folder: Path) -> None:
    path = folder / "a" / "scores.parquet"
    whole = join_batches(list(read_scores(path)))
    reader = RowReader(path)
    assert reader.rows == len(whole)
    bounds = np.concatenate(([0], np.cumsum(whole.segment_events)))
    for first, last in ((0, 1), (17, 18), (3, 80), (0, 300), (299, 300)):
        begin, end = int(bounds[first]), int(bounds[last])
        part = reader.read(begin, end)
        assert part.segments.tolist() == list(range(first, last))
        assert np.array_equal(part.logprob, whole.logprob[begin:end])
        assert np.array_equal(part.ends, whole.ends[begin:end])


def test_one_group_of_rows_or_many_make_no_difference(folder: Path, two: Served, tmp_path: Path) -> None:
    for size in (7, 10_000):
        target = tmp_path / f"rows-{size}.parquet"
        pq.write_table(pq.read_table(folder / "a" / "scores.parquet"), target, row_group_size=size)
        for served in serving(target, text=corpus(folder / "text.jsonl")):
            mine, theirs = served.all(sort="bits"), two.all(sort="bits")
            assert [item["runs"][0] for item in mine] == [item["runs"][0] for item in theirs]


def test_json_lines_without_a_row_are_refused_by_their_name(tmp_path: Path) -> None:
    target = tmp_path / "table.jsonl"
    target.write_text("")
    with pytest.raises(InputError, match=r"table\.jsonl: the score table has no row"):
        open_explorer(target)


def test_json_lines_are_read_too(folder: Path, tmp_path: Path, one: Served) -> None:
    table = pq.read_table(folder / "a" / "scores.parquet").to_pylist()
    target = tmp_path / "table.jsonl"
    target.write_text("".join(json.dumps(row) + "\n" for row in table), encoding="utf-8")
    for served in serving(target, text=corpus(folder / "text.jsonl")):
        assert served.get("numbers")["runs"] == one.get("numbers")["runs"]


@pytest.mark.parametrize("number", [0, 19, 20, 150, 299])
def test_jumps_lead_to_the_page_with_the_segment(two: Served, number: int) -> None:
    page = two.get("segments", at=number)
    assert number in [item["segment"] for item in page["items"]]
    assert page["page"] == number // 20
    assert two.get("segment", id=f"n{number:03}") == {"segment": number}
    assert two.get("segment", id=f"text.jsonl:{number + 1}") == {"segment": number}


def test_a_segment_that_is_not_there_is_said(two: Served) -> None:
    assert "no segment that was read is called 'n999'" in two.refused("segment", id="n999")
    assert "segment 300 is not among those that were read" in two.refused("segment", at=300)
    assert "Expected `int | null`" in two.refused("segment", at="x")


def test_a_long_segment_is_shown_in_parts(tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    words = [f"wörd{i % 50}" for i in range(5000)]
    text.write_text(" ".join(words) + "\n", encoding="utf-8")
    evaluate(models()["a"], Corpus.from_files(text), output=tmp_path / "run")
    for served in serving(tmp_path / "run"):
        part = served.get("segment", at=0)
        shown = part["text"]
        assert part["is_cut"]
        while part["begin"] + part["shown"] < part["size"] - 1:
            part = served.get("segment", at=0, begin=part["begin"] + part["shown"])
            shown += part["text"]
        assert shown == " ".join(words)


def test_two_texts_are_not_laid_side_by_side(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("the cat sees it\n")
    evaluate(models()["a"], other, output=tmp_path / "other")
    with pytest.raises(InputError, match="scored different texts"):
        open_explorer([folder / "a", tmp_path / "other"])


def test_another_text_is_said(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "text.jsonl"
    other.write_text((folder / "text.jsonl").read_text("utf-8").replace("zebra", "Zebra"), encoding="utf-8")
    for served in serving(folder / "a", text=corpus(other)):
        assert "scored another text" in served.get("state")["problem"]
        assert "scored another text" in served.refused("segments")


def test_a_run_that_disappears_is_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "a", tmp_path / "a")
    for served in serving(tmp_path / "a", text=corpus(folder / "text.jsonl")):
        assert served.get("segments")["total"] == 300
        shutil.rmtree(tmp_path / "a")
        assert "was changed or removed" in served.refused("segments")
        assert "was changed or removed" in served.refused("segment", at=3)


def test_a_run_that_is_changed_is_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "a", tmp_path / "a")
    scores = tmp_path / "a" / "scores.parquet"
    for served in serving(tmp_path / "a", text=corpus(folder / "text.jsonl")):
        os.utime(scores, ns=(1, 1))
        assert "was changed or removed" in served.refused("segments")


def test_a_broken_seal_is_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "a", tmp_path / "a")
    shutil.copy(folder / "b" / "scores.parquet", tmp_path / "a" / "scores.parquet")
    for served in serving(tmp_path / "a", text=corpus(folder / "text.jsonl")):
        assert "it was changed" in served.get("state")["problem"]


def test_what_cannot_be_looked_at_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to look at"):
        open_explorer([])
    with pytest.raises(UsageError, match="3 runs"):
        open_explorer([folder / "a"] * 3)
    with pytest.raises(InputError, match="no such run"):
        open_explorer([tmp_path / "none"])
    with pytest.raises(InputError, match=r"evaluation\.json is missing"):
        open_explorer([tmp_path])


def test_strings_of_a_text_are_made_safe(tmp_path: Path) -> None:
    text = tmp_path / "hostile.jsonl"
    rows = [{"text": "a\x1b[31m\u202eb", "name": "<script>\u2066"}, {"text": "</script><b>", "name": "x\x00"[:1]}]
    text.write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluate(models()["a"], Corpus.from_files(text, id="name"), output=tmp_path / "run")
    for served in serving(tmp_path / "run"):
        items = served.all()
        assert items[0]["text"] == "a\ufffd[31m\ufffdb"
        assert items[0]["where"] == "<script>\ufffd"
        assert "<script>\ufffd" not in served.client.get("/").text
