"""Records as lines of JSON: fields of all types, nested, with groups, documents, ids and given text."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from lmgauge.text.reading_options import ReadingOptions
from tests.fuzz.mutations import PIECES, changed, changed_lines, changed_value, hostile_text
from tests.fuzz.parsers.reading import check_reading
from tests.fuzz.table import Attempt

JSON_PIECES = [
    b'"text": "x"',
    b'"text": 1',
    b'{"text": "a"}',
    b"{}",
    b"\\ud83d\\ude00",
    b'\\"',
    b'"text"',
    b"9" * 5000,
    b"[" * 3000,
]


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        content = drawn_records(chance, _record)
        options = ReadingOptions(**drawn_options(chance), lists=chance.random() < 0.3)
        return check_reading(folder / "records.jsonl", content, options, chance)

    return attempt


def drawn_records(chance: random.Random, record: Any) -> bytes:
    """Return lines of records, some with values changed, some with bytes changed, some no records."""
    lines = []
    for number in range(chance.randint(0, 8)):
        value = record(chance, number)
        if chance.random() < 0.08:
            value = changed_value(value, chance, 1)
        line = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        lines.append(changed(line, chance, 2, [*PIECES, *JSON_PIECES]) if chance.random() < 0.06 else line)
    content = chance.choice([b"\n", b"\n", b"\r\n"]).join(lines) + chance.choice([b"", b"\n", b"\n\n \t\n"])
    content = b"\xef\xbb\xbf" * (chance.random() < 0.05) + content
    return changed_lines(content, chance, 1) if chance.random() < 0.1 else content


def drawn_options(chance: random.Random) -> dict[str, Any]:
    """Return options of reading records, which mostly fit them."""
    return {
        "field": "text" if chance.random() < 0.95 else chance.choice(["more", "id", "", "none"]),
        "group": chance.choice(["file", None, "group"]),
        "document": chance.choice([None, None, "book"]),
        "id": chance.choice([None, None, "id"]),
        "given": chance.choice([None, None, None, "before"]),
        "errors": chance.choice(["fail", "fail", "replace", "skip"]),
        "join": "\n" if chance.random() < 0.02 else None,
    }


def _record(chance: random.Random, number: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": hostile_text(chance, 8).replace("\0", ""),
        "group": chance.choice(["news", "law", "\x1b[31m", 3]),
        "book": number // 3,
        "id": f"r{number}",
        "before": chance.choice(["", "the ", "é\r\n"]),
    }
    if chance.random() < 0.3:
        record["more"] = {"x": [1, 2.5e3, None, True, {"text": "inner"}]}
    if chance.random() < 0.1:
        record["text"] = [record["text"], None, "b"]
    return record
