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
_PROGRAM = 24 << 20  # blocks of text, and what each thread works with
_WINDOW_BYTES, _BACK_OFF_WINDOW_BYTES, _TOTAL_BYTES = 16, 72, 8  # of each context, see `interpolation`


@dataclass(frozen=True)
class TextSize:
    """What memory depends on, besides the settings.

    Attributes:
        tokens: ids of the text, `<s>` included.
        words: of the vocabulary.
        vocabulary_bytes: of the arrays of the vocabulary.
        types: estimated distinct n-grams of order 2, 3, ...
    """

    tokens: int
    words: int
    vocabulary_bytes: int
    types: Sequence[int] = ()


def reading_bytes(tokens: int) -> int:
    """Return what it takes to hold the ids of a text: in blocks, then in one piece beside them."""
    return 2 * _ID * tokens


def training_bytes(settings: NgramTrainingSettings, text: TextSize) -> dict[str, int]:
    """Return the most bytes that each stage of a training holds; the largest of them is what training needs.

    Args:
        settings: all decisions about the model.
        text: how large it is.

    Example:
        >>> text = TextSize(10_000_000, 50_000, 3_000_000, [3_000_000, 8_000_000])
        >>> needed = training_bytes(NgramTrainingSettings("witten-bell", order=3), text)
        >>> {stage: round(count / 1e6) for stage, count in needed.items()}
        {'reading': 109, 'counting': 403, 'adjusting': 323, 'estimating': 403, 'packing': 471}
    """
    tables = _Tables(settings, text)
    stages = {"reading": reading_bytes(text.tokens), "counting": tables.counting(), "adjusting": tables.adjusting()}
    stages |= {"estimating": tables.estimating(), "packing": tables.packing()}
    always = _PROGRAM + text.vocabulary_bytes + 24 * text.words  # counts, probabilities, weights of words
    return {stage: always + count for stage, count in stages.items()}


class _Tables:
    """The tables of one training; lists have an element for each order from 2."""

    def __init__(self, settings: NgramTrainingSettings, text: TextSize) -> None:
        self._settings, self._text = settings, text
        self._slots = [hash_table.slots_for(types) for types in text.types]
        self._counted = [_ENTRY * slots for slots in self._slots]
        cutoffs = settings.cutoffs
        self._cutoffs = [cutoffs[min(k, len(cutoffs) - 1)] if cutoffs else 0 for k in range(1, len(self._slots) + 1)]
        self._marks = sum(slots for slots, cutoff in zip(self._slots, self._cutoffs, strict=True) if cutoff)

    def counting(self) -> int:
        """Tables up to an order, the ids, and the links of two orders: the one below and, but for the last, its own."""
        most, last = 0, len(self._slots) - 1
        for i in range(len(self._slots)):
            links = (i > 0) + (i < last)
            most = max(most, _ID * self._text.tokens * (1 + links) + sum(self._counted[: i + 1]))
        return most

    def adjusting(self) -> int:
        """All tables, and what a cut-off marks; Kneser-Ney: what precedes the n-grams of one order below the last."""
        continuation = self._settings.kind in CONTINUATION
        return sum(self._counted) + self._marks + (_ID * max(self._slots[:-1], default=0) if continuation else 0)

    def estimating(self) -> int:
        """All tables, and a window of the contexts of one order; backing off: what all distributions sum to."""
        contexts = [self._text.words, *self._slots[:-1]]
        backs_off = not (self._settings.interpolate or self._settings.additive)
        window = _BACK_OFF_WINDOW_BYTES if backs_off else _WINDOW_BYTES
        most = max(window * min(CONTEXTS_AT_A_TIME, size) for size in contexts)
        return sum(self._counted) + self._marks + most + (_TOTAL_BYTES * sum(contexts[-2:]) if backs_off else 0)

    def packing(self) -> int:
        """n-grams on their way, beside the table that they come from or the one that they go to, and the others' tables."""
        most, packed, parents, below = 0, 0, self._text.words, 0
        for i, (types, cutoff) in enumerate(zip(self._text.types, self._cutoffs, strict=True)):
            last = i == len(self._slots) - 1
            entries = min(types, self._text.tokens // (cutoff + 1))  # what occurs more than `cutoff` times
            parents, size = packed_tables.slots_for(entries, parents, self._text.words, last=last)
            moved = (
                _STAGED * entries + (0 if last else _SLOT * self._slots[i]) + below + packed + sum(self._counted[i + 1 :])
            )
            most = max(most, moved + max(self._counted[i], size))
            packed, below = packed + size, _SLOT * self._slots[i]
        return self._marks + most


def check_reading(tokens: int) -> None:
    """Refuse a text whose ids alone do not fit into what is free, beside those that were read so far.

    Args:
        tokens: read so far.

    Raises:
        NotEnoughMemoryError: they do not.
    """
    free = free_memory()
    if free is not None and _ID * tokens > _SHARE * free:
        held = _ID * tokens
        raise _error(f"more than {size_in_words(reading_bytes(tokens))} of memory", free + held)


def check_training(settings: NgramTrainingSettings, text: TextSize) -> str:
    """Refuse a training that does not fit into what is free.

    Args:
        settings: all decisions about the model.
        text: how large it is; its ids are in memory by now.

    Returns:
        What is needed, and what is free, in words.

    Raises:
        NotEnoughMemoryError: it does not fit.
    """
    needed, free = max(training_bytes(settings, text).values()), free_memory()
    if free is None:
        return f"needs about {size_in_words(needed)} of memory"
    free += _ID * text.tokens + text.vocabulary_bytes
    if needed > _SHARE * free:
        raise _error(f"about {size_in_words(needed)} of memory", free)
    return f"needs about {size_in_words(needed)} of memory, {size_in_words(free)} are free"


def _error(needed: str, free: int) -> NotEnoughMemoryError:
    return NotEnoughMemoryError(f"training in memory needs {needed}, and {size_in_words(free)} are free")
