"""Bits by token and by unseen word: what is dear because it is frequent, and what the vocabulary lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.slicing.ranges import Ranges
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import OOV, ScoreBatch
from lmgauge.text.segments import Segments

MOST_UNSEEN_WORDS = 1 << 20


@dataclass(frozen=True)
class TokenCost:
    """What all occurrences of a token cost.

    Attributes:
        token: as the model sees it.
        events: occurrences.
        bits: of those that the model does not hold impossible.
        zeros: those that it does.
    """

    token: str
    events: int
    bits: float
    zeros: int

    @property
    def mean_bits(self) -> float | None:
        """Bits of an occurrence; None where all have probability zero."""
        return self.bits / (self.events - self.zeros) if self.events > self.zeros else None


@dataclass(frozen=True)
class UnseenWord:
    """A word of the text that the model sees only as `<unk>`.

    Attributes:
        word: as it stands in the text.
        events: occurrences.
        bits: that they cost as `<unk>`; infinite where that is impossible.
    """

    word: str
    events: int
    bits: float


class TokenCosts:
    """Collects what each token costs, batch by batch."""

    def __init__(self) -> None:
        self._costs: dict[str, tuple[int, float, int]] = {}

    def add(self, table: ScoreBatch) -> None:
        """Add the rows of a batch.

        Args:
            table: events with their log-probabilities, nats.
        """
        ids, size = table.token_ids, len(table.strings.tokens)
        zero = np.isinf(table.logprob)
        events = np.bincount(ids, minlength=size)
        bits = np.bincount(ids, np.where(zero, 0.0, nats_to_bits(-table.logprob)), size)
        zeros = np.bincount(ids[zero], minlength=size)
        used = np.flatnonzero(events)
        for i, n, b, z in zip(used.tolist(), events[used].tolist(), bits[used].tolist(), zeros[used].tolist(), strict=True):
            token = table.strings.tokens[i]
            before = self._costs.get(token, (0, 0.0, 0))
            self._costs[token] = (before[0] + n, before[1] + b, before[2] + z)

    @property
    def named(self) -> bool:
        """Whether the table tells its tokens."""
        return any(self._costs)

    def most(self, count: int) -> tuple[TokenCost, ...]:
        """Return the tokens that cost most bits in all, the most expensive first; ties by token.

        Args:
            count: how many tokens.
        """
        if not self.named:
            return ()
        dearest = sorted(self._costs.items(), key=lambda item: (-item[1][1], item[0]))[:count]
        return tuple(TokenCost(token, *costs) for token, costs in dearest)


class UnseenWords:
    """Collects the words behind `<unk>`; where there are too many, those met once so far are forgotten.

    Args:
        most: how many to hold at a time.
    """

    def __init__(self, most: int = MOST_UNSEEN_WORDS) -> None:
        self._most = most
        self._costs: dict[bytes, tuple[int, float]] = {}
        self.forgotten = 0

    def add(self, block: Segments, table: ScoreBatch, ranges: Ranges) -> None:
        """Add the unseen words of a block.

        Args:
            block: segments of the text.
            table: their events.
            ranges: one for each event, in bytes of its segment.
        """
        rows = np.flatnonzero(table.kind == OOV)
        begins = block.starts[ranges.segment[rows]]
        starts = begins + ranges.starts[rows]
        ends = np.minimum(begins + ranges.ends[rows], block.ends[ranges.segment[rows]])
        bits: NDArray[np.float64] = nats_to_bits(-table.logprob[rows])
        data = block.data.tobytes() if len(rows) else b""
        for start, end, cost in zip(starts.tolist(), ends.tolist(), bits.tolist(), strict=True):
            word = data[start:end]
            word = word.strip() or word  # the span of a word takes the white space before it
            before = self._costs.get(word, (0, 0.0))
            self._costs[word] = (before[0] + 1, before[1] + cost)
        if len(self._costs) > self._most:
            often = {word: costs for word, costs in self._costs.items() if costs[0] > 1}
            self.forgotten += len(self._costs) - len(often)
            self._costs = often

    def __len__(self) -> int:
        """Return how many different words are held."""
        return len(self._costs)

    def most(self, count: int) -> tuple[UnseenWord, ...]:
        """Return the most frequent words; ties by bits, then by word.

        Args:
            count: how many words.
        """
        frequent = sorted(self._costs.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))[:count]
        return tuple(UnseenWord(word.decode("utf-8", "replace"), *costs) for word, costs in frequent)
