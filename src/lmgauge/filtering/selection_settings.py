"""The decisions behind a selection of training text, and how its texts are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from lmgauge.choices import DEFAULT_SEED, ErrorPolicy, ProperSmoothing
from lmgauge.declaration import settings
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Bounds, Count, Natural
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.ngram.settings import NgramTrainingSettings
    from lmgauge.text.tokens import Tokenizer

CUTS = tuple(1 / 2**i for i in range(6, -1, -1))
"""1/64, 1/32, ... 1/2 and all of the pool, as Moore and Lewis tried them."""


@settings
class SelectionSettings:
    """How documents are selected; see `lmgauge.select_documents`.

    Attributes:
        cuts: shares of the pool that are tried, by bytes, rising; 1/64, 1/32 and so on to 1 if not given.
        tolerance: most that the share taken may be worse; the smallest is taken that is, with 95 % confidence, at most this
            much above the lowest perplexity, such as 1%; 0 takes the best.
        held_out_share: how much of the target is held out, where `held_out` names no text.
        share: select this share of the pool, such as 10%; none is tried.
        max_difference: select what differs by at most this, in bits per token; no share is tried.
        order: order of all models, those that score and those that are trained on what would be selected.
        smoothing: smoothing of all models.
        tokenizer: whitespace, treebank, character, byte, icu, or the path of a tokenizer.json.
        min_count: words that occur less often in the target are <unk> to all models.
        seed: same seed, same split of the target, sample of the pool and random selections.

    Raises:
        UsageError: a number is out of range, or both `share` and `max_difference` are given.

    Example:
        >>> SelectionSettings(share=0.1).searches
        False
    """

    heading: ClassVar[str] = "How much"
    cuts: Sequence[float] = CUTS
    tolerance: Annotated[float, Bounds(0, 1000)] = 0.0
    held_out_share: Annotated[float, Bounds(0, 1, open_least=True, open_most=True)] = 0.25
    share: Annotated[float, Bounds(0, 1, open_least=True)] | None = None
    max_difference: Annotated[float, Bounds(-1000, 1000)] | None = None
    order: Annotated[int, Bounds(1, 64)] = 3
    smoothing: ProperSmoothing = "modified-kneser-ney"
    tokenizer: str | Tokenizer = "whitespace"
    min_count: Count = 2
    seed: Natural = DEFAULT_SEED

    def __post_init__(self) -> None:
        if self.share is not None and self.max_difference is not None:
            raise UsageError("share and max-difference both say how much is selected; give one of them")
        if not self.cuts or any(not 0 < cut <= 1 for cut in self.cuts) or list(self.cuts) != sorted(set(self.cuts)):
            raise UsageError(
                f"cuts must be rising shares of the pool, above 0 and at most 1, such as 1/8,1/4,1; got {self.cuts!r}"
            )

    @property
    def searches(self) -> bool:
        """Whether the share is looked for by held-out perplexity."""
        return self.share is None and self.max_difference is None

    def training(self, words: tuple[str, ...] | None = None) -> NgramTrainingSettings:
        """Return the settings of the models over these words; of the one of the in-domain text, which finds them, if None.

        A `<unk>` or `<s>` in a text is an ordinary word, so that no text of the pool stops the work.
        """
        from lmgauge.models.ngram.settings import NgramTrainingSettings

        return NgramTrainingSettings(
            self.smoothing,
            order=self.order,
            tokenizer=self.tokenizer,
            words=words,
            min_count=self.min_count if words is None else 1,
            reserved="escape",
        )


@settings
class PoolReading(ReadingOptions):
    """How the texts of a selection are read: what cannot be used is left out and counted.

    Example:
        >>> PoolReading(field="body").errors
        'skip'
    """

    errors: ErrorPolicy = "skip"
