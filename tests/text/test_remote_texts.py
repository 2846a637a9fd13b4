"""Texts at an address: the same segments, numbers and fingerprints as from a local file, and no password anywhere."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import logging
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import run as command
from tests.remote_servers import KEY, SECRET, WebFiles

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.base.remote import buckets, reading
from lmgauge.records.sources import find_sources
from lmgauge.text.documents import Corpus

LINES = [f"the cat sat on mat {i} with dog {i % 7}" for i in range(3000)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
RECORDS = "".join(json.dumps({"id": f"r{i}", "text": line}) + "\n" for i, line in enumerate(LINES)).encode()


def packed(ending: str, content: bytes) -> bytes:
    if ending == ".zst":
        zstandard = pytest.importorskip("zstandard")
        return bytes(zstandard.ZstdCompressor().compress(content))
    return {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}[ending](content)


def table() -> bytes:
    rows = pa.table({"id": [f"r{i}" for i in range(3000)], "noise": [b"x" * 400] * 3000, "text": LINES})
    file = io.BytesIO()
    pq.write_table(rows, file, row_group_size=500, compression="none", use_dictionary=False)
    return file.getvalue()


def fingerprint(corpus: Corpus) -> tuple[str, int, int, list[Any]]:
    ids = [part.ids for part in corpus if part.ids is not None]
    return corpus.report.sha256, corpus.report.segments, corpus.report.bytes, ids


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize(("name", "content"), [("a.txt", TEXT), ("a.jsonl", RECORDS)], ids=["text", "jsonl"])
def test_the_same_text_from_anywhere(
    web: WebFiles, bucket: Any, tmp_path: Path, name: str, content: bytes, ending: str
) -> None:
    local = tmp_path / (name + ending)
    local.write_bytes(packed(ending, content))
    address = web.put(name + ending, local.read_bytes())
    web.faults[f"/{name}{ending}"] = ["", "drop"]
    bucket.pipe(f"texts/{name}{ending}", local.read_bytes())
    expected = fingerprint(Corpus.from_files(local))
    assert fingerprint(Corpus.from_files(f"{address}?name=other.parquet#part.tsv")) == expected
    assert fingerprint(Corpus.from_files(f"s3://texts/{name}{ending}")) == expected


def test_parquet_sends_the_columns_that_are_read(
    web: WebFiles, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WINDOW", 10_000)
    local = tmp_path / "a.parquet"
    local.write_bytes(table())
    address = web.put("a.parquet", local.read_bytes())
    bucket.pipe("texts/a.parquet", local.read_bytes())
    expected = fingerprint(Corpus.from_files(local, id="id"))
    assert fingerprint(Corpus.from_files(address, id="id")) == expected
    assert fingerprint(Corpus.from_files("s3://texts/a.parquet", id="id")) == expected
    ranges = [wanted.removeprefix("bytes=").split("-") for _, _, wanted in web.requests]
    sent = sum(int(end) - int(start) + 1 for start, end in ranges)
    assert sent < 0.35 * len(local.read_bytes())  # most of the file is the column that nobody asked for
    web.ranges = False
    with pytest.raises(InputError, match="sends no parts of files, as this format needs"):
        fingerprint(Corpus.from_files(address))


def test_patterns_labels_and_documents(bucket: Any) -> None:
    for name in ("in/b/part.txt", "in/a/part.txt", "in/other.txt"):
        bucket.pipe(f"texts/{name}", f"text of {name}\n".encode())
    sources = find_sources(["s3://texts/in/*/part.txt", "s3://texts/in/other.txt"])
    assert [source.label for source in sources] == ["s3://texts/in/a/part.txt", "s3://texts/in/b/part.txt", "other"]
    assert [source.state.size for source in sources if source.state] == [22, 22, 21]
    corpus = Corpus.from_files("s3://texts/in/**/*.txt")
    assert sum(len(part) for part in corpus) == 3
    assert corpus.report.documents == 3


def test_addresses_that_differ_in_their_queries_are_different_files(web: WebFiles) -> None:
    address = web.put("get", b"one\n")
    corpus = Corpus.from_files([f"{address}?id=1", f"{address}?id=2"])
    assert [part.source for part in corpus] == [address, f"{address} (2)"]
    assert corpus.report.documents == 2
    assert corpus.group_names == ["get", "get (2)"]


def test_a_text_written_anew_between_two_passes(web: WebFiles) -> None:
    corpus = Corpus.from_files(web.put("a.txt", TEXT))
    fingerprint(corpus)
    web.tags["/a.txt"] = '"2"'
    with pytest.raises(InputError, match=r"a\.txt: changed while it was being read"):
        fingerprint(corpus)


def test_a_table_written_anew_while_it_is_read(bucket: Any) -> None:
    bucket.pipe("texts/a.parquet", table())
    corpus = Corpus.from_files("s3://texts/a.parquet", block_bytes=1000)
    parts = iter(corpus)
    next(parts)
    bucket.pipe("texts/a.parquet", table().replace(b"noise", b"other"))
    with pytest.raises(InputError, match="changed while it was being read"):
        list(parts)


def test_a_block_that_is_not_whole_is_never_a_text(web: WebFiles) -> None:
    address = web.put("a.txt", TEXT)
    web.faults["/a.txt"] = ["", *["drop"] * 40]
    with pytest.raises(InputError, match="after 5 tries"):
        fingerprint(Corpus.from_files(address))


def test_no_password_is_shown_or_stored(
    web: WebFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    web.put("train.txt", TEXT)
    web.put("test.jsonl.gz", gzip.compress(RECORDS))
    host = web.address.removeprefix("http://")
    secrets = ["hunter2", "abc123sig", "tok999"]
    train = f"http://me:hunter2@{host}/train.txt?X-Amz-Signature=abc123sig"
    test = f"http://me:hunter2@{host}/test.jsonl.gz?token=tok999"
    shown: list[str] = []
    statuses: list[int] = []
    for arguments in (
        ["train", "kneser-ney", "--order", "2", train, "-o", "kn2"],
        ["eval", "-m", "kn2", test, "-o", "run", "--per-segment", "rows.tsv"],
        ["eval", "-m", "kn2", test, "--json"],
        ["diagnose", "run"],
        ["report", "run", "-o", "page.html"],
        ["eval", "-m", "kn2", test.replace("test", "missing")],
        ["eval", "-m", "kn2", test, "--field", "nothing"],
        ["bleu", train, test],
        ["split", train, "-o", "parts"],
    ):
        result = command(*arguments)
        shown.append(result.output + result.stderr + repr(result.exception))
        statuses.append(result.exit_code)
    assert statuses == [0, 0, 0, 0, 0, 2, 2, 0, 0]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"evaluation.json", "rows.tsv", "config.json"} <= {path.name for path in files}
    everything = "\n".join(shown) + caplog.text + "".join(path.read_bytes().decode("latin-1") for path in files)
    assert [secret for secret in (*secrets, KEY, SECRET) if secret in everything] == []
    stored = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert f"{web.address}/test.jsonl.gz" in json.dumps(stored)


def test_evaluating_and_training(web: WebFiles, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_BLOCK", 10_000)
    local = tmp_path / "a.txt"
    local.write_bytes(TEXT)
    bucket.pipe("texts/part-1.txt", TEXT[: TEXT.index(b"\n", 50_000) + 1])
    bucket.pipe("texts/part-2.txt", TEXT[TEXT.index(b"\n", 50_000) + 1 :])
    models = [lmgauge.train("kneser-ney", text, order=2) for text in (local, "s3://texts/part-*.txt")]
    address = web.put("a.txt", TEXT)
    results = [lmgauge.evaluate(models[0], local), lmgauge.evaluate(models[1], address)]
    assert results[0].perplexity == results[1].perplexity
    assert results[0].signature == results[1].signature
