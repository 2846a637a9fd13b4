"""Files of documents as tests filter them, with a model that takes no time."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

import lmgauge
from lmgauge.filtering.documents import DocumentScores, DocumentSums
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.models.protocol import LanguageModel

TRAINING = ["a b c", "a b", "the cat sat on the mat", "a cat", "c b a"]
COLUMNS = ["m_bits", "m_bits_per_byte", "m_perplexity", "m_tokens", "m_unseen"]


@cache
def small_model() -> LanguageModel:
    """A model of a few words, in which nothing is impossible."""
    return lmgauge.train("laplace", lmgauge.Corpus.from_strings(TRAINING), order=3)


class GivenSums(DocumentSums):
    """Sums of documents of which the figures that rules look at are given, each [documents]."""

    def __init__(self, perplexity: NDArray[np.float64], tokens: NDArray[np.int64], unseen: NDArray[np.float64]) -> None:
        none = np.zeros(len(perplexity), np.int64)
        super().__init__(-tokens * np.log(np.clip(perplexity, 1, 1e9)), tokens, none, none, none)
        vars(self).update(perplexity=perplexity, share=unseen)

    def unseen_share(self) -> NDArray[np.float64]:
        share: NDArray[np.float64] = vars(self)["share"]
        return share


def scores_of(
    perplexity: ArrayLike,
    models: Sequence[str] = ("m0",),
    sizes: ArrayLike = 500,
    tokens: ArrayLike = 100,
    unseen: ArrayLike = 0.0,
) -> DocumentScores:
    """Scores of documents: of all but sizes an array [documents, models], or what is spread to one."""
    shape = np.broadcast_shapes(np.shape(perplexity), (1, len(models)))
    tables = [np.broadcast_to(values, shape).T for values in (perplexity, np.array(tokens, np.int64), unseen)]
    sums = {name: GivenSums(*(np.array(table[k]) for table in tables)) for k, name in enumerate(models)}
    return DocumentScores(np.broadcast_to(np.array(sizes, np.int64), shape[:1]), sums, {})


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
