"""Why bits per byte, character and word are lower bounds: what the model was not asked to predict, or was spared."""

from __future__ import annotations

from typing import NamedTuple

from lmgauge.evaluation.origin import Origin


class BoundReason(NamedTuple):
    """One reason."""

    short: str  # a few words, for tables
    sentence: str


_UNSEEN = BoundReason("unseen words", "unseen words are one event <unk>, cheaper to predict than they are")
_CLOSED = BoundReason("unseen words", "unseen words are impossible")
_FIRST = BoundReason("first tokens not scored", "what comes first in a context is not scored")
_SPACE = BoundReason("white space lost", "the tokens do not give back all white space")
_ALTERED = BoundReason(
    "text altered by the tokenizer or read as special tokens",
    "the tokenizer alters some of the text, or reads it as special tokens",
)
_NORMALIZED = BoundReason(
    "text changed by the normalizer", "the normalizer makes some of the text simpler, and so cheaper to predict"
)


def bound_reasons(origin: Origin, oov: int, lossy_segments: int) -> list[BoundReason]:
    """Return why bits are lower bounds; empty where they are exact."""
    # lossy_segments: segments that their tokens do not give back exactly.
    # [reason.short for reason in bound_reasons(Origin("mine"), 3, 0)] -> ['unseen words']
    reasons = []
    if oov:
        reasons.append(_CLOSED if origin.oov_policy == "closed" else _UNSEEN)
    if lossy_segments:
        reasons.append(lossy_reason(origin))
    return reasons


def lossy_reason(origin: Origin) -> BoundReason:
    """Return why the tokens of a model do not give back a text, where they do not."""
    if origin.policy.first_bytes_move:
        return _FIRST
    if "normalizer" in origin.fingerprints:
        return _NORMALIZED
    return _SPACE if origin.loses_white_space_only else _ALTERED
