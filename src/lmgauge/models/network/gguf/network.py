"""A GGUF file as a network: llama.cpp, through the functions of `llama-cpp-python`, with what it keeps of a context."""

# What is kept (keys and values) is float32 unless another format is asked for, and logits come for every token that is
# asked about, a part at a time, so that memory holds one part of them and never a context's length times a vocabulary.

from __future__ import annotations

import ctypes
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import CacheFormat
from lmgauge.base.errors import ModelFileError, UsageError, needing
from lmgauge.base.memory import format_bytes, free_memory

if TYPE_CHECKING:
    from types import ModuleType

# GGML_TYPE_*, -1 where there is none, and the bytes of a number.
_CACHES: dict[CacheFormat, tuple[int, float]] = {
    "float32": (0, 4.0), "float16": (1, 2.0), "bfloat16": (30, 2.0), "q8_0": (8, 34 / 32), "q4_0": (2, 18 / 32),
    "fp8_e4m3": (-1, 1.0), "fp8_e5m2": (-1, 1.0),
}  # fmt: skip
# It rounds to half precision what attention weighs: 0.02 nats off on a tiny float32 network. Quantized values need it.
_FLASH_ATTENTION_OFF, _FLASH_ATTENTION_ON = 0, 1
_LOGIT_BYTES = 1 << 26  # of logits held at a time
_MOST_TOKENS, _FEWEST_TOKENS = 512, 16  # computed at a time
_SEQUENCES = 64  # in one batch, the most that older builds of the library take
_IN_CACHE = 1 << 16  # logits that stay in a core's cache
_FIRST_CONTEXT = 512
_ALL_LAYERS = -1
_CACHES_LINES = 20
_UNKNOWN, _CONTROL, _USER_DEFINED = 1, 8, 16  # LLAMA_TOKEN_ATTR_*
_said: deque[str] = deque(maxlen=_CACHES_LINES)
_listeners: list[Any] = []  # callbacks that C code holds must not be collected


def _library() -> ModuleType:
    with needing("llama-cpp-python", extra="gguf"):
        import llama_cpp
    if not _listeners:
        logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)

        @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator, unused-ignore]
        def listen(level: int, text: bytes, data: object) -> None:
            _said.append(text.decode("utf-8", "replace").strip())

        _listeners.append(listen)
        llama_cpp.llama_log_set(listen, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
    module: ModuleType = llama_cpp
    return module


def _last_words() -> str:
    lines = [line.partition(": ")[2] or line for line in _said]  # without the name of the function
    complaints = [line for word in ("error", "fail") for line in lines if word in line.lower()]
    return next(iter(complaints or lines[-1:]), "no reason given").removeprefix("error loading model: ")


class GgufNetwork:
    """A network in llama.cpp, which holds one context that goes on, or several short ones that are shown once."""

    def __init__(self, path: Path, device: str | None = None) -> None:
        self._api: Any = _library()
        self.path = path
        self.holder: object = None
        self.room = 0
        self._kv_cache: CacheFormat = "float32"
        self._context: Any = None
        self._threads = 1
        parameters = self._api.llama_model_default_params()
        parameters.n_gpu_layers = 0 if device == "cpu" else _ALL_LAYERS
        # With quantized weights repacked for AMX it crashes: https://github.com/ggml-org/llama.cpp/issues/20824
        parameters.use_extra_bufts = b"AMX_INT8 = 1" not in self._api.llama_print_system_info()
        _said.clear()
        self._model = self._api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._model:
            raise ModelFileError(f"{path}: cannot be loaded by llama.cpp: {_last_words()}")
        self._vocabulary = self._api.llama_model_get_vocab(self._model)
        self.size = int(self._api.llama_vocab_n_tokens(self._vocabulary))
        self.positions = int(self._api.llama_model_n_ctx_train(self._model))
        architecture = self.setting("general.architecture") or "unknown"
        if self._api.llama_model_has_encoder(self._model) or self.setting(f"{architecture}.attention.causal") == "false":
            raise ModelFileError(f"{path}: {architecture} is not a causal network, one that predicts the next token")
        self.architecture = architecture

    def setting(self, name: str) -> str | None:
        """Return a value of the file's header as a string of at most 4,095 bytes; None where it is missing or a list."""
        buffer = ctypes.create_string_buffer(1 << 12)
        length = self._api.llama_model_meta_val_str(self._model, name.encode(), buffer, len(buffer))
        return None if length < 0 else buffer.value.decode("utf-8", "replace")

    def token_id(self, which: str) -> int:
        """Return the id of the `bos` or `eos` token; -1 if there is none that is a token of its own."""
        token = int(getattr(self._api, f"llama_vocab_{which}")(self._vocabulary))
        # Where a file names none, the library falls back on an id that may be any word's.
        return token if 0 <= token < self.size and self._attribute(token) & _CONTROL else -1

    def unknown_id(self) -> int:
        """Return the id of the token for what is not in the vocabulary; -1 if there is none."""
        return next((token for token in range(self.size) if self._attribute(token) & _UNKNOWN), -1)

    def is_special(self, token: int) -> bool:
        """Return True if a token is read where its name stands: a control token, or one that the makers added."""
        return bool(self._attribute(token) & (_CONTROL | _USER_DEFINED))

    def _attribute(self, token: int) -> int:
        return int(self._api.llama_vocab_get_attr(self._vocabulary, token))

    @property
    def adds_bos(self) -> bool:
        """Return True if the file says that texts begin with the BOS token."""
        return bool(self._api.llama_vocab_get_add_bos(self._vocabulary))

    def strings(self) -> list[str]:
        """Return the vocabulary's own spelling of each token."""
        texts = (self._api.llama_vocab_get_text(self._vocabulary, token) for token in range(self.size))
        return [(text or b"").decode("utf-8", "replace") for text in texts]

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """Return the bytes that a token adds to a text; of a special token its name, if that is asked for."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            length = self._api.llama_token_to_piece(self._vocabulary, token, buffer, room, 0, special)
            if length >= 0:
                return buffer.raw[:length]
            room = -length

    def tokenize(self, text: bytes, *, special: bool = False) -> list[int]:
        """Return the tokens of a text: nothing added, and no special token read into it unless that is asked for."""
        room = len(text) + 16
        while True:
            buffer = (self._api.llama_token * room)()
            count = self._api.llama_tokenize(self._vocabulary, text, len(text), buffer, room, False, special)
            if count >= 0:
                return list(buffer[:count])
            room = -count

    def set_threads(self, threads: int) -> None:
        """Compute with this number of threads; no result depends on it."""
        self._threads = threads
        if self._context is not None:
            self._api.llama_set_n_threads(self._context, threads, threads)

    def check_cache(self, kv_cache: CacheFormat) -> None:
        """Refuse a format of keys and values that there is not in llama.cpp, or not for this network."""
        if _CACHES[kv_cache][0] < 0:
            raise UsageError(f"{self.path}: kv-cache {kv_cache}: llama.cpp has no such cache; choose another format")
        if not self._numbers_a_token():
            raise UsageError(f"{self.path}: kv-cache {kv_cache}: {self.architecture} keeps no keys and values; leave it out")

    def begin(self, length: int, kv_cache: CacheFormat | None = None) -> None:
        """Forget all contexts, and make room for one of this length, or several together."""
        # kv_cache: the format of keys and values; float32 if None.
        changed, self._kv_cache = (kv_cache or "float32") != self._kv_cache, kv_cache or "float32"
        if changed or length > self.room:
            self._open(length)
        else:
            # The numbers may stay in their places: what a place holds counts once a token is put there.
            self._api.llama_memory_clear(self._api.llama_get_memory(self._context), False)

    def wipe(self) -> None:
        """Forget all contexts and their numbers: a weight of zero does not rule out NaN."""
        if self._context is not None:
            self._api.llama_memory_clear(self._api.llama_get_memory(self._context), True)

    def rewind(self, length: int) -> bool:
        """Forget all but the first tokens of the context; return False if the network cannot."""
        memory = self._api.llama_get_memory(self._context)
        return bool(self._api.llama_memory_seq_rm(memory, 0, length, -1))

    def logprob(self, shown: NDArray[np.int32], targets: NDArray[np.int32]) -> NDArray[np.float64]:
        """Show the next tokens of the context and return the log-probabilities of what comes after the last of them."""
        # shown: int32 [n]; targets: int32 [m], m <= n: what follows the last m tokens shown.
        # -> float64 [m], nats; see `of_targets`.
        return of_targets(self.logits(shown, np.arange(len(shown)) >= len(shown) - len(targets)), targets)

    def logits(self, shown: NDArray[np.int32], wanted: NDArray[np.bool_]) -> Iterator[NDArray[np.float32]]:
        """Show the next tokens of the context and yield the logits after those that are asked about."""
        # shown: int32 [n]; wanted: bool [n].
        # -> float32 [m, size]; good until the next is asked for.
        for begin in range(0, len(shown), self.at_a_time):
            part = slice(begin, begin + self.at_a_time)
            logits = self._decode(shown[part], wanted[part])
            if len(logits):
                yield logits

    def logits_of_many(self, contexts: Sequence[NDArray[np.int32]], wanted: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Show whole contexts beside each other, after `begin`, and return the logits after the tokens asked about."""
        # contexts: int32 [n] each, at most `most_contexts`, of no more than `at_a_time` tokens together; wanted: bool
        # [tokens of all].
        # -> float32 [m, size], context after context; good until the next call.
        sizes = [len(context) for context in contexts]
        positions = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        return self._decode(np.concatenate(contexts), wanted, positions, np.repeat(np.arange(len(sizes)), sizes))

    def log_distribution(self, shown: NDArray[np.int32]) -> NDArray[np.float64]:
        """Show the next tokens of the context and return the log-probabilities of all that may follow."""
        # shown: int32 [n], n > 0.
        # -> float64 [size], nats; sums to one in float64.
        for begin in range(0, len(shown), self.at_a_time):
            part = shown[begin : begin + self.at_a_time]
            logits = self._decode(part, np.arange(len(part)) == len(part) - 1).astype(np.float64)
        logprob: NDArray[np.float64] = (logits - log_sum_exp(logits)[:, None])[0]
        return logprob

    def close(self) -> None:
        """Free the memory of context and network."""
        if self._context is not None:
            self._api.llama_free(self._context)
            self._context, self.room = None, 0
        if self._model:
            self._api.llama_model_free(self._model)
            self._model = None

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    @property
    def at_a_time(self) -> int:
        """Return how many tokens are computed together: the logits of all of them may be held."""
        return max(_FEWEST_TOKENS, min(_MOST_TOKENS, _LOGIT_BYTES // (4 * self.size)))

    @property
    def most_contexts(self) -> int:
        """Return how many contexts may be shown beside each other: one, if each would need a recurrent state of its own."""
        with_state = any(getattr(self._api, f"llama_model_is_{kind}")(self._model) for kind in ("recurrent", "hybrid"))
        return 1 if with_state else _SEQUENCES

    def _open(self, length: int) -> None:
        if self._context is not None:
            self._api.llama_free(self._context)
            self._context = None
        room = max(length, min(max(2 * self.room, _FIRST_CONTEXT), self.positions))
        kind, number_bytes = _CACHES[self._kv_cache]
        needed, free = int(self._numbers_a_token() * number_bytes * room), free_memory()
        if free is not None and needed > free:  # asked for more, the system ends the program without a word
            raise self._no_memory(room, f"it takes {format_bytes(needed)} and {format_bytes(free)} are free")
        parameters = self._api.llama_context_default_params()
        parameters.n_ctx = room
        parameters.n_batch = parameters.n_ubatch = self.at_a_time
        # One memory for all contexts, whatever their lengths: what is not of a token's own has a weight of zero.
        parameters.n_seq_max, parameters.kv_unified = min(self.most_contexts, self.at_a_time, room), True
        parameters.n_threads = parameters.n_threads_batch = self._threads
        parameters.type_k = parameters.type_v = kind
        parameters.flash_attn_type = _FLASH_ATTENTION_ON if self._kv_cache.startswith("q") else _FLASH_ATTENTION_OFF
        parameters.offload_kqv = True
        parameters.no_perf = True
        _said.clear()
        self._context = self._api.llama_init_from_model(self._model, parameters)
        if not self._context:
            self._context, self.room = None, 0
            if "cache type" in _last_words():
                raise UsageError(f"{self.path}: kv-cache {self._kv_cache}: {_last_words()}; choose another format")
            raise self._no_memory(room, _last_words())
        self.room = room

    def _no_memory(self, room: int, reason: str) -> UsageError:
        return UsageError(f"{self.path}: no memory for a context of {room:,} tokens: {reason}; choose a smaller --context")

    def _numbers_a_token(self) -> int:
        # What is kept of a token of the context: keys and values of all layers.
        if self._api.llama_model_is_recurrent(self._model):
            return 0
        sizes = (getattr(self._api, f"llama_model_n_{name}")(self._model) for name in ("embd", "head", "head_kv", "layer"))
        width, heads, kept_heads, layers = map(int, sizes)
        return 2 * layers * kept_heads * (width // max(1, heads))

    def _decode(
        self,
        shown: NDArray[np.int32],
        wanted: NDArray[np.bool_],
        positions: NDArray[np.int32] | None = None,
        contexts: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        # Show tokens; the logits after those wanted, float32 [m, size], valid until the next call.
        # shown: int32 [n]; wanted: bool [n]; positions, contexts: of each token, [n]; it follows the one before in the
        # first context if None.
        tokens, flags = np.ascontiguousarray(shown, np.int32), np.ascontiguousarray(wanted, np.int8)
        batch = self._api.llama_batch()
        batch.n_tokens = len(tokens)
        batch.token = _pointer(tokens, self._api.llama_token)
        batch.logits = _pointer(flags, ctypes.c_int8)
        if positions is not None and contexts is not None:
            numbers, ones = np.ascontiguousarray(contexts, np.int32), np.ones(len(tokens), np.int32)
            first = numbers.ctypes.data
            places = np.arange(first, first + numbers.nbytes, numbers.itemsize, dtype=np.uintp)
            batch.pos, batch.n_seq_id = _pointer(positions, ctypes.c_int32), _pointer(ones, ctypes.c_int32)
            batch.seq_id = _pointer(places, ctypes.POINTER(ctypes.c_int32))
        _said.clear()
        status = self._api.llama_decode(self._context, batch)
        if status:
            raise ModelFileError(f"{self.path}: llama.cpp fails to compute (status {status}): {_last_words()}")
        asked = int(np.count_nonzero(flags))
        if not asked:
            return np.zeros((0, self.size), np.float32)
        logits: NDArray[np.float32] = np.ctypeslib.as_array(self._api.llama_get_logits(self._context), (asked, self.size))
        return logits


def _pointer(values: NDArray[Any], kind: Any) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(kind))


def of_targets(parts: Iterable[NDArray[np.float32]], targets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the log-probabilities of tokens."""
    # parts: logits, float32 [n, size] each; targets: int32, a token for each row of all parts.
    # -> float64, nats; from float32 logits, summed in float64. NaN where the logits are.
    logprob = np.empty(len(targets))
    done = 0
    for logits in parts:
        chosen = logits[np.arange(len(logits)), targets[done : done + len(logits)]]
        logprob[done : done + len(logits)] = chosen - log_sum_exp(logits)
        done += len(logits)
    # The log-sum-exp of rounded terms may fall a little below its largest.
    return np.minimum(logprob, 0.0)


def log_sum_exp(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithms, in nats, of summed exponentials; exponentials in the dtype of the logits, sums in float64."""
    # logits: [n, size].
    # -> float64 [n].
    # log_sum_exp(np.zeros((1, 2), np.float32)).round(4) -> [0.6931]
    sums = np.empty(len(logits))
    largest = logits.max(axis=1, keepdims=True)
    rows = max(1, _IN_CACHE // logits.shape[1])
    room = np.empty((rows, logits.shape[1]), logits.dtype)
    for begin in range(0, len(logits), rows):
        some = slice(begin, begin + rows)
        terms = np.subtract(logits[some], largest[some], out=room[: len(logits[some])])
        np.exp(terms, out=terms).sum(axis=1, dtype=np.float64, out=sums[some])
    totals: NDArray[np.float64] = largest[:, 0].astype(np.float64) + np.log(sums)
    return totals
