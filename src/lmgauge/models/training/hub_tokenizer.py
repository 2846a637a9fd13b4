"""A tokenizer and its vocabulary as the files that `transformers.AutoTokenizer` reads, giving the same ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmgauge.text.tokens import TOKENIZER_FILE, Tokenizer
from lmgauge.text.vocabulary import SPECIAL_TOKENS, Vocabulary

_WHITE_SPACE = r"[ \t\n\x0B\x0C\r]+"  # ASCII's alone: the library's own splitter also splits at no-break spaces
_CHARACTER = r"[\s\S]"


def write_tokenizer(tokenizer: Tokenizer, vocabulary: Vocabulary, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    # `<unk>`, `<s>` and `</s>` spelled out in a text are text: words or pieces like any other, as lmgauge reads them.
    content = tokenizer.files().get(TOKENIZER_FILE) or tokenizer_json(tokenizer, vocabulary)
    (folder / TOKENIZER_FILE).write_bytes(content)
    unk, bos, eos = SPECIAL_TOKENS
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": unk,
        "bos_token": bos,
        "eos_token": eos,
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(1e30),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8", newline="\n")


def tokenizer_json(tokenizer: Tokenizer, vocabulary: Vocabulary) -> bytes:
    """Return a tokenizer.json with the ids of a vocabulary: words, characters or bytes."""
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    special = [special_token(number, token) for number, token in enumerate(SPECIAL_TOKENS)]
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(tokenizer.unit),
        "post_processor": None,
        "decoder": _decoder(tokenizer.unit),
        "model": _model(tokenizer.unit, ids),
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def special_token(number: int, token: str) -> dict[str, Any]:
    """Return how a tokenizer.json names a token that no text becomes."""
    return {
        "id": number,
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _pre_tokenizer(unit: str) -> dict[str, Any] | None:
    if unit == "byte":
        return None
    pattern, behavior = (_WHITE_SPACE, "Removed") if unit == "word" else (_CHARACTER, "Isolated")
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def _decoder(unit: str) -> dict[str, Any] | None:
    if unit == "word":
        return None  # the library puts spaces between tokens then
    if unit == "character":
        return {"type": "Fuse"}
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}


def _model(unit: str, ids: dict[str, int]) -> dict[str, Any]:
    if unit != "byte":
        return {"type": "WordLevel", "vocab": ids, "unk_token": SPECIAL_TOKENS[0]}
    # No character has a piece of its own, so that each falls back to its bytes.
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": SPECIAL_TOKENS[0],
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": True,
        "ignore_merges": False,
        "vocab": ids,
        "merges": [],
    }
