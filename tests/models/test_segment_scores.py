"""Totals of segments against the rows of the score table and against `evaluate`."""

from __future__ import annotations

import numpy as np
import pytest

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.models.segment_scores import sum_segments, totals_of
from lmgauge.scores import ScoreBatch, Strings

TEXT = ["the cat sat", "", "the dog", "an unseen zebra sat", "the cat sat on the mat"]


def _model(kind: str = "witten-bell", **options: object) -> lmgauge.NgramModel:
    return lmgauge.train(kind, lmgauge.Corpus.from_strings(["the cat sat on the mat", "the dog sat"]), order=3, **options)


@pytest.mark.parametrize("options", [{}, {"context": "stream"}, {"eos": False}], ids=str)
def test_totals_are_the_sums_of_rows(options: dict[str, object]) -> None:
    model, corpus = _model(**options), lmgauge.Corpus.from_strings(TEXT)
    tally = EventSums()
    for batch in model.score(corpus):
        tally.add(batch)
    rows = tally.per_segment()
    parts = list(sum_segments(model, corpus))
    assert np.concatenate([part.nats for part in parts]).tobytes() == rows.nats.tobytes()
    assert np.concatenate([part.events for part in parts]).tolist() == rows.events.tolist()
    assert sum(int(part.unseen.sum()) for part in parts) == tally.events[1]
    assert sum(int(part.ends.sum()) for part in parts) == tally.events[2]


def test_impossible_events_are_counted_and_left_out() -> None:
    model = _model("mle")
    totals = next(iter(sum_segments(model, lmgauge.Corpus.from_strings(["the sat", "the cat"]))))
    assert totals.zeros.tolist() == [2, 1]  # `sat` and `</s>` after what was never before them; `</s>` after `cat`
    assert np.isfinite(totals.nats).all()


def test_what_is_no_logprob_is_refused() -> None:
    one = np.ones(1, np.int64)
    batch = ScoreBatch(0 * one, one, np.zeros(1, np.uint32), Strings(["a"]), np.array([0.5]), np.zeros(1, np.uint8), one)
    with pytest.raises(InputError, match=r"segment 0: the log-probability 0\.5 is not"):
        totals_of(batch)
