"""Mutated files of records: never a traceback, never a record lost or doubled, and what is written is what was read."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.filtering.filtered import COLUMNS, filter_bytes

from lmgauge.errors import LmgaugeError

SEEDS = [
    b'{"text": "a b c", "id": 1, "lang": "en", "more": {"x": [1, 2.5e3, null, true]}}',
    '{"id": "\\u00e9\\ud83d\\ude00", "text": "grün \\n the cat\\r\\n", "url": "http://a/b?c=d&e=\\"f\\""}'.encode(),
    b'{"text":"a","m_bit":"m_bits","lang":"de"}',
    b'{"text": null, "m_bits": 3}',
]
PIECES = [
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\n", b"\r", b"\r\n", b"\0", b" ", b"\t", b"\x0b", b"\x85"),
    *(
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\\u0000",
        b"\\ud800",
        b"\\udc00",
        b'\\"',
        b"null",
        b"NaN",
    ),
    *(b"1e999", b"-0", b'"text": "x"', b'"text": 1', b'"m_bits": 1', b', "m_unseen": {}', b"9" * 5000, b"[" * 3000, b"{}"),
]


def mutated(source: random.Random, content: bytes, most: int = 4) -> bytes:
    """Some bytes put in, taken out, doubled, changed or cut off."""
    for _ in range(source.randint(0, most)):
        begin = source.randint(0, len(content))
        end = min(len(content), begin + source.choice([0, 1, 1, 2, 5, 30]))
        kind = source.randrange(5)
        if kind == 0:
            content = content[:begin] + source.choice(PIECES) + content[begin:]
        elif kind == 1:
            content = content[:begin] + content[end:]
        elif kind == 2:
            content = content[:end] + content[begin:end] + content[end:]
        elif kind == 3:
            content = content[:begin] + bytes(source.randrange(256) for _ in range(end - begin)) + content[end:]
        elif source.random() < 0.2:
            content = content[:begin]
    return content


def pairs(line: bytes) -> list[tuple[str, Any]]:
    return list(json.loads(line.decode(), object_pairs_hook=list))


def check_jsonl(folder: Path, content: bytes) -> tuple[int, int]:
    """Filter a file; return how many of its records stay and how many are put aside."""
    try:
        done = filter_bytes(folder, content, id="id", group="lang")
    except LmgaugeError as error:
        if "records can be used" in str(error):
            return 0, int(str(error).split()[2].replace(",", ""))
        starts = content.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0"))
        first = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
        assert starts or any(name.startswith("m_") for name in json.loads(first)), content
        assert not (folder / "out-in.jsonl").exists()
        return 0, 0
    rows = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    aside = {record["record"]: record for record in done.rejects}
    assert len(aside) == len(done.rejects)
    assert len(rows) == done.result.records == len(done.rejects) + done.result.documents
    numbered = enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1)
    expected = [line for number, line in numbered if line.strip() and number not in aside]
    written = done.output.split(b"\n")[:-1]
    assert len(written) == len(expected)
    for line, row in zip(written, expected, strict=True):
        assert line.startswith(row.rstrip()[:-1].rstrip())
        assert repr(pairs(line)[:-5]) == repr(pairs(row))
        assert [name for name, _ in pairs(line)[-5:]] == COLUMNS
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, record in aside.items():
        raw = record["raw"].encode() if record["raw"] is not None else base64.b64decode(record["raw_base64"])
        assert raw == lines[number - 1]
    (folder / "out-in.jsonl").unlink()
    return len(written), len(aside)


def fuzz_jsonl(folder: Path, seed: int, files: int, lines: int) -> tuple[int, int]:
    """Check files of mutated lines; return how many of them stay and how many are put aside."""
    source, stays, aside = random.Random(seed), 0, 0
    for _ in range(files):
        rows = [mutated(source, source.choice(SEEDS)) for _ in range(source.randint(0, 2 * lines))]
        own = check_jsonl(folder, source.choice([b"\n", b"\n", b"\r\n"]).join(rows) + source.choice([b"", b"\n"]))
        stays, aside = stays + own[0], aside + own[1]
    return stays, aside


def fuzz_parquet(folder: Path, seed: int, files: int) -> tuple[int, int]:
    """Check mutated files of Parquet; return how many could be read and how many were refused."""
    source, read, refused = random.Random(seed), 0, 0
    for _ in range(files):
        sink = io.BytesIO()
        texts = [source.choice(["a b", "", None, "grün", "x" * 300, "the cat"]) for _ in range(source.randint(0, 40))]
        table = pa.table({"text": pa.array(texts, pa.string()), "n": range(len(texts)), "l": [["x", None]] * len(texts)})
        compression = source.choice(["none", "zstd", "snappy", "gzip"])
        pq.write_table(table, sink, row_group_size=source.randint(1, 50), compression=compression)
        content = mutated(source, sink.getvalue(), most=2)
        with contextlib.suppress(FileNotFoundError):
            (folder / "out-in.parquet").unlink()
        try:
            done = filter_bytes(folder, content, "in.parquet")
        except LmgaugeError:
            assert not (folder / "out-in.parquet").exists()
            refused += 1
            continue
        read += 1
        assert done.result.records == len(done.rejects) + len(done.table)
        if content == sink.getvalue():
            valid = [text is not None for text in texts]
            assert done.table.select(["text", "n", "l"]).equals(table.filter(pa.array(valid, pa.bool_())))
    return read, refused


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines(tmp_path: Path, seed: int) -> None:
    stays, aside = fuzz_jsonl(tmp_path, seed, files=25, lines=20)
    assert min(stays, aside) > 100


@pytest.mark.parametrize("seed", range(2))
def test_mutated_tables(tmp_path: Path, seed: int) -> None:
    read, refused = fuzz_parquet(tmp_path, seed, files=60)
    assert min(read, refused) > 5
