"""The bytes that tokens stand for, by the tokenizer's own rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import token_bytes


@pytest.mark.parametrize(
    ("name", "tokens", "spelled"),
    [
        ("byte", ["<0x41>", "<0xC3>", "</s>"], [b"A", b"\xc3", b"</s>"]),
        ("character", ["ü", " "], ["ü".encode(), b" "]),
        ("whitespace", ["für"], ["für".encode()]),
    ],
)
def test_built_in(name: str, tokens: Sequence[str], spelled: Sequence[bytes]) -> None:
    assert token_bytes(make_tokenizer(name), tokens) == spelled


def subwords(model: dict[str, Any], decoder: dict[str, Any] | None) -> Any:
    pytest.importorskip("tokenizers")
    from lmgauge.text.library_tokenizers import HuggingFaceTokenizer

    content = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None}
    return HuggingFaceTokenizer(json.dumps({**content, "decoder": decoder, "model": model}).encode())


def bpe(tokens: Sequence[str], **options: Any) -> dict[str, Any]:
    return {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [], **options}


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


@pytest.mark.parametrize(
    ("model", "decoder", "tokens", "spelled"),
    [
        (bpe(["Ġthe", "Ċ", "s", "Ã"]), BYTES, ["Ġthe", "Ċ", "s", "Ã"], [b" the", b"\n", b"s", b"\xc3"]),
        (bpe(["▁the", "▁", "<0x0A>"]), METASPACE, ["▁the", "▁", "<0x0A>", "new"], [b" the", b" ", b"\n", b"new"]),
        (bpe(["the</w>", "th"], end_of_word_suffix="</w>"), None, ["the</w>", "th"], [b"the ", b"th"]),
        (
            {"type": "WordPiece", "vocab": {"[UNK]": 0, "the": 1, "##s": 2}, "unk_token": "[UNK]",
             "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
            None, ["the", "##s"], [b" the", b"s"],
        ),
    ],
)  # fmt: skip
def test_subwords(model: dict[str, Any], decoder: Any, tokens: Sequence[str], spelled: Sequence[bytes]) -> None:
    assert token_bytes(subwords(model, decoder), tokens) == spelled


def test_of_ones_own() -> None:
    """Without a method for it, what a token adds to a text behind another one."""

    class Own:
        name, unit, kernel, fingerprint = "own", "subword", None, "0"

        def detokenize(self, tokens: Sequence[str]) -> str:
            return "".join(tokens).replace("_", " ").removeprefix(" ")

    assert token_bytes(Own(), ["_the", "s", "_cat"]) == [b" the", b"s", b" cat"]  # type: ignore[arg-type]
