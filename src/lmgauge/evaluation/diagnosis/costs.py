"""What events cost: tokens, unseen words and their letters, white space."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.result_list import column
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.slicing.span_alignment import Ranges
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch
from lmgauge.text.segments import Segments

MOST_UNSEEN_WORDS = 1 << 20


@dataclass(frozen=True)
class TokenCost:
    """What all occurrences of a token cost."""

    token: str  # as the model sees it
    events: int = field(metadata=column("events", form="count", drop=1))
    bits: float = field(metadata=column("bits in all", 0, drop=2))  # of those that the model does not hold impossible
    zeros: int = field(metadata=column("p = 0", form="count", optional=True))

    @property
    def mean_bits(self) -> float | None:
        """Return bits of an occurrence; None where all have probability zero."""
        return self.bits / (self.events - self.zeros) if self.events > self.zeros else None


@dataclass(frozen=True)
class UnseenWord:
    """A word of the text that the model does not know: `<unk>` to it, or spelled."""

    word: str = field(metadata=column(""))  # as it stands in the text
    events: int = field(metadata=column("events", form="count"))
    bits: float  # that they cost as `<unk>`; infinite where that is impossible


class TokenCosts:
    """Collects what each token costs, batch by batch."""

    def __init__(self) -> None:
        self._costs: dict[str, tuple[int, float, int]] = {}

    def add(self, table: ScoreBatch) -> None:
        """Add the rows of a batch."""
        # table: events with their log-probabilities, nats.
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
        """Return True if the table tells its tokens."""
        return any(self._costs)

    def most(self, count: int) -> tuple[TokenCost, ...]:
        """Return the tokens that cost most bits in all, the most expensive first; ties by token."""
        if not self.named:
            return ()
        dearest = sorted(self._costs.items(), key=lambda item: (-item[1][1], item[0]))[:count]
        return tuple(TokenCost(token, *costs) for token, costs in dearest)


class UnseenWords:
    """Collects the words that the model does not know; where there are too many, those met once so far are forgotten."""

    def __init__(self, most: int = MOST_UNSEEN_WORDS) -> None:
        self._most = most
        self._costs: dict[bytes, tuple[int, float]] = {}
        self.forgotten = 0

    def add(self, block: Segments, table: ScoreBatch, ranges: Ranges) -> None:
        """Add the unseen words of a block."""
        rows = np.flatnonzero(table.unseen())
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
        return len(self._costs)

    def most(self, count: int) -> tuple[UnseenWord, ...]:
        """Return the most frequent words; ties by bits, then by word."""
        frequent = sorted(self._costs.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))[:count]
        return tuple(UnseenWord(word.decode("utf-8", "replace"), *costs) for word, costs in frequent)


KNOWN, UNSEEN, LETTERS, SPACE, ENDS = "known", "unseen", "letters", "white space", "ends"


@dataclass(frozen=True)
class PartOfBits:
    """What one part of all events costs."""

    # "known" (words that the model knows), "unseen" (the event that a word is not known), "letters" (of these words),
    # "white space", "ends" (of segments)
    part: str
    events: int = field(metadata=column("events", form="count", drop=2))
    bits: float = field(metadata=column("bits in all", 0, "fixed", drop=3))  # without events of probability zero
    share: float = field(metadata=column("share of bits", 2, "percent"))  # of all bits, 0 to 1


@dataclass(frozen=True)
class SpellingCosts:
    """What unseen words and white space cost, where a model spells and predicts them."""

    # of all bits, in the order of `PartOfBits.part`; parts that the text does not have are left out
    parts: tuple[PartOfBits, ...]


def spelling_costs(sums: EventSums) -> SpellingCosts | None:
    """Return what unseen words and white space cost in a table; None where it has no column `spelling`."""
    if SPELLING not in sums.parts:
        return None
    events = sums.events
    nats = {
        KNOWN: (events[TOKEN], sums.event_nats(TOKEN)),
        UNSEEN: (events[SPELLED] + events[OOV], sums.event_nats(SPELLED, OOV)),
        LETTERS: (events[SPELLED], sums.part_nats(SPELLING)),
        SPACE: (sums.total_events if SEPARATOR in sums.parts else 0, sums.part_nats(SEPARATOR)),
        ENDS: (events[EOS_KIND], sums.event_nats(EOS_KIND)),
    }
    total = sums.nats()
    parts = (
        PartOfBits(part, count, nats_to_bits(-own), own / total if total else 0.0)
        for part, (count, own) in nats.items()
        if count
    )
    return SpellingCosts(tuple(parts))
