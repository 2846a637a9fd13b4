"""What a cache remembers: counts of the events that went by, within a window or fading.

    p_1(w)     = c(w) / c                                    uniform over all that can be predicted while nothing went by
    p_k(w | h) = (c(h w) + p_{k-1}(w | h')) / (c(h) + 1)     h: the k - 1 events before, h' without the first of them

Each sums to one. With a window, c counts the last events; with a decay d, an event that i others came after counts d^i.

Sources: Kuhn, R. & De Mori, R. (1990), "A cache-based natural language model for speech recognition", IEEE PAMI 12;
Clarkson, P. & Robinson, A. (1997), "Language model adaptation using mixtures and an exponentially decaying cache", ICASSP;
the steps from order to order: MacKay, D. & Peto, L. (1995), "A hierarchical Dirichlet language model".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.cache.settings import CacheSettings
from lmgauge.text.vocabulary import BOS

_RESCALE_FROM = 1e150

Context = tuple[int, ...]


@dataclass
class CacheCounts:
    """The counts, event by event: ask for the probability of an event first, then `add` it."""

    settings: CacheSettings
    size: int  # tokens in the vocabulary, `<s>` among them, which is never predicted
    _last: deque[int] = field(default_factory=deque)
    _counts: dict[Context, dict[int, float]] = field(default_factory=dict)  # by the events before
    _totals: dict[Context, float] = field(default_factory=dict)
    _step: float = 1.0  # what the next event counts; counts are multiples of it

    def probability(self, token: int) -> float:
        """Return the probability of a token as the next event."""
        p = 1.0 / (self.size - 1) if token != BOS else 0.0
        for context in self._contexts():
            total = self._totals.get(context, 0.0)
            count = self._counts[context].get(token, 0.0) if total else 0.0
            if context:
                p = (count / self._step + p) / (total / self._step + 1.0)
            elif total:
                p = count / total
        return p

    def distribution(self) -> NDArray[np.float64]:
        """Return the probabilities of all tokens as the next event, float64 [vocabulary]; as `probability` gives them."""
        p = np.full(self.size, 1.0 / (self.size - 1))
        p[BOS] = 0.0
        for context in self._contexts():
            total = self._totals.get(context, 0.0)
            counts = self._counts[context] if total else {}
            values = np.zeros(self.size)
            values[list(counts)] = list(counts.values())
            if context:
                p = (values / self._step + p) / (total / self._step + 1.0)
            elif total:
                p = values / total
        return p

    def add(self, token: int) -> None:
        """Take one event more."""
        if self.settings.decay is not None:
            self._step /= self.settings.decay
            if self._step > _RESCALE_FROM:
                self._rescale()
        for context in self._contexts():
            counts = self._counts.setdefault(context, {})
            counts[token] = counts.get(token, 0.0) + self._step
            self._totals[context] = self._totals.get(context, 0.0) + self._step
        self._last.append(token)
        window = self.settings.window or 0
        if window and len(self._last) > window:
            self._forget(len(self._last) - window - 1)
        if len(self._last) > window + self.settings.order - 1:  # the events before one that leaves are still needed
            self._last.popleft()

    def _contexts(self) -> list[Context]:
        # Events before the next one, the last none, one, two ... of them.
        most = min(self.settings.order - 1, len(self._last))
        last = tuple(self._last[i] for i in range(-most, 0))
        return [last[most - k :] for k in range(most + 1)]

    def _forget(self, place: int) -> None:
        token = self._last[place]
        for k in range(min(self.settings.order - 1, place) + 1):
            context = tuple(self._last[i] for i in range(place - k, place))
            counts = self._counts[context]
            counts[token] -= 1.0
            self._totals[context] -= 1.0
            if not counts[token]:
                del counts[token]
            if not self._totals[context]:
                del self._counts[context], self._totals[context]

    def _rescale(self) -> None:
        # Divide all by what an event counts, before the numbers grow too large.
        for context, counts in self._counts.items():
            for token in counts:
                counts[token] /= self._step
            self._totals[context] /= self._step
        self._step = 1.0
