"""A sum that no table of natural logs exceeds: the probabilities of the distinct tokens that segments begin with."""

# Where each segment is scored on its own, all of these tokens follow the same context, so that their probabilities sum to 1
# at most. Base-10 logs taken for natural ones stand for p to the power 0.43, and sum to more as soon as a few dozen
# segments are scored. The condition is necessary, not sufficient: base-2 logs make the sum smaller.

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter

import numpy as np

from lmgauge.base.escaping import visible
from lmgauge.scores import EOS_KIND, TOKEN, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.special_tokens import begins_texts, is_special

# Log-probabilities may be rounded, to two decimals or to 16 bits: 1 % in p. What is looked for is off by far more.
_ROUNDING = 0.01
_NATS_OF_BASE_10 = math.log(10)
# From this number of segments that begin with the token of an earlier one, at its probability, contexts count as the same.
_ENOUGH_REPEATS = 10


class FirstTokens:
    """Collects the events that segments begin with, and counts the spans that do not begin where the one before ended."""

    def __init__(self, policy: ContextPolicy) -> None:
        self.policy, self.apart = policy, 0
        self._known = policy.unit != "unknown"
        self.why_not = ""
        if policy.runs_on:
            self.why_not = "the context continues across segments, so their first tokens do not share one"
        elif not policy.scores_first_tokens:
            self.why_not = "the first token of each segment is not scored"
        elif policy.given is not None:
            self.why_not = "segments come after given text, so their first tokens do not share a context"
        self._lowest: dict[tuple[int, str], float] = {}
        self._last = -1
        self._repeats = 0
        self._heads: Counter[str] = Counter()  # by name, special tokens at the head of segments that should have no row

    def watch(self, batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        """Hand batches on as they were read, and look at them."""
        for batch in batches:
            self._look_at_heads(batch)
            self.add(batch)
            self.apart += batch.spans_apart - (batch.gaps if self.policy.leaves_out else 0)
            yield batch

    def _look_at_heads(self, batch: ScoreBatch) -> None:
        # A token that begins texts is predicted only behind another one; of other special tokens one may have a row.
        counts = batch.segment_events[batch.segment_events > 0]
        begins = np.cumsum(counts) - counts
        ids, strings = batch.token_ids[begins], batch.strings.tokens
        own = (batch.kind[begins] == TOKEN) & (batch.ends[begins] == 0 if len(batch.ends) == len(batch) else True)
        twice = own & (counts > 1) & (batch.token_ids[np.minimum(begins + 1, len(batch) - 1)] == ids)
        for token in filter(lambda token: is_special(strings[token]), np.unique(ids[own]).tolist()):
            wrong = own if begins_texts(strings[token]) else twice
            self._heads[strings[token]] += int(np.count_nonzero(wrong & (ids == token)))

    @property
    def heads(self) -> str:
        """Return what is wrong with the special tokens at the head of segments, in words; empty if nothing is."""
        name, count = max(self._heads.items(), key=itemgetter(1), default=("", 0))
        said = (
            f"{count:,} segments begin with a row for {visible(name)}, which the text has not: it is predicted behind "
            "another one (a tokenizer and a template both set it there) or behind nothing; score with one, without a row"
        )
        return said if count else ""

    def add(self, batch: ScoreBatch) -> None:
        """Add the segments that begin in a batch."""
        # batch: rows of the score table, log-probabilities in nats.
        if self.why_not or not len(batch):
            return
        scored = batch.segment_events > 0
        begins = (np.cumsum(batch.segment_events) - batch.segment_events)[scored]
        segments = batch.segments[scored]
        new = slice(int(segments[0] == self._last), None)  # one may have begun in the batch before
        self._last = int(segments[-1])
        begins = begins[new]
        strings = batch.strings.tokens
        columns = (batch.token_ids[begins], batch.kind[begins], batch.event_logprob()[begins])
        for token, kind, logprob in zip(*(column.tolist() for column in columns), strict=True):
            key = (kind, strings[token])
            if not key[1] and kind != EOS_KIND:
                self.why_not = "the table does not name its tokens"
                return
            earlier = self._lowest.get(key)
            if earlier is None:
                self._lowest[key] = logprob
                continue
            self._repeats += 1
            if not (earlier == logprob or abs(earlier - logprob) <= _ROUNDING):
                self.why_not = f"the context is not the same: {key[1]!r} begins segments with different probabilities"
                return
            self._lowest[key] = min(earlier, logprob)

    @property
    def note(self) -> str:
        """Return a note for people, where the sum is not possible or not plausible; else empty."""
        return "" if self.possible else self.describe()

    @property
    def mass(self) -> float:
        """Return the sum of their probabilities, or less: those that are alike are counted once."""
        # Tables may name an unknown word, or one in capitals, by what the text has; such tokens are one event with one
        # probability: the sum over "zork" (0.1), "quux" (0.1) and "the" (0.2) is 0.3.
        counted: list[float] = []
        for value in sorted(self._lowest.values(), reverse=True):
            if not counted or value < counted[-1] - _ROUNDING:
                counted.append(value)
        return math.fsum(math.exp(value) for value in counted)

    @property
    def possible(self) -> bool | None:
        """Return True if the sum can be that of probabilities; None if it cannot, but the context may not be the same."""
        if self.why_not or self.mass <= 1 + _ROUNDING:
            return True
        return False if self._known or self._repeats >= _ENOUGH_REPEATS else None

    def describe(self) -> str:
        """Return what was seen and what follows, in a sentence or two."""
        tokens = f"the {len(self._lowest):,} tokens that segments begin with"
        seen = f"the probabilities of {tokens} sum to {self.mass:.3g} or more"
        if self.possible:
            return f"{seen}; 1 would be the most"
        cause = f"base-10 logs look like this; multiply them by {_NATS_OF_BASE_10:.6f}"
        if self.possible is None:
            return f"{seen}. If each segment is scored on its own, 1 is the most: are these natural logs? ({cause})"
        return f"{seen}, where 1 is the most: these are not natural logs ({cause}), or the model's do not sum to 1"
