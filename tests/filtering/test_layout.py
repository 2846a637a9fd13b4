"""Where records go: a file for a file, a folder for several, no two in one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import UsageError
from lmgauge.filtering.filter_files import jobs_of
from lmgauge.records.sources import Source, find_sources


def made(root: Path, *names: str) -> list[Source]:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return find_sources([root / name for name in names])


def test_one_file_goes_into_a_file(tmp_path: Path) -> None:
    (job,) = jobs_of(made(tmp_path, "a.jsonl.gz"), "out.jsonl.zst", columns=True, rejects="r")
    assert (job.outputs, job.form, job.rejects, job.record) == ({"": "out.jsonl.zst"}, "jsonl", "r", None)


@pytest.mark.parametrize(
    ("names", "outputs"),
    [
        (["a.jsonl"], ["a.jsonl"]),
        (["x/a.jsonl", "x/b.jsonl.gz"], ["a.jsonl", "b.jsonl.gz"]),
        (["x/a.jsonl", "y/a.jsonl"], ["x/a.jsonl", "y/a.jsonl"]),
        (["x/y/a.parquet", "x/z.parquet"], ["y/a.parquet", "z.parquet"]),
        (["a.txt.xz", "b"], ["a.jsonl.xz", "b.jsonl"]),
    ],
)
def test_several_files_go_below_a_folder_as_they_lie(tmp_path: Path, names: list[str], outputs: list[str]) -> None:
    jobs = jobs_of(made(tmp_path, *names), "out/", columns=True)
    assert [job.outputs[""] for job in jobs] == [f"out/{name}" for name in outputs]
    assert len({job.record for job in jobs} | {job.rejects for job in jobs}) == 2 * len(jobs)


def test_lines_stay_lines_where_they_need_no_columns(tmp_path: Path) -> None:
    (job,) = jobs_of(made(tmp_path, "a.txt.gz"), "out/", columns=False)
    assert (job.outputs, job.form) == ({"": "out/a.txt.gz"}, "text")


def test_buckets_are_folders(tmp_path: Path) -> None:
    (job,) = jobs_of(made(tmp_path, "a.jsonl"), "out", buckets=("head", "tail"), columns=False)
    assert job.outputs == {"head": "out/head/a.jsonl", "tail": "out/tail/a.jsonl"}
    assert job.record == "out/_lmgauge/files/a.jsonl.json"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    sources = made(tmp_path, "a.jsonl", "b.jsonl")
    (tmp_path / "file").touch()
    for output in ("-", str(tmp_path / "file")):
        with pytest.raises(UsageError, match="several files are written, into a folder"):
            jobs_of(sources, output, columns=False)
    with pytest.raises(UsageError, match="standard input has no name"):
        jobs_of([*sources, *find_sources("-")], "out/", columns=False)
    with pytest.raises(UsageError, match=r"both would be written to a\.jsonl; name a file once"):
        jobs_of([*sources, *sources], "out/", columns=False)


def test_lines_and_objects_of_one_name_are_not_written_into_one_file(tmp_path: Path) -> None:
    sources = made(tmp_path, "a.txt", "a.jsonl")
    assert [job.name for job in jobs_of(sources, "out/", columns=False)] == ["a.txt", "a.jsonl"]
    with pytest.raises(UsageError, match=r"a\.txt and .*a\.jsonl: the documents of both would be written to a\.jsonl; name"):
        jobs_of(sources, "out/", columns=True)


names = st.text(st.sampled_from("a%/2F_.é\n"), min_size=1, max_size=300).map(lambda name: os.path.normpath("/x/" + name))


@given(st.sets(names, min_size=2, max_size=8))
def test_no_two_files_are_remembered_in_one_place(paths: set[str]) -> None:
    sources = [Source(path, "jsonl", "", path, False) for path in sorted(paths)]
    jobs = jobs_of(sources, "out/", columns=False)
    records = [job.record for job in jobs if job.record is not None]
    assert len(set(records)) == len(paths)
    assert all(len(os.fsencode(os.path.basename(record))) < 230 for record in records)
    assert all(os.path.dirname(record) == "out/_lmgauge/files" for record in records)
