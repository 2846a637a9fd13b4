"""Models in GGUF files, quantised or not, scored by llama.cpp on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.models.network.gguf.network import GgufNetwork
from lmgauge.models.network.gguf.tokens import gguf_tokens
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.sequences import Rows, rows_of
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.models.network.windows import window_of, windows
from lmgauge.models.protocol import check_context
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.threads import thread_count

# Nats by which a row may differ when it is scored again: products of other shapes round in another order, and the
# activations of quantised layers are themselves rounded to eight bits.
_TOLERANCE = 2e-2
# Tokens of a context that are shown together where whole distributions are asked for. A context is cut into such parts from
# its beginning, so that what is computed depends on nothing but the context, and its full parts can be kept.
_PART = 32


class GgufModel:
    """A GGUF file and a policy of what each prediction sees.

    Attributes:
        network: the file, loaded.
        tokens: how text becomes ids.
        context_policy: what each prediction sees.
        tolerance: nats by which rows may differ when they are scored again.
        progress: told how many tokens were scored since it was last told.
    """

    blocks_are_independent = False
    tolerance = _TOLERANCE

    def __init__(self, network: GgufNetwork, tokens: TokenMap, policy: ContextPolicy) -> None:
        self.network, self.tokens, self.context_policy = network, tokens, policy
        self.label = network.path.stem
        self.progress: Callable[[int], None] = lambda tokens: None
        self._kept = np.zeros(0, np.int32)  # full parts of the context that the network holds, for log_distribution

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        return self.tokens.vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """How text becomes tokens."""
        return self.tokens.tokenizer

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the file and the policy."""
        with self.network.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(str(self.context_policy).encode())
        return digest.hexdigest()

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """One batch of the score table for each block of segments, in order.

        Raises:
            ModelFileError: the network gives values that are no numbers.
            UsageError: a context does not fit into the memory.
        """
        self.network.set_threads(thread_count(threads))
        stream = _Sequence(self) if self.context_policy.runs_on else None
        for block in segments:
            yield self._batch(rows_of(block, self.tokens, self.context_policy, spans=spans), stream)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """The batch of one block."""
        return next(self.score([block], spans=spans))

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Natural log-probabilities of all tokens after a context.

        Args:
            context_ids: ids before the event, `<s>` first; if the context runs on, all of the text.

        Returns:
            float64 [vocabulary]; -inf for what the file has no token for.

        Raises:
            ModelFileError: the network gives values that are no numbers.
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self.vocabulary))
        own = np.maximum(self.tokens.network_ids[context[1:]], 0).astype(np.int32)
        sequence = np.concatenate((self.begin(), own))
        predicted = self.tokens.predicted_ids
        if not len(sequence):
            return np.where(predicted == NO_ID, -np.inf, self._uniform())
        if self.context_policy.length is not None and self.context_policy.stride is not None:
            sequence = sequence[
                window_of(len(sequence), self.context_policy.length, self.context_policy.stride)
                * self.context_policy.stride :
            ]
        found = self._after(sequence)[predicted]
        if np.isnan(found).any():
            raise _no_numbers(self.network.path, "after some context")
        found[predicted == NO_ID] = -np.inf
        return found

    def begin(self) -> NDArray[np.int32]:
        """What the network is shown before a context's first token: int32, one id or none."""
        first = {"bos": self.tokens.bos, "eos": self.tokens.eos}.get(self.context_policy.first)
        return np.array([] if first is None else [first], np.int32)

    def to_dict(self) -> dict[str, Any]:
        """What is in the model."""
        return {
            "model_type": "gguf",
            "label": self.label,
            "architecture": self.network.architecture,
            "name": self.network.setting("general.name"),
            "positions": self.network.positions,
            "context": str(self.context_policy),
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "tokenizer": self.tokenizer.settings(),
            "fingerprint": self.fingerprint,
        }

    def _batch(self, rows: Rows, stream: _Sequence | None) -> ScoreBatch:
        """The score table of a block."""
        own = self.tokens.network_ids[rows.ids]
        logprob = np.empty(len(rows.ids))
        is_first = np.zeros(len(rows.ids), bool)
        done = 0
        for segment, count in enumerate(rows.counts.tolist(), rows.block.first):
            sequence = stream or _Sequence(self)
            first = sequence.length == 0 and count > 0
            scored = sequence.extend(np.maximum(own[done : done + count], 0).astype(np.int32))
            if np.isnan(scored).any():
                raise _no_numbers(self.network.path, f"in segment {segment}")
            is_first[done : done + first] = True
            logprob[done + first : done + count] = scored
            done += count
            self.progress(count)
        logprob[is_first] = self._uniform()
        logprob[own == NO_ID] = -np.inf
        return rows.batch(logprob, self.tokens, is_first if self.context_policy.first == "unscored" else None)

    def _uniform(self) -> float:
        return -float(np.log(np.count_nonzero(self.tokens.predicted_ids != NO_ID)))

    def _after(self, sequence: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log-probabilities of what follows a context, float64 [rows of the output layer]."""
        network, full = self.network, (len(sequence) - 1) // _PART * _PART
        kept = self._kept if network.holder is self else self._kept[:0]
        shared = min(len(kept), full)
        same = np.flatnonzero(kept[:shared] != sequence[:shared])
        shared = (int(same[0]) if len(same) else shared) // _PART * _PART
        if network.holder is not self or len(sequence) > network.room or not network.rewind(shared):
            shared = 0
            network.begin(len(sequence))
            network.holder = self
        for at in range(shared, full, _PART):
            network.logprob(sequence[at : at + _PART], sequence[:0])
        self._kept = sequence[:full].copy()
        return network.log_distribution(sequence[full:])

    def __repr__(self) -> str:
        return f"GgufModel({self.label}, {self.context_policy}, {len(self.vocabulary):,} tokens)"


class _Sequence:
    """A token sequence that grows, with the window of it that the network was shown.

    Attributes:
        length: tokens so far.
    """

    def __init__(self, model: GgufModel) -> None:
        self._model = model
        self._tail = model.begin()  # from the first token on that a later window shows
        self._offset = 0  # position of that token
        self._window, self._shown = -1, 0  # where the window shown begins, and one past the last position shown
        self.length = len(self._tail)

    def extend(self, ids: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log-probabilities of the next tokens, each from the first window that reaches it; none for position 0."""
        network, policy = self._model.network, self._model.context_policy
        first = max(1, self.length)
        self._tail = np.concatenate((self._tail, ids))
        self.length += len(ids)
        found = [np.zeros(0)]
        for window in windows(first, self.length, policy.length, policy.stride):
            if network.holder is not self or window.begin != self._window:
                network.begin(policy.length if policy.runs_on and policy.length else window.shown)
                network.holder = self
                self._window = self._shown = window.begin
            shown = self._tail[self._shown - self._offset : window.last - 1 - self._offset]
            found.append(network.logprob(shown, self._tail[window.first - self._offset : window.last - self._offset]))
            self._shown = window.last - 1
        self._forget(policy)
        return np.concatenate(found)

    def _forget(self, policy: ContextPolicy) -> None:
        """Lets go of what no later window shows."""
        if policy.runs_on and policy.length is not None and policy.stride is not None and self.length:
            needed = window_of(self.length, policy.length, policy.stride) * policy.stride
            self._tail, self._offset = self._tail[needed - self._offset :], needed


def _no_numbers(path: Path, where: str) -> ModelFileError:
    return ModelFileError(f"{path}: gives NaN {where}; the file is damaged, or was quantised from weights that were")


def load_gguf(path: Path, options: ScoringOptions) -> GgufModel:
    """Loads a GGUF file.

    Args:
        path: the file.
        options: how to score; `device` is `cpu`, or None to use a GPU where there is one. The file decides on its dtype.

    Raises:
        MissingExtraError: llama-cpp-python is not installed.
        ModelFileError: damaged, or not of a network that predicts the next token.
        UsageError: the options do not fit it.
    """
    network = GgufNetwork(path, options.device)
    network.set_threads(thread_count())
    tokens = gguf_tokens(network)
    has_bos = tokens.bos != NO_ID
    if options.first_token is None:
        options = replace(options, first_token="bos" if has_bos and network.adds_bos else "uniform")
    policy = resolve_policy(
        options, positions=network.positions, running=False, has_bos=has_bos, has_eos=tokens.eos != NO_ID, end="newline"
    )
    if policy.runs_on and policy.length is None:
        raise UsageError(f"{path}: has no longest context, so that a running one needs --context, and --stride")
    return GgufModel(network, tokens.reading_line_ends() if policy.end == "newline" else tokens, policy)
