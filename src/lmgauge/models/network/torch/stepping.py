"""Whole predictive distributions, one context after another, each as cheap as what is new in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmgauge.errors import ModelFileError
from lmgauge.models.network.torch.split_network import SplitNetwork


class Stepper:
    """The log-probabilities of all rows of the output layer after some ids.

    What the network keeps of a context (keys and values, or a recurrent state) is kept for the next question, which most
    often asks for the same context and one more id.
    """

    def __init__(self, network: SplitNetwork) -> None:
        self._network = network
        self._ids = np.zeros(0, np.int64)
        self._memory: Any = None
        self._latest: NDArray[np.float64] | None = None

    @torch.inference_mode()
    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return natural log-probabilities of what follows.

        Args:
            ids: int64 [n], n > 0.

        Returns:
            float64 [rows of the output layer]; sums to one in float64, from float32 logits.
        """
        known = len(self._ids)
        extends = self._memory is not None and len(ids) > known and np.array_equal(ids[:known], self._ids)
        if self._latest is not None and len(ids) == known and np.array_equal(ids, self._ids):
            return self._latest
        new = torch.from_numpy(np.ascontiguousarray(ids[known:] if extends else ids))[None].to(self._network.device)
        # Memory may be changed in place: if the computation stops half-way, none is left to reuse.
        memory, self._memory, self._latest = self._memory if extends else None, None, None
        with self._network.ready():
            logits, memory = self._logits(new, memory)
        logprob: NDArray[np.float64] = torch.log_softmax(logits.double(), 0).cpu().numpy()
        if np.isnan(logprob).any():
            raise ModelFileError(
                "the network gives NaN after a context; the weights are damaged, or the dtype is too narrow"
            )
        self._ids, self._memory, self._latest = ids.copy(), memory, logprob
        return logprob

    def _logits(self, new: Tensor, memory: Any) -> tuple[Tensor, Any]:
        network, output = self._network.network, self._network.output
        called = network if output is None else network.base_model
        if self._network.recurrent:
            result = called(input_ids=new, state=memory)
            memory = result.state
        elif self._network.caches:
            result = called(input_ids=new, past_key_values=memory, use_cache=True)
            memory = result.past_key_values
        else:
            result, memory = called(input_ids=new, use_cache=False), None
        if output is None:
            return result.logits[0, -1].float(), memory
        return output.logits(result.last_hidden_state[0, -1:])[0], memory
