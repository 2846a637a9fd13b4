"""Engines compared by their logs, and faults that are planted in these: which of them are beyond the noise floor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge.base.errors import InputError

Array = np.ndarray[Any, Any]
DOCUMENTS, TOKENS, VOCABULARY = 20, 400, 50


def log(path: Path, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def test_a_token_that_one_engine_does_not_score_is_left_out(tmp_path: Path) -> None:
    tokens, values = [5, 6, 7], [-0.5, -1.0, -2.0]
    whole = log(tmp_path / "a.parquet", [{"token_ids": tokens, "logprobs": values}] * 8)
    headless = log(tmp_path / "b.parquet", [{"token_ids": tokens, "logprobs": [None, *values[1:]]}] * 8)
    result = lmgauge.agree(whole, headless, examples=0)
    assert (result.figures.events, result.figures.largest.value, result.missing[1]) == (16, 0.0, (8, 0))


def test_a_missing_row_is_named(tmp_path: Path) -> None:
    rows = [{"segment": 0, "token": f"#{i}", "logprob": -1.0} for i in range(9)]
    paths = log(tmp_path / "a.parquet", rows), log(tmp_path / "b.parquet", rows[:3] + rows[4:])
    with pytest.raises(
        InputError, match=r"token 4 of segment 1 is '#4', and in .*a.parquet it is '#3'; .*one may be missing"
    ):
        lmgauge.agree(*paths)


def test_ids_are_not_the_text_of_tokens(tmp_path: Path) -> None:
    ids = log(tmp_path / "a.parquet", [{"token_ids": [5, 6], "logprobs": [-0.5, -1.0]}])
    text = log(tmp_path / "b.parquet", [{"segment": 0, "token": token, "logprob": -1.0} for token in ("the", " cat")])
    with pytest.raises(InputError, match=r"is 'the', and in .* it is '#5'; one has the ids of tokens, the other their text"):
        lmgauge.agree(ids, text)


def softmax(logits: Array) -> Array:
    values: Array = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return values


def engine(logits: Array, noise: float, seed: int, temperature: float = 1.0) -> Array:
    """Distributions of a model whose logits are rounded as those of an engine are, each time otherwise."""
    rng = np.random.default_rng(seed)
    return softmax((logits + noise * rng.normal(size=logits.shape)) / temperature)


def shifted(values: Array) -> Array:
    values[:, 64::64] = values[:, 63:-1:64]
    return values


FAULTS: dict[str, tuple[bool, Callable[[Array, Array], Array]]] = {
    "none": (False, lambda logits, ids: engine(logits, 0.01, 3)),
    "temperature": (True, lambda logits, ids: engine(logits, 0.01, 3, temperature=1.01)),
    "other weights": (True, lambda logits, ids: engine(logits + 0.05 * np.sin(np.arange(VOCABULARY)), 0.01, 3)),
    "coarser numbers": (True, lambda logits, ids: engine(logits, 0.03, 3)),
}


@pytest.mark.parametrize("kind", [*FAULTS, "a chunk's edge", "truncated"])
def test_planted_faults_are_beyond_the_floor(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(DOCUMENTS, TOKENS, VOCABULARY))
    first, again = engine(logits, 0.01, 1), engine(logits, 0.01, 2)
    if kind == "truncated":  # drawn from the 20 likeliest tokens, whose probabilities then sum to one
        first, again = (softmax(np.where(p < np.sort(p)[..., -20, None], -np.inf, p)) for p in (first, again))
    ids = (np.exp(first).cumsum(-1) < rng.random((DOCUMENTS, TOKENS, 1))).sum(-1)

    def of_tokens(distributions: Array) -> Array:
        return np.take_along_axis(distributions, ids[..., None], -1)[..., 0]

    beyond, second = FAULTS.get(kind, (True, FAULTS["none"][1]))
    tables = [of_tokens(one) for one in (first, second(logits, ids), again)]
    if kind == "a chunk's edge":
        tables[1] = shifted(tables[1])
    paths = [
        log(
            tmp_path / f"{name}.parquet", [{"token_ids": i, "logprobs": v} for i, v in zip(ids.tolist(), table, strict=True)]
        )
        for name, table in zip("abf", tables, strict=True)
    ]
    result = lmgauge.agree(paths[0], paths[1], floor=paths[2])
    assert result.beyond is beyond
