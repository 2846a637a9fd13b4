"""Models of SentencePiece: bytes changed, and the fields of the messages that such a file is."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

from lmgauge.text.sentencepiece_tokenizer import SentencePieceTokenizer
from tests.fuzz.mutations import PIECES, changed
from tests.fuzz.parsers.checked import check_tokenizer
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"] * 4
KINDS = [
    {"model_type": "unigram"},
    {"model_type": "bpe", "byte_fallback": True, "character_coverage": 0.98},
    {"model_type": "char", "user_defined_symbols": ["<sep>"]},
    {"model_type": "unigram", "treat_whitespace_as_suffix": True, "normalization_rule_name": "nfkc_cf"},
]
VARINT, FIXED, TEXT, SHORT = 0, 1, 2, 5
NUMBERS = [0, 1, 2, 3, 4, 6, 127, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, -1.0, 1e30, -1e30, float("inf"), float("-inf"), float("nan")]
Field = tuple[int, int, bytes]
"""Number, how it is laid out, and its bytes: of a text without its length."""


def prepare(folder: Path) -> Attempt:
    import sentencepiece

    whole = []
    for kind in KINDS:
        out = io.BytesIO()
        small = {"vocab_size": 300, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 3}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=out, **small, **kind)
        whole.append(out.getvalue())

    def attempt(chance: random.Random) -> str:
        content = chance.choice(whole)
        for _ in range(chance.choice([1, 1, 2])):
            content = changed(content, chance, 1) if chance.random() < 0.2 else _changed_message(content, chance)
        return check_tokenizer(SentencePieceTokenizer(content), chance)

    return attempt


def _fields(message: bytes) -> list[Field]:
    """Return the fields of a message of Protocol Buffers; ValueError where it is none."""
    fields, at = [], 0
    while at < len(message):
        key, at = _varint(message, at)
        layout, begin = key & 7, at
        if layout == VARINT:
            _, at = _varint(message, at)
        elif layout == TEXT:
            size, begin = _varint(message, at)
            at = begin + size
        elif layout in (FIXED, SHORT):
            at += 8 if layout == FIXED else 4
        else:
            raise ValueError("not a message")
        if at > len(message):
            raise ValueError("not a message")
        fields.append((key >> 3, layout, message[begin:at]))
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("not a message")


def _as_varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _message(fields: list[Field]) -> bytes:
    return b"".join(
        _as_varint(number << 3 | layout) + (_as_varint(len(body)) if layout == TEXT else b"") + body
        for number, layout, body in fields
    )


def _changed_message(content: bytes, chance: random.Random) -> bytes:
    try:
        fields = _fields(content)
    except ValueError:
        return changed(content, chance, 1)
    if not fields:
        return changed(content, chance, 1)
    at = chance.randrange(len(fields))
    if chance.random() < 0.5:  # what comes last says how to train and normalize
        at = max(at, len(fields) - 1 - chance.randrange(3))
    number, layout, body = fields[at]
    draw = chance.random()
    if draw < 0.1:
        del fields[at]
    elif draw < 0.2:
        fields.insert(chance.randrange(len(fields)), fields[chance.randrange(len(fields))])
    elif layout == VARINT:
        fields[at] = (number, layout, _as_varint(chance.choice(NUMBERS)))
    elif layout == SHORT:
        fields[at] = (number, layout, struct.pack("<f", chance.choice(FLOATS)))
    elif layout == TEXT and draw < 0.9:
        fields[at] = (number, layout, _changed_message(body, chance))
    else:
        fields[at] = (number, layout, chance.choice(PIECES) if draw < 0.95 else changed(body, chance, 1))
    return _message(fields)
