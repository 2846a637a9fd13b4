"""Columns by name, and a model that fills them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.scores import read_scores
from lmgauge.scores.distributions.reduce import WithColumns, reductions_named
from lmgauge.scores.distributions.reductions import Entropy, TopK
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["a b c", "b c a", "a b", ""]


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_entropy_and_rank(context: str) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3, context=context)  # type: ignore[arg-type]
    history = [BOS]
    text = Corpus.from_strings(["a b x", "c b"], block_bytes=4)
    for batch, full in zip(model.score(text), WithColumns(model, ["entropy", "rank"]).score(text), strict=True):
        assert np.array_equal(full.logprob, batch.logprob)
        for token, entropy, rank in zip(
            full.token_ids.tolist(), full.extra["entropy"].tolist(), full.extra["rank"].tolist(), strict=True
        ):
            p = np.exp(model.log_distribution(history))
            assert entropy == pytest.approx(-math.fsum(q * math.log(q) for q in p.tolist() if q > 0), rel=1e-9)
            assert rank == 1 + sum(q > p[token] for q in p)
            history = [BOS] if token == EOS and context == "sentence" else [*history, token]


def test_names() -> None:
    assert reductions_named(["top10", "entropy", "top10"]) == [TopK(10), Entropy()]
    for name in ("surprise", "top0", "top", "top1001", "topN"):
        with pytest.raises(UsageError, match=f"column '{name}' is not known; choose from entropy, rank, topN"):
            reductions_named([name])
    with pytest.raises(UsageError, match="column 'surprise' is not known"):
        lmgauge.settings.Outputs("run", columns=("surprise",))


def test_all_columns_in_a_run_and_in_rows(tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3)
    outputs = lmgauge.settings.Outputs(
        tmp_path / "run", columns=("entropy", "rank", "top3", "moments", "mass"), per_token=tmp_path / "rows.jsonl"
    )
    plain = lmgauge.evaluate(model, texts=["a b x", "c b"], output=tmp_path / "plain")
    assert lmgauge.evaluate(model, texts=["a b x", "c b"], output=outputs).perplexity == plain.perplexity
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    distribution = np.exp(model.log_distribution([BOS]))
    best = np.argsort(-distribution, kind="stable")[:3]
    assert rows[0]["top_tokens"] == [model.vocabulary.tokens[i] for i in best.tolist()]
    assert rows[0]["top_logprobs"] == pytest.approx(np.log(distribution[best]).tolist())
    assert rows[0]["mean_logprob"] == pytest.approx(-rows[0]["entropy"])
    assert rows[0]["mass"] == pytest.approx(1)
    written = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text("utf-8").splitlines()]
    assert [row["top_tokens"] for row in written] == [row["top_tokens"] for row in rows]
    (batch,) = read_scores(tmp_path / "run" / "scores.parquet")
    assert batch.extra["top_tokens"].tolist() == [row["top_tokens"] for row in rows]
    assert batch.extra["top_logprobs"].shape == (len(rows), 3)
    assert lmgauge.evaluate_scores(tmp_path / "run").perplexity == plain.perplexity


def test_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    rows = [{"segment": 0, "logprob": -1.0, "top_tokens": ["a"] * (1 + i), "top_logprobs": [-1.0]} for i in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(InputError, match="lists of most probable tokens have different lengths"):
        list(read_scores(path))
