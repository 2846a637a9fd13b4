"""Whole distributions of a model, and the closed forms of what is asked about them most.

The distribution after a context h differs from that after h', the context without its first word, at the words C(h) seen
after h; all other probabilities are those of h' times the back-off weight, p(w|h) = g p(w|h') with g = g(h), whether the
model interpolates or only backs off. So a sum over the vocabulary after h follows from the same sum after h' and from C(h).
With p = p(w|h) and q = p(w|h'), all sums over w, the mass M(h) = sum p (one, but for rounding) and S(h) = sum p ln p:

    M(h) = sum_C p       +  g (M(h') - sum_C q)
    S(h) = sum_C p ln p  +  g (S(h') - sum_C q ln q  +  ln g (M(h') - sum_C q))

as p ln p = g q (ln g + ln q) outside C(h). The entropy is -S(h). It costs the words in C(h), whose probabilities after h and
h' are stored: tables are closed under suffixes. The recursion ends with the unigrams, added up once. The squares around the
mean, T(h) = sum p (ln p - S(h))^2, follow in the same way, as for the words outside C(h)

    ln p - S(h) = (ln q - S(h')) + d    with    d = ln g + S(h') - S(h):

    T(h) = sum_C p (ln p - S(h))^2  +  g (T(h') - sum_C q (ln q - S(h'))^2
                                          + 2 d (S(h') - S(h') M(h') - sum_C q (ln q - S(h'))) + d^2 (M(h') - sum_C q))

Models without back-off (`full_context`) fit the same form: h' is then a distribution of ones, q = 1 for each of the V words
that can come, with M = V, S = T = 0, and g is the probability that h holds for each word that was not seen after it.

Two models A and B over one vocabulary, with contexts a and b and weights g_a and g_b, and K(a, b) = sum p_A ln(p_A / p_B):
outside C = C(a) + C(b), what was seen after either, p_A = g_a q_A and p_B = g_b q_B, so

    K(a, b) = sum_C p_A ln(p_A / p_B)
              +  g_a (K(a', b') - sum_C q_A ln(q_A / q_B)  +  ln(g_a / g_b) (M_A(a') - sum_C q_A))

Where one of the two contexts is longer, only that one is shortened: the other's weight is then 1, and nothing of it changes.
So pairs meet again in their suffixes, and each is computed once for a block of text. Words that B rules out are counted, not
added (inf - inf is not a number): K is over the others, and infinite if any is left in the end. Both masses are carried
along, and the divergence is K / M_A + ln(M_B / M_A), that of the distributions divided by their masses.

Ranks and the most probable words take no sum. Of words not seen after the last word, the order is that of the unigrams, and
a search among these finds how many are above a probability; the words seen are looked at one by one.

Only differences such as M(h') - sum_C q lose digits, and only a weight above one makes an error of the shorter context
larger: its growth is followed, and where it could pass 256 roundings the whole distribution is added up. Equal models are
exactly 0 apart. The laws hold all of it against the direct sums, to 1e-9 of the value.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.threads import OfProcess
from lmgauge.models.ngram.packed_tables import PackedTable
from lmgauge.text.vocabulary import BOS, EOS

if TYPE_CHECKING:
    from lmgauge.models.ngram.tables import KernelModel, NgramTables

Contexts = NDArray[np.uint32]  # [n, order - 1]: see `_kernels/distributions.hpp`
Floats = NDArray[np.float64]
_FIRST_ROOM = 1 << 12
_Children = tuple[NDArray[np.uint32], NDArray[np.uint64]]
_Source = tuple["KernelModel", list[_Children], tuple[Floats, NDArray[np.uint32]], bool]


class WholeDistributions:
    """Answers questions about all tokens after a context."""

    def __init__(self, tables: NgramTables, *, eos: bool) -> None:
        self._tables, self._eos = tables, eos
        self._asked = 0  # distributions, while there is no index of the words seen after each context
        self._known = np.empty((max(_FIRST_ROOM, tables.order + 1), 4), np.float64)  # sums of contexts, as they came
        self._used = 0
        self._lock = OfProcess(threading.Lock)  # of what is held

    @property
    def words(self) -> int:
        """Return the size of the vocabulary."""
        return len(self._tables.unigrams)

    def after(self, context: NDArray[np.uint32]) -> Floats:
        """Return probabilities of all tokens after a context, float64 [vocabulary]; that of `<s>` is 0."""
        # context: uint32 [n], ids before the event.
        slots = np.empty(self._tables.order - 1, np.uint32)
        _native.find_context(self._tables.arguments(), np.ascontiguousarray(context, np.uint32), slots)
        probability: Floats = self.rows(slots[None], logarithms=False)[0]
        return probability

    def rows(self, contexts: Contexts, *, logarithms: bool) -> Floats:
        """Return the distributions after contexts: probabilities, or logarithms in nats, `LOWEST` for what cannot come."""
        # contexts: uint32 [n, order - 1], slots.
        # -> float64 [n, vocabulary].
        tables = self._tables
        tables.check_file()
        rows = np.empty((len(contexts), self.words), np.float64)
        largest = _native.fill_distributions(self._source(len(contexts)), contexts, logarithms, rows.reshape(-1))
        tables.check_most(largest)
        return rows

    def sums(self, contexts: Contexts) -> Floats:
        """Return sums over the distributions after contexts: of p, p ln p in nats, p (ln p - the sum before)^2."""
        # And a bound.
        # contexts: uint32 [n, order - 1], slots.
        # -> float64 [n, 4]; the bound says how many roundings are in the sums, at most.
        self._tables.check_file()
        sums = np.empty((len(contexts), 4), np.float64)
        done, source = 0, self._source(len(contexts))
        with self._lock.value:
            while done < len(contexts):
                memo = self._numbers, self._known
                more, self._used, largest = _native.sum_distributions(source, contexts[done:], memo, self._used, sums[done:])
                self._tables.check_most(largest)
                done += more
                if done < len(contexts):
                    # The kernel stopped where the room ended: twice the room, and on from the next context.
                    self._known = np.concatenate((self._known, np.empty_like(self._known)))
        return sums

    def ranks(self, contexts: Contexts, targets: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return how many words are more probable after each context than the one that came, and one, int64 [n]."""
        # contexts: uint32 [n, order - 1], slots; targets: uint32 [n], ids of what came.
        self._tables.check_file()
        ranks = np.empty(len(contexts), np.int64)
        self._tables.check_most(_native.rank_words(self._source(len(contexts)), self._order, contexts, targets, ranks))
        return ranks

    def top(self, contexts: Contexts, k: int) -> tuple[NDArray[np.uint32], Floats]:
        """Return the most probable words after contexts, equal ones by id: ids and natural logarithms, each [n, k]."""
        # contexts: uint32 [n, order - 1], slots.
        self._tables.check_file()
        k = min(k, self.words)
        words, logarithms = np.empty((len(contexts), k), np.uint32), np.empty((len(contexts), k), np.float64)
        arrays = words.reshape(-1), logarithms.reshape(-1)
        self._tables.check_most(_native.top_words(self._source(len(contexts)), self._order, contexts, k, *arrays))
        return words, logarithms

    def divergences(self, contexts: Contexts, other: WholeDistributions, other_contexts: Contexts) -> Floats:
        """Return the Kullback-Leibler divergence of distributions from those of another model, nats, float64 [n]."""
        # inf where the other model rules out what this one holds possible, NaN where either holds nothing possible.
        # contexts: uint32 [n, order - 1], slots; other_contexts: uint32 [n, its order - 1], its slots after the same text.
        self._tables.check_file()
        other._tables.check_file()
        divergence = np.empty(len(contexts), np.float64)
        sources = [whole._source(len(contexts)) for whole in (self, other)]
        _native.divergences(sources[0], contexts, sources[1], other_contexts, divergence)
        return divergence

    def _source(self, distributions: int) -> _Source:
        tables = self._tables
        if "children" not in tables.__dict__:
            # Without the index, each takes a look-up for every word; to make it takes about one for every n-gram.
            self._asked += distributions
            if self._asked * self.words < sum(table.slots for table in tables.tables):
                return tables.arguments(), [], self._unigrams, self._eos
        with self._lock.value:  # one thread makes it
            return tables.arguments(), tables.children, self._unigrams, self._eos

    @cached_property
    def _unigrams(self) -> tuple[Floats, NDArray[np.uint32]]:
        # Different probabilities of single words, float64 [values], and which of them each word has, uint32.
        probability = self._tables.unigrams[:, 0].astype(np.float64)
        probability[BOS] = 0
        if not self._eos:
            probability[EOS] = 0
        values, value_of = np.unique(probability, return_inverse=True)
        return values, value_of.astype(np.uint32)

    @cached_property
    def _order(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        # Words by falling probability as unigrams, and how many have each different probability or more.
        values, value_of = self._unigrams
        # values [0, 0.2, 0.5], value_of [2, 0, 1, 2] -> words [0, 3, 2, 1], above [4, 3, 2, 0]: 3 words have 0.2 or more.
        words = np.argsort(-value_of.astype(np.int64), kind="stable").astype(np.uint32)
        above = np.concatenate((np.cumsum(np.bincount(value_of, minlength=len(values))[::-1])[::-1], [0]))
        return words, above.astype(np.int64)

    @cached_property
    def _numbers(self) -> list[NDArray[np.uint32]]:
        # For contexts of 0, 1, 2, ... words, by slot, which of the known sums are theirs, from 1; 0 for none.
        sizes = [2, self.words, *(table.slots for table in self._tables.tables[:-1])]
        return [np.zeros(size, np.uint32) for size in sizes[: self._tables.order]]


def index_children(table: PackedTable) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return where the words seen after each context begin, and words and probabilities, packed."""
    # -> uint32 [contexts + 1] and uint64 [n-grams].
    offsets = np.empty(table.parents + 1, np.uint32)
    children = np.empty(table.count()[0], np.uint64)
    _native.index_children(table.kernel, offsets, children)
    return offsets, children
