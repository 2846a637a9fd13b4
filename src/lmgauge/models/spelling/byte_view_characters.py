"""Characters as bytes: the bytes of the UTF-8 of the next character, one after another."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.protocol import LanguageModel
from lmgauge.models.spelling.byte_view_masses import AFTER_IMPOSSIBLE, Floats, Ints, Masses, RangeMasses, log_of, range_sums
from lmgauge.models.spelling.speller import UnseenCharacters
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.text.segments import UTF8_LENGTHS, Segments
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK

END = 256
"""Beside the bytes 0 to 255: the end of the segment."""
_LONGEST = 4
_PREFIXES = 1 << 12
_FIRST = np.array([0, 0, 0x80, 0x800, 0x10000], np.int64)  # the first code point of 2, 3, 4 bytes
_LAST = np.array([0, 0x80, 0x800, 0x10000, 0x110000], np.int64)


class CharacterBytes:
    """What the distributions of a model of characters say of the bytes of each character."""

    def __init__(self, model: LanguageModel, unseen: UnseenCharacters | None) -> None:
        self._model = model
        self._unseen = np.zeros(0) if unseen is None else unseen.probabilities
        tokens = model.vocabulary.tokens[len(SPECIAL_TOKENS) :]
        known = sorted((ord(token), i) for i, token in enumerate(tokens, len(SPECIAL_TOKENS)) if len(token) == 1)
        self._code_points = np.array([point for point, _ in known], np.int64)
        self._ids = np.array([i for _, i in known], np.int64)
        self._ranges = RangeMasses(model, self._ids, listed=False)

    def logprobs(self, block: Segments, batch: ScoreBatch) -> Floats:
        """Return the log-probability of each byte and each end of a segment, float64 [bytes and ends], nats."""
        begins = np.repeat(block.starts[batch.segments - block.first], batch.segment_events) + batch.starts()
        is_end = batch.kind == EOS_KIND
        sizes = np.where(is_end, 1, batch.ends - batch.starts())
        costs = batch.logprob + np.where(batch.kind == OOV, self._shares(block, begins, batch.kind == OOV), 0.0)
        last = np.cumsum(sizes) - 1
        begun = np.zeros(int(sizes.sum()))  # the log of the mass of each character's bytes so far
        begun[last] = costs
        parts = [(np.flatnonzero(sizes > size), size) for size in range(1, _LONGEST)]
        rows = np.concatenate([rows for rows, _ in parts])
        if len(rows):
            ranges = [_code_points(block.data, begins[rows], size) for rows, size in parts]
            low, high = (np.concatenate(bounds) for bounds in zip(*ranges, strict=True))
            places = np.concatenate([last[rows] - sizes[rows] + size for rows, size in parts])
            masses = self._ranges.of_block(block, batch)
            begun[places] = log_of(self._mass(masses, rows, low, high))
        before = np.zeros_like(begun)
        before[1:] = begun[:-1]
        before[last - sizes + 1] = 0.0
        with np.errstate(invalid="ignore"):
            return np.where(before > -np.inf, np.minimum(begun - before, 0.0), AFTER_IMPOSSIBLE)

    def _shares(self, block: Segments, begins: Ints, unseen: NDArray[np.bool_]) -> Floats:
        shares = np.zeros(len(begins))
        rows = np.flatnonzero(unseen)
        size = UTF8_LENGTHS[block.data[begins[rows]]]
        points = [block.data[b : b + n].tobytes().decode() for b, n in zip(begins[rows], size, strict=True)]
        if len(self._unseen):
            shares[rows] = log_of(self._unseen[[ord(character) for character in points]])
        return shares

    def _mass(self, masses: Masses, events: Ints, low: Ints, high: Ints) -> Floats:
        # Probability that the next character lies in a range of code points, float64 [n].
        places = (np.searchsorted(self._code_points, bound) for bound in (low, high))
        if not len(self._unseen):
            return masses(events, *places)
        asked, which = np.unique(events, return_inverse=True)
        place = np.full(len(asked), self._ranges.places[UNK])
        low_places, high_places = (np.concatenate(pair) for pair in zip(places, (place, place + 1), strict=True))
        mass = masses(np.concatenate((events, asked)), low_places, high_places)
        total: Floats = mass[: len(events)] + mass[len(events) :][which] * range_sums(self._unseen, low, high)
        return total

    def next_bytes(self, text: bytes) -> Floats:
        """Return the probabilities of what follows a text, float64 [257]; zeros where the text is impossible."""
        split = split_characters(text)
        if split is None:
            return np.zeros(END + 1)
        ids = np.append(BOS, self._model.vocabulary.ids(split[0])).astype(np.uint32)
        p = np.exp(self._model.log_distribution(ids))
        total = self.one_more(p, split[1][:-1])[split[1][-1]] if split[1] else 1.0
        return self.one_more(p, split[1]) / total if total > 0 else np.zeros(END + 1)

    def one_more(self, p: Floats, begun: bytes) -> Floats:
        """Return the probabilities that a character begins with some bytes and each byte, float64 [257].

        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["ab", "ä"])
        >>> model = lmgauge.train("witten-bell", text, tokenizer="character", vocabulary="spelled")
        >>> p = np.exp(model.inner.log_distribution([1]))
        >>> following = CharacterBytes(model.inner, model.unseen_characters).one_more(p, b"")
        >>> round(float(following.sum()), 6), bool(following[0xC3] > following[0xC2])
        (1.0, True)
        """
        # p: float64 [vocabulary], of the next character.
        following = np.zeros(END + 1)
        if not begun:
            following[END] = p[EOS]
        possible, low, high, unseen = self._next(begun)
        following[possible] = self._ranges.of_distribution(p, low, high) + p[UNK] * unseen
        return following

    @cached_property
    def _next(self) -> Callable[[bytes], tuple[Ints, Ints, Ints, Floats]]:
        # What gives the bytes that may follow others in a character, their ranges and shares of `<unk>`.
        return lru_cache(maxsize=_PREFIXES)(self._compute_next)

    def _compute_next(self, begun: bytes) -> tuple[Ints, Ints, Ints, Floats]:
        texts = [begun + bytes([byte]) for byte in range(END)]
        possible = np.array([i for i, text in enumerate(texts) if may_begin_character(text)], np.int64)
        data = np.frombuffer(b"".join(texts[i] for i in possible), np.uint8)
        low, high = _code_points(data, np.arange(len(possible)) * (len(begun) + 1), len(begun) + 1)
        places = [np.searchsorted(self._code_points, bound).astype(np.int64) for bound in (low, high)]
        unseen = range_sums(self._unseen, low, high) if len(self._unseen) else np.zeros(len(possible))
        return possible, places[0], places[1], unseen


def split_characters(text: bytes) -> tuple[str, bytes] | None:
    """Return the whole characters of a text and the bytes of one that has only begun; None where it cannot be UTF-8."""
    # split_characters("5 €".encode()[:-1]), split_characters(b"\xff") -> (('5 ', b'\xe2\x82'), None)
    decoder = getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(text), decoder.getstate()[0]
    except UnicodeDecodeError:
        return None


def may_begin_character(text: bytes) -> bool:
    """Return True if the UTF-8 of one character begins with these bytes, or is these bytes."""
    split = split_characters(text)
    return split is not None and len(split[0]) + bool(split[1]) == 1


def _code_points(data: NDArray[np.uint8], begins: Ints, size: int) -> tuple[Ints, Ints]:
    # First code point and one past the last whose UTF-8 begins with some bytes, int64 [n] each.
    # begins: int64 [n], where the bytes are; each first one begins a character.
    first = data[begins].astype(np.int64)
    length = UTF8_LENGTHS[first]
    point = np.where(length == 1, first, first & (0x7F >> length))
    for i in range(1, size):
        point = (point << 6) | (data[begins + i] & 0x3F).astype(np.int64)
    open_bits = 6 * (length - size)
    low, high = point << open_bits, (point + 1) << open_bits
    return np.clip(low, _FIRST[length], _LAST[length]), np.clip(high, _FIRST[length], _LAST[length])
