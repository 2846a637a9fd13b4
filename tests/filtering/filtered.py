"""Files of documents as tests filter them, with a model that takes no time."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lmgauge
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.models.protocol import LanguageModel

TRAINING = ["a b c", "a b", "the cat sat on the mat", "a cat", "c b a"]
COLUMNS = ["m_bits", "m_bits_per_byte", "m_perplexity", "m_tokens", "m_unseen"]


@cache
def small_model() -> LanguageModel:
    """A model of a few words, in which nothing is impossible."""
    return lmgauge.train("laplace", lmgauge.Corpus.from_strings(TRAINING), order=3)


@dataclass(frozen=True)
class Filtered:
    """What became of one file."""

    result: FilteredDocuments
    output: bytes
    rejects: list[dict[str, Any]]

    @property
    def lines(self) -> list[bytes]:
        return self.output.splitlines()

    @property
    def reasons(self) -> list[str]:
        return [record["reason"] for record in self.rejects]

    @property
    def table(self) -> pa.Table:
        return pq.read_table(io.BytesIO(self.output))


def filter_bytes(folder: Path, content: bytes, name: str = "in.jsonl", output: str = "", **options: Any) -> Filtered:
    """Filter a file of this content into one of the same form, or of another name."""
    source, target, rejects = folder / name, folder / (output or f"out-{name}"), folder / "rejects.jsonl"
    source.write_bytes(content)
    result = lmgauge.filter_documents({"m": small_model()}, source, target, rejects=rejects, **options)
    aside = [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()]
    return Filtered(result, target.read_bytes(), aside)


def filter_table(folder: Path, table: pa.Table, row_group_size: int | None = None, **options: Any) -> Filtered:
    """Filter a Parquet file of this table."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size)
    return filter_bytes(folder, sink.getvalue(), "in.parquet", **options)


def score_bytes(folder: Path, content: bytes, name: str, output: str) -> bytes:
    """Score a file of this content."""
    (folder / name).write_bytes(content)
    lmgauge.score_documents({"m": small_model()}, folder / name, folder / output)
    return (folder / output).read_bytes()
