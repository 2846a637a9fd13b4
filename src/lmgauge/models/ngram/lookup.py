"""The tables of a trained n-gram model, and the questions they answer."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import ModelFileError
from lmgauge.models.ngram.counting import Table
from lmgauge.text.vocabulary import BOS

_KEY_BITS = np.uint64(2**63 - 1)
# Sorting the bigrams by their first word pays after so many distributions.
_FEW_QUESTIONS = 32
_ROUNDING = 1e-6  # of products of numbers in single precision: one above one by less is one


@dataclass(frozen=True, slots=True)
class Events:
    """Scored events: each [n]: natural log-probability, longest n-gram found, id, kind (0 token, 1 oov, 2 eos)."""

    logprob: NDArray[np.float64]
    matched: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    kind: NDArray[np.uint8]


@dataclass(frozen=True)
class NgramTables:
    """Probabilities and back-off weights, ready for lookup.

    Attributes:
        unigrams: float32 [vocabulary, 2], probability and back-off weight, linear.
        tables: one per order from 2, uint64 [slots, 2]; see `_kernels/hashing.hpp`.
        longest: largest distance of an entry from its home slot, per table: the bound of every search.
        full_context: no back-off: after a context, an unseen word has the probability that the context holds for it.
        unseen: with `full_context`, the probability of any word after an unseen context.
        source: the file or folder they were read from, for messages; empty if none.
        mapped: the file behind the arrays, where they are mapped into memory.
    """

    unigrams: NDArray[np.float32]
    tables: list[Table]
    longest: list[int]
    full_context: bool = False
    unseen: float = 0.0
    source: str = ""
    mapped: mmap.mmap | None = None

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return len(self.tables) + 1

    def check_file(self) -> None:
        """Refuse a mapped file that became shorter: to read behind its end would end the process.

        Cheap enough for every block of text; what happens between the check and the use is not seen.

        Raises:
            ModelFileError: it did.
        """
        if self.mapped is not None and self.mapped.size() < len(self.mapped):
            raise ModelFileError(
                f"{self.source}: model.safetensors became shorter while it was in use; never copy over a model in place: "
                "write the new one beside it, and load again"
            )

    def _arguments(self) -> tuple[NDArray[np.float32], list[Table], list[int], tuple[bool, float]]:
        return self.unigrams.reshape(-1), self.tables, self.longest, (self.full_context, self.unseen)

    def score(self, ids: NDArray[np.uint32], *, skip: int = 0) -> Events:
        """Scores all ids but `<s>`, each given what precedes it back to the last `<s>`.

        Args:
            ids: uint32 [n].
            skip: this many leading ids are context only.
        """
        size = len(ids)
        rows = (np.empty(size, np.float64), np.empty(size, np.uint8), np.empty(size, np.uint32), np.empty(size, np.uint8))
        written = _native.score_ids(*self._arguments(), ids, skip, rows)
        logprob = rows[0][:written]
        if logprob.max(initial=-np.inf) > 0:
            self._check_most(float(np.exp(logprob.max())))
            np.minimum(logprob, 0, out=logprob)
        return Events(*(column[:written] for column in rows))  # type: ignore[arg-type]

    def distribution(self, context: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Probabilities of all tokens after a context, float64 [vocabulary]; that of `<s>` is 0."""
        probability = np.empty(len(self.unigrams), np.float64)
        followers = self._after(int(context[-1])) if len(context) else self._all_words
        _native.distribution(*self._arguments(), np.ascontiguousarray(context, np.uint32), followers, probability)
        if probability.max() > 1:
            self._check_most(float(probability.max()))
            np.minimum(probability, 1, out=probability)
        return probability

    def _check_most(self, most: float) -> None:
        """Refuse a probability above one by more than rounding; an ARPA file or an edited folder may give it.

        Back-off weights above one are common and right, so that only the products tell.
        """
        if most > 1 + _ROUNDING:
            raise ModelFileError(
                f"{self.source or 'the model'}: gives an event the probability {most:.4g}: its back-off weights do not "
                "belong to its probabilities; convert or train the model again"
            )

    def _after(self, word: int) -> NDArray[np.uint32]:
        """Words that may follow a word; all where that is not worth knowing, for a few questions or single words."""
        asked = next(self._questions)
        if asked < _FEW_QUESTIONS or not self.tables:
            return self._all_words
        offsets, words = self._followers
        return words[offsets[word] : offsets[word + 1]]

    @cached_property
    def _questions(self) -> Iterator[int]:
        return count()

    @cached_property
    def _all_words(self) -> NDArray[np.uint32]:
        return np.arange(len(self.unigrams), dtype=np.uint32)

    @cached_property
    def _followers(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Where the words that follow each word begin, and these words."""
        keys, _, _ = columns(self.tables[0])
        parents, words = parents_and_words(np.sort(keys[keys > 0] & _KEY_BITS))
        return np.searchsorted(parents, np.arange(len(self.unigrams) + 1)), words

    def types(self) -> list[int]:
        """N-grams of each order; what is held only because longer ones contain it is not counted."""
        counts = [len(self.unigrams)]
        for table in self.tables:
            _, probability, _ = columns(table)
            counts.append(int(np.count_nonzero(table[:, 0]) - np.count_nonzero(np.signbit(probability) & (table[:, 0] > 0))))
        return counts


def columns(table: Table) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.float32]]:
    """Views of a table's keys (+ 1; 0: empty), probabilities and back-off weights, each [slots]."""
    values = table.view(np.float32).reshape(-1, 4)
    return table[:, 0], values[:, 2], values[:, 3]


def parents_and_words(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Splits keys (as stored: + 1, and with the overflow bit) of occupied slots."""
    plain = (keys & _KEY_BITS) - np.uint64(1)
    return (plain >> np.uint64(32)).astype(np.uint32), (plain & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def context_window(context: NDArray[np.uint32], order: int) -> NDArray[np.uint32]:
    """What of a context an n-gram model of this order looks at: at most order - 1 ids, none before the last `<s>`."""
    window = context[max(0, len(context) - (order - 1)) :] if order > 1 else context[:0]
    starts = np.flatnonzero(window == BOS)
    return window[starts[-1] :] if len(starts) else window
