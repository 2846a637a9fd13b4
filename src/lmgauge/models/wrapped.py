"""A model around a model: what it does not change, it has from the one inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.models.scored_text import ScoresStrings

if TYPE_CHECKING:
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.journal import Journal
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary


class WrappedModel(ScoresStrings):
    """A model with another one inside, whose events are the same; it says `score`, `score_block` and what it changes."""

    def __init__(self, inner: LanguageModel) -> None:
        self.inner = completed(inner)

    @property
    def label(self) -> str:
        """Short name for signatures: that of the model inside."""
        return self.inner.label

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens of the model inside."""
        return self.inner.vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the model inside."""
        return self.inner.tokenizer

    @property
    def fingerprint(self) -> str:
        """That of the model inside, which determines all probabilities."""
        return self.inner.fingerprint

    @property
    def context_policy(self) -> ContextPolicy:
        """That of the model inside."""
        return self.inner.context_policy

    @property
    def blocks_are_independent(self) -> bool:
        """Whether those of the model inside are."""
        return self.inner.blocks_are_independent

    @property
    def tolerance(self) -> float:
        """Nats by which rows may differ when they are scored again: as the model inside."""
        return self.inner.tolerance

    @property
    def notes(self) -> Sequence[str]:
        """What the model inside met in the latest scoring that numbers depend on."""
        return list(self.inner.notes)

    @property
    def options(self) -> ScoringOptions | None:
        """The scoring options that the model inside follows."""
        return self.inner.options

    def takes(self, option: str) -> bool:
        """Return True if the model inside takes a scoring option.

        Args:
            option: the name of one of `ScoringOptions`.
        """
        return self.inner.takes(option)

    @property
    def progress(self) -> Callable[[int], None] | None:
        """What is called with the number of tokens scored since the last call, where the model inside reports them."""
        return self.inner.progress

    @progress.setter
    def progress(self, listener: Callable[[int], None]) -> None:
        self.inner.progress = listener  # type: ignore[misc]  # asked for only where there is one

    def keep_journal(self, path: Path) -> Journal | None:
        """Let a network inside keep its scores in a file as soon as they are known; None where that is not possible.

        Args:
            path: the file, to which the scores are added in bytes.

        Raises:
            OutputError: the file cannot be written.
        """
        return self.inner.keep_journal(path)

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context: those of the model inside.

        Args:
            context_ids: ids before the event, `<s>` first.

        Returns:
            float64 [vocabulary], nats; -inf for what cannot come.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        return self.inner.log_distribution(context_ids)
