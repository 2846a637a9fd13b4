"""Documents for the steps of pipelines: sentences, and what goes wrong with some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

BOOKS = Path(__file__).resolve().parent.parent / "data" / "classic-books.train.txt"
RULES: dict[str, Any] = {"keep": "p10..p70", "max_perplexity": 20_000.0, "min_bytes": 3, "buckets": "p30,p60"}
NASTY = [None, "a\0b", "", "two\r\nlines\rthree", "naïve — “quotes”", "zzz qqq", "\n\n"]


def make_documents() -> list[dict[str, Any]]:
    """Records with an id, a text and a language, which one in five has not; enough of them for percentiles by language."""
    paragraphs = BOOKS.read_text(encoding="utf-8").splitlines()[200:450]
    texts = [text for pair in zip(paragraphs, NASTY * 36, strict=False) for text in pair]
    languages = ["en", "de", "en", None, "de"]
    return [{"id": f"d{row}", "text": text, "lang": languages[row % 5]} for row, text in enumerate(texts)]


def make_table() -> pa.Table:
    """The same as a table."""
    return pa.Table.from_pylist(make_documents())


def write_documents(path: Path) -> Path:
    """Write them as JSONL."""
    path.write_text("".join(f"{json.dumps(document)}\n" for document in make_documents()), encoding="utf-8")
    return path
