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
from lmgauge.models.custom import kinds_of, with_given
from lmgauge.models.network.chat_template import ChatTemplate, FramedTurn, source_ends
from lmgauge.models.network.engine import Job
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.records.records import Strings
from lmgauge.scores import ALTERED, EOS_KIND, FRAMING, OOV, TOKEN, GivenTokens, ScoreBatch, TokenStrings, starts_of
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions.blocks import BlockDistributions
from lmgauge.scores.distributions.tile import LOWEST, Tile, ready
from lmgauge.text.encoding import encode
from lmgauge.text.readers import Turn
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Cut, Tokenizer
from lmgauge.text.vocabulary import EOS, UNK
from lmgauge.text.work_units import in_units

Ids = NDArray[np.int64]

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
    kinds: NDArray[np.uint8] | None = None  # uint8 [n], of each event, where the ids do not tell

    def given_ids(self, room: int | None, label: str) -> list[NDArray[np.uint32]]:
        """Return the ids given before each segment, uint32 [tokens] each."""
        if self.before is None:
            return [self.ids[:0]] * len(self.counts)
        sizes = self.before.counts + self.counts
        too_long = np.flatnonzero((self.before.counts > 0) & (sizes > room)) if room is not None else sizes[:0]
        if len(too_long):
            i, what = int(too_long[0]), "of given text" if self.kinds is None else "of the conversation before a turn"
            raise InputError(
                f"{self.block.place(i)}: {self.before.counts[i]:,} tokens {what} and {self.counts[i]:,} to score do "
                f"not fit into one window of {label}, which has room for {room:,}: shorten it, leave the record out, or "
                "choose a longer --context"
            )
        return self.before.by_segment()

    def batch(
        self,
        logprob: NDArray[np.float64],
        strings: TokenStrings,
        unscored: NDArray[np.bool_] | None = None,
        *,
        with_bytes: bool = False,
    ) -> ScoreBatch:
        """Return the score table of the block."""
        # logprob: float64 [n], nats; ignored where unscored; unscored: bool [n], events left out.
        kind = self.kinds if self.kinds is not None else kinds_of(self.ids)
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
            strings=strings,
            logprob=logprob,
            kind=kind,
            ends=ends,
            lossy=lossy,
            begins=begins,
        )
        if self.kinds is not None:  # a turn may be empty
            return replace(batch, before=self.before, extra={ALTERED: np.repeat(lossy.astype(np.float64), counts)})
        return batch if self.before is None else with_given(batch, self.before, self.block)


def framed_events(block: Segments, template: ChatTemplate, tokens: TokenMap, policy: ContextPolicy) -> BlockEvents:
    """Return the events of turns: their contents and what ends them, after what a chat template makes of all before them."""
    # block: its segments are the contents of the turns.
    framed = framed_turns(block, template)
    texts = [(turn.before + turn.content + turn.end).encode() for turn in framed]
    ids, counts, ends, lossy = _cut_turns(texts, [turn.end for turn in framed], tokens.tokenizer)
    lossy = lossy & _contents_lossy(framed, tokens, lossy)
    cut = Cut(tokens.own_ids[ids].astype(np.int64), counts, ends, lossy)
    return lay_turns(block, framed, cut, template, policy)[0]


def framed_turns(block: Segments, template: ChatTemplate) -> list[FramedTurn]:
    """Return the turns of a block as a model meets them."""
    return [_framed(block, i, turn, template) for i, turn in enumerate(block.turns or ())]


def lay_turns(
    block: Segments, framed: Sequence[FramedTurn], cut: Cut, template: ChatTemplate | None, policy: ContextPolicy
) -> tuple[BlockEvents, NDArray[np.bool_]]:
    """Return the events of turns, and which of their tokens these are, bool [tokens]."""
    # cut: the tokens of all that each turn's model meets, with lmgauge's ids; lossy: which contents they do not give back.
    parts = [(turn.before.encode(), turn.content.encode(), turn.end.encode()) for turn in framed]
    sizes = np.array([[len(part) for part in own] for own in parts], np.int64).reshape(-1, 3)
    _, counts, ends, lossy = cut
    ids = cut.ids.astype(np.uint32)
    owner = np.repeat(np.arange(len(block)), counts)
    begin, begins = sizes[owner, 0], starts_of(ends, counts)
    stop = begin + sizes[owner, 1]
    # The cat| sat</s>: what ends at the boundary or before it is given, what begins before the content's end is text.
    is_given = (ends <= begin) & ((begin > 0) | (template is not None))
    if policy.framing and template is not None:
        turns = zip(block.turns or (), framed, strict=True)
        is_given &= ends <= np.array([_framing_start(turn, one.before, template) for turn, one in turns], np.int64)[owner]
    if template is not None:  # nothing is shown before the first token: it is shown, and its bytes go to the next
        firsts = (np.cumsum(counts) - counts)[counts > 0]
        lossy[owner[firsts[~is_given[firsts] & (ends[firsts] > begin[firsts])]]] = True
        is_given[firsts] = True
    # A character that several tokens share may be the first one's.
    is_text = (ends > begin) & ((begins < stop) | (ends == stop))
    is_behind = (ends > begin) & ~is_text
    events = ~is_given & ~is_behind if policy.end == "none" else ~is_given
    of = owner[events]
    spans, counts = np.clip((ends - begin)[events], 0, sizes[of, 1]), np.bincount(of, minlength=len(block))
    kinds = np.where(is_text, np.where(ids == UNK, OOV, TOKEN), FRAMING).astype(np.uint8)[events]
    last = (np.cumsum(counts) - 1)[counts > 0]
    kinds[last[is_behind[events][last]]] = EOS_KIND
    crossing = np.bincount(owner[is_text & (begins < begin)], minlength=len(block)) > 0
    before = GivenTokens(ids[is_given], np.bincount(owner[is_given], minlength=len(block)), sizes[:, 0], crossing)
    for i, (_, content, _) in enumerate(parts):
        if (source := block.text(i)) != content:
            lossy[i] = True
            spans[of == i] = source_ends(content, source, spans[of == i])
    spans[last] = (block.ends - block.starts)[counts > 0]
    return BlockEvents(block, ids[events], counts, spans, lossy, before, kinds), events


def _cut_turns(texts: Sequence[bytes], last: Sequence[str], tokenizer: Tokenizer) -> Cut:
    # Cut the renderings of turns into tokens, one that the next begins with together with that: the special token that it
    # ends with cuts all text in two, whatever comes behind. last: what ends each turn.
    #   <u>Hi<a>Yes</s>   <u>Hi<a>Yes</s><u>So<a>No</s>   the first is the first 5 tokens of the second
    following = [*texts[1:], b""]
    heads = [i for i, end in enumerate(last) if not (end and following[i].startswith(texts[i]))]
    cut = _cut_texts([texts[i] for i in heads], tokenizer)
    bounds = np.cumsum(cut.counts)
    parts: list[slice] = []
    own: dict[int, int] = {}  # a special token that takes the white space behind it does not end with its turn
    for i, head in enumerate(np.searchsorted(heads, np.arange(len(texts))).tolist()):
        begin, end = int(bounds[head] - cut.counts[head]), int(bounds[head])
        if heads[head] != i:
            end = begin + int(np.searchsorted(cut.span_ends[begin:end], len(texts[i]))) + 1
            if cut.span_ends[end - 1] != len(texts[i]):
                own[i] = len(own)
        parts.append(slice(begin, end))
    if not own and len(heads) == len(texts):
        return cut
    lossy = cut.lossy[np.searchsorted(heads, np.arange(len(texts)))]
    ids, ends = [cut.ids[part] for part in parts], [cut.span_ends[part] for part in parts]
    alone = _cut_texts([texts[i] for i in own], tokenizer)
    for i, at in own.items():
        begin = int(alone.counts[:at].sum())
        part = slice(begin, begin + int(alone.counts[at]))
        ids[i], ends[i], lossy[i] = alone.ids[part], alone.span_ends[part], alone.lossy[at]
    return Cut(np.concatenate(ids), np.array([len(one) for one in ids], np.int64), np.concatenate(ends), lossy)


def _cut_texts(texts: Sequence[bytes], tokenizer: Tokenizer) -> Cut:
    each = Strings.of(texts)
    segments = Segments(np.frombuffer(each.data, np.uint8), each.starts, each.ends, "")
    cut: Cut = tokenizer.cut(segments, special=True)  # type: ignore[attr-defined]
    return cut


def _framed(block: Segments, i: int, turn: Turn, template: ChatTemplate) -> FramedTurn:
    try:
        return template.frame(turn)
    except InputError as error:
        remedy = "leave the record out, or choose a template that takes it (--template FILE)"
        raise InputError(f"{block.place(i)}: {error}; {remedy}") from error


def _contents_lossy(framed: Sequence[FramedTurn], tokens: TokenMap, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # Which contents the tokens do not give back, of those turns that they do not give back with their framing.
    lossy = np.zeros(len(framed), bool)
    if whole.any():
        lossy[whole] = _cut_texts(
            [framed[i].content.encode() for i in np.flatnonzero(whole).tolist()], tokens.tokenizer
        ).lossy
    return lossy


def _framing_start(turn: Turn, before: str, template: ChatTemplate) -> int:
    # Where in what is shown before a turn its own framing begins, in bytes: behind the end of the turn before.
    if not turn.at:
        return 0
    earlier = Turn(turn.conversation, turn.at - 1)
    framed = template.frame(earlier) if isinstance(earlier.message["content"], str) else None
    ended = "" if framed is None else framed.before + framed.content + framed.end
    return len((ended if ended and before.startswith(ended) else before).encode())


def block_events(block: Segments, tokens: TokenMap, policy: ContextPolicy, *, spans: bool) -> BlockEvents:
    """Return the events of a block under a policy of what ends a segment."""
    if tokens.framing is not None and block.turns is not None:
        return framed_events(block, tokens.framing, tokens, policy)
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


def jobs_of_turns(turns: Iterable[tuple[Ids, Ids]], first: int) -> Iterator[Job]:
    """Yield the jobs of turns: of each the network's ids that are shown before it, and its own, int64 each."""
    # A turn that continues all that was shown for the turn before it is predicted in one go with that: most templates
    # leave earlier turns as they are. Of what is between them nothing is an event.
    #   shown  <u>Hi<a>                  events Yes</s>   one job: <u>Hi<a>Yes</s><u>So<a>No</s>
    #   shown  <u>Hi<a>Yes</s><u>So<a>   events No</s>    wanted:            1  1  0 0 0  1  1
    shown, wanted = np.zeros(0, np.int64), np.zeros(0, bool)

    def job(segment: int) -> Iterator[Job]:
        if wanted.any():
            at = int(wanted.argmax())
            yield Job(shown[:-1], shown[at:], segment, wanted=None if wanted[at:].all() else wanted[at:])

    segment = first
    for segment, (before, ids) in enumerate(turns, first):
        if not (len(before) >= len(shown) > 0 and np.array_equal(before[: len(shown)], shown)):
            yield from job(segment - 1)
            wanted = wanted[:0]
        wanted = np.concatenate((wanted, np.zeros(len(before) - len(wanted), bool), np.ones(len(ids), bool)))
        shown = np.concatenate((before, ids))
    yield from job(segment)


def asked_of(jobs: Sequence[Job], events: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which targets of jobs are asked about, bool [targets of all], where of events some are, bool [events]."""
    own = (np.ones(len(job.targets), bool) if job.wanted is None else job.wanted for job in jobs)
    targets = np.concatenate([events[:0], *own])
    targets[targets] = events
    return targets


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
        asked = asked_of(self._jobs, np.delete(wanted, self._firsts))
        # Where nothing is shown, no job computes the distribution.
        computed = np.flatnonzero(~np.isin(self._rows, self._firsts))
        same = np.where(model.tokens.predicted_ids == NO_ID, LOWEST, model.uniform())[None]
        at = done = 0
        with model.engine.threads(self._threads):
            pieces = model.engine.distributions(self._jobs, model.tokens.predicted_ids, asked)
            for logprob, p, states in pieces:
                places = computed[done : done + len(logprob)]
                done += len(places)
                # places [1, 2, 4] -> bounds [0, 2, 3]: two tiles, and the distribution that is the same before each.
                bounds = [0, *(np.flatnonzero(np.diff(places) > 1) + 1).tolist(), len(places)] if len(places) else []
                for part in starmap(slice, pairwise(bounds)):
                    first, last = int(places[part][0]), int(places[part][-1]) + 1
                    yield from (ready(same, None, targets[i : i + 1]) for i in range(at, first))
                    tile = ready(logprob[part].clip(min=LOWEST), None if p is None else p[part], targets[first:last])
                    tile.states = None if states is None else states[part]
                    yield tile
                    at = last
        yield from (ready(same, None, targets[i : i + 1]) for i in range(at, len(targets)))

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        values = np.zeros(len(self._events.ids))
        values[self._rows] = 0.0 if logprob is None else logprob
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
