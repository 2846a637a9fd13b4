"""What the training text knows of each word of a test, against dictionaries of tuples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import overlap as twin

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.progress import listening
from lmgauge.text.documents import Corpus
from lmgauge.text.training_coverage import find_training_coverage

SEGMENT = st.lists(st.sampled_from(["a", "b", "b", "c", "<unk>", "</s>", " "]), max_size=9).map(" ".join)


@given(
    train=st.lists(SEGMENT, max_size=8),
    test=st.lists(SEGMENT, max_size=6),
    order=st.integers(1, 6),
    block_bytes=st.sampled_from([1, 8, 1000]),
    threads=st.integers(1, 3),
)
def test_knows_what_counting_tuples_knows(
    train: list[str], test: list[str], order: int, block_bytes: int, threads: int
) -> None:
    source, text = (Corpus.from_strings(segments, block_bytes=block_bytes) for segments in (train, test))
    counts, longest = twin.find_training_coverage(train, test, order)
    empty = [name for name, segments in (("test", test), ("training", train)) if not any(map(str.split, segments))]
    if empty:
        with pytest.raises(InputError, match=f"the {empty[0]} text has no words"):
            find_training_coverage(source, text, max_order=order, threads=threads)
        return
    seen = find_training_coverage(source, text, max_order=order, threads=threads)
    assert seen.counts.tolist() == counts
    assert seen.longest.tolist() == longest
    assert (seen.counts.dtype, seen.longest.dtype) == (np.int64, np.uint8)
    assert np.diff(seen.first_words).tolist() == [len(segment.split()) for segment in test]
    assert seen.train_words == sum(len(segment.split()) for segment in train)
    assert seen.train_sha256 == source.report.sha256


def blocks(corpus: Corpus) -> Iterator[tuple[int, int]]:
    return ((block.first, len(block)) for block in corpus)


def test_the_words_of_a_block_are_at_hand(data: Path) -> None:
    test = Corpus.from_files(data / "pud.en.txt", block_bytes=5000)
    seen = find_training_coverage(Corpus.from_files(data / "pud.en.txt"), test)
    assert len(list(blocks(test))) > 1
    counts, longest = [], []
    for block in test:
        block_counts, block_longest, words = seen.of(block)
        assert words.tolist() == [len(block.text(i).split()) for i in range(len(block))]
        assert words.sum() == len(block_counts) == len(block_longest)
        places = np.concatenate([np.arange(n) for n in words])
        assert block_longest.tolist() == np.minimum(places + 1, 5).tolist()  # the text is its own training text
        counts.append(block_counts)
        longest.append(block_longest)
    assert np.concatenate(counts).tolist() == seen.counts.tolist()
    assert seen.counts.min() >= 1


def test_progress_and_orders_out_of_range() -> None:
    stages: list[str] = []
    train = Corpus.from_strings(["a b", "c"], block_bytes=1)
    with listening(stages.append):
        find_training_coverage(train, Corpus.from_strings(["a"]), threads=1)
    assert stages == ["read 0 MB of training text"] * 2
    for order in (0, 256):
        with pytest.raises(UsageError, match="max_order must be"):
            find_training_coverage(train, Corpus.from_strings(["a"]), max_order=order)
