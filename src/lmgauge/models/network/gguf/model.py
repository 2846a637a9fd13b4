"""Models in GGUF files, quantized or not, scored by llama.cpp on this machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import file_sha256
from lmgauge.base.threads import thread_count
from lmgauge.models.network.engine import Job, Progress, unheard
from lmgauge.models.network.gguf.network import GgufNetwork, log_sum_exp, of_targets
from lmgauge.models.network.gguf.tokens import gguf_tokens
from lmgauge.models.network.model import NetworkModel
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.parallel import workers_for
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.scores.context_policy import ContextPolicy


class GgufModel(NetworkModel):
    """A GGUF file and a policy of what each prediction sees."""

    def __init__(self, network: GgufNetwork, tokens: TokenMap, policy: ContextPolicy, options: ScoringOptions) -> None:
        super().__init__(GgufEngine(network, policy), tokens, policy, options, network.path.stem)
        self.network = network

    @cached_property
    def fingerprint(self) -> str:
        return file_sha256(self.network.path, str(self.context_policy))

    def with_options(self, options: ScoringOptions) -> GgufModel:
        tokens = gguf_tokens(self.network)
        model = GgufModel(self.network, tokens, _policy(self.network, tokens, options), options)
        model.workers = self.workers
        return model.made_from(self, GgufModel.with_options, options)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model_type": "gguf",
            "label": self.label,
            "architecture": self.network.architecture,
            "name": self.network.setting("general.name"),
            "positions": self.network.positions,
            **super().to_dict(),
        }


def load_gguf(path: Path, options: ScoringOptions) -> GgufModel:
    """Load a GGUF file."""
    if any(place != "cpu" for place in options.devices or ()):
        raise UsageError(f"{path}: llama.cpp chooses among GPUs itself: --devices is for torch; --processes is for both")
    network = GgufNetwork(path, options.places[0])
    network.set_threads(thread_count())
    tokens = gguf_tokens(network)
    model = GgufModel(network, tokens, _policy(network, tokens, options), options)
    model.workers = workers_for(model, partial(load_gguf, path), options)
    return model


def _policy(network: GgufNetwork, tokens: TokenMap, options: ScoringOptions) -> ContextPolicy:
    if options.kv_cache is not None:
        network.check_cache(options.kv_cache)
    if options.first_token is None and options.protocol is None:
        options = replace(options, first_token="bos" if tokens.bos != NO_ID and network.adds_bos else "uniform")
    return resolve_policy(options, tokens, network.positions)


# -- llama.cpp as an engine: short segments beside each other, and what is kept of a context used again ---------------

# Tokens of a context that are shown together where whole distributions are asked for. A context is cut into such parts from
# its beginning, so that what is computed depends on nothing but the context, and its full parts can be kept.
_PART = 32
_ROWS = 8  # distributions at a time
# Tokens of short contexts that are shown together. Each is compared with all places in use, which the library counts in
# steps of 256: more of them would cost more than they gain.
_TOGETHER = 256


class GgufEngine:
    """Scores jobs in order, several that are short at a time, showing no token twice that the network still holds."""

    carries_state = False
    journal = log_distributions = None
    # What is shown of a running context at a time, and so the rounding, depends on nothing but the text.
    segment_by_segment, computes_elsewhere = True, False
    # Products of other shapes round in another order, and the activations of quantized layers are rounded to eight bits.
    tolerance = 2e-2

    def __init__(self, network: GgufNetwork, policy: ContextPolicy) -> None:
        self._network, self._policy = network, policy
        self.progress: Progress = unheard
        self._held = np.zeros(0, np.int32)  # full parts of the context that the network holds, for log_distribution

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with this number of threads from now on."""
        # count: threads of the processor.
        self._network.set_threads(count)
        yield

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the log-probabilities of each job's targets, nats, float64 [predicted] each."""
        return [logprob for pack in self._packs(jobs) for logprob in self._scored(pack)]

    def _packs(self, jobs: Iterable[Job]) -> Iterator[list[Job]]:
        # Jobs to be shown together: those that fit into one batch, and alone what is longer or goes on.
        most, tokens = self._network.most_contexts, min(_TOGETHER, self._network.at_a_time)
        pack: list[Job] = []
        for job in jobs:
            full = len(pack) == most or sum(len(one.ids) for one in (*pack, job)) > tokens
            if pack and (full or pack[0].stream is not None or job.stream is not None):
                yield pack
                pack = []
            pack.append(job)
        if pack:
            yield pack

    def _scored(self, pack: Sequence[Job]) -> list[NDArray[np.float64]]:
        targets = np.concatenate([job.targets for job in pack]).astype(np.int32)
        logprob = of_targets(self._logits(pack, np.ones(len(targets), bool)), targets)
        if np.isnan(logprob).any():
            self._blame(pack)
        self.progress(len(logprob))
        return np.split(logprob, np.cumsum([len(job.targets) for job in pack])[:-1])

    def _logits(self, pack: Sequence[Job], wanted: NDArray[np.bool_]) -> Iterator[NDArray[np.float32]]:
        # Show jobs and yield the logits, float32 [n, size], of those targets of all of them that are wanted.
        network = self._network
        shown = [self._new(pack[0])] if len(pack) == 1 else [job.ids.astype(np.int32) for job in pack]
        asked = _at_the_ends(shown, pack, wanted)
        if len(pack) == 1:
            yield from network.logits(shown[0], asked)
        else:
            network.begin(sum(map(len, shown)), self._policy.kv_cache)
            network.holder = None
            yield network.logits_of_many(shown, asked)

    def _new(self, job: Job) -> NDArray[np.int32]:
        # Make the network ready for a job, and return what it has not been shown yet, int32 [n].
        network, known = self._network, job.known
        if not known or network.holder is not job.stream:
            known = 0
            length = self._policy.length or len(job.ids) if job.stream is not None else len(job.ids)
            network.begin(length, self._policy.kv_cache)
            network.holder = job.stream
        return job.ids[known:].astype(np.int32)

    def distributions(
        self, jobs: Sequence[Job], rows: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.float32], None, None]]:
        """Yield natural log-probabilities of all tokens at the targets of jobs, a part at a time; see `Engine`."""
        # jobs: in the order of the events; rows: int64 [vocabulary], the network's id of each token; -1 for none; wanted:
        # bool [targets of all jobs], which of them to look at.
        masks = np.split(wanted, np.cumsum([len(job.targets) for job in jobs])[:-1])
        # A running context needs to be shown all; of others only what is asked about.
        looked_at = [job.stream is not None or bool(mask.any()) for job, mask in zip(jobs, masks, strict=True)]
        asked = itertools.compress(masks, looked_at)
        for pack in self._packs(itertools.compress(jobs, looked_at)):
            of_pack = np.concatenate(list(itertools.islice(asked, len(pack))))
            for logits in self._logits(pack, of_pack):
                for at in range(0, len(logits), _ROWS):
                    some = logits[at : at + _ROWS]
                    logprob = (some - log_sum_exp(some)[:, None].astype(np.float32))[:, np.maximum(rows, 0)]
                    logprob[:, rows < 0] = -np.inf
                    if np.isnan(logprob).any():
                        self._blame(pack)
                    yield logprob, None, None
            self.progress(len(of_pack))

    def log_distribution(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-probabilities of all that may follow, nats, float64 [rows of the output layer]."""
        # ids: int64 [n], n > 0, what the network is shown.
        logprob = self._after(ids.astype(np.int32))
        if np.isnan(logprob).any():
            raise self._gives_nan("after some context")
        return logprob

    def _after(self, sequence: NDArray[np.int32]) -> NDArray[np.float64]:
        # Log-probabilities of what follows a context, float64 [rows of the output layer].
        network, full = self._network, (len(sequence) - 1) // _PART * _PART
        held = self._held if network.holder is self else self._held[:0]
        shared = min(len(held), full)
        same = np.flatnonzero(held[:shared] != sequence[:shared])
        shared = (int(same[0]) if len(same) else shared) // _PART * _PART
        if network.holder is not self or len(sequence) > network.room or not network.rewind(shared):
            shared = 0
            network.begin(len(sequence), self._policy.kv_cache)
            network.holder = self
        for at in range(shared, full, _PART):
            network.logprob(sequence[at : at + _PART], sequence[:0])
        self._held = sequence[:full].copy()
        return network.log_distribution(sequence[full:])

    def _blame(self, pack: Sequence[Job]) -> NoReturn:
        # Say which of some jobs gives NaN: that of one may have spread to those beside it.
        for job in pack if len(pack) > 1 else ():
            self._network.wipe()
            if np.isnan(
                of_targets(self._logits([job], np.ones(len(job.targets), bool)), job.targets.astype(np.int32))
            ).any():
                raise self._gives_nan(f"in segment {job.segment + 1}")
        raise self._gives_nan(f"in segment {pack[0].segment + 1}")

    def _gives_nan(self, where: str) -> ModelFileError:
        self._network.wipe()
        return ModelFileError(
            f"{self._network.path}: gives NaN {where}; the file is damaged, or was quantized from weights that were"
        )


def _at_the_ends(shown: Sequence[NDArray[np.int32]], pack: Sequence[Job], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # Which of the tokens shown have a target after them that is wanted, bool [tokens of all].
    asked = [np.arange(len(ids)) >= len(ids) - len(job.targets) for ids, job in zip(shown, pack, strict=True)]
    places = np.concatenate(asked)
    places[places] = wanted
    return places
