"""KenLM's binary files of all kinds: header, tables of bits, values and words changed, parts moved and cut off."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np

import lmgauge
from lmgauge import Corpus
from lmgauge._kernels import _native
from tests.fuzz.mutations import changed, drawn_number
from tests.fuzz.parsers.checked import check_model, span_of
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"]
FORMS: list[dict[str, object]] = [
    {},
    {"trie": True},
    {"trie": True, "quantize": (4, 3)},
]
KENLM4 = Path(__file__).resolve().parents[2] / "data" / "kenlm4"
HEADER = 88
FIELDS = {0: "B", 4: "f", 8: "I", 12: "B", 16: "I"}  # order, room of tables, kind, whether words follow, version
FLOATS = [0.0, -0.0, 0.5, 38.0, -38.0, -99.0, 1e38, -1e38, float("inf"), float("-inf"), float("nan"), 1e-45]


def prepare(folder: Path) -> Attempt:
    path = folder / "changed.binary"
    whole = []
    for kind, order in (("modified-kneser-ney", 3), ("witten-bell", 2), ("good-turing", 4)):
        model = lmgauge.train(kind, Corpus.from_strings(LINES * 2), order=order)  # type: ignore[arg-type]
        for form in FORMS:
            model.save(path, **form)  # type: ignore[arg-type]
            content = path.read_bytes()
            whole.append((content, _edges(content)))
    for name in ("array-trie", "quantized-array-trie"):
        content = (KENLM4 / f"{name}.binary").read_bytes()
        whole.append((content, _edges(content)))

    def attempt(chance: random.Random) -> str:
        content, edges = chance.choice(whole)
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            content = _changed(content, edges, chance)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        model = lmgauge.load_model(path)
        if chance.random() < 0.1:
            model.listed()  # type: ignore[attr-defined]
        return check_model(model, chance)

    return attempt


def _edges(content: bytes) -> list[int]:
    """Return where the parts of a file begin: header, counts, vocabulary, quantization, unigrams, tables, words."""
    kind, counts, *_ = _native.kenlm_layout(np.frombuffer(content, np.uint8))
    begin = HEADER + 20
    vocabulary = begin + 8 * len(counts) + 4
    tables = vocabulary + 8 + (8 * counts[0] if kind else 12 * max(counts[0] + 1, counts[0] * 3 // 2))
    words = content.rindex(b"<unk>\0")
    quantization = [tables, tables + 8] if kind in (3, 5) else []
    return [HEADER, begin, vocabulary, *quantization, *np.linspace(tables, words, len(counts) + 1, dtype=int).tolist()]


def _changed(content: bytes, edges: list[int], chance: random.Random) -> bytes:
    draw = chance.random()
    if draw < 0.2 or not content:
        return changed(content, chance, 1)
    begin, end = span_of(chance, len(content), edges)
    if draw < 0.35:
        return _with_header(content, chance)
    if draw < 0.7 and end - begin >= 4:  # a value
        at = begin + chance.randrange((end - begin) // 4) * 4
        number = struct.pack("<f", chance.choice(FLOATS)) if chance.random() < 0.5 else chance.randbytes(4)
        return content[:at] + number + content[at + 4 :]
    if draw < 0.8:  # bits
        at = chance.randrange(begin, end)
        return content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]
    if draw < 0.9:  # one word for another: hashes no longer fit, unless both change places
        at = len(content) - chance.randint(1, 40)
        return content[:at] + chance.choice([b"\0", b" ", b"\xff", b"x"]) + content[at + 1 :]
    return content[:begin] + changed(content[begin:end], chance, 1) + content[end:]


def _with_header(content: bytes, chance: random.Random) -> bytes:
    """Change a field of the header, or a count of n-grams."""
    if len(content) < HEADER + 52:  # cut off already
        return content
    if chance.random() < 0.5:
        at, form = chance.choice(list(FIELDS.items()))
        at += HEADER
    else:
        at, form = HEADER + 20 + 8 * chance.randrange(4), "Q"
    size = struct.calcsize(form)
    (value,) = struct.unpack(f"<{form}", content[at : at + size])
    if chance.random() < 0.4:
        value += chance.choice([-1, 1, 2])
    else:
        value = drawn_number(chance)
    if form == "f":
        packed = struct.pack("<f", min(max(float(min(value, 1e300)), -3e38), 3e38))
    else:
        number = int(value) if abs(value) < float("inf") else 0
        packed = (number % (1 << (8 * size))).to_bytes(size, "little")
    return content[:at] + packed + content[at + size :]
