"""Where the bits of a model go that spells unseen words: known words, the event of an unseen one, letters, white space."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.tally import Tally
from lmgauge.numerics.units import nats_to_bits
from lmgauge.result_columns import column
from lmgauge.scores import EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch
from lmgauge.text.segments import Segments

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
class SpelledWord:
    """A word that is spelled."""

    word: str = field(metadata=column(""))  # without the white space before it
    events: int = field(metadata=column("events", form="count"))  # how often it stands in the text
    spelling_bits: float = field(metadata=column("bits of its letters", 2))


@dataclass(frozen=True)
class SpellingCosts:
    """What unseen words and white space cost, where a model spells and predicts them."""

    # of all bits, in the order of `PartOfBits.part`; parts that the text does not have are left out
    parts: tuple[PartOfBits, ...]
    dearest: tuple[SpelledWord, ...]  # the words whose letters cost most; empty without the text


class SpellingSums:
    """Collects what unseen words and white space cost, block by block."""

    def __init__(self, examples: int) -> None:
        self._examples = examples
        self._tally = Tally()
        self._dearest: dict[str, tuple[float, int]] = {}

    def add(self, block: Segments | None, table: ScoreBatch) -> None:
        """Add the rows of a block; those of a table without the columns `spelling` and `separator` say nothing."""
        if SPELLING not in table.extra:
            return
        self._tally.add(table)
        rows = np.flatnonzero((table.kind == SPELLED) & np.isfinite(table.logprob))
        if block is None or not len(rows):
            return
        begins = block.starts[table.row_segments()[rows] - block.first]
        spans = zip((begins + table.starts()[rows]).tolist(), (begins + table.ends[rows]).tolist(), strict=True)
        data = block.data.tobytes()
        texts = (data[begin:end].decode("utf-8", "replace") for begin, end in spans)
        words = [text.strip() or text for text in texts]
        bits: NDArray[np.float64] = nats_to_bits(-table.extra[SPELLING][rows])
        for word, cost in zip(words, bits.tolist(), strict=True):
            known = self._dearest.get(word)
            self._dearest[word] = (cost, 1) if known is None else (max(cost, known[0]), known[1] + 1)
        self._dearest = dict(self._sorted())

    def _sorted(self) -> list[tuple[str, tuple[float, int]]]:
        return sorted(self._dearest.items(), key=lambda item: (-item[1][0], item[0]))[: self._examples]

    def finish(self) -> SpellingCosts | None:
        """Return the costs; None where the table has no such columns."""
        tally = self._tally
        if SPELLING not in tally.parts:
            return None
        events = tally.events
        nats = {
            KNOWN: (events[TOKEN], tally.event_nats(TOKEN)),
            UNSEEN: (events[SPELLED] + events[OOV], tally.event_nats(SPELLED, OOV)),
            LETTERS: (events[SPELLED], tally.part_nats(SPELLING)),
            SPACE: (tally.total_events if SEPARATOR in tally.parts else 0, tally.part_nats(SEPARATOR)),
            ENDS: (events[EOS_KIND], tally.event_nats(EOS_KIND)),
        }
        total = tally.nats()
        parts = tuple(
            PartOfBits(part, count, nats_to_bits(-own), own / total if total else 0.0)
            for part, (count, own) in nats.items()
            if count
        )
        words = tuple(SpelledWord(word, n, cost) for word, (cost, n) in self._sorted())
        return SpellingCosts(parts, words)
