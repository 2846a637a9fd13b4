"""How many partitions and how large chunks keep every task within its memory."""

# A task that counts a partition holds its tables, and the columns that it makes of one order at a time. A task that
# estimates one order of it holds the n-grams of that order and the sums of their contexts. Whichever is larger decides.

from __future__ import annotations

import math
from collections.abc import Sequence

from lmgauge.models.ngram.partitioned.counting import TABLE_BYTES

_COLUMNS_BYTES = 12  # of an n-gram: parent, last word, count
_ORDER_BYTES = 32  # of an n-gram while its order is estimated: 16 in the table; suffix, count, probability, room to read
_CONTEXT_BYTES = 44  # of a context: sums of counts, mass and probabilities, weight, total
_WORD_BYTES = 64  # of a word of the vocabulary: the same, and what the program holds of all words
_TOKEN_BYTES = 48  # of a token of a chunk: ids, rows of its n-grams, requests
_SMALLEST_CHUNK, _LARGEST_CHUNK = 1 << 10, 1 << 22
_MOST_PARTITIONS = 1 << 12
CHUNKS_SHARE = 8  # chunks take this part of a worker's memory at most


def tokens_of_chunk(memory: int) -> int:
    """Return how many tokens a chunk has where a task may take `memory` bytes."""
    return max(_SMALLEST_CHUNK, min(_LARGEST_CHUNK, memory // (CHUNKS_SHARE * _TOKEN_BYTES)))


def least_memory(types: Sequence[int], *, chunk: int, vocabulary: int) -> int:
    """Return how many bytes a task needs to take: a chunk, the vocabulary, and the smallest partition."""
    # least_memory([1_000_000], chunk=1000, vocabulary=1000) -> 120790
    return chunk * _TOKEN_BYTES + vocabulary * _WORD_BYTES + _all_partitions(types) // _MOST_PARTITIONS + 1


def number_of_partitions(types: Sequence[int], *, chunk: int, vocabulary: int, memory: int) -> int:
    """Return how many partitions the n-grams need for a task to stay within its memory."""
    # number_of_partitions([1_000_000, 2_000_000], chunk=1000, vocabulary=1000, memory=60 << 20) -> 2
    # What is left beside a chunk and the vocabulary is a partition's; all partitions together take the same whatever their
    # number, as n-grams are dealt to them by a hash.
    return max(1, math.ceil(_all_partitions(types) / (memory - chunk * _TOKEN_BYTES - vocabulary * _WORD_BYTES)))


def _all_partitions(types: Sequence[int]) -> int:
    counting = TABLE_BYTES * sum(types) + _COLUMNS_BYTES * max(types, default=0)
    # types [3, 8] -> (contexts, n) = (0, 3), (3, 8): the contexts of an order are the n-grams of the one below, those of
    # bigrams words, which `_WORD_BYTES` has.
    orders = [_ORDER_BYTES * n + _CONTEXT_BYTES * contexts for contexts, n in zip([0, *types], types, strict=False)]
    return max([counting, *orders])
