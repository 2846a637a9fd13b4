"""How probable each character of Unicode is that a model has not met: by the bytes of its UTF-8, never zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_CODE_POINTS = 0x110000
_SURROGATES = slice(0xD800, 0xE000)
# What the bytes of UTF-8 fix one after another: blocks of 4,096 and 64 code points, and the code point.
_BLOCKS = (1 << 12, 1 << 6, 1)


class UnseenCharacters:
    """A distribution over the characters outside an alphabet."""

    # Level by level (blocks of 4,096 code points, of 64, single ones), a part that holds k of the n characters that the
    # alphabet has in the block has the probability (k + s) / (n + 1), where s is the part's share of that block's code
    # points: scripts that the alphabet has are likelier than others. The alphabet itself is then left out.
    # alphabet: the characters that are not unseen, each once.

    def __init__(self, alphabet: Sequence[str], impossible: Sequence[str] = "") -> None:
        self._alphabet = np.array([ord(character) for character in alphabet], np.int64)
        self._impossible = np.array([ord(character) for character in impossible], np.int64)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Return probabilities by code point, float64 [1,114,112]."""
        # They sum to one, 0 for what is not an unseen character.
        size, seen = np.ones(_CODE_POINTS), np.zeros(_CODE_POINTS)
        size[_SURROGATES] = 0.0
        seen[self._alphabet] = 1.0
        p = np.ones(1)
        above, above_seen = size.sum(keepdims=True), seen.sum(keepdims=True)
        for width in _BLOCKS:
            here, here_seen = size.reshape(-1, width).sum(axis=1), seen.reshape(-1, width).sum(axis=1)
            times = len(here) // len(p)
            share = here / np.repeat(np.maximum(above, 1.0), times)
            # An alphabet of a, b, c: the block of 64 that has them holds 3 of 3, and gets (3 + 1/64) / 4 of its block of
            # 4,096; each of the other 63 blocks (0 + 1/64) / 4.
            p = np.repeat(p, times) * (here_seen + share) / np.repeat(above_seen + 1.0, times)
            above, above_seen = here, here_seen
        p[self._alphabet] = 0.0
        p[self._impossible] = 0.0
        p[_SURROGATES] = 0.0
        probabilities: NDArray[np.float64] = p / p.sum()
        return probabilities

    @cached_property
    def log_probabilities(self) -> NDArray[np.float64]:
        """Natural logs of `probabilities`, float64 [1,114,112]."""
        with np.errstate(divide="ignore"):
            logprob: NDArray[np.float64] = np.log(self.probabilities)
        logprob.setflags(write=False)
        return logprob

    def logprob(self, character: str) -> float:
        """Return the natural log of the probability of a character; -inf for one of the alphabet."""
        return float(self.log_probabilities[ord(character)])

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        # Logs by code point, 0 for what is not an unseen character: float64 [1,114,112], nats.
        logs: NDArray[np.float64] = np.where(self.probabilities > 0, self.log_probabilities, 0.0)
        return logs

    def logprobs(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the sums of the logs of the unseen characters of texts, float64 [texts], nats."""
        # UnseenCharacters("abc", " ").logprobs(["abc", "ad"]).tolist()[0] -> 0.0
        lengths = np.array([len(text) for text in texts], np.int64)
        points = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4")
        sums = np.zeros(len(texts))
        if len(points):
            some = lengths > 0
            # texts ["ab", "", "c"] -> lengths [2, 0, 1], starts [0, 2, 2]; reduceat gives an empty text the next character,
            # so that it is left out.
            sums[some] = np.add.reduceat(self._logs[points], (np.cumsum(lengths) - lengths)[some])
        return sums
