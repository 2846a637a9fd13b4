"""The target of a selection: a part that the in-domain model learns, and a part that is held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.text.documents import Corpus
from lmgauge.text.split import assign_groups

_BLOCKS = 20
"""Contiguous parts of a text whose documents are not known, or are too few to hold some out."""
_SHORTEST_COPY = 40
"""Bytes of a text that two documents do not have in common by chance."""


@dataclass(frozen=True)
class Target:
    """What a selection is to be like."""

    in_domain: Corpus  # the text that the in-domain model is trained on
    held_out: Corpus | None = None  # the text that shares of the pool are measured on; None where none is
    how: str = ""  # how one was split from the other, as a note; empty where both were named


def split_target(target: Corpus, share: float, seed: int) -> Target:
    """Return a text in two parts: whole documents are held out, or, where they are not known, contiguous blocks."""
    # Lines of one document are alike: held out line by line, a text would seem easier than it is.
    lengths, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for block in target:
        lengths.append(block.ends - block.starts + 1)
        if block.documents is not None:
            numbers.append(block.documents)
    sizes = np.concatenate(lengths)
    if len(sizes) < 2:
        raise InputError(
            "the target has fewer than two segments, and nothing can be held out; name a held-out text (--held-out)"
        )
    documents = np.concatenate(numbers)
    shares = (1 - share, share, 0.0)
    name = "documents"
    held_out = np.zeros(len(sizes), bool)
    if len(documents) and np.any(documents != documents[0]):
        held_out = assign_groups(documents, sizes, shares, seed) == 1
    if held_out.all() or not held_out.any():
        name, documents = "contiguous blocks", _blocks(sizes)
        held_out = assign_groups(documents, sizes, shares, seed) == 1
    if held_out.all() or not held_out.any():
        raise InputError(f"the target is too short to hold {share:.0%} of it out; name a held-out text (--held-out)")
    number, of = (len(np.unique(codes)) for codes in (documents[held_out], documents))
    how = f"{number:,} of {of:,} {name} of the target are held out"
    return Target(target.chosen(~held_out), target.chosen(held_out), how)


def _blocks(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    # Block of each segment: blocks are contiguous and of about the same number of bytes.
    middles = np.cumsum(sizes) - sizes / 2
    blocks = (middles * min(_BLOCKS, len(sizes)) / sizes.sum()).astype(np.int64)
    codes: NDArray[np.int64] = np.unique(blocks, return_inverse=True)[1].astype(np.int64)
    return codes


def long_texts(held_out: Corpus) -> set[bytes]:
    """Return the held-out texts of 40 bytes or more, which do not stand in the pool by chance."""
    # held_out: read once.
    return {
        block.text(i) for block in held_out for i in np.flatnonzero(block.ends - block.starts >= _SHORTEST_COPY).tolist()
    }


def copies_of(texts: set[bytes], pool: Corpus) -> NDArray[np.bool_]:
    """Return which documents of the pool are one of these texts, byte for byte: bool [documents]."""
    # pool: read once.
    lengths = np.array(sorted({len(text) for text in texts}), np.int64)
    parts = [np.zeros(0, bool)]
    for block in pool:
        copies = np.isin(block.ends - block.starts, lengths)
        for i in np.flatnonzero(copies).tolist():
            copies[i] = block.text(i) in texts
        parts.append(copies)
    return np.concatenate(parts)
