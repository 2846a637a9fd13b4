"""The decisions behind a selection of training text: made once, at the door."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lmgauge.choices import DEFAULT_SEED, SmoothingKind
from lmgauge.errors import UsageError
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.option_numbers import check_whole
from lmgauge.text.tokens import Tokenizer

CUTS = tuple(1 / 2**i for i in range(6, -1, -1))
"""1/64, 1/32, ... 1/2 and all of the pool, as Moore and Lewis tried them."""


@dataclass(frozen=True, kw_only=True)
class SelectionSettings:
    """How documents are selected; see `lmgauge.select_documents`.

    Attributes:
        order: of all n-gram models, those that score and those that are trained on what would be selected.
        smoothing: of all models.
        tokenizer: how text becomes tokens.
        min_count: words that occur less often in the in-domain text are `<unk>` to all models.
        held_out_share: of a target whose held-out part is not named, by bytes, above 0 and below 1.
        cuts: shares of the pool that are tried, by bytes, above 0 and at most 1, rising.
        tolerance: take the smallest share whose perplexity is, with 95 % confidence, at most this much above the lowest:
            0.01 is 1 %. 0 takes the share with the lowest perplexity.
        share: take this share of the pool, and try none.
        max_difference: take what differs by at most this, in bits per token, and try no share.
        seed: of the split of the target, the sample of the pool and the random selections.

    Raises:
        UsageError: a number is out of range, or both `share` and `max_difference` are given.

    Example:
        >>> SelectionSettings(share=0.1).searches
        False
    """

    order: int = 3
    smoothing: SmoothingKind = "modified-kneser-ney"
    tokenizer: str | Tokenizer = "whitespace"
    min_count: int = 2
    held_out_share: float = 0.25
    cuts: tuple[float, ...] = CUTS
    tolerance: float = 0.0
    share: float | None = None
    max_difference: float | None = None
    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        if self.smoothing == "mle":
            raise UsageError("smoothing mle gives unseen n-grams probability zero, and no document a score; choose another")
        if self.share is not None and self.max_difference is not None:
            raise UsageError("share and max-difference both say how much is selected; give one of them")
        if self.share is not None and not 0 < self.share <= 1:
            raise UsageError(f"share must be above 0 and at most 1; got {self.share!r}")
        if self.max_difference is not None and not math.isfinite(self.max_difference):
            raise UsageError(f"max-difference must be a number of bits per token, such as -0.5; got {self.max_difference!r}")
        if not 0 < self.held_out_share < 1:
            raise UsageError(f"held-out-share must be above 0 and below 1; got {self.held_out_share!r}")
        if not self.cuts or any(not 0 < cut <= 1 for cut in self.cuts) or list(self.cuts) != sorted(set(self.cuts)):
            raise UsageError(
                f"cuts must be rising shares of the pool, above 0 and at most 1, such as 1/8,1/4,1; got {self.cuts!r}"
            )
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance must be 0 or more, such as 0.01 for 1 %; got {self.tolerance!r}")
        check_whole("min-count", self.min_count, 1)
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise UsageError(f"seed {self.seed!r} is out of range: 0 to 2**64 - 1")
        self.in_domain_training()

    @property
    def searches(self) -> bool:
        """Whether the share is looked for by held-out perplexity."""
        return self.share is None and self.max_difference is None

    def in_domain_training(self) -> NgramTrainingSettings:
        """Return the settings of the model of the in-domain text, whose vocabulary is that of all.

        A `<unk>` or `<s>` in a text is an ordinary word, so that no text of the pool stops the work.
        """
        return NgramTrainingSettings(
            self.smoothing, order=self.order, tokenizer=self.tokenizer, min_count=self.min_count, reserved="escape"
        )

    def training(self, words: tuple[str, ...]) -> NgramTrainingSettings:
        """Return the settings of all other models.

        Args:
            words: the vocabulary of the model of the in-domain text, without special tokens.
        """
        return NgramTrainingSettings(
            self.smoothing, order=self.order, tokenizer=self.tokenizer, words=words, reserved="escape"
        )
