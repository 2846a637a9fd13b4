"""A tiny random network, for the pages of the book that need one: `make_network()` writes it to a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from gguf_file import write_file
from safetensors.numpy import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)


def make_network(
    folder: str = "checkpoint", text: str = "valid.txt", seed: int = 7, positions: int = 64, scale: float = 1
) -> None:
    """Write a network of GPT-2's kind with random weights, and a byte-level BPE tokenizer of 400 tokens for it.

    With a `scale` above 1 (of the matrices), its predictions are further from uniform.
    """
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    end, alphabet = "<|endoftext|>", pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(Path(text).read_text(encoding="utf-8").splitlines(), trainer)
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=end, eos_token=end).save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = {"vocab_size": 400, "n_positions": positions, "n_embd": 32, "n_layer": 2, "n_head": 2}
    network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(scale if weight.dim() > 1 else 1)
    network.save_pretrained(folder)


CHATML = """{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def make_chat_network(folder: str = "chat", conversations: str = "chats.train.jsonl", steps: int = 150) -> None:
    """Train a network of Llama's kind, in seconds, on what the assistant says, as instruct models are; with its template.

    In float64, so that each machine prints the same digits; on one core, which is as fast for so little.
    """
    torch.set_num_threads(1)
    tokenizer, network = _trained(Path(conversations).read_text(encoding="utf-8"), steps)
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)


@cache  # several pages in one process, the tests of them, train it once
def _trained(conversations: str, steps: int) -> tuple[PreTrainedTokenizerFast, LlamaForCausalLM]:
    records = [json.loads(line)["messages"] for line in conversations.splitlines()]
    tokenizer = _chat_tokenizer(message["content"] for messages in records for message in messages)
    torch.manual_seed(7)
    sizes = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **sizes, bos_token_id=0, eos_token_id=1)
    network = LlamaForCausalLM(config).double().train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=8e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    examples = sorted((_of_the_assistant(tokenizer, messages) for messages in records), key=lambda one: len(one[0]))
    for step in range(steps):
        batch = examples[(step * 56) % (len(examples) - 8) :][:8]
        ids, labels = (pad_sequence([one[part] for one in batch], True, fill) for part, fill in ((0, 1), (1, -100)))
        network(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return tokenizer, network.float().eval()


def write_answers(conversations: str = "chats.jsonl", path: str = "answers.txt") -> None:
    """Write what the assistant says in conversations as plain text, a turn a line."""
    records = map(json.loads, Path(conversations).read_text(encoding="utf-8").splitlines())
    turns = [turn["content"] for record in records for turn in record["messages"] if turn["role"] == "assistant"]
    Path(path).write_text("\n".join(turns) + "\n", encoding="utf-8")


def _chat_tokenizer(texts: Iterator[str]) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|startoftext|>", "<|im_end|>", "<|im_start|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.TemplateProcessing(single="<|startoftext|> $A", special_tokens=[(special[0], 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=special[0], eos_token=special[1])
    tokenizer.chat_template = CHATML
    return tokenizer


def _of_the_assistant(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> tuple[Tensor, Tensor]:
    """Ids of a conversation in the template, and the same with -100 for all that is not what the assistant says."""
    ids, labels = [0], [-100]
    for message in messages:
        texts = f"<|im_start|>{message['role']}\n", f"{message['content']}<|im_end|>", "\n"
        parts = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
        ids += [token for part in parts for token in part]
        said = parts[1] if message["role"] == "assistant" else [-100] * len(parts[1])
        labels += [-100] * len(parts[0]) + said + [-100] * len(parts[2])
    return torch.tensor(ids), torch.tensor(labels)


def round_weights(folder: str, target: str, bits: int) -> None:
    """Write a network whose matrices are rounded to a number of bits, each column on a scale of its own, as quantizing does.

    The rounded weights are stored in float32, so that any library computes with them.
    """
    network = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() > 1 and (".h." in name or ".layers." in name):
                inputs = 0 if ".h." in name else 1  # of GPT-2 they come first
                scale = weight.abs().amax(dim=inputs, keepdim=True) / (2 ** (bits - 1) - 1)
                weight.copy_((weight / scale).round() * scale)
    shutil.copytree(folder, target)
    network.save_pretrained(target)


def make_gguf(folder: str | Path, path: str | Path) -> None:
    """Write the network of a folder as a GGUF file, in float32.

    Args:
        folder: which `make_network` wrote.
        path: to write.
    """
    sizes = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads(Path(folder, "tokenizer.json").read_text(encoding="utf-8"))["model"]
    tokens = sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__)
    settings = {
        "general.architecture": "gpt2", "general.name": "tiny", "gpt2.context_length": sizes["n_positions"],
        "gpt2.embedding_length": sizes["n_embd"], "gpt2.block_count": sizes["n_layer"],
        "gpt2.feed_forward_length": 4 * sizes["n_embd"],
        "gpt2.attention.head_count": sizes["n_head"], "gpt2.attention.layer_norm_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token_id == 0 else 1 for token_id in range(len(tokens))],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokenizer["merges"]],
        "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.add_bos_token": False,
    }  # fmt: skip
    tensors = dict(_tensors(load_file(Path(folder, "model.safetensors"))))
    write_file(Path(path), settings, tensors)


def _tensors(weights: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names of the file and float32 arrays; matrices of GPT-2 have inputs first, of the file outputs."""
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
