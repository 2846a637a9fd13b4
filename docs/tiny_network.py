"""A tiny random network, for the pages of the book that need one: `make_network()` writes it to a folder."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast


def make_network(folder: str = "checkpoint", text: str = "valid.txt", seed: int = 7, positions: int = 64) -> None:
    """Write a network of GPT-2's kind with random weights, and a byte-level BPE tokenizer of 400 tokens for it."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    end, alphabet = "<|endoftext|>", pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(Path(text).read_text(encoding="utf-8").splitlines(), trainer)
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=end, eos_token=end).save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = {"vocab_size": 400, "n_positions": positions, "n_embd": 32, "n_layer": 2, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(folder)
