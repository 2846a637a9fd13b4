"""A network as a language model: text to ids, ids to windows, windows to an engine, and what comes back to a score table."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.threads import thread_count
from lmgauge.models.custom import alone
from lmgauge.models.network.engine import Engine, Job, Progress, StreamState
from lmgauge.models.network.options import ScoringOptions, policy_of_turns
from lmgauge.models.network.parallel import Workers, score_in_order
from lmgauge.models.network.sequences import BlockEvents, NetworkDistributions, block_events, events_in_units, jobs_of_turns
from lmgauge.models.network.special_tokens import look_around, of_tokens
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.models.network.windows import Layout, counted_turns, template_notes, windows_note
from lmgauge.models.protocol import OF_TEXT, check_context
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch, score_in_pieces
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, rows_among
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary

# Contexts that are asked about together, and entries of their distributions: products are quick then, and they fit.
_CONTEXTS, _ENTRIES = 32, 1 << 21


class NetworkModel(ScoresStrings):
    """A network with its tokens and a policy of what each prediction sees, whatever engine computes it."""

    blocks_are_independent = False
    tolerance: float
    options: ScoringOptions
    tokens: TokenMap
    scores_in_units: bool
    raw: NetworkModel | None = None

    def __init__(self, engine: Engine, tokens: TokenMap, policy: ContextPolicy, options: ScoringOptions, label: str) -> None:
        if policy.runs_on and policy.length is None and not engine.carries_state:
            raise UsageError(f"{label}: has no longest context, so a running one needs --context, and --stride")
        self.label, self.engine, self.context_policy, self.options = label, engine, policy, options
        self._own_tokens = tokens
        self.tokens = tokens.reading_line_ends() if policy.end == "newline" else tokens
        self.layout = Layout.of(policy)
        self.tolerance = engine.tolerance
        self.scores_in_units = not policy.runs_on
        self._segments = self._in_windows = 0
        self._seen = Counter[str]()  # segments scored last, as `template_notes` counts them
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
    def with_options(self, options: ScoringOptions) -> NetworkModel:
        """Return the same network, scoring by other options; it shares the weights and the processes.

        Args:
            options: how to score; device and number format stay as they are.

        Raises:
            UsageError: they do not fit the network.
        """

    def framed(self) -> Self:
        """Return the same network for the turns of conversations, set into its chat template; itself where it has none."""
        tokens, options, policy = self._own_tokens.framed(self.options, self.label), self.options, self.context_policy
        if tokens.framing is None:
            return self
        model = copy(self)
        # What a model has for itself: a journal, how fast it is. `raw`: of the contents alone.
        model.engine, model.tokens, model.raw = copy(self.engine), tokens, self
        model.context_policy = policy_of_turns(policy, options, tokens.framing.digest)
        return model.made_from(self, type(self).framed)

    def count_events(self, block: Segments) -> NDArray[np.int64] | None:
        return block_events(block, self.tokens, self.context_policy, spans=False).counts if self.tokens.framing else None

    def takes(self, option: str) -> bool:
        return option not in ("bos", *OF_TEXT)

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
        if self.context_policy.protocol == "harness" and self.tokens.puts_first == "bos":
            return [
                "these are the harness's figures with add_bos_token=False: without it, its version 0.4.13 also predicts the "
                "BOS token that this tokenizer puts before each segment"
            ]
        if self.context_policy.protocol is not None:
            return []
        notes = template_notes(self.label, self.tokens, self._seen)
        if self._in_windows:
            without_bos = self.tokens.puts_first == "bos" and not self.context_policy.bos_each
            notes.append(windows_note(self.context_policy, without_bos, self._in_windows, self._segments))
        return notes

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
        self._segments = self._in_windows = 0
        self._seen = Counter[str]()
        threads = thread_count(threads)
        in_groups = partial(events_in_units, tokens=self.tokens, policy=self.context_policy, spans=spans)
        if self.scores_in_units:
            yield from score_in_pieces(lambda cut: self._of_segments(in_groups(cut), threads), segments)
            return
        stream = _Stream(self)
        for group in in_groups(alone(segments, self.label)):
            with self.engine.threads(threads):
                batches = [stream(events) for events in group]
            yield from batches

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments; see `score`."""
        return next(self.score([block], spans=spans))

    def distributions(
        self, segments: Iterable[Segments], *, events: Events | None = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions at the events of each block; see `lmgauge.scores.distributions.reduce`.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            events: int64 [events], numbers of those to look at, ascending; all if None.
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
            unscored = self.unscored(block_rows, firsts)
            own = np.arange(len(block_rows.ids)) if unscored is None else np.flatnonzero(~unscored)
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
        if self.engine.log_distributions is None:
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
        many = self.engine.log_distributions
        return self._after(checked, many or (lambda shown: np.stack([self.engine.log_distribution(ids) for ids in shown])))

    def _after(
        self, contexts: NDArray[np.uint32], ask: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        # Log-probabilities, float64 [k, vocabulary], of what is asked about the ids shown, int64 [k, n].
        begin = np.repeat(self._begin()[None], len(contexts), axis=0)
        shown = np.concatenate((begin, self.tokens.network_ids[contexts[:, 1:]]), axis=1)
        predicted = self.tokens.predicted_ids
        shown = shown[:, self.layout.begin(shown.shape[1]) :]
        if not shown.shape[1]:
            return np.repeat(np.where(predicted == NO_ID, -np.inf, self.uniform())[None], len(contexts), axis=0)
        shown = self.as_window(shown)
        logprob = ask(np.maximum(shown, 0))[:, predicted]
        logprob[:, predicted == NO_ID] = -np.inf
        return logprob

    def to_dict(self) -> dict[str, Any]:
        """Return what all networks have to say of themselves."""
        return {
            "context": str(self.context_policy),
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.ids_fingerprint,
            "tokenizer": self.tokenizer.settings(),
            **of_tokens(self.tokens),
            "fingerprint": self.fingerprint,
        }

    def _of_segments(self, groups: Iterable[Sequence[BlockEvents]], threads: int) -> Iterator[ScoreBatch]:
        # Segments that are contexts of their own, scored together over all blocks of a group.
        planned = ([(events, *self.jobs_of_segments(events)) for events in group] for group in groups)
        asked = ((plan, list(chain.from_iterable(jobs for _, jobs, _ in plan))) for plan in planned)
        for plan, scores in score_in_order(self.engine, self.workers, asked, threads):
            of_plan = chain.from_iterable(jobs for _, jobs, _ in plan)
            wanted = (own if job.wanted is None else own[job.wanted] for job, own in zip(of_plan, scores, strict=True))
            scored = np.concatenate([np.zeros(0), *wanted])
            for events, _, first in plan:
                used = len(events.ids) - len(first)
                yield self.batch_of(events, scored[:used], first)
                scored = scored[used:]

    special_tokens = look_around

    def jobs_of_segments(self, events: BlockEvents) -> tuple[list[Job], NDArray[np.int64]]:
        """Return the jobs of a block whose segments are contexts of their own, and the rows that nothing is
        shown before, int64 [rows].

        Args:
            events: of the block.
        """
        jobs: list[Job] = []
        self._seen += counted_turns(events.block, self.tokens)
        length = self.context_policy.length
        room = None if length is None else length + 1 - len(self._begin())
        begins = np.cumsum(events.counts) - events.counts
        left_out = [np.zeros(0, np.int64)]
        segments = zip(np.split(events.ids, begins[1:]), events.given_ids(room, self.label), begins.tolist(), strict=True)
        if self.tokens.framing is not None:
            turns = ((self._network_ids(before), self._network_ids(ids)) for ids, before, _ in segments)
            return list(jobs_of_turns(turns, events.block.first)), left_out[0]
        for segment, (ids, before, begin) in enumerate(segments, events.block.first):
            own, rows = self.jobs_of_segment(ids, segment, before)
            jobs += own
            left_out.append(rows + begin)
        return jobs, np.concatenate(left_out)

    def jobs_of_segment(
        self, ids: NDArray[np.uint32], segment: int, before: NDArray[np.uint32] | None = None
    ) -> tuple[list[Job], NDArray[np.int64]]:
        """Return the jobs of a segment that is a context of its own, and those of its events that no job predicts.

        Args:
            ids: uint32 [n], its events.
            segment: its index.
            before: uint32 [m], what is given before it and not predicted.

        Raises:
            InputError: the segment is too short for the windows of a protocol.
            UsageError: a protocol that scores one text is given several segments.
        """
        policy, shown = self.context_policy, ids if before is None else np.concatenate((before, ids))
        sequence = np.concatenate((self._begin(), self._network_ids(shown)))
        self._segments += 1
        self._in_windows += policy.length is not None and len(sequence) - 1 > policy.length
        jobs: list[Job] = []
        left_out: list[int] = []
        at = first = len(sequence) - len(ids)
        for window in self.layout.windows(first, len(sequence)):
            left_out += range(at, window.first)
            at = window.last
            seen = self.as_window(sequence[window.begin : at - 1])
            jobs.append(Job(seen, sequence[window.first : at], segment))
        left_out += range(at, len(sequence))
        if policy.leaves_out:
            self._check_text(segment, len(sequence), bool(jobs))
        return jobs, np.array(left_out, np.int64) - first

    def _check_text(self, segment: int, tokens: int, scored: bool) -> None:
        policy = self.context_policy
        if segment:
            raise UsageError(
                f"protocol {policy.protocol} scores one text, and this has several segments: join them (Corpus.joined), or "
                "call lmgauge.evaluate, which does"
            )
        if not scored and tokens:
            raise InputError(
                f"protocol {policy.protocol}: the text has {tokens:,} tokens and fills no chunk of {policy.stride:,}, so "
                "none is scored; choose shorter chunks (--context), or a longer text"
            )

    def as_window(self, shown: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is shown of a window: with the BOS token in the place of its first token, if all begin so.

        Args:
            shown: int64 [..., n], the network's ids.
        """
        if not self.context_policy.bos_each:
            return shown
        shown = shown.copy()
        shown[..., :1] = self.tokens.bos
        return shown

    def _network_ids(self, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        # int64 [n], the network's ids of events; any for what it has none for, whose probability is zero anyway.
        return np.maximum(self.tokens.network_ids[ids], 0)

    def _begin(self) -> NDArray[np.int64]:
        # What the network is shown before a context's first token: int64, one id or none.
        first = {"bos": self.tokens.bos, "eos": self.tokens.eos}.get(self.context_policy.first)
        if self.context_policy.unit == "conversation":  # the template says what it begins with
            first = None
        return np.array([] if first is None else [first], np.int64)

    def batch_of(self, events: BlockEvents, scored: NDArray[np.float64], firsts: NDArray[np.int64]) -> ScoreBatch:
        """Return the score table of a block.

        Args:
            events: its events.
            scored: float64 [n - firsts], nats.
            firsts: int64, the rows that no job predicts: nothing is shown before them, or a protocol leaves them out.
        """
        has_job = np.ones(len(events.ids), bool)
        has_job[firsts] = False
        logprob = np.full(len(events.ids), self.uniform())
        logprob[has_job] = scored
        logprob[self.tokens.network_ids[events.ids] == NO_ID] = -np.inf
        return self.table_of(events, logprob, self.unscored(events, firsts))

    def unscored(self, events: BlockEvents, firsts: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which events get no row, bool [events]; None if all get one, as uniform where nothing is shown before them.

        Args:
            events: of a block.
            firsts: int64, those that no job predicts.
        """
        if self.context_policy.scores_first_tokens:
            return None
        unscored = np.zeros(len(events.ids), bool)
        unscored[firsts] = True
        return unscored

    def table_of(self, events: BlockEvents, logprob: NDArray[np.float64], unscored: NDArray[np.bool_] | None) -> ScoreBatch:
        """Return the score table of a block.

        Args:
            events: its events.
            logprob: float64 [n], nats; ignored where unscored.
            unscored: bool [n], events without a row, or None.
        """
        return events.batch(logprob, self.tokens.vocabulary, unscored, with_bytes=self.context_policy.leaves_out)

    def uniform(self) -> float:
        """Return the log-probability that all tokens share where nothing is shown, nats."""
        return -float(np.log(np.count_nonzero(self.tokens.predicted_ids != NO_ID)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}, {self.context_policy}, {len(self.vocabulary):,} tokens)"


class _Stream:
    """A context that runs on from segment to segment and block to block."""

    def __init__(self, model: NetworkModel) -> None:
        self._model, self._state = model, StreamState()
        self._tail = model._begin()  # ids before the next event that a window still shows
        self._offset = 0  # position of the first of them
        self._window = self._shown = 0  # where the last window shown begins, and one past the last position shown

    def __call__(self, events: BlockEvents) -> ScoreBatch:
        jobs, firsts = self.jobs(events)
        return self._model.batch_of(events, np.concatenate([np.zeros(0), *self._model.engine.score(jobs)]), firsts)

    def jobs(self, events: BlockEvents) -> tuple[list[Job], NDArray[np.int64]]:
        # Jobs that predict the next block's tokens, and the rows that nothing is shown before, int64 [n].
        model = self._model
        if not len(events.ids):
            return [], np.zeros(0, np.int64)
        firsts = np.zeros(0 if len(self._tail) else 1, np.int64)
        parts, first = [model._network_ids(events.ids)], events.block.first
        if model.engine.segment_by_segment:
            parts = np.split(parts[0], np.cumsum(events.counts)[:-1])
        return [job for segment, ids in enumerate(parts, first) for job in self._jobs(ids, segment)], firsts

    def _jobs(self, ids: NDArray[np.int64], segment: int) -> list[Job]:
        # Jobs that predict the next ids, each from the first window that reaches it.
        policy, offset = self._model.context_policy, self._offset
        sequence = np.concatenate((self._tail, ids))
        first, last = offset + max(1, len(self._tail)), offset + len(sequence)
        jobs = []
        for window in self._model.layout.windows(first, last):
            begin = max(window.begin, offset)  # without a limit a recurrent state stands for what is no longer shown
            known = max(0, self._shown - begin) if window.begin == self._window else 0
            shown = sequence[begin - offset : window.last - 1 - offset]
            shown = self._model.as_window(shown) if begin == window.begin else shown
            targets = sequence[window.first - offset : window.last - offset]
            jobs.append(Job(shown, targets, segment, self._state, known))
            self._window, self._shown = window.begin, window.last - 1
        self._offset = max(0, last - 1)
        if policy.length is not None and last:
            self._offset = self._model.layout.begin(last)
        self._tail = sequence[self._offset - offset :]
        return jobs
