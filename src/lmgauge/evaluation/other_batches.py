"""The same model in other batches: every segment, and every window of it, by itself. What moves then is rounding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.scores import ScoreBatch, ScoreWriter, join_batches
from lmgauge.scores.distributions.blocks import Events, distributions_of
from lmgauge.scores.distributions.reduce import joined, look_at_both, no_events, together
from lmgauge.scores.distributions.reductions import Columns, PairReduction
from lmgauge.scores.distributions.tile import ready
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


def by_itself(model: LanguageModel) -> LanguageModel:
    """Return the same model, which computes every window by itself; a model without windows as it is."""
    if model.tokens is None or model.options is None:
        return model
    alone: LanguageModel = model.with_options(replace(model.options, batch_tokens=1))  # type: ignore[attr-defined]
    return alone if model.raw is None else alone.framed()


def score_again(model: LanguageModel, corpus: Corpus, path: Path, threads: int | None = None) -> str:
    """Write the score table of a model in other batches, and return how: windows by themselves, segments from the end."""
    alone = by_itself(model)
    how = "segment by segment" if alone is model else "every window by itself"
    with ScoreWriter(path, {"model": model.label}) as writer:
        if model.context_policy.runs_on:  # a segment sees the one before it
            for batch in alone.score(corpus, threads=threads):
                writer.write(batch)
            return how
        for block in corpus:
            parts = [block.part(i, i + 1) for i in reversed(range(len(block)))]
            writer.write(join_batches(list(alone.score(parts, threads=threads))[::-1]))
    return f"{how}, from the last segment to the first"


def against_itself(
    model: LanguageModel,
    segments: Iterable[Segments],
    reduction: PairReduction,
    *,
    events: Events | None = None,
    threads: int | None = None,
) -> Iterator[tuple[Segments, ScoreBatch, ScoreBatch, Columns]]:
    """Yield each block with what `reduce_pair` yields of it: the model in its own batches, and window by window."""
    # The first are held in memory: an engine that has one context cannot compute both in turns.
    own, whole, alone = tee(segments, 3)
    one_by_one = (block.part(i, i + 1) for block in alone for i in range(len(block)))
    parts = distributions_of(by_itself(model), one_by_one, events=events, spans=False, threads=threads)
    for block, one in zip(own, distributions_of(model, whole, events=events, threads=threads), strict=True):
        held = [ready(tile.xp.asarray(tile.logprob, copy=True), None, tile.targets) for tile in one.tiles()]
        again = chain.from_iterable(part.tiles() for part in islice(parts, len(block)))
        pairs = together(iter(held), again)
        columns = joined(partial(look_at_both, reduction), pairs, (no_events(one), no_events(one)), 1)
        yield block, one.finish(columns.pop("logprob_a")), one.finish(columns.pop("logprob_b")), columns
