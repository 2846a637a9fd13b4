"""Surprisal of words, slowly: each word by itself, each probability from `log_distribution`."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from lmgauge.text.documents import Corpus
from lmgauge.text.tokens import token_bytes
from lmgauge.text.vocabulary import BOS, EOS

WHITE = tuple(bytes([byte]) for byte in b" \t\n\v\f\r")


def word_surprisals(model: Any, text: str) -> list[tuple[str, float, float]]:
    """Return each word between white space, its surprisal and the corrected one, in bits; `</s>` ends the text."""
    (batch,) = model.score(Corpus.from_strings([text]))
    ids, spans = batch.token_ids.tolist(), list(zip(batch.starts().tolist(), batch.ends.tolist(), strict=True))
    pieces = token_bytes(model.tokenizer, model.vocabulary.tokens)
    encoded, found = text.encode(), []
    for match in re.finditer(rb"[^ \t\n\v\f\r]+", encoded):
        rows = [i for i, (start, end) in enumerate(spans) if ids[i] != EOS and _is_of(match, encoded, start, end)]
        nats = -sum(_logprob(model, ids[:i])[ids[i]] for i in rows)
        corrected = (
            nats + math.log(_boundary(model, ids, rows[0], pieces)) - math.log(_boundary(model, ids, rows[-1] + 1, pieces))
        )
        found.append((match[0].decode(), nats / math.log(2), corrected / math.log(2)))
    return found


def _is_of(match: re.Match[bytes], text: bytes, start: int, end: int) -> bool:
    """A token is of the word in which its first byte that is not white space lies, or of the next one if there is none."""
    while start < len(text) and text[start : start + 1] in WHITE:
        start += 1
    return match.start() <= start < match.end()


def _logprob(model: Any, before: list[int]) -> Any:
    return model.log_distribution(np.array([BOS, *before], np.uint32))


def _boundary(model: Any, ids: list[int], row: int, pieces: list[bytes]) -> float:
    """B: the probability of what may come where a word has ended, before a row."""
    if model.tokenizer.unit == "word" or (row and pieces[ids[row - 1]].endswith(WHITE)):
        return 1.0
    p = np.exp(_logprob(model, ids[:row]))
    unmarked = row == 0 and not pieces[ids[0]].startswith(WHITE)
    return math.fsum(p[i] for i, piece in enumerate(pieces) if i == EOS or piece.startswith(WHITE) != unmarked)
