"""A KenLM file in use: what scoring and whole distributions ask of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.reference.kenlm import take_apart

import lmgauge
from lmgauge.base.errors import ModelFileError
from lmgauge.models.ngram.kenlm.reader import KenlmModel, read_kenlm
from lmgauge.text.vocabulary import BOS


@pytest.fixture
def model(tmp_path: Path) -> KenlmModel:
    texts = ["a b c", "a b", "b a c", "c a b a"]
    lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(texts), order=3).save(tmp_path / "wb3.binary")
    return read_kenlm(tmp_path / "wb3.binary")


def test_contexts_are_the_words_before_the_last_first(model: KenlmModel) -> None:
    a, b, none = model.vocabulary.id("a"), model.vocabulary.id("b"), 0xFFFFFFFF
    ids = np.array([BOS, a, b, BOS, b], np.uint32)
    events = model.file.score(ids, contexts=True)
    assert events.contexts.tolist() == [[BOS, none], [a, BOS], [BOS, none]]
    rows = model.file.whole(eos=True).rows(events.contexts, logarithms=True)
    assert rows[np.arange(3), events.ids].tolist() == events.logprob.tolist()


def test_leading_ids_are_context_only(model: KenlmModel) -> None:
    ids = model.vocabulary.ids(["a", "b", "c", "a"])
    whole, rest = model.file.score(ids), model.file.score(ids, skip=2)
    assert rest.logprob.tolist() == whole.logprob[2:].tolist()


def test_what_came_before_the_sentence_does_not_count(model: KenlmModel) -> None:
    after = [model.log_distribution(np.array([*before, BOS, 3], np.uint32)) for before in ([], [3, 4])]
    assert after[0].tolist() == after[1].tolist()


def test_blocks_are_one_text(model: KenlmModel) -> None:
    """The kernel handles 256 ids at a time; where they end makes no difference."""
    ids = np.random.default_rng(1).choice(np.arange(2, 6, dtype=np.uint32), 2000)
    ids[::37] = BOS
    whole = model.file.score(ids).logprob.tolist()
    starts = np.flatnonzero(ids == BOS)
    parts = [model.file.score(part).logprob.tolist() for part in np.split(ids, starts[1:])]
    assert whole == [value for part in parts for value in part]


def test_probabilities_above_one_are_refused(model: KenlmModel, tmp_path: Path) -> None:
    twin, data = take_apart((tmp_path / "wb3.binary").read_bytes()), bytearray((tmp_path / "wb3.binary").read_bytes())
    at = data.index(np.float32(twin.values[0][(3,)][1]).tobytes())
    data[at : at + 4] = np.float32(3).tobytes()  # a back-off weight of 1000
    (tmp_path / "damaged.binary").write_bytes(data)
    with pytest.raises(ModelFileError, match="gives an event the probability"):
        read_kenlm(tmp_path / "damaged.binary").file.score(np.array([3, 3, 3, 3, 0], np.uint32))


def test_a_file_that_became_shorter_is_refused(model: KenlmModel, tmp_path: Path) -> None:
    with (tmp_path / "wb3.binary").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(ModelFileError, match="became shorter while it was in use"):
        lmgauge.evaluate(model, lmgauge.Corpus.from_strings(["a b"]))
