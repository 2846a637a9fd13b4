"""What training in memory takes, stage after stage, known before anything is counted.

A token has 4 bytes, and where n-grams ask for their suffixes, 4 more for each order between the first and the last, and
one. While it is counted, an n-gram has 24 bytes in a table, of the partitions at work; order by order these tables become
columns, of 12 bytes a row, and 4 for its request; its probability and its weight take 4 each. A line of the tables of the
model has 64 bytes for 5 n-grams (7 of the highest order).

An example, 10 million tokens with 8 million n-grams of order 3 and 3 million of order 2, one of two partitions at work:

    ids 40 MB + rows 50 MB + tables 11 * 24 / 2 = 132 MB + a column of the longest 8 * 12 / 2 = 48 MB
    + columns of the other partition 11 * 12 / 2 = 66 MB: 336 MB
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmgauge.base.errors import NotEnoughMemoryError
from lmgauge.base.memory import format_bytes, free_memory
from lmgauge.models.ngram import packed_tables
from lmgauge.models.ngram.adjusted_counts import cutoff_of
from lmgauge.models.ngram.counting import TABLE_BYTES
from lmgauge.models.ngram.settings import NgramTrainingSettings

_ID, _ROW, _VALUE = 4, 12, 4  # of a token; of an n-gram: parent, word, count; a probability, a weight, a request
_STAGED, _PLACED = 20, 5  # of an n-gram on its way to its place; its bucket and slot
_WORD, _WORD_OF_PARTITION = 24, 24  # counts, probability, weight; what a partition knows of what precedes and follows it
_CONTEXT, _BACKING_OFF = 17, 52  # of each context, while the n-grams after it are estimated
_TOTALS = 16  # backing off: of each n-gram, what the distribution after its beginning sums to, asked for and answered
_PRUNED = 16  # of each n-gram: what goes and what stays, chances, new values
_SHARE = 0.9  # of what is free may be taken: other programs do not stand still
_PROGRAM = 4 << 20
_BLOCK_BYTES, _BLOCK_TOKENS = 6, 1 << 22  # blocks of text in flight, tokens counted as 64-bit numbers: measured
_LISTED, _LISTED_AT_A_TIME = 24, 72  # of each n-gram, and of those of one order: measured


@dataclass(frozen=True)
class TextSize:
    """What memory depends on, besides the settings."""

    tokens: int  # ids of the text, `<s>` included
    words: int
    vocabulary_bytes: int  # of the arrays of the vocabulary
    types: Sequence[int] = ()  # estimated distinct n-grams of order 2, 3,
    partitions: int = 1
    workers: int = 1  # how many of them are at work at a time
    listed: bool = False  # True if all n-grams are then listed, to write the file of another program


def training_bytes(settings: NgramTrainingSettings, text: TextSize) -> dict[str, int]:
    """Return the most bytes that each stage of a training holds; the largest of them is what training needs."""
    order, types, ids = settings.order, text.types, _ID * text.tokens
    linked, at_work = order > 2 and not settings.additive, text.workers / text.partitions
    backs_off = not (settings.interpolate or settings.additive)
    rows = _ROW * sum(types)
    stages = {"reading": ids + _BLOCK_BYTES * min(text.tokens, _BLOCK_TOKENS)}
    columns = _ROW * max(types, default=0)
    stages["counting"] = int(ids + at_work * (TABLE_BYTES * sum(types) + columns) + (1 - at_work) * rows)
    if linked:
        stages["counting"] += text.tokens * (4 * (order - 2) + 1)
        rows += text.tokens + _VALUE * sum(types[1:])
    estimating = [0]
    for k, (contexts, n, longer) in enumerate(zip([text.words, *types], types, [*types[1:], 0], strict=False)):
        # Of those below, the probability in place of the count, and the weight. Of these, what their suffixes answered,
        # their own probability, and what longer ones asked for; and what a task computes with.
        values = sum(types[:k]) + (1 + linked) * n + linked * longer + (contexts if k else 0)
        computing = at_work * (_VALUE * n + (_BACKING_OFF if backs_off else _CONTEXT) * contexts)
        estimating.append(int(_VALUE * values + computing) + backs_off * _TOTALS * n)
    stages["estimating"] = ids + rows + max(estimating)
    if settings.prune is not None:
        stages["pruning"] = ids + rows + _PRUNED * sum(types)
    # An n-gram that stays occurs more often than its cut-off.
    entries = [min(n, text.tokens // (cutoff_of(settings.cutoffs, k) + 1)) for k, n in enumerate(types, 2)]
    lines, packing, parents = 0, [0], text.words
    for k, n in enumerate(entries, 2):
        parents, size = packed_tables.slots_for(n, parents, text.words, last=k == order)
        lines += size
        packing.append((_ROW + _VALUE) * sum(types[k - 1 :]) + (_STAGED + _PLACED) * n + lines)
        packing.append(lines + size)  # a table is put together
    stages["packing"] = max(packing)
    if text.listed:
        stages["writing"] = lines + _LISTED * sum(entries) + _LISTED_AT_A_TIME * max(entries, default=0)
    always = _PROGRAM + text.vocabulary_bytes + text.words * (_WORD + _WORD_OF_PARTITION * text.partitions)
    return {stage: always + count for stage, count in stages.items()}


def check_reading(tokens: int) -> None:
    """Refuse a text of which counting takes more than is free: at least as much again as the ids that were read so far."""
    free = free_memory()
    if free is not None and _ID * tokens > _SHARE * free:
        raise _error(f"more than {format_bytes(2 * _ID * tokens)} of memory", free + _ID * tokens)


def check_training(settings: NgramTrainingSettings, text: TextSize) -> str:
    """Refuse a training that does not fit into what is free."""
    needed, free = max(training_bytes(settings, text).values()), free_memory()
    if free is None:
        return f"needs about {format_bytes(needed)} of memory"
    free += _ID * text.tokens + text.vocabulary_bytes
    if needed > _SHARE * free:
        raise _error(f"about {format_bytes(needed)} of memory", free)
    return f"needs about {format_bytes(needed)} of memory, {format_bytes(free)} are free"


def _error(needed: str, free: int) -> NotEnoughMemoryError:
    return NotEnoughMemoryError(f"training in memory needs {needed}, and {format_bytes(free)} are free")


_COLUMNS_BYTES = 12  # of an n-gram: parent, last word, count
_ORDER_BYTES = 32  # of an n-gram while its order is estimated: 16 in the table; suffix, count, probability, room to read
_CONTEXT_BYTES = 44  # of a context: sums of counts, mass and probabilities, weight, total
_WORD_BYTES = 64  # of a word of the vocabulary: the same, and what the program holds of all words
_TOKEN_BYTES = 48  # of a token of a chunk: ids, rows of its n-grams, requests
_SMALLEST_CHUNK, _LARGEST_CHUNK = 1 << 10, 1 << 22
_MOST_PARTITIONS = 1 << 12
CHUNKS_SHARE = 8  # chunks take this part of a worker's memory at most


# -- how many partitions and how large chunks keep every task within its memory -----------------------------------------
# A task that counts a partition holds its tables, and the columns that it makes of one order at a time. A task that
# estimates one order of it holds the n-grams of that order and the sums of their contexts. Whichever is larger decides.
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
