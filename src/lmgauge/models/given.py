"""Text that is given before a segment: how models that score whole sequences leave its rows out, and which cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.scores import GivenTokens, ScoreBatch
from lmgauge.text.encoding import Encoded
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import BOS, EOS


def targets_only(batch: ScoreBatch, encoded: Encoded, block: Segments) -> ScoreBatch:
    """Return the rows of the segments, without those of the text given before them, which the batch then remembers.

    >>> import lmgauge
    >>> text = lmgauge.Corpus.from_strings([" sat"], given=["the cat"])
    >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["the cat sat"]), order=2)
    >>> batch = next(model.score(text))
    >>> batch.token_ids.tolist(), batch.before.ids.tolist()
    ([5, 2], [3, 4])
    """
    if block.given_starts is None:
        return batch

    events = encoded.ids != BOS
    if np.count_nonzero(events) > len(batch):
        events &= encoded.ids != EOS
    is_given = encoded.is_given[events]
    owner = np.repeat(np.arange(len(block)), batch.segment_events)
    counts = np.bincount(owner[is_given], minlength=len(block))
    before = GivenTokens(batch.token_ids[is_given], counts, block.given_lengths(), encoded.crossing)
    return with_given(batch.of_rows(np.flatnonzero(~is_given)), before, block)


def with_given(batch: ScoreBatch, before: GivenTokens, block: Segments) -> ScoreBatch:
    """Return the rows of segments, with what was given before them."""
    empty = np.flatnonzero((batch.segment_events == 0) & (before.lengths > 0))
    if len(empty):
        raise InputError(f"{block.place(int(empty[0]))}: no token of the text ends behind the given text: nothing to score")
    return replace(batch, before=before)


def alone(segments: Iterable[Segments], label: str) -> Iterator[Segments]:
    """Hand on blocks of text to a model whose context runs on, which no text can be given."""
    for block in segments:
        if block.given_starts is not None:
            raise UsageError(
                f"{label}: its context runs on from segment to segment, and given text needs segments that are contexts of "
                "their own (--context sentence)"
            )
        yield block
