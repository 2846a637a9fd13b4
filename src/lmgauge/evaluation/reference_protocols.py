"""What following the protocol of another program adds to an evaluation: what was scored, its figures, and what to know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.denominators import Denominators, count_unspaced
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import PROTOCOLS, ContextPolicy, ScoringProtocol
from lmgauge.text.segments import Segments, count_text, is_white_space

Ints = NDArray[np.int64]


class ScoredSpans:
    """Collects the spans of the rows of a table, joined where they touch."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, Ints]] = []  # segment, start, end

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch; those without byte spans say nothing."""
        # batch: of the score table, segments and their rows in order.
        if len(batch) and len(batch.ends):
            self._parts.append(_touching(batch.row_segments(), batch.starts(), batch.ends))

    def count(self, block: Segments) -> Denominators:
        """Count what is scored of a block: its bytes, the code points and the words that begin in them."""
        if not self._parts:
            return Denominators(len(block))
        segment, start, end = _touching(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))
        self._parts = [(segment, start, end)]
        own = (segment >= block.first) & (segment < block.first + len(block))
        origin = block.starts[segment[own] - block.first]
        starts, ends = origin + start[own], origin + end[own]
        words, characters = count_text(block.data, starts, ends, 0)
        # A word is where it begins: one that a span begins inside of was counted there, or is left out.
        filled = ends > starts
        white = is_white_space(block.data[starts[filled]])
        before = is_white_space(block.data[np.maximum(starts[filled] - 1, 0)])
        words -= int(np.count_nonzero((start[own][filled] > 0) & ~white & ~before))
        unspaced = count_unspaced(block.data, starts, ends)
        return Denominators(len(block), words, characters, int((ends - starts).sum()), unspaced=unspaced)


def _touching(segment: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    # Spans, int64 [n] each, joined where one begins where the one before ended.
    new = np.ones(len(segment), bool)
    new[1:] = (segment[1:] != segment[:-1]) | (start[1:] != end[:-1])
    last = np.append(new[1:], True)
    return segment[new], start[new], end[last]


_WHITE_SPACE = re.compile(r"\s+")


class ScoredPart(NamedTuple):
    """The part of a text that is scored."""

    denominators: Denominators | None = None  # counted over it; None if not known
    share: float | None = None  # of the bytes of the text, 0 to 1; None if not known
    notes: tuple[str, ...] = ()

    @classmethod
    def whole(cls, denominators: Denominators | None, policy: ContextPolicy) -> ScoredPart:
        """Return a whole text, under rules that leave nothing out."""
        return cls() if denominators is None else cls(denominators.scored_under(policy), 1.0)


class ProtocolSums:
    """Collects what a protocol scores, beside the sums that every evaluation has."""

    def __init__(self, policy: ContextPolicy, protocol: ScoringProtocol) -> None:
        self._policy, self._protocol = policy, protocol
        self._spans, self._scored = ScoredSpans(), Denominators()
        self._windows = np.zeros((0, 2))  # nats and tokens of each window
        self._rows = self._words = self._bytes = 0

    @classmethod
    def of(cls, policy: ContextPolicy) -> ProtocolSums | None:
        """Return what collects the sums of the protocol that a policy follows; None if it follows none."""
        return None if policy.protocol is None else cls(policy, PROTOCOLS[policy.protocol])

    def add(self, batch: ScoreBatch, block: Segments | None) -> None:
        """Note which rows there are, and count what is scored of the text."""
        # batch: rows of the score table, in order; block: the text they are about.
        if self._protocol.layout == "sliding":
            self._add_windows(batch.logprob)
        if self._protocol.leaves_out:
            self._spans.add(batch)
        if block is None:
            return
        if self._protocol.leaves_out:
            self._scored += self._spans.count(block)
        else:  # as the harness counts: words are what `re.split` at white space leaves, empty or not
            texts = [block.text(i) for i in range(len(block))]
            self._words += sum(len(_WHITE_SPACE.split(text.decode())) for text in texts)
            self._bytes += sum(map(len, texts))

    def of_text(self, denominators: Denominators | None, *, whole: bool) -> ScoredPart:
        """Return which part of a text is scored, and what it is divided by."""
        notes = tuple(self._notes())
        if not self._protocol.leaves_out:
            return ScoredPart.whole(denominators, self._policy)._replace(notes=notes)
        if denominators is None or not whole or not self._scored.segments:
            return ScoredPart(notes=notes)
        every = denominators.scored_under(self._policy).bytes
        share = self._scored.bytes / max(1, every)
        if share < 1:
            notes += (
                f"protocol {self._protocol.name} scores {100 * share:.1f} % of the text ({self._scored.bytes:,} of "
                f"{every:,} bytes); words, characters and bytes are those of this part",
            )
        return ScoredPart(self._scored, share, notes)

    def _notes(self) -> Iterator[str]:
        protocol = self._protocol
        yield f"protocol {protocol.name}, the rules of {protocol.source}: {protocol.rules}"
        if protocol.stride not in (None, self._policy.stride):
            yield f"its windows begin every {self._policy.stride:,} tokens here, not every {protocol.stride:,}"
        if not protocol.causal:
            yield "what its last window shows depends on the length of the text: keep such figures for those of its kind"

    def figures(self, nats: float, events: int) -> dict[str, float]:
        """Return what the program whose protocol is followed prints, under its names; nothing without a text it needs."""
        values: tuple[float, ...]
        if self._protocol.layout == "filled":
            if not self._bytes:
                return {}
            per_byte = -nats / self._bytes
            values = perplexity_from_nats(-nats / self._words), perplexity_from_nats(per_byte), nats_to_bits(per_byte)
        elif self._protocol.layout == "sliding":
            values = (perplexity_from_nats(-self._weighted_mean()),)
        else:
            values = (perplexity_from_nats(-nats / events),)
        return dict(zip(self._protocol.figures, values, strict=True))

    def _add_windows(self, logprob: NDArray[np.float64]) -> None:
        # Add the rows of one text, whose positions follow each other from 1, to the sums of their windows.
        length, stride = self._policy.length or 1, self._policy.stride or 1
        position = np.arange(self._rows, self._rows + len(logprob)) + 1
        window = np.maximum(0, -((length - position) // stride))
        counts, sums = np.bincount(window), np.bincount(window, logprob)
        grown = np.zeros((max(len(counts), len(self._windows)), 2))
        grown[: len(self._windows)] = self._windows
        grown[: len(counts)] += np.stack((sums, counts), axis=1)
        self._windows, self._rows = grown, self._rows + len(logprob)

    def _weighted_mean(self) -> float:
        # Guide's mean, nats: that of each window counts for its tokens less one, but that of the first for all.
        # The guide takes a token off each window for the first that has no prediction; only the first window has such a
        # one.
        nats, tokens = self._windows.T
        weights = tokens - (np.arange(len(tokens)) > 0)
        counted = weights > 0
        return float((nats[counted] / tokens[counted] * weights[counted]).sum() / weights.sum())
