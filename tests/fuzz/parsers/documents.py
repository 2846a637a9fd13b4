"""Documents to filter: no record is lost or doubled, and what is written is what was read, with columns behind it."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from lmgauge.base.errors import LmgaugeError
from tests.filtering.filtered import COLUMNS, Filtered, filter_bytes
from tests.fuzz.mutations import PIECES, changed
from tests.fuzz.parsers.parquet import written
from tests.fuzz.table import Attempt

RECORDS = [
    b'{"text": "a b c", "id": 1, "lang": "en", "more": {"x": [1, 2.5e3, null, true]}}',
    '{"id": "\\u00e9\\ud83d\\ude00", "text": "grün \\n the cat\\r\\n", "url": "http://a/b?c=d&e=\\"f\\""}'.encode(),
    b'{"text":"a","m_bit":"m_bits","lang":"de"}',
    b'{"text": null, "m_bits": 3}',
]
RECORD_PIECES = [b"\\udc00", b'\\"', b'"text": "x"', b'"text": 1', b'"m_bits": 1', b', "m_unseen": {}', b"9" * 5000, b"{}"]
PACKED = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0")
MARK = b"\xef\xbb\xbf"


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        for name in ("out-in.jsonl", "out-in.parquet"):
            (folder / name).unlink(missing_ok=True)
        return _parquet(folder, chance) if chance.random() < 0.2 else _jsonl(folder, chance)

    return attempt


def _jsonl(folder: Path, chance: random.Random) -> str:
    rows = [chance.choice(RECORDS[: chance.choice([1, 3, 4])]) for _ in range(chance.randint(0, 20))]
    rows = [changed(row, chance, 2, [*PIECES, *RECORD_PIECES]) if chance.random() < 0.3 else row for row in rows]
    content = chance.choice([b"\n", b"\n", b"\r\n"]).join(rows) + chance.choice([b"", b"\n"])
    try:
        done = filter_bytes(folder, content, id="id", group="lang")
    except LmgaugeError as error:
        _check_refusal(folder, content, str(error))
        raise
    _check_lines(content.removeprefix(MARK).split(b"\n"), done)
    return "read"


def _check_refusal(folder: Path, content: bytes, said: str) -> None:
    """Hold a refusal of a whole file against what it may be for: it is not JSONL, or has columns of that name."""
    if "records can be used" not in said:
        first = content.removeprefix(MARK).split(b"\n")[0]
        assert content.startswith(PACKED) or any(name.startswith("m_") for name in json.loads(first)), said
        assert not (folder / "out-in.jsonl").exists()


def _check_lines(lines: list[bytes], done: Filtered) -> None:
    """Hold what was written and put aside against the lines of the file: each is in one of them, as it was."""
    rows = [line for line in lines if line.strip()]
    aside = {record["record"]: record for record in done.rejects}
    assert len(aside) == len(done.rejects)
    assert len(rows) == done.result.records == len(done.rejects) + done.result.documents
    expected = [line for number, line in enumerate(lines, start=1) if line.strip() and number not in aside]
    results = done.output.split(b"\n")[:-1]
    assert len(results) == len(expected)
    for line, row in zip(results, expected, strict=True):
        assert line.startswith(row.rstrip()[:-1].rstrip()), (line, row)
        assert repr(_pairs(line)[:-5]) == repr(_pairs(row))
        assert [name for name, _ in _pairs(line)[-5:]] == COLUMNS
    for number, record in aside.items():
        raw = record["raw"].encode() if record["raw"] is not None else base64.b64decode(record["raw_base64"])
        assert raw == lines[number - 1]


def _pairs(line: bytes) -> list[tuple[str, Any]]:
    return list(json.loads(line.decode(), object_pairs_hook=list))


def _parquet(folder: Path, chance: random.Random) -> str:
    texts = [chance.choice(["a b", "", None, "grün", "x" * 300, "the cat"]) for _ in range(chance.randint(0, 40))]
    table = pa.table({"text": pa.array(texts, pa.string()), "n": range(len(texts)), "l": [["x", None]] * len(texts)})
    whole = written(table, chance)
    content = changed(whole, chance, 2) if chance.random() < 0.6 else whole
    try:
        done = filter_bytes(folder, content, "in.parquet")
    except LmgaugeError:
        assert not (folder / "out-in.parquet").exists()
        raise
    assert done.result.records == len(done.rejects) + len(done.table)
    if content == whole and done.result.records == len(texts):
        rows = table.filter(pa.array([text is not None for text in texts], pa.bool_()))
        assert done.table.select(["text", "n", "l"]).equals(rows)
    return "read"
