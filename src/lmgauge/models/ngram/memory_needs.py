"""What training in memory takes, stage after stage, known before the first table is made.

The ids of the text have 4 bytes a token, and so have the numbers that link one order of counting to the next. A table of
counting has 16 bytes a slot, of which 60 % are filled; a table of the model 64 bytes for 5 n-grams (7 of the highest order),
of which 80 % are filled. n-grams on their way from one to the other have 20 bytes each.

An example, 10 million tokens with 8 million n-grams of order 3 and 3 million of order 2, at the end of counting:

    ids 40 MB + links 40 MB + tables (3 + 8) * 16 / 0.6 = 293 MB
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmgauge.errors import NotEnoughMemoryError
from lmgauge.memory import free_memory, size_in_words
from lmgauge.models.ngram import hash_table, packed_tables
from lmgauge.models.ngram.interpolation import CONTEXTS_AT_A_TIME
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings

_ID, _ENTRY, _STAGED, _SLOT = 4, 16, 20, 4
_SHARE = 0.9  # of what is free may be taken: other programs do not stand still
_PROGRAM = 8 << 20
_BLOCK_BYTES, _BLOCK_TOKENS = 6, 1 << 22  # blocks of text in flight, tokens counted as 64-bit numbers: measured
_WINDOW_BYTES, _BACK_OFF_WINDOW_BYTES, _TOTAL_BYTES = 16, 72, 8  # of each context, see `interpolation`
# Of each n-gram, see `levels`: as a level, its loss, the levels of those that stay and their new values; of one order
# besides what takes it to a table.
_PRUNED, _PRUNED_MOVED = 29 + 8 + 29 + 16, 40
_LISTED, _LISTED_AT_A_TIME = 24, 72  # of each n-gram, and of those of one order: measured


@dataclass(frozen=True)
class TextSize:
    """What memory depends on, besides the settings."""

    tokens: int  # ids of the text, `<s>` included
    words: int
    vocabulary_bytes: int  # of the arrays of the vocabulary
    types: Sequence[int] = ()  # estimated distinct n-grams of order 2, 3,
    listed: bool = False  # True if all n-grams are then listed, to write the file of another program


def reading_bytes(tokens: int) -> int:
    """Return the bytes that it takes to hold the ids of a text: in blocks, then in one piece beside them."""
    return 2 * _ID * tokens


def training_bytes(settings: NgramTrainingSettings, text: TextSize) -> dict[str, int]:
    """Return the most bytes that each stage of a training holds; the largest of them is what training needs."""
    # 10 million tokens, 3 and 8 million n-grams, order 3 -> reading 118 MB, counting 411, adjusting 331, estimating 411,
    # packing 479.
    tables = _Tables(settings, text)
    stages = {"reading": reading_bytes(text.tokens), "counting": tables.counting(), "adjusting": tables.adjusting()}
    stages |= {"estimating": tables.estimating(), "packing": tables.packing()}
    if settings.prune is not None:
        stages["pruning"] = tables.pruning()
    if text.listed:
        stages["writing"] = tables.writing()
    always = _PROGRAM + _BLOCK_BYTES * min(text.tokens, _BLOCK_TOKENS)
    always += text.vocabulary_bytes + 24 * text.words  # counts, probabilities, weights of words
    return {stage: always + count for stage, count in stages.items()}


class _Tables:
    """The tables of one training; lists have an element for each order from 2."""

    def __init__(self, settings: NgramTrainingSettings, text: TextSize) -> None:
        self._settings, self._text = settings, text
        self._slots = [hash_table.slots_for(types) for types in text.types]
        self._counted = [_ENTRY * slots for slots in self._slots]
        by_order = settings.cutoffs or (0,)
        cutoffs = [by_order[min(k, len(by_order)) - 1] for k in range(2, settings.order + 1)]
        self._marks = sum(slots for slots, cutoff in zip(self._slots, cutoffs, strict=True) if cutoff)
        # An n-gram that stays occurs more often than its cut-off.
        self._entries = [min(n, text.tokens // (cutoff + 1)) for n, cutoff in zip(text.types, cutoffs, strict=True)]
        self._packed: list[int] = []
        parents = text.words
        for i, entries in enumerate(self._entries):
            parents, size = packed_tables.slots_for(entries, parents, text.words, last=i == len(self._slots) - 1)
            self._packed.append(size)

    def counting(self) -> int:
        # Tables up to an order, the ids, and the links of two orders: the one below and, but for the last, its own.
        most, last = 0, len(self._slots) - 1
        for i in range(len(self._slots)):
            # `previous` and `following` of `count_ngrams`: bigrams read the ids themselves, the highest order links
            # nothing.
            links = (i > 0) + (i < last)
            most = max(most, _ID * self._text.tokens * (1 + links) + sum(self._counted[: i + 1]))
        return most

    def adjusting(self) -> int:
        # All tables, and what a cut-off marks; Kneser-Ney: what precedes the n-grams of one order below the last.
        continuation = self._settings.kind in CONTINUATION
        return sum(self._counted) + self._marks + (_ID * max(self._slots[:-1], default=0) if continuation else 0)

    def estimating(self) -> int:
        # All tables, and a window of the contexts of one order; backing off: what all distributions sum to.
        contexts = [self._text.words, *self._slots[:-1]]
        backs_off = not (self._settings.interpolate or self._settings.additive)
        window = _BACK_OFF_WINDOW_BYTES if backs_off else _WINDOW_BYTES
        most = max(window * min(CONTEXTS_AT_A_TIME, size) for size in contexts)
        return sum(self._counted) + self._marks + most + (_TOTAL_BYTES * sum(contexts[-2:]) if backs_off else 0)

    def packing(self) -> int:
        most, packed, below = 0, 0, 0
        for i, (entries, size) in enumerate(zip(self._entries, self._packed, strict=True)):
            last = i == len(self._slots) - 1
            moved = _STAGED * entries + (0 if last else _SLOT * self._slots[i]) + below
            most = max(most, moved + packed + sum(self._counted[i + 1 :]) + max(self._counted[i], size))
            packed, below = packed + size, _SLOT * self._slots[i]
        return self._marks + most

    def pruning(self) -> int:
        # Tables, their n-grams as arrays, and the tables of those that stay: at most all.
        return 2 * sum(self._packed) + _PRUNED * sum(self._entries) + _PRUNED_MOVED * max(self._entries, default=0)

    def writing(self) -> int:
        return sum(self._packed) + _LISTED * sum(self._entries) + _LISTED_AT_A_TIME * max(self._entries, default=0)


def check_reading(tokens: int) -> None:
    """Refuse a text whose ids alone do not fit into what is free, beside those that were read so far."""
    free = free_memory()
    if free is not None and _ID * tokens > _SHARE * free:
        held = _ID * tokens
        raise _error(f"more than {size_in_words(reading_bytes(tokens))} of memory", free + held)


def check_training(settings: NgramTrainingSettings, text: TextSize) -> str:
    """Refuse a training that does not fit into what is free."""
    needed, free = max(training_bytes(settings, text).values()), free_memory()
    if free is None:
        return f"needs about {size_in_words(needed)} of memory"
    free += _ID * text.tokens + text.vocabulary_bytes
    if needed > _SHARE * free:
        raise _error(f"about {size_in_words(needed)} of memory", free)
    return f"needs about {size_in_words(needed)} of memory, {size_in_words(free)} are free"


def _error(needed: str, free: int) -> NotEnoughMemoryError:
    return NotEnoughMemoryError(f"training in memory needs {needed}, and {size_in_words(free)} are free")
