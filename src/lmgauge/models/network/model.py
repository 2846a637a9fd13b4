"""A network as a language model: text to ids, ids to windows, windows to an engine, and what comes back to a score table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.distributions.blocks import BlockDistributions, rows_among, rows_of
from lmgauge.distributions.tile import LOWEST, Tile, ready
from lmgauge.errors import UsageError
from lmgauge.models.given import alone
from lmgauge.models.network.engine import Engine, Job, Progress, StreamState
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.parallel import Workers, score_in_order
from lmgauge.models.network.sequences import BlockEvents, block_events, in_groups
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.models.network.windows import window_of, windows
from lmgauge.models.protocol import check_context
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.threads import thread_count

# Contexts that are asked about together, and entries of their distributions: products are quick then, and they fit.
_CONTEXTS, _ENTRIES = 32, 1 << 21


class NetworkModel(ScoresStrings):
    """A network with its tokens and a policy of what each prediction sees, whatever engine computes it.

    Attributes:
        label: short name for signatures.
        engine: what computes.
        tokens: how text becomes ids.
        context_policy: what each prediction sees.
        options: what was chosen about scoring.
        tolerance: nats by which rows may differ when they are scored again.
        workers: further processes that compute; None where this one does all.
    """

    blocks_are_independent = False

    def __init__(self, engine: Engine, tokens: TokenMap, policy: ContextPolicy, options: ScoringOptions, label: str) -> None:
        """Lay a policy over an engine.

        Raises:
            UsageError: the context runs on and is longer than the engine can go.
        """
        if policy.runs_on and policy.length is None and not engine.carries_state:
            raise UsageError(f"{label}: has no longest context, so that a running one needs --context, and --stride")
        self.label, self.engine, self.context_policy, self.options = label, engine, policy, options
        self.tokens = tokens.reading_line_ends() if policy.end == "newline" else tokens
        self.tolerance = engine.tolerance
        self._segments = self._in_windows = 0
        self.workers: Workers | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        return self.tokens.vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """How text becomes tokens."""
        return self.tokens.tokenizer

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hexadecimal digest of all that determines the probabilities."""

    @abstractmethod
    def with_context(self, length: int, stride: int) -> NetworkModel:
        """Return the same network with other windows, which shares the weights and the processes."""

    @property
    def progress(self) -> Progress:
        """What is called with the number of tokens scored since the last call."""
        return self.engine.progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        """Choose what is called with the number of tokens scored since the last call."""
        self.engine.progress = progress

    @property
    def notes(self) -> list[str]:
        """Sentences about the text scored last that its numbers depend on."""
        if not self._in_windows:
            return []
        return [
            f"{self._in_windows:,} of {self._segments:,} segments longer than {self.context_policy.length:,} tokens, read "
            f"in windows of that size, each {self.context_policy.stride:,} tokens after the one before"
        ]

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the column `ends`.
            threads: how many to compute with; as many as there are if None.

        Raises:
            InputError: the text has a reserved token that is refused.
            ModelFileError: the network gives NaN.
            UsageError: a window does not fit into the memory.
        """
        stream = _Stream(self) if self.context_policy.runs_on else None
        segments = segments if stream is None else alone(segments, self.label)
        self._segments = self._in_windows = 0
        blocks = (block_events(block, self.tokens, self.context_policy, spans=spans) for block in segments)
        if stream is None:
            yield from self._of_segments(in_groups(blocks), thread_count(threads))
            return
        for group in in_groups(blocks):
            with self.engine.threads(thread_count(threads)):
                batches = [stream(events) for events in group]
            yield from batches

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.

        Raises:
            InputError: the text has a reserved token that is refused.
            ModelFileError: the network gives NaN.
            UsageError: a window does not fit into the memory.
        """
        return next(self.score([block], spans=spans))

    def distributions(
        self,
        segments: Iterable[Segments],
        *,
        events: NDArray[np.int64] | None = None,
        spans: bool = True,
        threads: int | None = None,
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions at the events of each block; see `lmgauge.distributions.reduce`.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            events: numbers of the events to look at, ascending; all if None.
            spans: whether the rows get byte spans.
            threads: how many to compute with; as many as there are if None.

        Raises:
            InputError: the text has a reserved token that is refused.
            UsageError: there are several processes.
        """
        if self.workers is not None:
            raise UsageError("whole distributions are computed in one process: leave out --processes and --devices")
        stream = _Stream(self) if self.context_policy.runs_on else None
        segments = segments if stream is None else alone(segments, self.label)
        self._segments = self._in_windows = seen = 0
        for block in segments:
            block_rows = block_events(block, self.tokens, self.context_policy, spans=spans)
            jobs, firsts = stream.jobs(block_rows) if stream is not None else self.jobs_of_segments(block_rows)
            scored = np.ones(len(block_rows.ids), bool)
            if not self.context_policy.scores_first_tokens:
                scored[firsts] = False
            own = np.flatnonzero(scored)
            rows = own[rows_among(events, seen, len(own))]
            yield NetworkDistributions(self, block_rows, jobs, firsts, rows, thread_count(threads))
            seen += len(own)

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context.

        Args:
            context_ids: uint32 [n], ids before the event, `<s>` first; if the context runs on, all of the text.

        Returns:
            float64 [vocabulary], nats; -inf for what the network has no token for.

        Raises:
            ModelFileError: the network gives NaN.
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self.vocabulary))
        logprob: NDArray[np.float64] = self._after(context[None], lambda ids: self.engine.log_distribution(ids[0])[None])[0]
        return logprob

    @property
    def contexts_at_a_time(self) -> int:
        """How many contexts `log_distributions` is best asked about together: 1 where the engine has no way for that."""
        if getattr(self.engine, "log_distributions", None) is None:
            return 1
        return max(1, min(_CONTEXTS, _ENTRIES // len(self.vocabulary)))

    def log_distributions(self, contexts: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after some contexts of one length.

        Args:
            contexts: uint32 [k, n], of each the ids before the event, `<s>` first.

        Returns:
            float64 [k, vocabulary], nats; the same as k calls of `log_distribution`, but for rounding.

        Raises:
            ModelFileError: the network gives NaN.
            UsageError: an id is outside the vocabulary.
        """
        checked = np.stack([check_context(context, len(self.vocabulary)) for context in contexts])
        many = getattr(self.engine, "log_distributions", None)
        return self._after(checked, many or (lambda shown: np.stack([self.engine.log_distribution(ids) for ids in shown])))

    def _after(
        self, contexts: NDArray[np.uint32], ask: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return log-probabilities, float64 [k, vocabulary], of what is asked about the ids shown, int64 [k, n]."""
        begin = np.repeat(self._begin()[None], len(contexts), axis=0)
        shown = np.concatenate((begin, self.tokens.network_ids[contexts[:, 1:]]), axis=1)
        predicted = self.tokens.predicted_ids
        if not shown.shape[1]:
            return np.repeat(np.where(predicted == NO_ID, -np.inf, self._uniform())[None], len(contexts), axis=0)
        length, stride = self.context_policy.length, self.context_policy.stride
        if length is not None and stride is not None:
            shown = shown[:, window_of(shown.shape[1], length, stride) * stride :]
        logprob = ask(np.maximum(shown, 0))[:, predicted]
        logprob[:, predicted == NO_ID] = -np.inf
        return logprob

    def to_dict(self) -> dict[str, Any]:
        """Return what all networks have to say of themselves."""
        return {
            "context": str(self.context_policy),
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "tokenizer": self.tokenizer.settings(),
            "fingerprint": self.fingerprint,
        }

    def _of_segments(self, groups: Iterable[Sequence[BlockEvents]], threads: int) -> Iterator[ScoreBatch]:
        """Yield segments that are contexts of their own, scored together over all blocks of a group."""
        planned = ([(events, *self.jobs_of_segments(events)) for events in group] for group in groups)
        asked = ((plan, list(chain.from_iterable(jobs for _, jobs, _ in plan))) for plan in planned)
        for plan, scores in score_in_order(self.engine, self.workers, asked, threads):
            scored = np.concatenate([np.zeros(0), *scores])
            for events, _, first in plan:
                used = len(events.ids) - len(first)
                yield self.batch_of(events, scored[:used], first)
                scored = scored[used:]

    def jobs_of_segments(self, events: BlockEvents) -> tuple[list[Job], NDArray[np.int64]]:
        """Return the jobs of a block whose segments are contexts of their own, and the rows that nothing is shown before.

        Args:
            events: of the block.
        """
        jobs: list[Job] = []
        length = self.context_policy.length
        room = None if length is None else length + 1 - len(self._begin())
        segments = zip(np.split(events.ids, np.cumsum(events.counts)[:-1]), events.given_ids(room, self.label), strict=True)
        for segment, (ids, before) in enumerate(segments, events.block.first):
            jobs += self.jobs_of_segment(ids, segment, before)
        return jobs, np.zeros(0, np.int64) if len(self._begin()) else events.nothing_before()

    def jobs_of_segment(self, ids: NDArray[np.uint32], segment: int, before: NDArray[np.uint32] | None = None) -> list[Job]:
        """Return the jobs of a segment that is a context of its own.

        Args:
            ids: uint32 [n], its events.
            segment: its index.
            before: uint32 [m], what is given before it and not predicted.
        """
        policy, shown = self.context_policy, ids if before is None else np.concatenate((before, ids))
        sequence = np.concatenate((self._begin(), self._network_ids(shown)))
        self._segments += 1
        self._in_windows += policy.length is not None and len(sequence) - 1 > policy.length
        return [
            Job(sequence[window.begin : window.last - 1], sequence[window.first : window.last], segment)
            for window in windows(max(1, len(sequence) - len(ids)), len(sequence), policy.length, policy.stride)
        ]

    def _network_ids(self, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return int64 [n], the network's ids of events; any for what it has none for, whose probability is zero anyway."""
        return np.maximum(self.tokens.network_ids[ids], 0)

    def _begin(self) -> NDArray[np.int64]:
        """Return what the network is shown before a context's first token: int64, one id or none."""
        first = {"bos": self.tokens.bos, "eos": self.tokens.eos}.get(self.context_policy.first)
        return np.array([] if first is None else [first], np.int64)

    def batch_of(self, events: BlockEvents, scored: NDArray[np.float64], firsts: NDArray[np.int64]) -> ScoreBatch:
        """Return the score table of a block.

        Args:
            events: its events.
            scored: float64 [n - firsts], nats.
            firsts: int64, the rows that come first in their context with nothing shown before them.
        """
        is_first = np.zeros(len(events.ids), bool)
        is_first[firsts] = True
        logprob = np.full(len(events.ids), self._uniform())
        logprob[~is_first] = scored
        logprob[self.tokens.network_ids[events.ids] == NO_ID] = -np.inf
        return events.batch(logprob, self.tokens, None if self.context_policy.scores_first_tokens else is_first)

    def _uniform(self) -> float:
        return -float(np.log(np.count_nonzero(self.tokens.predicted_ids != NO_ID)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}, {self.context_policy}, {len(self.vocabulary):,} tokens)"


class NetworkDistributions(BlockDistributions):
    """The distributions of a network at events of one block.

    Args:
        model: the network.
        events: of the block.
        jobs: what to show for all of them but the firsts.
        firsts: int64, events that nothing is shown before: all tokens are taken as equally probable there.
        rows: int64, which of the events to look at, ascending.
        threads: how many to compute with.
    """

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
        """Return the number of events."""
        return len(self._rows)

    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles, in order."""
        model, targets = self._model, self._events.ids[self._rows].astype(np.int64)
        wanted = np.zeros(len(self._events.ids), bool)
        wanted[self._rows] = True
        # Where nothing is shown, no job computes the distribution.
        uniform = np.isin(self._rows, self._firsts)
        at = 0
        with model.engine.threads(self._threads):
            pieces = model.engine.distributions(self._jobs, model.tokens.predicted_ids, np.delete(wanted, self._firsts))
            for logprob, p in pieces:
                begin = 0
                while begin < len(logprob):
                    at = yield from self._uniform(uniform, targets, at)
                    ahead = np.flatnonzero(uniform[at : at + len(logprob) - begin])
                    size = int(ahead[0]) if len(ahead) else len(logprob) - begin
                    part = slice(begin, begin + size)
                    clipped = logprob[part].clip(min=LOWEST)
                    yield ready(clipped, None if p is None else p[part], targets[at : at + size])
                    at, begin = at + size, begin + size
            yield from self._uniform(uniform, targets, at)

    def _uniform(self, uniform: NDArray[np.bool_], targets: NDArray[np.int64], at: int) -> Generator[Tile, None, int]:
        """Yield the tiles of events at a place that nothing is shown before; returns the place behind them."""
        model = self._model
        while at < len(uniform) and uniform[at]:
            row = np.where(model.tokens.predicted_ids == NO_ID, LOWEST, model._uniform())
            yield ready(row[None], None, targets[at : at + 1])
            at += 1
        return at

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        """Return the rows of the score table, with the log-probabilities of the tokens that came."""
        values = np.zeros(len(self._events.ids))
        values[self._rows] = np.zeros(0) if logprob is None else logprob
        policy = self._model.context_policy
        unscored = None
        if not policy.scores_first_tokens:
            unscored = np.zeros(len(values), bool)
            unscored[self._firsts] = True
        batch = self._events.batch(values, self._model.tokens, unscored)
        rows = self._rows if unscored is None else self._rows - np.cumsum(unscored)[self._rows]
        return rows_of(batch, rows)


class _Stream:
    """A context that runs on from segment to segment and block to block."""

    def __init__(self, model: NetworkModel) -> None:
        self._model, self._state = model, StreamState()
        self._tail = model._begin()  # ids before the next event that a window still shows
        self._offset = 0  # position of the first of them
        self._window = self._shown = 0  # where the last window shown begins, and one past the last position shown

    def __call__(self, events: BlockEvents) -> ScoreBatch:
        """Return the batch of the next block."""
        jobs, firsts = self.jobs(events)
        return self._model.batch_of(events, np.concatenate([np.zeros(0), *self._model.engine.score(jobs)]), firsts)

    def jobs(self, events: BlockEvents) -> tuple[list[Job], NDArray[np.int64]]:
        """Return the jobs of the next block, and the rows that nothing is shown before."""
        model = self._model
        if not len(events.ids):
            return [], np.zeros(0, np.int64)
        firsts = np.zeros(0 if len(self._tail) else 1, np.int64)
        parts, first = [model._network_ids(events.ids)], events.block.first
        if model.engine.segment_by_segment:
            parts = np.split(parts[0], np.cumsum(events.counts)[:-1])
        return [job for segment, ids in enumerate(parts, first) for job in self._jobs(ids, segment)], firsts

    def _jobs(self, ids: NDArray[np.int64], segment: int) -> list[Job]:
        """Return the jobs that predict the next ids, each from the first window that reaches it."""
        policy, offset = self._model.context_policy, self._offset
        sequence = np.concatenate((self._tail, ids))
        first, last = offset + max(1, len(self._tail)), offset + len(sequence)
        jobs = []
        for window in windows(first, last, policy.length, policy.stride):
            begin = max(window.begin, offset)  # without a limit a recurrent state stands for what is no longer shown
            known = max(0, self._shown - begin) if window.begin == self._window else 0
            shown = sequence[begin - offset : window.last - 1 - offset]
            targets = sequence[window.first - offset : window.last - offset]
            jobs.append(Job(shown, targets, segment, self._state, known))
            self._window, self._shown = window.begin, window.last - 1
        self._offset = max(0, last - 1)
        if policy.length is not None and policy.stride is not None and last:
            self._offset = window_of(last, policy.length, policy.stride) * policy.stride
        self._tail = sequence[self._offset - offset :]
        return jobs
