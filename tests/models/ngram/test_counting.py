"""Counting in partitions, against a dictionary of tuples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge._kernels import _native
from lmgauge.models.ngram.counting import Counted, count_text
from lmgauge.models.ngram.links import Links, Shape
from lmgauge.models.ngram.reading import ChunkWriter
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import Engine, Stored

Ngram = tuple[int, ...]


def counted(ids: list[int], order: int, partitions: int, chunk: int) -> tuple[Engine, list[Counted], Links]:
    engine = Engine()
    writer = ChunkWriter(engine, order, chunk)
    writer.add(np.array(ids, np.uint32))
    chunks = [Stored(f"text/{number}") for number in range(writer.finish())]
    return engine, *count_text(engine, Shape(order, partitions, len(chunks), 10, order > 2), [1] * (order - 1), chunks)


def ngrams(engine: Engine, of_partition: Counted) -> dict[int, list[Ngram]]:
    """The n-grams of a partition, order by order, in the order of their rows."""
    found: dict[int, list[Ngram]] = {}
    for k, own in sorted(of_partition.orders.items()):
        parents, words = engine.read(own.parents).tolist(), engine.read(own.words).tolist()
        found[k] = [
            ((parent,) if k == 2 else found[k - 1][parent]) + (word,) for parent, word in zip(parents, words, strict=True)
        ]
    return found


def windows(ids: list[int], k: int) -> list[Ngram]:
    every = [tuple(ids[i : i + k]) for i in range(len(ids) - k + 1)]
    return [ngram for ngram in every if BOS not in ngram[1:]]


texts = st.lists(st.sampled_from([BOS, 3, 3, 4, 5]), min_size=1, max_size=60).map(lambda ids: [BOS, *ids])


@given(texts, st.integers(2, 5), st.integers(1, 4), st.integers(1, 30))
def test_counts_are_those_of_a_dictionary(ids: list[int], order: int, partitions: int, chunk: int) -> None:
    engine, every, links = counted(ids, order, partitions, chunk)
    for k in links.shape.orders:
        counts: Counter[Ngram] = Counter()
        for own in every:
            counts.update(dict(zip(ngrams(engine, own)[k], engine.read(own.orders[k].counts).tolist(), strict=True)))
        assert counts == Counter(windows(ids, k))


@given(texts, st.integers(3, 5), st.integers(1, 4), st.integers(1, 30))
def test_each_new_ngram_asks_for_its_suffix(ids: list[int], order: int, partitions: int, chunk: int) -> None:
    engine, every, links = counted(ids, order, partitions, chunk)
    for k in links.shape.inner:
        asked: Counter[Ngram] = Counter()
        for p, own in enumerate(every):
            rows = ngrams(engine, own)[k]
            for stored in links.of(k, p):
                asked.update(rows[row] for row in engine.read(stored).tolist())
        assert asked == Counter(ngram[1:] for ngram in set(windows(ids, k + 1)))


@given(texts, st.integers(3, 4), st.integers(1, 4), st.integers(1, 30))
def test_answers_come_back_in_the_order_of_the_rows(ids: list[int], order: int, partitions: int, chunk: int) -> None:
    engine, counts, links = counted(ids, order, partitions, chunk)
    every = [ngrams(engine, own) for own in counts]

    def _hash(ngram: Ngram) -> int:
        return int("".join(map(str, ngram)))

    for k in links.shape.inner:
        answers = list[list[Stored]]()
        for p in range(partitions):
            rows = [[_hash(every[p][k][row]) for row in engine.read(asked)] for asked in links.of(k, p)]
            answers.append([engine.write(f"answers/{k}/{p}/{c}", np.array(of, np.uint32)) for c, of in enumerate(rows)])
        for p, dealt in enumerate(links.deal(engine, "lower", k, answers)):
            values = [value for stored in dealt for value in engine.read(stored).tolist()]
            assert values == [_hash(ngram[1:]) for ngram in every[p][k + 1]]


def test_streams_that_do_not_fit_are_refused() -> None:
    ids = np.array([1, 1, 3, 4, 5, 1, 1, 1], np.uint32)
    with pytest.raises(ValueError, match="too short"):
        _native.route_requests(ids, 3, [np.zeros(0, np.uint8)], [np.zeros(0, np.uint32)])
    with pytest.raises(ValueError, match="too long"):
        _native.route_requests(np.ones(5, np.uint32), 3, [np.ones(1, np.uint8)], [np.zeros(0, np.uint32)])
    with pytest.raises(ValueError, match="shorter"):
        _native.PartitionCounter(3, 1, 0, [1, 1]).add(np.ones(3, np.uint32), True)
    with pytest.raises(ValueError, match="row"):
        _native.count_rows(np.array([2], np.uint32), np.zeros(2, np.uint32))
