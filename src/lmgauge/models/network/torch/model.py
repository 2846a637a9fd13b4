"""A neural language model as evaluation, sampling and audits know it: any causal network of the `transformers` library."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.files import writing_directory
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.sequences import Rows, rows_of
from lmgauge.models.network.tokens import NO_ID, TokenMap, tokens_of
from lmgauge.models.network.torch.backbone import Hidden
from lmgauge.models.network.torch.batches import Job
from lmgauge.models.network.torch.checkpoint import (
    SCORING_FILE,
    Checkpoint,
    described,
    load_checkpoint,
    positions_of,
    quiet,
    read_scoring,
    telling,
)
from lmgauge.models.network.torch.journal import FinishedWork
from lmgauge.models.network.torch.scorer import Progress, Scorer
from lmgauge.models.network.torch.stepping import Stepper
from lmgauge.models.network.windows import window_of, windows
from lmgauge.models.protocol import check_context
from lmgauge.scores import ScoreBatch
from lmgauge.text.encoding import ReservedPolicy
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.threads import thread_count

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# What a configuration tells that changes no probability.
_NO_NUMBERS = {
    *("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures", "use_cache", "auto_map", "lmgauge"),
    *("_attn_implementation", "_attn_implementation_internal", "attn_implementation"),
}
# Nats by which a row may differ when it is scored again in another batch.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
# Tokens that are batched together: enough that windows and sentences of equal length meet, and few enough to show progress.
_GATHERED_TOKENS = 1 << 16
# Tokens of a stream that a recurrent network is shown at a time.
_STREAM_CHUNK = 1 << 10


class NeuralModel:
    """A causal network with a tokenizer and a policy of what each prediction sees.

    Attributes:
        context_policy: what each prediction sees.
        tokens: how text becomes ids.
        tolerance: nats by which rows may differ when they are scored again.
        options: what was chosen.
    """

    blocks_are_independent = False

    def __init__(self, checkpoint: Checkpoint, options: ScoringOptions, label: str) -> None:
        """Takes a loaded network; use `load_neural` or `wrap`.

        Raises:
            ModelFileError: tokenizer and network do not belong together.
            UsageError: the options do not fit the network.
        """
        self.options, self._checkpoint, self.label = options, checkpoint, label
        name = str(checkpoint.folder or label)
        with quiet(), telling(name, checkpoint.folder):
            self._hidden = Hidden(checkpoint.network)
        self.tokens = checkpoint.tokens.check_head(self._hidden.vocabulary_size, name)
        self.context_policy: ContextPolicy = resolve_policy(
            options,
            positions=positions_of(checkpoint.network),
            running=self.tokens.running,
            has_bos=self.tokens.bos != NO_ID,
            has_eos=self.tokens.eos != NO_ID,
            end="eos" if self.tokens.trained_here else "newline",
        )
        if self.context_policy.end == "newline":
            if self.tokens.trained_here:
                raise UsageError(f"end newline: {label} was trained to end lines with </s>; choose eos or none")
            self.tokens = self.tokens.reading_line_ends()
        if self.context_policy.runs_on and self.context_policy.length is None and not self._hidden.recurrent:
            raise UsageError(f"{label}: has no longest context, so that a running one needs --context, and --stride")
        self.tolerance = _TOLERANCE.get(checkpoint.network.dtype, 1e-3)
        self._scorer = Scorer(self._hidden, options.batch_tokens, name)
        self._stepper = Stepper(self._hidden)
        self._segments = self._in_windows = 0

    @classmethod
    def wrap(
        cls,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | TokenMap,
        options: ScoringOptions | None = None,
        *,
        label: str | None = None,
    ) -> NeuralModel:
        """A network in memory as a model; it is put into evaluation mode by no one but its owner.

        Args:
            network: any causal network of the `transformers` library.
            tokenizer: its tokenizer, or a ready map of its tokens. A network that lmgauge trained is known by its config,
                and its tokens are those of the folder it came from.
            options: how to score; its dtype and device are the network's.
            label: short name for signatures; the kind of network if None.
        """
        if network.training:
            raise UsageError("the network is in training mode, where dropout makes its numbers random: call network.eval()")
        name = label or described(network)
        tokens = tokenizer if isinstance(tokenizer, TokenMap) else tokens_of(network, tokenizer, name)
        return cls(Checkpoint(network, tokens, None), options or ScoringOptions(), name)

    @property
    def network(self) -> PreTrainedModel:
        """The network."""
        return self._hidden.network

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        return self.tokens.vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """How text becomes tokens."""
        return self.tokens.tokenizer

    @property
    def reserved(self) -> ReservedPolicy | None:
        """What a reserved token in the text means; None where the tokenizer decides."""
        return self.tokens.reserved if self.tokens.trained_here else None

    @property
    def carries_state(self) -> bool:
        """Whether a recurrent state runs through the whole text."""
        return self._hidden.recurrent and self.context_policy.runs_on and self.context_policy.length is None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over weights as loaded, network, tokens and policy."""
        config = {name: value for name, value in self.network.config.to_dict().items() if name not in _NO_NUMBERS}
        digest = hashlib.sha256(json.dumps([config, str(self.context_policy)], sort_keys=True, default=str).encode())
        digest.update(self.vocabulary.fingerprint.encode() + self.tokenizer.fingerprint.encode())
        digest.update(np.ascontiguousarray(self.tokens.network_ids, "<i8").data)
        for name, weight in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
            digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    @property
    def progress(self) -> Progress:
        """Told how many tokens were scored since it was last told."""
        return self._scorer.progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        self._scorer.progress = progress

    def keep_finished(self, path: Path) -> FinishedWork | None:
        """Keeps scores in a file as soon as they are known, and takes from it what is known already.

        Returns:
            The file; None for a stream that a recurrent state runs through, whose parts cannot be had apart.

        Raises:
            OutputError: the file cannot be written.
        """
        if self.carries_state:
            return None
        self._scorer.finished = FinishedWork(path, self.fingerprint)
        return self._scorer.finished

    def with_reserved(self, reserved: ReservedPolicy) -> NeuralModel:
        """The same model with another meaning of reserved tokens in the text."""
        if not self.tokens.trained_here:
            return self
        tokens = self.tokens.with_reserved(reserved)
        return NeuralModel(replace(self._checkpoint, tokens=tokens), self.options, self.label)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """One batch of the score table for each block of segments, in order.

        Raises:
            InputError: the text has a reserved token that is refused.
            ModelFileError: the network gives values that are no numbers.
            UsageError: a window does not fit into the memory.
        """
        stream = _Stream(self) if self.context_policy.runs_on else None
        self._segments = self._in_windows = 0
        rows = (rows_of(block, self.tokens, self.context_policy, spans=spans) for block in segments)
        for group in _gathered(rows):
            # Steps of one sequence are too small to share: threads would wait for each other most of the time.
            with torch_threads(1 if self.carries_state else thread_count(threads)):
                batches = list(stream(group) if stream is not None else self._of_segments(group))
            yield from batches

    @property
    def notes(self) -> list[str]:
        """What the latest scoring met that numbers depend on."""
        if not self._in_windows:
            return [*self._checkpoint.notes]
        return [
            *self._checkpoint.notes,
            f"{self._in_windows:,} of {self._segments:,} segments are longer than {self.context_policy.length:,} tokens "
            f"and were read in windows of that size, the next one {self.context_policy.stride:,} further",
        ]

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """The batch of one block."""
        return next(self.score([block], spans=spans))

    def _of_segments(self, group: Sequence[Rows]) -> Iterator[ScoreBatch]:
        """Segments that are contexts of their own, batched over all blocks of the group."""
        jobs: list[Job] = []
        begin = self._begin()
        for rows in group:
            bounds = np.cumsum(rows.counts)[:-1]
            for segment, ids in enumerate(np.split(self._network_ids(rows), bounds), rows.block.first):
                sequence = np.concatenate((begin, ids))
                self._segments += 1
                self._in_windows += self.context_policy.length is not None and len(sequence) - 1 > self.context_policy.length
                jobs += self._jobs(sequence, 1, len(sequence), segment)
        scored = np.concatenate([np.zeros(0), *self._scorer(jobs)])
        for rows in group:
            firsts = np.zeros(0, np.int64) if len(begin) else (np.cumsum(rows.counts) - rows.counts)[rows.counts > 0]
            used = len(rows.ids) - len(firsts)
            yield self._batch(rows, scored[:used], firsts)
            scored = scored[used:]

    def _jobs(self, sequence: NDArray[np.int64], first: int, last: int, segment: int, offset: int = 0) -> list[Job]:
        """The jobs that predict positions `first` to `last` (not included); `sequence` begins at position `offset`."""
        found = []
        for window in windows(first, last, self.context_policy.length, self.context_policy.stride):
            shown = sequence[window.begin - offset : window.last - 1 - offset]
            targets = sequence[window.first - offset : window.last - offset]
            found.append(Job(shown, targets, segment))
        return found

    def _network_ids(self, rows: Rows) -> NDArray[np.int64]:
        """int64 [n], the network's ids of events; any for what it has none for, whose probability is zero anyway."""
        return np.maximum(self.tokens.network_ids[rows.ids], 0)

    def _begin(self) -> NDArray[np.int64]:
        """What the network is shown before a context's first token: int64, one id or none."""
        first = {"bos": self.tokens.bos, "eos": self.tokens.eos}.get(self.context_policy.first)
        return np.array([] if first is None else [first], np.int64)

    def _batch(self, rows: Rows, scored: NDArray[np.float64], firsts: NDArray[np.int64]) -> ScoreBatch:
        """The score table of a block.

        Args:
            rows: its events.
            scored: float64 [n - firsts], nats.
            firsts: int64, the rows that come first in their context with nothing shown before them.
        """
        is_first = np.zeros(len(rows.ids), bool)
        is_first[firsts] = True
        logprob = np.full(len(rows.ids), self._uniform())
        logprob[~is_first] = scored
        logprob[self.tokens.network_ids[rows.ids] == NO_ID] = -np.inf
        unscored = is_first if self.context_policy.first == "unscored" else None
        return rows.batch(logprob, self.tokens, unscored)

    def _uniform(self) -> float:
        return -float(np.log(np.count_nonzero(self.tokens.predicted_ids != NO_ID)))

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Natural log-probabilities of all tokens after a context.

        Args:
            context_ids: ids before the event, `<s>` first; if the context runs on, all of the text.

        Returns:
            float64 [vocabulary]; -inf for what the network has no token for.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self.vocabulary))
        sequence = np.concatenate((self._begin(), self.tokens.network_ids[context[1:]]))
        predicted = self.tokens.predicted_ids
        if not len(sequence):
            return np.where(predicted == NO_ID, -np.inf, self._uniform())
        if self.context_policy.length is not None and self.context_policy.stride is not None:
            sequence = sequence[
                window_of(len(sequence), self.context_policy.length, self.context_policy.stride)
                * self.context_policy.stride :
            ]
        found = self._stepper(np.maximum(sequence, 0))[predicted]
        found[predicted == NO_ID] = -np.inf
        return found

    def to_dict(self) -> dict[str, Any]:
        """What is in the model."""
        config = self.network.config
        return {
            "model_type": config.model_type,
            "label": self.label,
            "parameters": sum(weight.numel() for weight in self.network.parameters()),
            "dtype": str(self.network.dtype).removeprefix("torch."),
            "device": str(self._hidden.device),
            "context": str(self.context_policy),
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "tokenizer": self.tokenizer.settings(),
            "fingerprint": self.fingerprint,
            "training": dict(getattr(config, "lmgauge", None) or {}),
        }

    def save(self, path: str | Path) -> None:
        """Writes the model as a folder that `load_model` reads, if it was loaded from one.

        Raises:
            UsageError: it was not, or this is the same folder.
            InputError: something else is in the way.
            OutputError: it cannot be written.
        """
        if self._checkpoint.folder is None:
            raise UsageError(f"{self.label}: was not loaded from a folder, so that there is none to copy; save it first")
        source = self._checkpoint.folder
        if Path(path).resolve() == source.resolve():
            raise UsageError(f"{path}: is the folder it was loaded from; choose another name")
        with writing_directory(path, is_ours=_is_copy) as folder:
            for file in source.iterdir():
                if file.is_file():
                    shutil.copyfile(file, folder / file.name)
            dtype = "bfloat16" if self.network.dtype == torch.bfloat16 else "float32"
            chosen = self.options.stored() | {"dtype": dtype}
            (folder / SCORING_FILE).write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return f"NeuralModel({self.label}, {self.context_policy}, {len(self.vocabulary):,} tokens)"


class _Stream:
    """A context that runs on from segment to segment and block to block."""

    def __init__(self, model: NeuralModel) -> None:
        self._model = model
        self._tail = model._begin()  # ids before the next event that some window still shows
        self._offset = 0  # position of the first of them
        self._state: Any = None  # of a recurrent network, which has seen all but the last of them

    def __call__(self, group: Sequence[Rows]) -> Iterator[ScoreBatch]:
        """The batches of the next blocks."""
        model = self._model
        for rows in group:
            if not len(rows.ids):
                yield rows.batch(np.zeros(0), model.tokens)
                continue
            firsts = np.zeros(0 if len(self._tail) else 1, np.int64)
            sequence = np.concatenate((self._tail, model._network_ids(rows)))
            scored = self._carried(sequence, rows) if model.carries_state else self._windowed(sequence, rows)
            yield model._batch(rows, scored, firsts)

    def _windowed(self, sequence: NDArray[np.int64], rows: Rows) -> NDArray[np.float64]:
        model, policy = self._model, self._model.context_policy
        first, last = self._offset + max(1, len(self._tail)), self._offset + len(sequence)
        jobs = model._jobs(sequence, first, last, rows.block.first, self._offset)
        scored = np.concatenate([np.zeros(0), *model._scorer(jobs)])
        begin = self._offset
        if policy.length is not None and policy.stride is not None:
            begin = window_of(last, policy.length, policy.stride) * policy.stride
        self._tail, self._offset = sequence[begin - self._offset :], begin
        return scored

    @torch.inference_mode()
    def _carried(self, sequence: NDArray[np.int64], rows: Rows) -> NDArray[np.float64]:
        hidden = self._model._hidden
        parts = [np.zeros(0)]
        for at in range(0, len(sequence) - 1, _STREAM_CHUNK):
            shown = torch.from_numpy(sequence[at : min(at + _STREAM_CHUNK, len(sequence) - 1)]).to(hidden.device)
            targets = torch.from_numpy(sequence[at + 1 : at + 1 + len(shown)]).to(hidden.device)
            with hidden.ready():
                logprob, self._state = hidden.carried(shown, targets, self._state)
            if bool(logprob.isnan().any()):
                job = Job(shown.cpu().numpy(), targets.cpu().numpy(), rows.block.first)
                self._model._scorer.blame(job)
            self._model.progress(len(logprob))
            parts.append(np.minimum(logprob.cpu().numpy(), 0.0))
        self._tail = sequence[-1:]
        return np.concatenate(parts)


def _is_copy(folder: Path) -> bool:
    """Whether a folder is one that `save` wrote; a checkpoint of someone's own is never replaced."""
    return (folder / SCORING_FILE).is_file() and not any(part.is_dir() for part in folder.iterdir())


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Lets torch use so many threads, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _gathered(rows: Iterable[Rows]) -> Iterator[list[Rows]]:
    """Blocks in groups of at least so many events that batches fill."""
    group: list[Rows] = []
    for block in rows:
        group.append(block)
        if sum(len(part.ids) for part in group) >= _GATHERED_TOKENS:
            yield group
            group = []
    if group:
        yield group


def load_neural(source: str | Path, options: ScoringOptions | None = None) -> NeuralModel:
    """Loads any causal network of the `transformers` library, from a folder or by its name on a hub.

    Raises:
        ModelFileError: not there, incomplete, damaged, or not of a kind that predicts the next token.
        UsageError: the options do not fit the network, or the device is not there.
    """
    asked = options or ScoringOptions()
    options = asked.over(read_scoring(Path(source)))
    checkpoint = load_checkpoint(str(source), options)
    if checkpoint.notes and asked.dtype == "auto":  # a part of a mixture is what was mixed, or nothing
        raise ModelFileError(
            f"{source}: was copied as a bfloat16 model, which this processor cannot compute; load it with dtype float32, or "
            "mix the models again here"
        )
    narrow = {torch.bfloat16: "-bf16", torch.float16: "-fp16"}.get(checkpoint.network.dtype, "")
    return NeuralModel(checkpoint, options, described(checkpoint.network) + narrow)
