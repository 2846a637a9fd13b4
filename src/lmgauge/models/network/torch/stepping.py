"""Whole predictive distributions, context after context, each as cheap as what is new in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmgauge.errors import ModelFileError
from lmgauge.models.network.torch.split_network import SplitNetwork


class Stepper:
    """The log-probabilities of all rows of the output layer after some ids, of one context or several of one length."""

    # What the network keeps of a context (keys and values, or a recurrent state) is kept for the next question, which most
    # often asks for the same contexts and one more id each.

    def __init__(self, network: SplitNetwork) -> None:
        self._network = network
        self._ids = np.zeros((0, 0), np.int64)
        self._memory: Any = None
        self._latest: NDArray[np.float64] | None = None

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        # Natural log-probabilities of what follows.
        # ids: int64 [n], n > 0.
        # -> float64 [rows of the output layer]; sums to one in float64, from float32 logits.
        logprob: NDArray[np.float64] = self.many(ids[None])[0]
        return logprob

    @torch.inference_mode()
    def many(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return log-probabilities, in nats, of what follows each of some contexts."""
        # ids: int64 [k, n], n > 0: k contexts of n ids.
        # -> float64 [k, rows of the output layer].
        if self._latest is not None and np.array_equal(ids, self._ids):
            return self._latest
        known = self._ids.shape[1]
        # Memory may be changed in place: if the computation stops half-way, none is left to reuse.
        memory, self._memory, self._latest = self._memory, None, None
        memory = self._of(memory, ids) if memory is not None and ids.shape[1] > known else None
        new = np.ascontiguousarray(ids if memory is None else ids[:, known:])
        with self._network.ready():
            logits, memory = self._logits(torch.from_numpy(new).to(self._network.device), memory)
        logprob: NDArray[np.float64] = torch.log_softmax(logits.double(), 1).cpu().numpy()
        if np.isnan(logprob).any():
            raise ModelFileError(
                "the network gives NaN after a context; the weights are damaged, or the dtype is too narrow"
            )
        self._ids, self._memory, self._latest = ids.copy(), memory, logprob
        return logprob

    def _of(self, memory: Any, ids: NDArray[np.int64]) -> Any:
        # Memory of the contexts that other contexts begin with, in their order; None if it is not known.
        known = self._ids
        if ids.shape[0] == known.shape[0] and np.array_equal(ids[:, : known.shape[1]], known):
            return memory
        begins = (ids[:, None, : known.shape[1]] == known[None]).all(axis=2)  # [k, contexts known]
        if self._network.recurrent or not begins.any(axis=1).all():
            return None
        memory.batch_select_indices(torch.from_numpy(begins.argmax(axis=1)).to(self._network.device))
        return memory

    def _logits(self, new: Tensor, memory: Any) -> tuple[Tensor, Any]:
        network = self._network
        how = {"past_key_values": memory, "use_cache": True} if network.caches else {"use_cache": False}
        values, result = network.shown(new, **({"state": memory} if network.recurrent else how))
        memory = result.state if network.recurrent else result.past_key_values if network.caches else None
        return values[:, -1].float() if network.output is None else network.output.logits(values[:, -1]), memory
