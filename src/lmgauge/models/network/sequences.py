"""Blocks of text as the token sequences that a network predicts, and the rows of the score table they come back to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.custom import with_given
from lmgauge.models.network.engine import Job
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.scores import EOS_KIND, OOV, TOKEN, GivenTokens, ScoreBatch, starts_of
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions.blocks import BlockDistributions
from lmgauge.scores.distributions.tile import LOWEST, Tile, ready
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import EOS, UNK
from lmgauge.text.work_units import in_units

if TYPE_CHECKING:
    from lmgauge.models.network.model import NetworkModel


@dataclass(frozen=True, slots=True)
class BlockEvents:
    """The events of a block."""

    block: Segments
    ids: NDArray[np.uint32]  # uint32 [n], lmgauge's ids of the events, segment after segment
    counts: NDArray[np.int64]  # int64 [segments], events of each segment
    ends: NDArray[np.int64]  # int64 [n] or empty, where the span of each ends
    lossy: NDArray[np.bool_]  # bool [segments]
    before: GivenTokens | None = None  # the tokens given before each segment; None where no text is given

    def given_ids(self, room: int | None, label: str) -> list[NDArray[np.uint32]]:
        """Return the ids given before each segment, uint32 [tokens] each."""
        if self.before is None:
            return [self.ids[:0]] * len(self.counts)
        sizes = self.before.counts + self.counts
        too_long = np.flatnonzero((self.before.counts > 0) & (sizes > room)) if room is not None else sizes[:0]
        if len(too_long):
            i = int(too_long[0])
            raise InputError(
                f"{self.block.place(i)}: {self.before.counts[i]:,} tokens of given text and {self.counts[i]:,} to score do "
                f"not fit into one window of {label}, which has room for {room:,}: shorten the given text, leave the record "
                "out, or choose a longer --context"
            )
        return self.before.by_segment()

    def batch(
        self,
        logprob: NDArray[np.float64],
        tokens: TokenMap,
        unscored: NDArray[np.bool_] | None = None,
        *,
        with_bytes: bool = False,
    ) -> ScoreBatch:
        """Return the score table of the block."""
        # logprob: float64 [n], nats; ignored where unscored; unscored: bool [n], events left out.
        kind = np.full(len(self.ids), TOKEN, np.uint8)
        kind[self.ids == UNK] = OOV
        kind[self.ids == EOS] = EOS_KIND
        counts, lossy, ends, ids = self.counts, self.lossy, self.ends, self.ids
        begins = np.zeros(0, np.int64)
        if unscored is not None and unscored.any():
            owner = np.repeat(np.arange(len(counts)), counts)
            left_out = np.bincount(owner[unscored], minlength=len(counts))
            scored = ~unscored
            if with_bytes and len(ends):
                begins = starts_of(ends, counts)[scored]
            counts, lossy = counts - left_out, lossy | ((left_out > 0) & (not with_bytes))
            ids, logprob, kind, ends = ids[scored], logprob[scored], kind[scored], ends[scored] if len(ends) else ends
        batch = ScoreBatch(
            segments=np.arange(self.block.first, self.block.first + len(self.block), dtype=np.int64),
            segment_events=counts,
            token_ids=ids,
            strings=tokens.vocabulary,
            logprob=logprob,
            kind=kind,
            ends=ends,
            lossy=lossy,
            begins=begins,
        )
        return batch if self.before is None else with_given(batch, self.before, self.block)


def block_events(block: Segments, tokens: TokenMap, policy: ContextPolicy, *, spans: bool) -> BlockEvents:
    """Return the events of a block under a policy of what ends a segment."""
    encoded = encode(block, tokens.tokenizer, tokens.vocabulary, bos=False, reserved=tokens.reserved, spans=spans)
    before: GivenTokens | None = None
    if block.given_starts is not None:
        owner = np.cumsum(encoded.ids == EOS)
        shown = np.bincount(owner[encoded.is_given], minlength=len(block))
        before = GivenTokens(encoded.ids[encoded.is_given], shown, block.given_lengths(), encoded.crossing)
        encoded = encoded.only(~encoded.is_given, spans=spans)
    last = np.flatnonzero(encoded.ids == EOS)
    counts = np.diff(np.concatenate(([0], last + 1)))
    ids, ends = encoded.ids, encoded.span_ends
    lengths = block.ends - block.starts
    if policy.end != "eos":
        tokens_only = encoded.ids != EOS
        counts = counts - 1
        ids, ends = ids[tokens_only], ends[tokens_only] if spans else ends
    if spans:
        # What the last token leaves over has no other event to belong to.
        some = counts > 0
        ends[(np.cumsum(counts) - 1)[some]] = lengths[some]
    return BlockEvents(block, ids, counts, ends, encoded.lossy, before)


def events_in_units(
    blocks: Iterable[Segments], tokens: TokenMap, policy: ContextPolicy, *, spans: bool
) -> Iterator[list[BlockEvents]]:
    """Yield the events of blocks in groups of enough text to fill batches."""
    # blocks: of a text, in order.
    return in_units((block_events(block, tokens, policy, spans=spans) for block in blocks), attrgetter("block"))


# -- The whole distributions of a network at the events of one block, tile by tile ------------------------------------


class NetworkDistributions(BlockDistributions):
    """The distributions of a network at events of one block."""

    # firsts: int64, events that nothing is shown before: all tokens are taken as equally probable there; rows: int64, which
    # of the events to look at, ascending.

    parallel = False  # the library computes in threads itself

    def __init__(
        self,
        model: NetworkModel,
        events: BlockEvents,
        jobs: Sequence[Job],
        firsts: NDArray[np.int64],
        rows: NDArray[np.int64],
        threads: int,
    ) -> None:
        self._model, self._events, self._jobs, self._threads = model, events, jobs, threads
        self._firsts, self._rows = firsts, rows
        self.vocabulary_size = len(model.vocabulary)

    def __len__(self) -> int:
        return len(self._rows)

    def tiles(self) -> Iterator[Tile]:
        model, targets = self._model, self._events.ids[self._rows].astype(np.int64)
        wanted = np.zeros(len(self._events.ids), bool)
        wanted[self._rows] = True
        # Where nothing is shown, no job computes the distribution.
        computed = np.flatnonzero(~np.isin(self._rows, self._firsts))
        same = np.where(model.tokens.predicted_ids == NO_ID, LOWEST, model.uniform())[None]
        at = done = 0
        with model.engine.threads(self._threads):
            pieces = model.engine.distributions(self._jobs, model.tokens.predicted_ids, np.delete(wanted, self._firsts))
            for logprob, p in pieces:
                places = computed[done : done + len(logprob)]
                done += len(places)
                # places [1, 2, 4] -> bounds [0, 2, 3]: two tiles, and the distribution that is the same before each.
                bounds = [0, *(np.flatnonzero(np.diff(places) > 1) + 1).tolist(), len(places)] if len(places) else []
                for part in starmap(slice, pairwise(bounds)):
                    first, last = int(places[part][0]), int(places[part][-1]) + 1
                    yield from (ready(same, None, targets[i : i + 1]) for i in range(at, first))
                    yield ready(logprob[part].clip(min=LOWEST), None if p is None else p[part], targets[first:last])
                    at = last
        yield from (ready(same, None, targets[i : i + 1]) for i in range(at, len(targets)))

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        values = np.zeros(len(self._events.ids))
        values[self._rows] = np.zeros(0) if logprob is None else logprob
        unscored = self._model.unscored(self._events, self._firsts)
        batch = self._model.table_of(self._events, values, unscored)
        rows = self._rows if unscored is None else self._rows - np.cumsum(unscored)[self._rows]
        return batch.of_rows(rows)


# -- The segments of a text that have enough tokens for a context, so that no network computes the others -------------


class LongSegments:
    """The segments with a token that has at least some number of tokens before it, what begins a text included."""

    def __init__(self, model: NetworkModel, blocks: Iterable[Segments], before: int) -> None:
        self._model, self._blocks, self._before = model, blocks, before
        self.events = self.segments = 0

    def __iter__(self) -> Iterator[Segments]:
        # Blocks with the long segments only, numbered anew; none that would be empty.
        self.events = self.segments = number = 0
        model = self._model
        # Of n tokens the last has n - 1 before it, and what is shown before the first, if anything is.
        least = self._before + (model.context_policy.first not in ("bos", "eos"))
        for block in self._blocks:
            if block.given_starts is not None:
                raise UsageError("contexts are counted from where a segment begins: they cannot be combined with given text")
            counts = block_events(block, model.tokens, model.context_policy, spans=False).counts
            self.events += int(counts.sum())
            self.segments += len(counts)
            if (chosen := counts >= least).any():
                yield replace(block.where(chosen), first=number)
                number += int(np.count_nonzero(chosen))
