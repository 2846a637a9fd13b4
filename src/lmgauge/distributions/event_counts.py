"""How many events a model makes of a text, before it computes anything: what a draw of segments needs to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.text.encoding import encode
from lmgauge.text.vocabulary import EOS

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments


def event_counts(model: LanguageModel, block: Segments, *, seen: int = 0) -> NDArray[np.int64]:
    """Return how many events a model makes of each segment, by its tokenizer alone."""
    # -> int64 [segments]; first tokens that the model leaves unscored are not counted.
    # Whether a reserved word may stand in the text is for the model to say: it is a token in any case.
    encoded = encode(block, model.tokenizer, model.vocabulary, bos=False, reserved="escape")
    ids = encoded.ids if block.given_starts is None else encoded.ids[~encoded.is_given]
    counts: NDArray[np.int64] = np.diff(np.flatnonzero(ids == EOS), prepend=-1)
    policy = policy_of(model)
    if policy.end != "eos":
        counts = counts - 1
    if not policy.scores_first_tokens:
        firsts = (counts > 0) & (block.given_lengths() == 0)
        if policy.runs_on:  # one context, one first token
            firsts &= (np.cumsum(firsts) == 1) & (seen == 0)
        counts = counts - firsts
    return counts
