"""Tiny GGUF files with random weights, and a slow, obvious twin of the network in them.

The network is Llama's (Touvron et al. 2023), whose rotary
embedding turns neighbouring pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from docs.gguf_file import write_file
from numpy.typing import NDArray

WIDTH, HEADS, KV_HEADS, WIDE, LAYERS, POSITIONS = 32, 2, 1, 48, 2, 48
HEAD = WIDTH // HEADS
EPSILON, BASE = 1e-5, 10000.0
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
WORDS = ["▁the", "▁cat", "▁sat", "th", "at", "ca", "sa", "▁t", "▁c", "▁s", "▁th", "▁ca", "▁sa", "he", "é"]


@dataclass
class Vocabulary:
    """What a file says of its tokens."""

    tokens: list[str]
    kinds: list[int]
    settings: dict[str, Any] = field(default_factory=dict)


def sentencepiece_vocabulary(**settings: Any) -> Vocabulary:
    """Letters and words with byte fallback, as Llama 2 has them; a BOS token begins texts."""
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz.,\n"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters, *WORDS]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * (len(letters) + len(WORDS))]
    scores = [-float(i) for i in range(len(tokens))]
    found: dict[str, Any] = {
        "model": "llama", "scores": scores, "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0,
        "add_bos_token": True,
    }  # fmt: skip
    return Vocabulary(tokens, kinds, found | settings)


def byte_level_vocabulary(**settings: Any) -> Vocabulary:
    """Bytes and some merges, as GPT-2 has them; texts begin without a BOS token."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    merges = [("t", "h"), ("th", "e"), ("c", "a"), ("ca", "t"), ("Ġ", "the"), ("Ġ", "cat")]
    tokens = [*letters, *(a + b for a, b in merges), "<|endoftext|>"]
    kinds = [NORMAL] * (len(tokens) - 1) + [CONTROL]
    found: dict[str, Any] = {
        "model": "gpt2", "pre": "gpt-2", "merges": [f"{a} {b}" for a, b in merges], "bos_token_id": len(tokens) - 1,
        "eos_token_id": len(tokens) - 1, "add_bos_token": False,
    }  # fmt: skip
    return Vocabulary(tokens, kinds, found | settings)


def weights(size: int, seed: int = 7) -> dict[str, NDArray[np.float32]]:
    """Random weights by their names in the file, each with its outputs first."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return random.normal(0, 0.5, (rows, columns)).astype(np.float32)

    def norm() -> NDArray[np.float32]:
        return random.uniform(0.5, 1.5, WIDTH).astype(np.float32)

    found = {"token_embd.weight": matrix(size, WIDTH), "output_norm.weight": norm(), "output.weight": matrix(size, WIDTH)}
    for layer in range(LAYERS):
        parts = {
            "attn_norm": norm(), "ffn_norm": norm(), "attn_q": matrix(WIDTH, WIDTH),
            "attn_k": matrix(KV_HEADS * HEAD, WIDTH), "attn_v": matrix(KV_HEADS * HEAD, WIDTH),
            "attn_output": matrix(WIDTH, WIDTH), "ffn_gate": matrix(WIDE, WIDTH),
            "ffn_up": matrix(WIDE, WIDTH), "ffn_down": matrix(WIDTH, WIDE),
        }  # fmt: skip
        found |= {f"blk.{layer}.{name}.weight": values for name, values in parts.items()}
    return found


def logprobs(tensors: Mapping[str, NDArray[np.float32]], ids: Sequence[int]) -> NDArray[np.float64]:
    """Natural log-probabilities of all tokens after each of the ids, float64 [n, vocabulary]."""
    w = {name: values.astype(np.float64) for name, values in tensors.items()}
    x = w["token_embd.weight"][list(ids)]
    n = len(x)
    for layer in range(LAYERS):
        part = {name.split(".")[2]: values for name, values in w.items() if name.startswith(f"blk.{layer}.")}
        h = _norm(x, part["attn_norm"])
        q = _rotate((h @ part["attn_q"].T).reshape(n, HEADS, HEAD))
        k = _rotate((h @ part["attn_k"].T).reshape(n, KV_HEADS, HEAD))
        v = (h @ part["attn_v"].T).reshape(n, KV_HEADS, HEAD)
        outputs = []
        for head in range(HEADS):
            own = head * KV_HEADS // HEADS
            attention = q[:, head] @ k[:, own].T / np.sqrt(HEAD)
            attention[np.triu_indices(n, 1)] = -np.inf
            attention = np.exp(attention - attention.max(1, keepdims=True))
            outputs.append(attention / attention.sum(1, keepdims=True) @ v[:, own])
        x = x + np.concatenate(outputs, 1) @ part["attn_output"].T
        h = _norm(x, part["ffn_norm"])
        gate = h @ part["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ part["ffn_up"].T)) @ part["ffn_down"].T
    logits = _norm(x, w["output_norm.weight"]) @ w["output.weight"].T
    found: NDArray[np.float64] = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return found


def _norm(x: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale
    return found


def _rotate(x: NDArray[np.float64]) -> NDArray[np.float64]:
    angles = np.arange(len(x))[:, None] * BASE ** (-np.arange(0, HEAD, 2) / HEAD)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(x.shape)


def write_gguf(
    path: Path, vocabulary: Vocabulary, tensors: Mapping[str, NDArray[np.float32]] | None = None, **more: Any
) -> dict[str, NDArray[np.float32]]:
    """Writes a file and returns its weights; `more` replaces settings, their dots written as two underscores."""
    found = dict(weights(len(vocabulary.tokens)) if tensors is None else tensors)
    settings: dict[str, Any] = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.context_length": POSITIONS,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": WIDE,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": EPSILON,
        "llama.rope.dimension_count": HEAD,
        "llama.rope.freq_base": BASE,
        "tokenizer.ggml.tokens": vocabulary.tokens,
        "tokenizer.ggml.token_type": vocabulary.kinds,
        **{f"tokenizer.ggml.{name}": value for name, value in vocabulary.settings.items()},
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    write_file(path, settings, found)
    return found
