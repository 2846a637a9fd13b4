"""A range coder (Martin 1979) for events of a large vocabulary: it spends -log2 p bits on an event of probability p."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import needing
from lmgauge.numerics.units import nats_to_bits

COARSEST = 2**-23
"""What the coder may add to the probability of an event: it gives each of two steps 2^-24 at least."""
_MOST_STEPS = 1 << 16  # inside an event: a code that is not one of this model may spell without end


class NoCodeError(Exception):
    """An event cannot be coded, or a code cannot be read; the message says why."""


class EventCoder:
    """Codes one event of a large vocabulary in two steps, bucket and token in it."""

    # The coder rounds probabilities to multiples of 2^-24 and gives every symbol one at least. Over a vocabulary of 300,000
    # that would cost 2 % of the mass; over buckets of the square root of it, next to nothing.

    def __init__(self, size: int) -> None:
        self._size = size
        # 300,000 tokens: 2^ceil(18.2 / 2) = 1,024 to a bucket, 293 buckets.
        self._width = 1 << max(1, math.ceil(math.log2(max(2, size)) / 2))
        self._buckets = -(-size // self._width)
        self._probability = np.zeros(self._buckets * self._width, np.float64)
        self._constriction = constriction()
        self._prepared, self._sums = np.zeros(0), np.zeros(0)

    def _prepare(self, logprob: NDArray[np.float64]) -> NDArray[np.float64]:
        # Fill in the probabilities and return those of the buckets; what cannot change is not computed again.
        if logprob is self._prepared and not logprob.flags.writeable:
            return self._sums
        np.exp(logprob, out=self._probability[: self._size])
        buckets: NDArray[np.float64] = self._probability.reshape(self._buckets, self._width).sum(axis=1)
        total = float(buckets.sum())
        if not math.isfinite(total):
            value = "NaN" if math.isnan(total) else "infinite probabilities"
            raise NoCodeError(f"log_distribution gives {value}")
        if not total > 0:
            raise NoCodeError(f"the probabilities after a context sum to {total}, so that nothing can follow")
        self._prepared, self._sums = logprob, buckets
        return buckets

    def _model(self, weights: NDArray[np.float64]) -> Any:
        return self._constriction.stream.model.Categorical(weights, perfect=False)

    def _inside(self, bucket: int) -> NDArray[np.float64]:
        return self._probability[bucket * self._width : (bucket + 1) * self._width]

    def encode(self, encoder: Any, token: int, logprob: NDArray[np.float64]) -> None:
        """Add a token to a code."""
        # logprob: float64 [vocabulary], nats.
        buckets = self._prepare(logprob)
        bucket, place = divmod(token, self._width)
        if not self._probability[token] > 0:
            raise NoCodeError("log_distribution gives probability zero to an event that score gives more")
        if self._buckets > 1:
            encoder.encode(bucket, self._model(buckets))
        encoder.encode(place, self._model(self._inside(bucket)))

    def decode(self, decoder: Any, logprob: NDArray[np.float64]) -> int:
        """Return the next token of a code."""
        # logprob: float64 [vocabulary], nats.
        buckets = self._prepare(logprob)
        bucket = decoder.decode(self._model(buckets)) if self._buckets > 1 else 0
        inside = self._inside(bucket)
        if not inside.sum() > 0:
            raise NoCodeError("the code leads to an event of probability zero")
        token: int = bucket * self._width + decoder.decode(self._model(inside))
        return token


class Encoder:
    """Adds events, and the steps inside of them, to a code."""

    def __init__(self) -> None:
        self.code, self._coders = constriction().stream.queue.RangeEncoder(), _Coders()
        # How much shorter the code may be than the steps claim, as the coder has no smaller probability.
        self.saved_bits = 0.0

    def event(self, token: int, logprob: NDArray[np.float64]) -> None:
        """Code an event."""
        # logprob: float64 [vocabulary], nats.
        self._coders[len(logprob)].encode(self.code, token, logprob)

    def choose(self, step: Any) -> int:
        """Code what the text has in a step inside of an event, and return it."""
        logprob = float(step.logprob[step.wanted])
        if not logprob > -math.inf:
            raise NoCodeError(f"a {step.part} that score gives a probability has none step by step")
        self.event(step.wanted, step.logprob)
        # log2(p + 2^-23) - log2(p): how much cheaper the event can become by the coder's rounding, at most.
        self.saved_bits += math.log2(math.exp(logprob) + COARSEST) - nats_to_bits(logprob)
        return int(step.wanted)


class Decoder:
    """Reads events, and the steps inside of them, from a code."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self._code, self._coders = constriction().stream.queue.RangeDecoder(words), _Coders()
        self._left = _MOST_STEPS

    def event(self, logprob: NDArray[np.float64]) -> int:
        """Return the next event."""
        self._left = _MOST_STEPS
        return self._coders[len(logprob)].decode(self._code, logprob)

    def choose(self, step: Any) -> int:
        """Return the next step inside of an event."""
        self._left -= 1
        if self._left < 0:
            raise NoCodeError(f"a {step.part} has no end")
        return self._coders[len(step.logprob)].decode(self._code, step.logprob)


class _Coders(dict[int, EventCoder]):
    """Coders by the number of choices."""

    def __missing__(self, size: int) -> EventCoder:
        return self.setdefault(size, EventCoder(size))


def constriction() -> Any:
    """Return the library of entropy coders."""
    with needing("constriction", extra="audit"):
        import constriction as library
    return library
