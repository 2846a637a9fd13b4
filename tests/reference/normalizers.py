"""The normalizer ccnet, slow and obvious: whole strings, rule after rule."""

from __future__ import annotations

import unicodedata

_MARKS = "，。、„”“«»」「《》´∶：？！（）；–～’━〈〉【】％►"
_ASCII = ',.,"""""""""\'::?!();-~\'-<>[]%-'
PUNCTUATION = dict(zip(_MARKS, _ASCII, strict=True)) | {"—": " - ", "．": ". ", "…": "..."}


def ccnet(text: str) -> str:
    """Return a text in small letters, without accents and control characters, with zeros for digits."""
    text = text.strip().lower()
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    text = "".join("0" if c.isdecimal() else c for c in text)
    text = "".join(PUNCTUATION.get(c, c) for c in text)
    return "".join(c for c in text if not (ord(c) < 32 or 127 <= ord(c) < 160))
