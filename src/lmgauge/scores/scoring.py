"""Several models over one text, block by block."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.threads import map_in_order, thread_count

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.segments import Segments

_Made = TypeVar("_Made")


def score_together(
    models: Sequence[LanguageModel],
    blocks: Iterable[Segments],
    work: Callable[[Segments, list[ScoreBatch]], _Made],
    *,
    spans: bool = False,
    threads: int | None = None,
) -> Iterator[_Made]:
    """Score each block with all models and yield what `work` makes of it, in order; all that can be is done in threads."""
    if all(model.blocks_are_independent for model in models):

        def score(block: Segments) -> _Made:
            return work(block, [after_given(block, model.score_block(block, spans=spans), model) for model in models])

        yield from map_in_order(score, blocks, thread_count(threads))
        return
    own, *copies = itertools.tee(blocks, len(models) + 1)
    tables = [model.score(copy, spans=spans, threads=threads) for model, copy in zip(models, copies, strict=True)]
    for block, *batches in zip(own, *tables, strict=True):
        yield work(block, [after_given(block, batch, model) for batch, model in zip(batches, models, strict=True)])


def after_given(block: Segments, batch: ScoreBatch, model: LanguageModel) -> ScoreBatch:
    """Return a batch, once its model is known to have seen the text that is given before each segment."""
    if block.given_starts is not None and batch.before is None:
        raise UsageError(
            f"{model.label}: its own way to score takes no given text; score_segments and CustomModel of lmgauge do"
        )
    return batch


def with_same_events(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, list[ScoreBatch]]:
    """Return a block and its batches, once they are known to have the same events."""
    first = batches[0]
    for batch in batches[1:]:
        if not (
            np.array_equal(batch.segment_events, first.segment_events)
            and np.array_equal(batch.token_ids, first.token_ids)
            and np.array_equal(batch.kind, first.kind)
        ):
            raise different_events(f", near segment {_first_difference(first, batch) + 1:,}")
    return block, batches


def different_events(where: str = "") -> InputError:
    """Return the error of models that cannot be laid side by side."""
    return InputError(
        f"the models cut the text into different events{where}: their tokenizers differ, or they "
        "read unseen or reserved words differently; give all of them the same --tokenizer and --reserved"
    )


def _first_difference(one: ScoreBatch, other: ScoreBatch) -> int:
    size = min(len(one), len(other))
    differs = np.flatnonzero((one.token_ids[:size] != other.token_ids[:size]) | (one.kind[:size] != other.kind[:size]))
    row = int(differs[0]) if len(differs) else size - 1
    return int(one.row_segments()[row]) if size else 0
