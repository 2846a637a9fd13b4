"""A network as a language model: text to ids, ids to windows, windows to an engine, and what comes back to a score table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import UsageError
from lmgauge.models.network.engine import Engine, Job, Progress, StreamState
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.sequences import BlockEvents, block_events
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.models.network.windows import window_of, windows
from lmgauge.models.protocol import check_context
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.threads import thread_count

# Tokens that are scored together: enough that windows and sentences of equal length meet, and few enough to show progress.
_GROUP_TOKENS = 1 << 16


class NetworkModel(ScoresStrings):
    """A network with its tokens and a policy of what each prediction sees, whatever engine computes it.

    Attributes:
        label: short name for signatures.
        engine: what computes.
        tokens: how text becomes ids.
        context_policy: what each prediction sees.
        options: what was chosen about scoring.
        tolerance: nats by which rows may differ when they are scored again.
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
        self._segments = self._in_windows = 0
        blocks = (block_events(block, self.tokens, self.context_policy, spans=spans) for block in segments)
        for group in _in_groups(blocks):
            with self.engine.threads(thread_count(threads)):
                batches = [stream(events) for events in group] if stream is not None else list(self._of_segments(group))
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
        sequence = np.concatenate((self._begin(), self.tokens.network_ids[context[1:]]))
        predicted = self.tokens.predicted_ids
        if not len(sequence):
            return np.where(predicted == NO_ID, -np.inf, self._uniform())
        length, stride = self.context_policy.length, self.context_policy.stride
        if length is not None and stride is not None:
            sequence = sequence[window_of(len(sequence), length, stride) * stride :]
        logprob = self.engine.log_distribution(np.maximum(sequence, 0))[predicted]
        logprob[predicted == NO_ID] = -np.inf
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

    def _of_segments(self, group: Sequence[BlockEvents]) -> Iterator[ScoreBatch]:
        """Yield segments that are contexts of their own, scored together over all blocks of the group."""
        jobs: list[Job] = []
        begin, policy = self._begin(), self.context_policy
        for events in group:
            bounds = np.cumsum(events.counts)[:-1]
            for segment, ids in enumerate(np.split(self._network_ids(events), bounds), events.block.first):
                sequence = np.concatenate((begin, ids))
                self._segments += 1
                self._in_windows += policy.length is not None and len(sequence) - 1 > policy.length
                for window in windows(1, len(sequence), policy.length, policy.stride):
                    shown = sequence[window.begin : window.last - 1]
                    jobs.append(Job(shown, sequence[window.first : window.last], segment))
        scored = np.concatenate([np.zeros(0), *self.engine.score(jobs)])
        for events in group:
            firsts = np.zeros(0, np.int64) if len(begin) else (np.cumsum(events.counts) - events.counts)[events.counts > 0]
            used = len(events.ids) - len(firsts)
            yield self._batch(events, scored[:used], firsts)
            scored = scored[used:]

    def _network_ids(self, events: BlockEvents) -> NDArray[np.int64]:
        """Return int64 [n], the network's ids of events; any for what it has none for, whose probability is zero anyway."""
        return np.maximum(self.tokens.network_ids[events.ids], 0)

    def _begin(self) -> NDArray[np.int64]:
        """Return what the network is shown before a context's first token: int64, one id or none."""
        first = {"bos": self.tokens.bos, "eos": self.tokens.eos}.get(self.context_policy.first)
        return np.array([] if first is None else [first], np.int64)

    def _batch(self, events: BlockEvents, scored: NDArray[np.float64], firsts: NDArray[np.int64]) -> ScoreBatch:
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


class _Stream:
    """A context that runs on from segment to segment and block to block."""

    def __init__(self, model: NetworkModel) -> None:
        self._model, self._state = model, StreamState()
        self._tail = model._begin()  # ids before the next event that a window still shows
        self._offset = 0  # position of the first of them
        self._window = self._shown = 0  # where the last window shown begins, and one past the last position shown

    def __call__(self, events: BlockEvents) -> ScoreBatch:
        """Return the batch of the next block."""
        model = self._model
        if not len(events.ids):
            return events.batch(np.zeros(0), model.tokens)
        firsts = np.zeros(0 if len(self._tail) else 1, np.int64)
        parts, first = [model._network_ids(events)], events.block.first
        if model.engine.segment_by_segment:
            parts = np.split(parts[0], np.cumsum(events.counts)[:-1])
        jobs = [job for segment, ids in enumerate(parts, first) for job in self._jobs(ids, segment)]
        return model._batch(events, np.concatenate([np.zeros(0), *model.engine.score(jobs)]), firsts)

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


def _in_groups(blocks: Iterable[BlockEvents]) -> Iterator[list[BlockEvents]]:
    """Yield blocks in groups with enough events to fill batches."""
    group: list[BlockEvents] = []
    for events in blocks:
        group.append(events)
        if sum(len(part.ids) for part in group) >= _GROUP_TOKENS:
            yield group
            group = []
    if group:
        yield group
