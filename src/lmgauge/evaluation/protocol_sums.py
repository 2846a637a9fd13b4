"""What following the protocol of another program adds to an evaluation: what was scored, its figures, and what to know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.denominators import Denominators
from lmgauge.evaluation.scored_spans import ScoredSpans
from lmgauge.evaluation.source_figures import SourceFigures
from lmgauge.protocols import PROTOCOLS
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments


class ScoredPart(NamedTuple):
    """The part of a text that is scored."""

    denominators: Denominators | None  # counted over it; None if not known
    share: float | None  # of the bytes of the text, 0 to 1; None if not known
    notes: tuple[str, ...]


class ProtocolSums:
    """Collects what a protocol scores, beside the sums that every evaluation has."""

    def __init__(self, policy: ContextPolicy) -> None:
        self._policy = policy
        self._spans, self._source = ScoredSpans(), SourceFigures(policy)
        self._scored = Denominators()

    def watch(self, batch: ScoreBatch) -> None:
        """Note which rows there are."""
        # batch: rows of the score table, in order.
        self._source.add(batch)
        if self._policy.leaves_out:
            self._spans.add(batch)

    def read(self, block: Segments) -> None:
        """Count what is scored of the next block of the text."""
        self._source.add_text(block)
        if self._policy.leaves_out:
            self._scored += self._spans.count(block)

    def of_text(self, denominators: Denominators | None, *, whole: bool) -> ScoredPart:
        """Return which part of a text is scored, and what it is divided by."""
        notes = tuple(self._notes())
        if denominators is None:
            return ScoredPart(None, None, notes)
        denominators = denominators.scored_under(self._policy)
        if not self._policy.leaves_out:
            return ScoredPart(denominators, 1.0, notes)
        scored = self._scored if whole and self._scored.segments else None
        if scored is None:
            return ScoredPart(None, None, notes)
        share = scored.bytes / max(1, denominators.bytes)
        if share < 1:
            notes += (
                f"protocol {self._policy.protocol} scores {100 * share:.1f} % of the text ({scored.bytes:,} of "
                f"{denominators.bytes:,} bytes); words, characters and bytes are those of this part",
            )
        return ScoredPart(scored, share, notes)

    def figures(self, nats: float, events: int) -> dict[str, float]:
        """Return what the program whose protocol is followed prints, under its own names."""
        return self._source.finish(nats, events)

    def _notes(self) -> Iterator[str]:
        if self._policy.protocol is not None:
            protocol = PROTOCOLS[self._policy.protocol]
            yield f"protocol {protocol.name}, the rules of {protocol.source}: {protocol.rules}"
            if protocol.stride not in (None, self._policy.stride):
                yield f"its windows begin every {self._policy.stride:,} tokens here, not every {protocol.stride:,}"
            if not protocol.causal:
                yield "what its last window shows depends on the length of the text: keep such figures for those of its kind"
