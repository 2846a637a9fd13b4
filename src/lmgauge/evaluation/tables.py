"""Score tables of any origin: their numbers, and what holds them against the text they are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.errors import InputError
from lmgauge.evaluation.denominators import Denominators, count_denominators
from lmgauge.evaluation.evaluate import NOTHING, Evaluator, Ints, sum_block
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus


def evaluate_scores(
    batches: Iterable[ScoreBatch],
    *,
    origin: Origin,
    corpus: Corpus | None = None,
) -> Evaluation:
    """Evaluate a score table of any origin.

    Args:
        batches: of the table.
        origin: the model behind it.
        corpus: the text it is about, which gives bits per word, character and byte; None if it is not at hand.

    Raises:
        InputError: the table is empty, or its segments or spans are not those of the text.
    """
    evaluator = Evaluator(origin)
    extent, first_tokens = _Extent(), FirstTokens(origin.policy)
    for batch in first_tokens.watch(batches):
        evaluator.add(sum_block(batch))
        extent.add(batch)
    denominators: Denominators | None = None
    documents: tuple[Ints | None, str] | None = None
    sha256, notes = "", ["no text was given: bits per word, character and byte are not known"]
    if corpus is not None:
        denominators = NOTHING
        parts = []
        for block in corpus:
            denominators += count_denominators(block)
            extent.compare(block)
            if block.documents is not None:
                parts.append(block.documents)
        # What a caller says of documents counts more than what the table names, and this more than files do.
        if corpus.settings.get("document") is not None or not evaluator.total.names_documents:
            documents = np.concatenate(parts) if parts else None, corpus.report.documents_by
        sha256, notes = corpus.report.sha256, corpus.report.notes()
        notes += extent.notes(denominators.segments)
    notes += [first_tokens.note] if first_tokens.note else []
    return evaluator.finish(evaluator.total, denominators, text_sha256=sha256, documents=documents, notes=notes)


class _Extent:
    """How far the spans of a foreign table reach in each segment, to be held against the text."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.spans = True
        self.apart = 0
        self.uncovered = 0

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch."""
        if not len(batch.ends):
            self.spans = False
            self.ends.update(dict.fromkeys(batch.segments.tolist(), -1))
            return
        self.apart += batch.spans_apart
        segments, reach = batch.segments.tolist(), batch.reach().tolist()
        reach[0] = max(reach[0], self.ends.get(segments[0], 0))  # it may have begun in the batch before
        self.ends.update(zip(segments, reach, strict=True))

    def compare(self, block: Segments) -> None:
        """Compare the spans with a block of the text."""
        lengths = (block.ends - block.starts).tolist()
        for segment, length in enumerate(lengths, block.first):
            end = self.ends.pop(segment, None)
            if end is None or (self.spans and end < length):
                self.uncovered += 1
            elif end > length:
                raise InputError(
                    f"segment {segment} of the score table ends at byte {end}, but the text's has {length} bytes; "
                    "is it the same text?"
                )

    def notes(self, segments: int) -> list[str]:
        """Return what a reader must know, all of the text being read."""
        if self.ends:
            raise InputError(
                f"the score table has a segment {min(self.ends)}, but the text has {segments}; is it the same text?"
            )
        notes = []
        if not self.spans:
            notes.append("the table has no byte spans: whether it scores every byte of the text was not checked")
        if self.apart:
            notes.append(
                f"{self.apart:,} spans do not begin where the one before ended: bytes are scored twice or not at all"
            )
        if self.uncovered:
            notes.append(
                f"{self.uncovered:,} of {segments:,} segments are not scored to their end; their bytes count all the same"
            )
        return notes
