"""Tiny networks of the kinds people score, with tokenizers trained on the bundled text, saved as any checkpoint is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

TEXT = """The cat sat on the mat .
It was a long day ; nobody came .

"Zwölf Boxkämpfer jagen Viktor" , said 株式会社 quietly 🙂 .
  two spaces  in front and	a tab
The end
"""
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def byte_level() -> Any:
    """GPT-2's kind: bytes as letters, one token that begins and ends texts, no unknown one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|end|>", eos_token="<|end|>", unk_token="<|end|>"
    )


def byte_fallback() -> Any:
    """Llama's kind: U+2581 for spaces, one before the text, and bytes for what is not in the vocabulary."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, limit_alphabet=30, show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def lowercasing() -> Any:
    """A tokenizer that alters the text, has an unknown token and neither begin nor end."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(["the cat sat on the mat .", "it was a long day"], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def network(kind: str, vocabulary: int) -> Any:
    """A random network of a kind."""
    torch.manual_seed(5)
    configs: dict[str, Callable[[], Any]] = {
        "gpt2": lambda: transformers.GPT2Config(vocab_size=vocabulary, n_positions=48, n_embd=32, n_layer=2, n_head=2),
        "llama": lambda: transformers.LlamaConfig(vocab_size=vocabulary, max_position_embeddings=64, **SIZES),
        "gemma2": lambda: transformers.Gemma2Config(
            vocab_size=vocabulary,
            max_position_embeddings=64,
            head_dim=16,
            num_key_value_heads=1,
            final_logit_softcapping=2.0,
            sliding_window=16,
            **SIZES,
        ),
        "cohere": lambda: transformers.CohereConfig(
            vocab_size=vocabulary, max_position_embeddings=64, logit_scale=0.25, **SIZES
        ),
        "mamba": lambda: transformers.MambaConfig(vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, state_size=4),
        "gptj": lambda: transformers.GPTJConfig(
            vocab_size=vocabulary, n_positions=48, n_embd=32, n_layer=2, n_head=2, rotary_dim=8
        ),
        "bloom": lambda: transformers.BloomConfig(vocab_size=vocabulary, hidden_size=32, n_layer=2, n_head=2),
        "opt": lambda: transformers.OPTConfig(
            vocab_size=vocabulary,
            max_position_embeddings=48,
            hidden_size=32,
            word_embed_proj_dim=16,
            ffn_dim=48,
            num_hidden_layers=2,
            num_attention_heads=2,
        ),
    }
    model = transformers.AutoModelForCausalLM.from_config(configs[kind]())
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3 if weight.dim() > 1 else 1)  # predictions worth telling apart
    return model.eval()


def rounding(model: Any) -> float:
    """What a row may differ by from another program's: convolutions of a GPU (Mamba) add up in another order."""
    return 2e-5 if model.network.device.type == "cpu" else 2e-4


TOKENIZERS = {"byte-level": byte_level, "byte-fallback": byte_fallback, "lowercasing": lowercasing}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes the folder of a network of some kind with some tokenizer, once."""
    made: dict[tuple[str, str, int], Path] = {}

    def make(kind: str = "gpt2", tokenizer: str = "byte-level", extra_rows: int = 0) -> Path:
        key = (kind, tokenizer, extra_rows)
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{kind}-{tokenizer}")
            own = TOKENIZERS[tokenizer]()
            network(kind, len(own) + extra_rows).save_pretrained(folder)
            own.save_pretrained(folder)
            made[key] = folder
        return made[key]

    return make


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path
