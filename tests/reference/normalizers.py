"""The normalizer ccnet, slow and obvious: whole strings, rule after rule, as the paper's program applies them."""

from __future__ import annotations

import unicodedata

PUNCTUATION = dict(
    pair.split("\t")
    for pair in (
        '，\t,|。\t.|、\t,|„\t"|”\t"|“\t"|«\t"|»\t"|」\t"|「\t"|《\t"|》\t"|´\t\'|∶\t:|：\t:|？\t?|！\t!|（\t(|）\t)|；\t;|–\t-|'
        "—\t - |．\t. |～\t~|’\t'|…\t...|━\t-|〈\t<|〉\t>|【\t[|】\t]|％\t%|►\t-"
    ).split("|")
)


def ccnet(text: str) -> str:
    """Return a text without white space at its ends, accents and control characters, in small letters, with zeros for digits."""
    text = text.strip().lower()
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    text = "".join("0" if c.isdecimal() else c for c in text)
    text = "".join(PUNCTUATION.get(c, c) for c in text)
    return "".join(c for c in text if not (ord(c) < 32 or 127 <= ord(c) < 160))
