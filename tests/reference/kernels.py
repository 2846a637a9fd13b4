"""The compiled kernels in the slow and obvious way: dictionaries, tuples and fractions instead of tables and bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

UNK, BOS, EOS = 0, 1, 2
RESERVED = ("<unk>", "<s>", "</s>")
WHITE = " \t\n\v\f\r"
Gram = tuple[int, ...]


# -- text ---------------------------------------------------------------------------------------------------------------


class ReservedToken(Exception):
    """The text holds a reserved token and the policy does not allow it."""


def tokenize(text: str, mode: str) -> list[tuple[str, int]]:
    """Tokens of a text, each with the byte where its span ends."""
    if mode == "byte":
        return [(f"<0x{b:02X}>", i) for i, b in enumerate(text.encode(), 1)]
    tokens, end, word = [], 0, ""
    for character in text:
        if mode == "character":
            end += len(character.encode())
            tokens.append((character, end))
            continue
        if character in WHITE and word:
            tokens.append((word, end))
            word = ""
        elif character not in WHITE:
            word += character
        end += len(character.encode())
    return [*tokens, (word, end)] if word else tokens


def is_reserved(token: str, depth: int | None = None) -> bool:
    """Whether a token is <unk>, <s> or </s>, or one of them in further brackets (`depth`: exactly so many pairs)."""
    brackets = 0
    while token not in RESERVED and token.startswith("<") and token.endswith(">") and len(token) > 2:
        token, brackets = token[1:-1], brackets + 1
    return token in RESERVED and (depth is None or brackets + 1 == depth)


def encode(
    texts: Iterable[str], mode: str, known: dict[str, int], *, insert: bool, bos: bool, reserved: str
) -> tuple[list[int], list[int], list[bool]]:
    """Ids, span ends, and for each text whether it is not its words joined by single spaces. `known` grows if `insert`."""
    ids, spans, lossy = [], [], []
    for text in texts:
        tokens = tokenize(text, mode)
        if bos:
            ids.append(BOS)
            spans.append(0)
        for token, end in tokens:
            ids.append(_id(token, known, insert, reserved))
            spans.append(end)
        ids.append(EOS)
        spans.append(len(text.encode()))
        lossy.append(mode == "whitespace" and " ".join(token for token, _ in tokens) != text)
    return ids, spans, lossy


def _id(token: str, known: dict[str, int], insert: bool, reserved: str) -> int:
    if is_reserved(token) and reserved == "escape":
        token = f"<{token}>"
    elif is_reserved(token, depth=1):
        if reserved == "unk" and token == "<unk>":
            return UNK
        raise ReservedToken(token)
    if insert:
        known.setdefault(token, len(known))
    return known.get(token, UNK)


# -- counts -------------------------------------------------------------------------------------------------------------


def count(ids: Sequence[int], order: int) -> list[Counter[Gram]]:
    """How often each n-gram of length 1 .. `order` ends somewhere; none reaches back over <s>, and <s> ends none."""
    counts: list[Counter[Gram]] = [Counter() for _ in range(order)]
    begin = 0
    for i, word in enumerate(ids):
        if word == BOS:
            begin = i
            continue
        for n in range(1, order + 1):
            if i - n + 1 >= begin:
                counts[n - 1][tuple(ids[i - n + 1 : i + 1])] += 1
    return counts


def continuations(grams: Iterable[Gram]) -> Counter[Gram]:
    """How many different words stand before each n-gram of the order below."""
    return Counter(gram[1:] for gram in grams)


# -- sums ---------------------------------------------------------------------------------------------------------------


def exact_sum(values: Iterable[float]) -> Fraction:
    """The sum without rounding; zero probabilities (-inf) left out."""
    return sum((Fraction(value) for value in values if value != -np.inf), Fraction(0))


# -- ARPA lines ---------------------------------------------------------------------------------------------------------


def parse_arpa_line(line: bytes, order: int) -> tuple[float, list[bytes], float]:
    """log10 probability, words, log10 back-off weight (0 if there is none).

    Raises:
        ValueError: whatever is wrong.
    """
    fields = [field for field in line.replace(b"\t", b" ").replace(b"\r", b" ").split(b" ") if field]
    if not order + 1 <= len(fields) <= order + 2 or any(b"_" in f or b"x" in f.lower() for f in (fields[0],)):
        raise ValueError("columns")
    probability = float(fields[0])
    weight = float(fields[order + 1]) if len(fields) == order + 2 else 0.0
    if not (probability <= 0 and weight <= 38):
        raise ValueError("range")
    return probability, fields[1 : order + 1], weight
