"""Documents at addresses: filtered into the same bytes as on a disk, resumed there, and no password in what is written."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok
from tests.remote_servers import WebFiles

import lmgauge
from lmgauge.base import paths as places
from lmgauge.filtering.filter_files import jobs_of
from lmgauge.records.sources import Source

LINES = [f"the cat sat on mat {i % 50} with dog {i * i % 7}" for i in range(400)]
RECORDS = "".join(json.dumps({"id": i, "text": line}) + "\n" for i, line in enumerate(LINES)).encode()
SECRETS = (b"hunter2", b"sig9")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small model, in the folder where the test runs."""
    monkeypatch.chdir(tmp_path)
    lmgauge.train("kneser-ney", lmgauge.Corpus.from_strings(LINES[:100]), order=2).save("kn2")
    return "kn2"


def table() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(LINES)), "text": LINES}), file, row_group_size=100)
    return file.getvalue()


def test_a_bucket_gets_what_a_folder_gets_and_is_resumed(bucket: Any, tmp_path: Path, model: str) -> None:
    for name in ("a.jsonl", "b/c.jsonl", "d.parquet"):
        content = table() if name.endswith("parquet") else RECORDS
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
        bucket.pipe(f"texts/in/{name}", content)
    command = ("filter", "-m", model, "--max-perplexity", "9")
    ok(*command, "in/a.jsonl", "in/b/c.jsonl", "in/d.parquet", "-o", "out/")
    remote = (*command, "s3://texts/in/**/*.jsonl", "s3://texts/in/d.parquet", "-o", "s3://texts/out/")
    ok(*remote)
    versions = {name: places.file_state(f"s3://texts/out/{name}") for name in ("a.jsonl", "b/c.jsonl", "d.parquet")}
    assert {name: bucket.cat(f"texts/out/{name}") for name in versions} == {
        name: (tmp_path / "out" / name).read_bytes() for name in versions
    }
    bucket.rm("texts/out/a.jsonl")
    ok(*remote)
    assert places.exists("s3://texts/out/a.jsonl")
    assert bucket.cat("texts/out/b/c.jsonl") == (tmp_path / "out" / "b" / "c.jsonl").read_bytes()


def test_passwords_are_not_in_what_is_written(web: WebFiles, bucket: Any, tmp_path: Path, model: str) -> None:
    address = web.put("a.jsonl", RECORDS + b"{bad\n").replace("://", "://me:hunter2@") + "?X-Amz-Signature=sig9"
    shown = ""
    for output in ("scored.jsonl", "scored/", "s3://texts/scored/"):
        result = ok("score", "-m", model, address, "-o", output)
        shown += result.output + result.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    written += [bucket.cat(name) for name in bucket.find("texts")]
    assert len(written) > 6
    assert not [secret for secret in SECRETS if any(secret in content for content in [*written, shown.encode()])]


def source(path: str) -> Source:
    return Source(path, "jsonl", "", "x", False, shown=path if "://" in path else "")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["s3://b/in/a.jsonl", "s3://b/in/c/d.jsonl"], ["a.jsonl", "c/d.jsonl"]),
        (["s3://b/in/a.jsonl", "s3://c/in/a.jsonl"], ["b/in/a.jsonl", "c/in/a.jsonl"]),
        (["https://b/x/a.jsonl", "https://b/x/../../../y/a.jsonl"], ["b/x/a.jsonl", "y/a.jsonl"]),
        (["/in/a.jsonl", "/in/b/a.jsonl"], ["a.jsonl", "b/a.jsonl"]),
    ],
)
def test_names_stay_below_the_output(paths: list[str], names: list[str]) -> None:
    jobs = jobs_of([source(path) for path in paths], "out/", columns=True)
    assert [job.outputs[""] for job in jobs] == [f"out/{name}" for name in names]
