"""Dynamic evaluation: a network that takes a gradient step on each segment after it was scored.

Sources: Mikolov, T. et al. (2010), "Recurrent neural network based language model"; Krause, B. et al. (2018), "Dynamic
evaluation of neural sequence models", ICML.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.digests import digest
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.models.given import alone
from lmgauge.models.network.engine import Job
from lmgauge.models.network.sequences import block_events
from lmgauge.models.network.torch.model import NeuralModel
from lmgauge.models.network.torch.stepping import Stepper
from lmgauge.models.protocol import check_context
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, Vocabulary

_THREADS = 1  # sums of gradients depend on how they are shared out, and each step on all before it


@dataclass
class _Replayed:
    """A network after the segments of a context."""

    learned: NDArray[np.uint32]
    pupil: NeuralModel


class DynamicModel(ScoresStrings):
    """A network that learns from each segment after it has scored it."""

    # Each pass over a text begins with a copy of the network, which itself stays as it is: the same text gets the same
    # numbers. The context of a prediction is its segment; by the weights it sees all segments before.

    blocks_are_independent = False
    tolerance: float

    def __init__(self, model: NeuralModel, rate: float) -> None:
        # Take a network whose segments are contexts of their own.
        # rate: step size; a step goes against the gradient of the mean nats an event.
        policy = model.context_policy
        if policy.runs_on or policy.line_ends != "event" or not policy.scores_first_tokens:
            raise UsageError(
                f"{model.label}: dynamic evaluation needs segments that are contexts of their own and end with </s> "
                "(--context sentence, --end eos)"
            )
        if not (rate > 0 and math.isfinite(rate)):
            raise UsageError(f"rate must be a number above 0, such as 0.1; got {rate:g}")
        self._model, self.rate, self.tolerance = model, rate, model.tolerance
        self.context_policy = ContextPolicy(unit="stream", first=policy.first, end=policy.end, bos_each=policy.bos_each)
        self._replayed: _Replayed | None = None

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `dynamic0.1(lstm)`."""
        return f"dynamic{self.rate:g}({self._model.label})"

    @property
    def vocabulary(self) -> Vocabulary:
        """Return tokens and ids."""
        return self._model.vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """Return how text becomes tokens."""
        return self._model.tokenizer

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 over the network's fingerprint and the rate."""
        return digest(["lmgauge-dynamic", self._model.fingerprint, self.rate.hex()])

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch for each block of segments, in order; each segment is scored, then learned."""
        # threads: not used: one, so that no number depends on it.
        pupil = self._copy()
        for block in alone(segments, self.label):
            events = block_events(block, pupil.tokens, pupil.context_policy, spans=spans)
            jobs, firsts = pupil.jobs_of_segments(events)
            scored = [np.zeros(0)]
            for _, of_segment in groupby(jobs, key=lambda job: job.segment):
                scored += self._score_and_learn(pupil, list(of_segment))
            yield pupil.batch_of(events, np.concatenate(scored), firsts)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments, with nothing before it."""
        return next(self.score([block], spans=spans))

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context."""
        # -> float64 [vocabulary], nats.
        context = check_context(context_ids, len(self.vocabulary))[1:]
        ends = np.flatnonzero(context == EOS) + 1
        learned = context[: ends[-1] if len(ends) else 0]
        state = self._replayed
        known = 0 if state is None else len(state.learned)
        if state is None or known > len(learned) or not np.array_equal(state.learned, learned[:known]):
            known, state = 0, _Replayed(learned[:0], self._copy())
        for segment in np.split(learned[known:], np.flatnonzero(learned[known:] == EOS) + 1)[:-1]:
            self._score_and_learn(state.pupil, state.pupil.jobs_of_segment(segment, 0)[0])
        self._replayed = _Replayed(learned.copy(), state.pupil)
        with state.pupil.engine.threads(_THREADS):
            return state.pupil.log_distribution(np.insert(context[len(learned) :], 0, BOS))

    def _copy(self) -> NeuralModel:
        network = copy.deepcopy(self._model.network).requires_grad_(True)
        return NeuralModel.wrap(network, self._model.tokens, self._model.options, label=self._model.label)

    def _score_and_learn(self, pupil: NeuralModel, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        # Scores of a segment, float64 each; then take a step against the gradient of its mean loss.
        with pupil.engine.threads(_THREADS):
            scored = pupil.engine.score(jobs)
            with torch.enable_grad():
                loss = torch.stack([_loss(pupil, job) for job in jobs]).sum() / sum(len(job.targets) for job in jobs)
                loss.backward()
        with torch.no_grad():
            for weight in pupil.network.parameters():
                if weight.grad is not None:
                    weight.sub_(weight.grad, alpha=self.rate)
                    weight.grad = None
        if not bool(torch.isfinite(loss)):
            raise ModelFileError(f"{self.label}: the steps lead away from numbers; choose a smaller rate")
        pupil.engine.log_distribution = Stepper(pupil.engine.split)  # what it keeps of a context is of the weights before
        return scored


def _loss(model: NeuralModel, job: Job) -> torch.Tensor:
    device = model.network.device
    logits = model.network(input_ids=torch.from_numpy(job.ids).to(device)[None]).logits[0, -len(job.targets) :]
    targets = torch.from_numpy(job.targets).to(device)
    return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
