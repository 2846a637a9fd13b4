"""A network as its last hidden states and an output layer over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmgauge.base.choices import CacheFormat
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.models.network.torch.checkpoint import positions_of
from lmgauge.models.network.torch.output_layer import OutputLayer, normalized, unchanged
from lmgauge.models.network.torch.runtime import exact_float32, settle_after_fork

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# A module, the name of a part of it, the part, and what computes the same in one pass over memory.
_Replaced = tuple[torch.nn.Module, str, torch.nn.Module, torch.nn.Module]
_PROBED_TOKENS = 8
# Of the largest logit: rounding stays below, and any other function of the logits far above.
_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-5, torch.bfloat16: 0.01, torch.float16: 0.002}
# Where all tokens of a batch move the scale by which layers round what they are given to eight bits.
_ROUNDED_ACTIVATIONS = 0.1
_SCALES_TOLD_APART = 0.02
_ROWS_OF_LOGITS = 8  # made into distributions at a time


class SplitNetwork:
    """The part of a network below its output layer, and that layer."""

    # Whether the two give the network's own logits is tried out once. Where they do not (the network does something in
    # between that is not known here), all logits are asked of the network itself: as right, and slower.

    def __init__(self, network: PreTrainedModel, kv_cache: CacheFormat | None = None) -> None:
        self.network, self._kv_cache = network, kv_cache
        self.device = network.device
        head = network.get_output_embeddings()
        if head is None:
            raise ModelFileError(f"{type(network).__name__} has no output layer over a vocabulary; it predicts no tokens")
        self.output = _plain(head)
        self._slow_parts = _fused(network)
        for module in network.modules():
            if isinstance(module, torch.nn.RNNBase):
                module.flatten_parameters()  # else a GPU's kernels copy the weights at each call
        self.rounds_together = _rounds_together(network)
        self.tolerance = _ROUNDED_ACTIVATIONS if self.rounds_together else _TOLERANCE.get(network.dtype, 1e-5)
        with self.ready():
            self.vocabulary_size = len(head.weight) if self.output is not None else self._logits_at_a_time()
            self._refuse_what_sees_later_tokens()
            self.output = self._probe()
            # Model folders may carry older code of ours, without this trait; --trust-remote-code runs it.
            ours = str(network.config.model_type).startswith("lmgauge_")
            self.recurrent = bool(getattr(network, "takes_state", ours))
            self.caches = not self.recurrent and self._keeps_keys_and_values()
            if kv_cache is not None and not self.caches:
                raise UsageError(
                    f"kv-cache {kv_cache}: {type(network).__name__} keeps something else of a text than keys and values; "
                    "leave it out"
                )

    @contextmanager
    def ready(self) -> Iterator[None]:
        """For the time of a computation: GELU in one pass over memory (the same function), and float32 that is float32."""
        settle_after_fork()
        for module, name, _, fast in self._slow_parts:
            setattr(module, name, fast)
        try:
            with exact_float32(self.device):
                yield
        finally:
            for module, name, original, _ in self._slow_parts:
                setattr(module, name, original)

    @torch.inference_mode()
    def _keeps_keys_and_values(self) -> bool:
        from transformers import DynamicCache

        if getattr(self.network, "_is_stateful", False):
            return False
        one = torch.zeros((1, 1), dtype=torch.int64, device=self.device)
        memory = getattr(self.network.base_model(input_ids=one, **self.remembering()), "past_key_values", None)
        return isinstance(memory, DynamicCache) and memory.get_seq_length() > 0

    def remembering(self, memory: Any = None) -> dict[str, Any]:
        """Return how to call a network that keeps keys and values in a memory, a new one if None."""
        if memory is None and self._kv_cache is not None:
            from lmgauge.models.network.torch.kv_cache import RoundingCache

            memory = RoundingCache(self.network.config, self._kv_cache)
        return {"past_key_values": memory, "use_cache": True}

    @torch.inference_mode()
    def _logits_at_a_time(self) -> int:
        return int(self.network(input_ids=torch.zeros((1, 1), dtype=torch.int64, device=self.device)).logits.shape[-1])

    def _probed_ids(self) -> Tensor:
        count = min(_PROBED_TOKENS, positions_of(self.network) or _PROBED_TOKENS)
        return torch.linspace(0, self.vocabulary_size - 1, count, device=self.device).long()[None]

    @torch.inference_mode()
    def _refuse_what_sees_later_tokens(self) -> None:
        # Refuse networks that load as causal ones and are not, such as BERT: their figures would not be perplexities.
        ids = self._probed_ids()
        other, half = ids.clone(), ids.shape[1] // 2
        other[:, half:] = ids[:, : ids.shape[1] - half]
        first, second = (self.network(input_ids=probed).logits[0, :half].float() for probed in (ids, other))
        if not _close(first, second, self.tolerance):
            raise ModelFileError(
                f"{type(self.network).__name__} sees later tokens when it predicts one; it is not a causal language model"
            )

    @torch.inference_mode()
    def _probe(self) -> OutputLayer | None:
        if self.network.base_model is self.network or self.output is None:
            return None
        ids = self._probed_ids()
        logits = self.network(input_ids=ids).logits[0].float()
        try:
            hidden = self.shown(ids, use_cache=False)[0][0]
            plain = self.output.logits(hidden)
        except (AttributeError, RuntimeError, TypeError):
            return None
        for adjust in _adjustments(self.network.config.get_text_config(), plain, logits, self.network.dtype):
            if plain.shape == logits.shape and _close(adjust(plain.clone()), logits, self.tolerance):
                return OutputLayer(self.output.weight, self.output.bias, adjust)
        return None

    def shown(self, ids: Tensor, **how: Any) -> tuple[Tensor, Any]:
        """Return what the output layer takes at each id, or all logits where it is not known apart, and what gives them."""
        # ids: int64 [batch, length]; how: more for the network, such as a state to go on from.
        # -> [batch, length, hidden], or [batch, length, rows of the output layer].
        called = self.network if self.output is None else self.network.base_model
        result: Any = called(input_ids=ids, **how)
        return result.logits if self.output is None else result.last_hidden_state, result

    def last(self, ids: Tensor, rows: Tensor) -> Tensor:
        """Return the same at some positions of sequences, each seen from its beginning."""
        # rows: int64 [n], positions in the flattened ids.
        # -> [n, hidden], or [n, rows of the output layer].
        how = {"use_cache": False} if self._kv_cache is None else self.remembering()
        return self.shown(ids, **how)[0].flatten(0, 1)[rows]

    def carried(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return the same at each id of a recurrent network that continues from a state."""
        # ids: int64 [n].
        values, result = self.shown(ids[None], state=state)
        return values[0], result.state

    def log_probabilities(self, last: Tensor, targets: Tensor) -> Tensor:
        """Return log-probabilities of targets, nats, float64 [n]."""
        # last: what `last` gives, [n, ...]; targets: int64 [n].
        return _of_logits(last, targets) if self.output is None else self.output.log_probabilities(last, targets)

    def distributions(self, last: Tensor, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield natural log-probabilities and probabilities of all tokens, for a few positions at a time."""
        # last: what `last` gives, [n, ...]; rows: int64 [vocabulary], the row of the output layer that predicts each token;
        # -1 for none.
        # -> two float32 [m, vocabulary].
        if self.output is not None:
            yield from self.output.distributions(last, rows)
            return
        for logits in last.split(_ROWS_OF_LOGITS):
            chosen = logits.float()[:, rows.clamp(min=0)]
            chosen[:, rows < 0] = -torch.inf
            yield normalized(chosen)


def _plain(head: torch.nn.Module) -> OutputLayer | None:
    # Output layer whose weights are numbers; None where they are packed, as quantized ones are.
    weight: Any = getattr(head, "weight", None)
    bias: Any = getattr(head, "bias", None)
    if type(weight) not in (Tensor, torch.nn.Parameter) or not weight.is_floating_point() or callable(bias):
        return None
    return OutputLayer(weight.detach(), None if bias is None else bias.detach().float())


def _rounds_together(network: torch.nn.Module) -> bool:
    return any(type(module).__module__.startswith("torch.ao.nn.quantized") for module in network.modules())


def _of_logits(logits: Tensor, targets: Tensor) -> Tensor:
    # float64 [n], log-probabilities of targets from all logits [n, vocabulary].
    whole = logits.float()
    of_target = whole.gather(1, targets[:, None])[:, 0].double()
    return of_target - whole.double().logsumexp(1)


def _adjustments(config: Any, plain: Tensor, wanted: Tensor, dtype: torch.dtype) -> list[Callable[[Tensor], Tensor]]:
    # What networks are known to do to logits: nothing, soft capping (Gemma), scaling (Cohere, Granite).
    cap = getattr(config, "final_logit_softcapping", None)
    if cap:
        return [lambda logits: logits.div_(cap).tanh_().mul_(cap)]
    scales = getattr(config, "logit_scale", None), getattr(config, "logits_scaling", None)
    if isinstance(scales[0], int | float):
        return [lambda logits: logits.mul_(scales[0])]
    if isinstance(scales[1], int | float):
        return [lambda logits: logits.div_(scales[1])]
    adjustments: list[Callable[[Tensor], Tensor]] = [unchanged]
    if plain.shape == wanted.shape and plain.dtype == dtype and bool(plain.abs().max() > 0):
        scale = float((wanted * plain).sum() / (plain * plain).sum())
        if abs(scale - 1) > _SCALES_TOLD_APART:
            adjustments.append(lambda logits: logits.mul_(scale))
    return adjustments


def _close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    # True if logits are the same up to rounding; what a network makes impossible (-inf) must be the same, too.
    if bool(b.isnan().any()):
        return True  # NaN cannot be compared; scoring says where it comes from
    possible = torch.isfinite(b)
    if not torch.equal(torch.isfinite(a), possible):
        return False
    a, b = a[possible], b[possible]
    return not len(b) or bool(torch.allclose(a, b, rtol=0.0, atol=tolerance * float(b.abs().max())))


def _fused(network: PreTrainedModel) -> list[_Replaced]:
    # What takes several passes over memory: GELU's tanh approximation (Hendrycks & Gimpel 2016), and on GPUs RMSNorm (Zhang
    # & Sennrich 2019).
    from transformers.activations import FastGELUActivation, NewGELUActivation

    def in_one_pass(part: torch.nn.Module) -> torch.nn.Module | None:
        if isinstance(part, (FastGELUActivation, NewGELUActivation)):
            return torch.nn.GELU(approximate="tanh")
        on_gpu = network.device.type == "cuda"
        return _fused_norm(part) if on_gpu and type(part).__name__.endswith("RMSNorm") else None

    children = [(module, name, child) for module in network.modules() for name, child in module.named_children()]
    return [(*child, fast) for child in children if (fast := in_one_pass(child[2])) is not None]


@torch.inference_mode()
def _fused_norm(norm: torch.nn.Module) -> torch.nn.Module | None:
    # None where it does something else with its weights, as Gemma's, which adds 1 to them.
    weight, epsilon = getattr(norm, "weight", None), getattr(norm, "variance_epsilon", None)
    if not isinstance(weight, torch.nn.Parameter) or not isinstance(epsilon, float):
        return None
    fast = torch.nn.RMSNorm(len(weight), eps=epsilon, device="meta")
    fast.weight = weight
    values = torch.linspace(-3, 3, len(weight), device=weight.device).to(weight.dtype)[None]
    return fast if torch.allclose(fast(values), norm(values), rtol=4 * torch.finfo(weight.dtype).eps, atol=0.0) else None


# -- Whole predictive distributions, context after context, each as cheap as what is new in it ------------------------


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
        how = network.remembering(memory) if network.caches else {"use_cache": False}
        values, result = network.shown(new, **({"state": memory} if network.recurrent else how))
        memory = result.state if network.recurrent else result.past_key_values if network.caches else None
        return values[:, -1].float() if network.output is None else network.output.logits(values[:, -1]), memory
