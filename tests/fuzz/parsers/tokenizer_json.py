"""tokenizer.json of all kinds of models: bytes and values changed, ids at limits, parts exchanged."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import lmgauge
from lmgauge import Corpus
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.checked import TEXTS, check_tokenizer, rows_of
from tests.fuzz.table import Attempt

PIECES = [
    b"Sequence",
    b"ByteLevel",
    b"Metaspace",
    b"Replace",
    b"null",
    b"Split",
    b"NFKC",
    b"BertNormalizer",
    b"[UNK]",
    b"Fuse",
]
PARTS: dict[str, list[dict[str, Any]]] = {
    "normalizer": [
        {"type": "NFKC"},
        {"type": "Lowercase"},
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"Regex": "(a|b)*c?"}, "content": " "},
        {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    ],
    "pre_tokenizer": [
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "MergedWithPrevious", "invert": False},
        {"type": "FixedLength", "length": 0},
        {"type": "Digits", "individual_digits": True},
    ],
    "decoder": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        {"type": "Strip", "content": " ", "start": 3, "stop": 9},
        {"type": "ByteFallback"},
    ],
    "post_processor": [{"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}],
    "truncation": [{"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 3}],
}
WORDS = ["[UNK]", "the", "cat", "sat", "##at", "\u2581the", "\u0120cat", "t", "h", "e", "th", "a", "c", "\u2581", "<0x41>"]


def prepare(folder: Path) -> Attempt:
    from tokenizers import Tokenizer, models

    numbers = {word: number for number, word in enumerate(WORDS)}
    kinds = [
        models.BPE(numbers, [("t", "h")], unk_token="[UNK]"),
        models.BPE(numbers, [], unk_token="[UNK]", byte_fallback=True, fuse_unk=True),
        models.WordPiece(numbers, unk_token="[UNK]"),
        models.WordLevel(numbers, unk_token="[UNK]"),
        models.Unigram([(word, -float(number)) for word, number in numbers.items()], 0),
    ]
    whole = [json.loads(Tokenizer(kind).to_str()) for kind in kinds]
    for value in whole:
        value["added_tokens"] = [
            {"id": 15, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
            | {"special": True}
        ]

    def attempt(chance: random.Random) -> str:
        content = _drawn(chance.choice(whole), chance)
        tokenizer = HuggingFaceTokenizer(content, "tokenizer.json")
        end = check_tokenizer(tokenizer, chance)
        if chance.random() < 0.1:
            _whole_way(tokenizer, folder / "model")
        return end

    return attempt


def _drawn(value: dict[str, Any], chance: random.Random) -> bytes:
    value = {**value, **{part: chance.choice([None, *PARTS[part]]) for part in PARTS if chance.random() < 0.4}}
    if chance.random() < 0.7:
        value = changed_value(value, chance, chance.choice([1, 1, 2]))
    content = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    return changed(content, chance, 2, PIECES) if chance.random() < 0.2 else content


def _whole_way(tokenizer: HuggingFaceTokenizer, path: Path) -> None:
    """Train with it, save and load: the numbers are the same, or all is refused."""
    model = lmgauge.train("laplace", Corpus.from_strings(TEXTS[:3]), order=1, tokenizer=tokenizer)
    model.save(path)
    texts = ["the cat", "a dog"]
    assert rows_of(lmgauge.load_model(path), texts) == rows_of(model, texts)
