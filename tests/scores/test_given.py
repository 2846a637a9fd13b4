"""The tokens that were given before segments: they go with their segments, and no row is theirs."""

from __future__ import annotations

import numpy as np

import lmgauge
from lmgauge import Corpus
from lmgauge.scores import iter_segments


def test_given_tokens_go_with_their_segments() -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b c"]), order=2)
    (batch,) = model.score(Corpus.from_strings([" c", "b", " a b"], given=["a b", "", "c"]))
    assert batch.before is not None
    assert batch.before.ids.tolist() == [3, 4, 5]
    assert batch.before.counts.tolist() == [2, 0, 1]
    assert [ids.tolist() for ids in batch.before.by_segment()] == [[3, 4], [], [5]]
    assert [rows.before.ids.tolist() for rows in iter_segments([batch]) if rows.before is not None] == [[3, 4], [], [5]]
    part = batch.of_segments(1, 3)
    assert part.before is not None
    assert (part.before.ids.tolist(), part.before.lengths.tolist()) == ([5], [0, 1])
    assert batch.before.of_segments(np.array([True, False, False])).ids.tolist() == [3, 4]
    assert batch.before.renamed(np.arange(9) + 10).ids.tolist() == [13, 14, 15]
