"""Text to ids, and the vocabulary that they are from."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.ngram.reading import TextReader
from lmgauge.models.ngram.settings import NgramTrainingSettings

LINES = ["a b a", "c a"]


def read(lines: list[str], **options: object) -> tuple[list[int], TextReader]:
    reader = TextReader(NgramTrainingSettings("laplace", order=2, **options))  # type: ignore[arg-type]
    return np.concatenate(list(reader.blocks(Corpus.from_strings(lines, block_bytes=6), threads=1))).tolist(), reader


def test_words_are_numbered_as_they_come() -> None:
    ids, reader = read(LINES)
    fitted = reader.fit()
    assert ids == [1, 3, 4, 3, 2, 1, 5, 3, 2]
    assert fitted.counts.tolist() == [0, 2, 2, 3, 1, 1]
    assert fitted.new_ids is None
    assert fitted.number_of_events == 7


def test_a_stream_begins_once() -> None:
    assert read(LINES, context="stream")[0] == [1, 3, 4, 3, 2, 5, 3, 2]


def test_rare_words_become_unknown() -> None:
    _, reader = read(LINES, min_count=2)
    fitted = reader.fit()
    assert fitted.vocabulary.tokens[3:] == ["a"]
    assert fitted.new_ids is not None
    assert fitted.new_ids.tolist() == [0, 1, 2, 3, 0, 0]
    assert fitted.counts.tolist() == [2, 2, 2, 3]


def test_which_tokens_are_events() -> None:
    settings = NgramTrainingSettings("laplace", order=2, eos=False, vocabulary="closed")
    reader = TextReader(settings)
    list(reader.blocks(Corpus.from_strings(LINES), threads=1))
    assert reader.fit().events(settings).tolist() == [False, False, False, True, True, True]


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to count"):
        read([])
    with pytest.raises(InputError, match="nothing to count"):
        read(["", ""], eos=False)[1].fit()
    with pytest.raises(UsageError, match="closed vocabulary"):
        read(["a b"], words=["a"], vocabulary="closed")[1].fit()
