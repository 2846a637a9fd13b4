"""Partitions and chunks for a given memory."""

from __future__ import annotations

from lmgauge.models.ngram.memory_needs import least_memory, number_of_partitions, tokens_of_chunk

TYPES = [8_000_000, 22_000_000, 32_000_000, 36_000_000]


def test_less_memory_takes_more_partitions() -> None:
    counts = [number_of_partitions(TYPES, chunk=1 << 20, vocabulary=1 << 19, memory=m << 20) for m in (200, 400, 800, 8000)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    assert counts[1] > 7  # 98 million n-grams of 24 bytes, and more


def test_the_vocabulary_has_to_fit() -> None:
    least = least_memory(TYPES, chunk=1 << 10, vocabulary=10_000_000)
    assert 640_000_000 < least < 641_000_000
    assert number_of_partitions(TYPES, chunk=1 << 10, vocabulary=10_000_000, memory=least) <= 1 << 12


def test_chunks_are_a_small_part_of_the_memory() -> None:
    assert tokens_of_chunk(0) == 1 << 10
    assert tokens_of_chunk(400 << 20) * 48 * 8 <= 400 << 20
    assert tokens_of_chunk(1 << 50) == 1 << 22
