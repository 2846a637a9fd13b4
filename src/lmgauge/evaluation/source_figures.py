"""The figures of other programs under their own names, as each computes them from what it scored."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.protocols import PROTOCOLS
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

_WHITE_SPACE = re.compile(r"\s+")


class SourceFigures:
    """Collects what the source of a protocol adds up."""

    def __init__(self, policy: ContextPolicy) -> None:
        self._policy = policy
        self._windows = np.zeros((0, 2))  # nats and tokens of each window
        self._scored = 0
        self._words = self._bytes = 0

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch."""
        # batch: log-probabilities in nats.
        if self._policy.protocol is not None and PROTOCOLS[self._policy.protocol].layout == "sliding":
            self._add_windows(batch.logprob)
            self._scored += len(batch)

    def add_text(self, block: Segments) -> None:
        """Count a block of the text as the harness does: words are what `re.split` at white space leaves, empty or not."""
        if self._policy.protocol == "harness":
            texts = [block.text(i) for i in range(len(block))]
            self._words += sum(len(_WHITE_SPACE.split(text.decode())) for text in texts)
            self._bytes += sum(map(len, texts))

    def _add_windows(self, logprob: NDArray[np.float64]) -> None:
        # Add the rows of one text, whose positions follow each other from 1, to the sums of their windows.
        length, stride = self._policy.length or 1, self._policy.stride or 1
        position = np.arange(self._scored, self._scored + len(logprob)) + 1
        window = np.maximum(0, -((length - position) // stride))
        counts, sums = np.bincount(window), np.bincount(window, logprob)
        grown = np.zeros((max(len(counts), len(self._windows)), 2))
        grown[: len(self._windows)] = self._windows
        grown[: len(counts)] += np.stack((sums, counts), axis=1)
        self._windows = grown

    def finish(self, nats: float, events: int) -> dict[str, float]:
        """Return the figures under the names that their source gives them; none without a protocol, or a text it needs."""
        if self._policy.protocol is None:
            return {}
        protocol = PROTOCOLS[self._policy.protocol]
        values: tuple[float, ...]
        if protocol.layout == "filled":
            if not self._bytes:
                return {}
            per_byte = -nats / self._bytes
            values = perplexity_from_nats(-nats / self._words), perplexity_from_nats(per_byte), nats_to_bits(per_byte)
        elif protocol.layout == "sliding":
            values = (perplexity_from_nats(-self._weighted_mean()),)
        else:
            values = (perplexity_from_nats(-nats / events),)
        return dict(zip(protocol.figures, values, strict=True))

    def _weighted_mean(self) -> float:
        # Guide's mean, nats: that of each window counts for its tokens less one, but that of the first for all.
        # The guide takes a token off each window for the first that has no prediction; only the first window has such a
        # one.
        nats, tokens = self._windows.T
        weights = tokens - (np.arange(len(tokens)) > 0)
        counted = weights > 0
        return float((nats[counted] / tokens[counted] * weights[counted]).sum() / weights.sum())
