"""Folders of networks as transformers writes them: config.json, weights and tokenizer changed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import lmgauge
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.parsers.model_folders import Files, changed_file, files_of, put
from tests.fuzz.table import Attempt

TEXTS = ["the cat", "", "grün <s> 🙂"]
SIZES = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}


def prepare(folder: Path) -> Attempt:
    whole = [_saved(folder / "whole", kind) for kind in ("gpt2", "llama")]
    target = folder / "changed"

    def attempt(chance: random.Random) -> str:
        files = dict(chance.choice(whole))
        for _ in range(chance.choice([1, 1, 2])):
            name = chance.choice([*files])
            files[name] = changed_file(name, files[name], chance)
        if chance.random() < 0.05 and len(files) > 1:
            del files[chance.choice([*files])]
        return check_model(lmgauge.load_model(put(files, target)), chance, TEXTS)

    return attempt


def _saved(folder: Path, kind: str) -> Files:
    """Return the files of a random network with a tokenizer of bytes."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(["<s>", *letters])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    torch.manual_seed(1)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=257, n_positions=32, n_embd=8, n_layer=1, n_head=2)
    else:
        config = transformers.LlamaConfig(vocab_size=257, max_position_embeddings=32, **SIZES)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="<s>", unk_token="<s>"
    ).save_pretrained(folder)
    lmgauge.load_model(folder).log_distribution(np.array([0], np.uint32))
    return files_of(folder)
