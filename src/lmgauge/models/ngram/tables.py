"""Stage 5, the tables of a trained model, and the questions they answer."""

# The probability of the sentence `the cat sat` after `<s>` under a trigram model is found level by level: `the cat sat` if
# the table of order 3 has it; otherwise the back-off weight of `the cat` times the probability of `cat sat`; and so on.

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import ModelFileError, ProbabilityError
from lmgauge.models.ngram.full_distribution import WholeDistributions, index_children
from lmgauge.models.ngram.packed_tables import KernelTable, PackedTable

if TYPE_CHECKING:
    from lmgauge.models.segment_scores import SumArrays
    from lmgauge.text.vocabulary import Vocabulary

Refusal = Callable[[str, object], NoReturn]
"""Raises the error of a call, by its reason and the word, state or text that it is about."""

KernelModel = tuple[NDArray[np.float32], list[KernelTable], tuple[bool, float]]
_LARGEST = 700.0  # a logarithm whose exponential a double holds
_ROUNDING = 1e-6  # of products of single-precision numbers: a probability above one by less is one


class Events(NamedTuple):
    """Scored events in the order of the text."""

    logprob: NDArray[np.float64]  # float64 [n], natural log-probabilities
    matched: NDArray[np.uint8]  # uint8 [n], length of the longest n-gram of the model that ends at the event
    ids: NDArray[np.uint32]  # uint32 [n]
    kind: NDArray[np.uint8]  # uint8 [n]: 0 token, 1 oov, 2 eos
    # uint32 [n, order - 1], the slots of the contexts that the model has, shortest first, if asked for; else [0, order -
    # 1]. See `_kernels/distributions.hpp`.
    contexts: NDArray[np.uint32]


class LoadedTables:
    """What the tables of all n-gram models share, wherever they lie."""

    source: str  # the file or folder they were read from, for messages; empty if none
    mapped: mmap.mmap | None  # the file behind the arrays, where they are mapped into memory
    closed_forms: ClassVar[bool] = True  # whether sums over whole distributions follow from the words seen after a context
    full_context: bool = False

    def check_file(self) -> None:
        """Refuse a mapped file that became shorter: reading behind its end would end the process."""
        # Cheap enough for every block of text; a change between the check and the use is not noticed.
        if self.mapped is not None and self.mapped.size() < len(self.mapped):
            inner = "" if os.path.isfile(self.source) else "model.safetensors "
            raise ModelFileError(
                f"{self.source}: {inner}became shorter while it was in use; never copy over a model in place: "
                "write the new one beside it, and load again"
            )

    def check_logprob(self, logprob: NDArray[np.float64]) -> None:
        """Refuse probabilities above one by more than rounding, and what is not a number; make those just above it one."""
        # logprob: float64 [events], nats, corrected in place.
        most = float(logprob.max(initial=-np.inf))
        if not most <= 0:
            self.check_most(math.exp(min(most, _LARGEST)))
            np.minimum(logprob, 0, out=logprob)

    def check_sums(self, most: float) -> None:
        """Refuse what `check_logprob` does."""
        # most: the largest log-probability of those above 0, nats, or NaN; 0 if there was none.
        if most != 0:
            self.check_most(math.exp(min(most, _LARGEST)))

    def check_most(self, most: float) -> None:
        """Refuse a probability above one by more than rounding; an ARPA file or an edited folder may give it."""
        # Back-off weights above one are common and correct, so only the products can be checked.
        if not most <= 1 + _ROUNDING:
            raise ProbabilityError(
                f"{self.source or 'the model'}: gives an event the probability {most:.4g}: its back-off weights do not "
                "belong to its probabilities; convert or train the model again"
            )


@dataclass(frozen=True)
class NgramTables(LoadedTables):
    """Probabilities and back-off weights, ready for lookup."""

    unigrams: NDArray[np.float32]  # float32 [vocabulary, 2], probability and back-off weight, linear
    tables: list[PackedTable]  # one per order from 2
    full_context: bool = False
    unseen: float = 0.0  # with `full_context`, the probability of any word after an unseen context
    source: str = ""  # the file or folder they were read from, for messages; empty if none
    mapped: mmap.mmap | None = None  # the file behind the arrays, where they are mapped into memory
    # for each order log10 of probabilities and back-off weights as an ARPA file says them, float32 [slots, 2], NaN where it
    # does not; empty where they were not asked for. Single precision keeps more of a logarithm near 0 than of what it is
    # the logarithm of.
    logs: Sequence[NDArray[np.float32]] = ()

    @property
    def order(self) -> int:
        """Return the length of the longest n-grams."""
        return len(self.tables) + 1

    def arguments(self) -> KernelModel:
        """Return the model as the kernels take it."""
        return self.unigrams.reshape(-1), [table.kernel for table in self.tables], (self.full_context, self.unseen)

    def score(self, ids: NDArray[np.uint32], *, skip: int = 0, contexts: bool = False) -> Events:
        """Score all ids except `<s>`, each given the ids before it, back to the last `<s>`."""
        # ids: uint32 [n].
        # -> the events, in nats; `<s>` has none.
        size = len(ids)
        logprob, matched = np.empty(size, np.float64), np.empty(size, np.uint8)
        events, kind = np.empty(size, np.uint32), np.empty(size, np.uint8)
        slots = np.empty((size if contexts else 0, self.order - 1), np.uint32)
        rows = logprob, matched, events, kind, slots.reshape(-1)
        written = _native.score_ids(self.arguments(), ids, skip, rows)
        logprob = logprob[:written]
        self.check_logprob(logprob)
        return Events(logprob, matched[:written], events[:written], kind[:written], slots[:written])

    def sum(self, ids: NDArray[np.uint32], out: SumArrays) -> None:
        """Sum the rows that `score` has by segment."""
        # ids: uint32 [n], each segment after `<s>`; out: see `_native.sum_ids`, [segments] each.
        self.check_sums(_native.sum_ids(self.arguments(), ids, out))

    def reader(self, vocabulary: Vocabulary, cut: tuple[int, int, bool, Refusal]) -> _native.Reader:
        """Return what steps through these tables word by word."""
        return _native.read_tables(self.arguments(), vocabulary.arrays, cut)

    def whole(self, *, eos: bool) -> WholeDistributions:
        """Return what answers questions about whole distributions; what it finds out is held for the next one."""
        return self._whole[eos]

    @cached_property
    def _whole(self) -> tuple[WholeDistributions, WholeDistributions]:
        return WholeDistributions(self, eos=False), WholeDistributions(self, eos=True)

    @cached_property
    def children(self) -> list[tuple[NDArray[np.uint32], NDArray[np.uint64]]]:
        """For contexts of 1, 2, ... words, where the words seen after each begin, uint32 [slots + 1]."""
        # And word and probability of each, packed, uint64 [n-grams]: 11 to 14 bytes an n-gram in all.
        return [index_children(table) for table in self.tables]

    def types(self) -> list[int]:
        """Return the number of n-grams of each order; blanks, held only because longer ones contain them, do not count."""
        counts = [len(self.unigrams)]
        for table in self.tables:
            entries, blanks = table.count()
            counts.append(entries - blanks)
        return counts
