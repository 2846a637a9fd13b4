"""Entropy and rank, against the distributions they are made from."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lmgauge
from lmgauge.errors import UsageError
from lmgauge.models.distribution_columns import DistributionColumns
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["a b c", "b c a", "a b", ""]


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_entropy_and_rank(context: str) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3, context=context)  # type: ignore[arg-type]
    add = DistributionColumns(model, ["entropy", "rank"])
    history = [BOS]
    for batch in model.score(Corpus.from_strings(["a b x", "c b"], block_bytes=4)):
        full = add(batch)
        assert np.array_equal(full.logprob, batch.logprob)
        for token, entropy, rank in zip(
            full.token_ids.tolist(), full.extra["entropy"].tolist(), full.extra["rank"].tolist(), strict=True
        ):
            p = np.exp(model.log_distribution(history))
            assert entropy == pytest.approx(-math.fsum(q * math.log(q) for q in p.tolist() if q > 0), rel=1e-12)
            assert rank == 1 + sum(q > p[token] for q in p)
            history = [BOS] if token == EOS and context == "sentence" else [*history, token]


def test_unknown_columns_are_refused() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    with pytest.raises(UsageError, match="choose from entropy, rank"):
        DistributionColumns(model, ["surprise"])
