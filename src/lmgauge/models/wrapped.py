"""A model around a model: what it does not change, it has from the one inside."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.models.scored_text import ScoresStrings


def _of_inner(name: str) -> Any:
    return property(attrgetter(f"inner.{name}"), doc="That of the model inside.")


class WrappedModel(ScoresStrings):
    """A model with another one inside, whose events are the same; it says `score`, `score_block` and what it changes."""

    def __init__(self, inner: LanguageModel) -> None:
        self.inner = completed(inner)

    label = _of_inner("label")
    vocabulary = _of_inner("vocabulary")
    tokenizer = _of_inner("tokenizer")
    fingerprint = _of_inner("fingerprint")
    context_policy = _of_inner("context_policy")
    blocks_are_independent = _of_inner("blocks_are_independent")
    tolerance = _of_inner("tolerance")
    notes = _of_inner("notes")
    options = _of_inner("options")
    takes = _of_inner("takes")
    keep_journal = _of_inner("keep_journal")
    log_distribution = _of_inner("log_distribution")
    progress = _of_inner("progress").setter(lambda self, listener: setattr(self.inner, "progress", listener))
