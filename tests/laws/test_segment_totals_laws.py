"""Totals of segments are the sums of their rows, to the bit, whatever the blocks, the threads and the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import models, texts

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.segment_scores import SegmentTotals, sum_segments, totals_of

COLUMNS = ("nats", "events", "zeros", "unseen", "ends")


def joined(parts: list[SegmentTotals]) -> dict[str, bytes]:
    """The bytes of each column of all parts together."""
    return {name: np.concatenate([getattr(part, name) for part in parts]).tobytes() for name in COLUMNS}


def by_rows(model: LanguageModel, lines: list[str]) -> dict[str, bytes]:
    return joined([totals_of(batch) for batch in model.score(Corpus.from_strings(lines), spans=False)])


@given(models(), texts(unseen=True), st.integers(1, 60), st.integers(1, 3))
def test_totals_are_sums_of_rows(model: lmgauge.NgramModel, lines: list[str], block_bytes: int, threads: int) -> None:
    corpus = Corpus.from_strings(lines, block_bytes=block_bytes)
    assert joined(list(sum_segments(model, corpus, threads=threads))) == by_rows(model, lines)


@given(models(), texts(unseen=True))
def test_totals_are_those_of_an_evaluation(model: lmgauge.NgramModel, lines: list[str]) -> None:
    tally = EventSums()
    for batch in model.score(Corpus.from_strings(lines)):
        tally.add(batch)
    rows, parts = tally.per_segment(), list(sum_segments(model, Corpus.from_strings(lines)))
    nats, zeros = (np.concatenate([getattr(part, name) for part in parts]) for name in ("nats", "zeros"))
    assert np.where(zeros > 0, -np.inf, nats).tobytes() == rows.nats.tobytes()
    assert zeros.tolist() == rows.zeros.tolist()


@given(texts(), texts(unseen=True), st.integers(1, 60))
def test_totals_of_given_text_are_sums_of_rows(train: list[str], lines: list[str], block_bytes: int) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(train), order=3)
    targets = [f"a{line}" for line in lines]
    text = Corpus.from_strings(targets, given=["a b c "] * len(targets), block_bytes=block_bytes)
    rows = [totals_of(batch) for batch in model.score(text)]
    assert joined(list(sum_segments(model, text))) == joined(rows)


@pytest.mark.parametrize("trie", [False, True])
def test_totals_of_a_kenlm_file_are_sums_of_rows(trie: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    lines = [" ".join(random.choice(list("abcdefg"), length)) for length in random.integers(0, 40, 60)]
    path = tmp_path / "lm.binary"
    lmgauge.train("witten-bell", Corpus.from_strings(lines[:40]), order=4).save(path, trie=trie)
    model = lmgauge.load_model(path)
    for block_bytes in (50, 1 << 20):
        corpus = Corpus.from_strings([*lines, "a zebra"], block_bytes=block_bytes)
        assert joined(list(sum_segments(model, corpus))) == by_rows(model, [*lines, "a zebra"])
