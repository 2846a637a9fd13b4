"""What a reader must know of the numbers of a whole text: sentences that follow from its sums."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.evaluation.tally import Tally
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import OOV, SEPARATOR, SPELLED, SPELLING

_MANY_UNSEEN = 0.1  # from this rate on a note says so
NO_WORDS = (
    "most characters are of scripts that are written without spaces, so spaces do not part words: no bits per word, no word "
    "perplexity; compare by bits per byte or character"
)


def whole_text_notes(tally: Tally) -> Iterator[str]:
    """Yield what must be known of tokens across the end of given text, and of unseen words."""
    if tally.crossing_tokens:
        yield (
            f"segments that begin inside a token which begins in the given text: {tally.crossing_tokens:,} of "
            f"{len(tally.per_segment().segments):,}; such a token is scored whole, for the bytes behind the boundary"
        )
    yield from _unseen_words(tally)


def _unseen_words(tally: Tally) -> Iterator[str]:
    tokens = tally.tokens
    if tally.events[SPELLED] or SEPARATOR in tally.parts:
        yield _spelled_words(tally)
    if tokens and tally.events[OOV] >= _MANY_UNSEEN * tokens and not tally.zeros[OOV]:
        yield (
            f"{100 * tally.events[OOV] / tokens:.0f} % of the tokens are unseen words, all one event <unk>: the perplexity "
            "is in large part that of <unk>; look at perplexity_without_oov and bits per byte"
        )


def _spelled_words(tally: Tally) -> str:
    bits = nats_to_bits(-tally.nats())
    letters, space = (100 * nats_to_bits(-tally.part_nats(name)) / (bits or 1.0) for name in (SPELLING, SEPARATOR))
    of_tokens = f"{100 * tally.events[SPELLED] / (tally.tokens or 1):.1f} % of the tokens are unseen"
    if SEPARATOR not in tally.parts:
        return f"{of_tokens} characters: {letters:.1f} % of the bits say which they are"
    return (
        f"{of_tokens} words, spelled letter by letter: {letters:.1f} % of the bits are their letters, {space:.1f} % "
        "the white space between words"
    )
