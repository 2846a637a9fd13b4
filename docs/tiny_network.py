"""A tiny network for pages that show networks: random weights and a tokenizer of the book's own text, made in a second.

`make("tiny")` writes the folder of a GPT-2 as transformers reads it: byte-level BPE of 500 tokens, trained on `train.txt`,
`<|endoftext|>` as BOS and EOS token, 128 positions. What it predicts is noise; what is computed from it is not.
`make_gguf("tiny", "tiny.gguf")` writes the same weights and tokens as a GGUF file, in float32.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

POSITIONS, WIDTH, LAYERS, HEADS, TOKENS = 128, 32, 2, 2, 500
END = "<|endoftext|>"


def make(folder: str | Path = "tiny", text: str | Path = "train.txt") -> None:
    """Write the folder of a network; the same each time.

    Args:
        folder: to write.
        text: the tokenizer is trained on it.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=TOKENS, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    backend.train([str(text)], trainer)
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=END, eos_token=END).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"vocab_size": TOKENS, "n_positions": POSITIONS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(4 if weight.dim() > 1 else 1)  # predictions worth telling apart
    network.save_pretrained(folder)


def make_gguf(folder: str | Path, path: str | Path) -> None:
    """Write the network of a folder as a GGUF file, in float32.

    Args:
        folder: which `make` wrote.
        path: to write.
    """
    from safetensors.numpy import load_file

    tokenizer = json.loads(Path(folder, "tokenizer.json").read_text(encoding="utf-8"))["model"]
    tokens = sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__)
    settings = {
        "general.architecture": "gpt2", "general.name": "tiny", "gpt2.context_length": POSITIONS,
        "gpt2.embedding_length": WIDTH, "gpt2.block_count": LAYERS, "gpt2.feed_forward_length": 4 * WIDTH,
        "gpt2.attention.head_count": HEADS, "gpt2.attention.layer_norm_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token == END else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokenizer["merges"]],
        "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.add_bos_token": False,
    }  # fmt: skip
    tensors = dict(_tensors(load_file(Path(folder, "model.safetensors"))))
    parts, at = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(settings))], 0
    for name, value in settings.items():
        parts += [_string(name), _value(value)]
    for name, values in tensors.items():
        shape = values.shape[::-1]
        parts.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, at))
        at += -(-values.nbytes // 32) * 32
    head = b"".join(parts)
    body = b"".join(values.tobytes() + bytes(-values.nbytes % 32) for values in tensors.values())
    Path(path).write_bytes(head + bytes(-len(head) % 32) + body)


def _tensors(weights: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names of the file and float32 arrays; GPT-2 keeps its matrices with inputs first, the file with outputs first."""
    names = {
        "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
        "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    }  # fmt: skip
    for name, values in weights.items():
        parts = name.removeprefix("transformer.").split(".")
        block = f"blk.{parts[1]}." if parts[0] == "h" else ""
        module = ".".join(parts[2:-1] if block else parts[:-1])
        if module == "lm_head":
            continue
        turned = values.T if module.startswith(("attn.", "mlp.")) and values.ndim == 2 else values
        yield f"{block}{names[module]}.{parts[-1]}", turned.copy(order="C")
    yield "output.weight", weights.get("lm_head.weight", weights["transformer.wte.weight"])


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        kind = 8 if isinstance(value[0], str) else 5
        body = b"".join(_string(entry) if kind == 8 else struct.pack("<i", entry) for entry in value)
        return struct.pack("<IIQ", 9, kind, len(value)) + body
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    kind, code = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}[type(value)]
    return struct.pack("<I", kind) + struct.pack(code, value)
