"""What a reader must know of the numbers of a whole text: sentences that follow from its sums."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.choices import Boundary
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.tally import Tally
from lmgauge.scores import OOV, TOKEN

_MANY_UNSEEN = 0.1  # from this rate on a note says so
_CUT: dict[Boundary, str] = {"joint": "together with what follows it", "apart": "on its own"}


def whole_text_notes(tally: Tally, origin: Origin) -> Iterator[str]:
    """Yield what must be known of given text and of unseen words.

    Args:
        tally: the sums of a whole text.
        origin: of its rows.

    Example:
        >>> tally = Tally(given_bytes=1200)
        >>> list(whole_text_notes(tally, Origin("mine", context="sentence,given=apart")))
        ['1,200 bytes of given text are shown and not scored, and in no denominator; it is cut into tokens on its own']
    """
    yield from _given_text(tally, origin)
    yield from _unseen_words(tally)


def _given_text(tally: Tally, origin: Origin) -> Iterator[str]:
    boundary = origin.policy.given
    if boundary is None:
        return
    yield (
        f"{tally.given_bytes:,} bytes of given text are shown and not scored, and in no denominator; it is cut into tokens "
        f"{_CUT[boundary]}"
    )
    if tally.crossing_tokens:
        yield (
            f"segments that begin inside a token which begins in the given text: {tally.crossing_tokens:,} of "
            f"{len(tally.per_segment().segments):,}; such a token is scored whole, for the bytes behind the boundary"
        )


def _unseen_words(tally: Tally) -> Iterator[str]:
    tokens = tally.events[TOKEN] + tally.events[OOV]
    if tokens and tally.events[OOV] >= _MANY_UNSEEN * tokens and not tally.zeros[OOV]:
        yield (
            f"{100 * tally.events[OOV] / tokens:.0f} % of the tokens are unseen words, all one event <unk>: the perplexity "
            "is in large part that of <unk>; look at perplexity_without_oov and bits per byte"
        )
