"""Token strings and their ids."""

# Ids 0, 1 and 2 are `<unk>`, `<s>` and `</s>` in every vocabulary. In a *closed* vocabulary `<unk>` is not an event: unseen
# words have probability zero instead of sharing the mass that smoothing leaves to it.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.base.files import digest
from lmgauge.base.option_numbers import check_whole

UNK, BOS, EOS = 0, 1, 2
SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")
# The kernels read token strings eight bytes at a time.
_SPARE_BYTES = 8


class Vocabulary:
    """An immutable map between token strings and ids.

    Attributes:
        slots: uint64 [power of two], open hash table: upper half of the string's hash << 32 | id + 1.
        offsets: int64 [size + 1], where each string starts in `bytes`.
        bytes: uint8, the strings one after another, and 8 spare bytes.
        closed: True excludes `<unk>` from the events.

    Example:
        >>> vocabulary = Vocabulary.from_tokens(["the", "cat"])
        >>> vocabulary.id("cat"), vocabulary.id("dog"), vocabulary.token(3)
        (4, 0, 'the')
    """

    def __init__(
        self, slots: NDArray[np.uint64], offsets: NDArray[np.int64], data: NDArray[np.uint8], *, closed: bool = False
    ) -> None:
        self.slots, self.offsets, self.bytes, self.closed = slots, offsets, data, closed

    @classmethod
    def from_tokens(cls, tokens: Iterable[str], *, closed: bool = False) -> Vocabulary:
        """Return the vocabulary of these tokens, in this order, after the three special ones.

        Args:
            tokens: strings.
            closed: True excludes `<unk>` from the events.

        Raises:
            InputError: a token is empty, special or listed twice.

        Example:
            >>> list(Vocabulary.from_tokens(["a"]))
            ['<unk>', '<s>', '</s>', 'a']
        """
        seen = dict.fromkeys(SPECIAL_TOKENS)
        for token in tokens:
            if not token:
                raise InputError("an empty string cannot be a token of a vocabulary; remove it from the list")
            if token in seen:
                kind = "reserved" if token in SPECIAL_TOKENS else "listed twice"
                raise InputError(f"token {token!r} is {kind}; a vocabulary names each once, without the special ones")
            seen[token] = None
        try:
            encoded = [token.encode() for token in seen]
        except UnicodeEncodeError as error:
            raise InputError(f"token {error.object!r} holds a lone surrogate, which no UTF-8 text can; remove it") from error
        offsets = np.concatenate(([0], np.cumsum([len(token) for token in encoded]))).astype(np.int64)
        data = np.frombuffer(b"".join(encoded) + bytes(_SPARE_BYTES), np.uint8)
        return cls.from_strings(offsets, data, closed=closed)

    @classmethod
    def from_strings(cls, offsets: NDArray[np.int64], data: NDArray[np.uint8], *, closed: bool) -> Vocabulary:
        """Return the vocabulary of strings that lie one after another in `data`, with its hash table.

        Args:
            offsets: int64 [size + 1], where each token begins, in bytes.
            data: uint8, the strings and 8 spare bytes.
            closed: True excludes `<unk>` from the events.
        """
        return cls(hash_slots(offsets, data), offsets, data, closed=closed)

    @property
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
        """The arrays that the kernels take."""
        return self.slots, self.offsets, self.bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: str) -> bool:
        return self._find(token) >= 0

    @property
    def event_count(self) -> int:
        """The number of tokens that can be predicted: all but `<s>`, and but `<unk>` where the vocabulary is closed."""
        return len(self) - 1 - int(self.closed)

    @cached_property
    def tokens(self) -> list[str]:
        """All token strings by id."""
        whole = self.bytes.tobytes()
        bounds = self.offsets.tolist()
        return [whole[start:end].decode("utf-8", "replace") for start, end in pairwise(bounds)]

    def token(self, token_id: int) -> str:
        """Return the string of an id.

        Args:
            token_id: 0 to size - 1; 0, 1, 2 are `<unk>`, `<s>`, `</s>`.

        Raises:
            InputError: the id is outside the vocabulary.

        Example:
            >>> Vocabulary.from_tokens(["cat"]).token(3)
            'cat'
        """
        if not 0 <= token_id < len(self):
            raise InputError(f"token id {token_id} is outside the vocabulary of {len(self):,} tokens")
        start, end = self.offsets[token_id], self.offsets[token_id + 1]
        return self.bytes[start:end].tobytes().decode("utf-8", "replace")

    def id(self, token: str) -> int:
        """Return the id of a token; that of `<unk>` where it is unknown.

        Example:
            >>> vocabulary = Vocabulary.from_tokens(["cat"])
            >>> vocabulary.id("cat"), vocabulary.id("dog")
            (3, 0)
        """
        return max(self._find(token), UNK)

    def ids(self, tokens: Sequence[str]) -> NDArray[np.uint32]:
        """Return the ids of many tokens, uint32 [n].

        Example:
            >>> Vocabulary.from_tokens(["a", "b"]).ids(["b", "a", "c"]).tolist()
            [4, 3, 0]
        """
        return np.array([self.id(token) for token in tokens], np.uint32)

    def _find(self, token: str) -> int:
        encoded = token.encode(errors="surrogatepass")
        if not encoded:
            return -1
        return _native.find_token(self.arrays, np.frombuffer(encoded, np.uint8))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the set of tokens, whatever their ids, and over whether the vocabulary is closed."""
        whole = self.bytes.tobytes()
        tokens = sorted(whole[start:end] for start, end in pairwise(self.offsets.tolist()))
        lengths = np.array([len(token) for token in tokens], "<i8").data
        return digest("closed set" if self.closed else "open set", lengths, b"".join(tokens))

    @cached_property
    def ids_fingerprint(self) -> str:
        """SHA-256 over the tokens in order, and over whether the vocabulary is closed: for whatever stores ids."""
        offsets = np.ascontiguousarray(self.offsets, "<i8").data
        return digest("closed" if self.closed else "open", offsets, self.bytes[: self.offsets[-1]].data)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} tokens, {'closed' if self.closed else 'open'})"


def hash_slots(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the hash table of strings that lie one after another; the same for the same strings."""
    # offsets: int64 [size + 1], where each begins, in bytes; data: uint8, the strings and 8 spare bytes.
    size = len(offsets) - 1
    # 40 to 80 % are taken: with fewer, words would be found a little sooner, and fetched from memory more often.
    slots = np.zeros(1 << max(4, (size + size // 4).bit_length()), np.uint64)
    # The kernel takes one mutable triple, though it writes to the slots alone.
    _native.index_vocabulary((slots, np.require(offsets, requirements="W"), np.require(data, requirements="W")), size)
    return slots


class VocabularyBuilder:
    """A vocabulary that grows while text is read; ids come in order of first occurrence."""

    def __init__(self) -> None:
        base = Vocabulary.from_tokens(())
        self.size = len(base)
        self.slots = np.zeros(1 << 16, np.uint64)
        self.offsets = np.zeros(1 << 15, np.int64)
        self.bytes = np.zeros(1 << 18, np.uint8)
        self.offsets[: self.size + 1] = base.offsets
        self.bytes[: len(base.bytes)] = base.bytes
        _native.index_vocabulary(self.arrays, self.size)

    @property
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
        """Return the arrays that the kernels take."""
        return self.slots, self.offsets, self.bytes

    def grow(self) -> None:
        """Double the arrays that a kernel found too small."""
        used = int(self.offsets[self.size])
        if 4 * self.size > len(self.slots):
            self.slots = np.zeros(4 * len(self.slots), np.uint64)
            self.offsets = np.concatenate((self.offsets, np.zeros_like(self.offsets)))
            _native.index_vocabulary(self.arrays, self.size)
        elif 2 * self.size > len(self.offsets):
            self.offsets = np.concatenate((self.offsets, np.zeros_like(self.offsets)))
        if 2 * used > len(self.bytes) or 4 * self.size <= len(self.slots):
            self.bytes = np.concatenate((self.bytes, np.zeros_like(self.bytes)))

    def finish(self, *, closed: bool = False) -> Vocabulary:
        """Return the vocabulary of the tokens that were read."""
        used = int(self.offsets[self.size])
        data = np.concatenate((self.bytes[:used], np.zeros(_SPARE_BYTES, np.uint8)))
        return Vocabulary.from_strings(self.offsets[: self.size + 1].copy(), data, closed=closed)


def restrict(
    vocabulary: Vocabulary, counts: NDArray[np.int64], *, min_count: int = 1, size: int | None = None
) -> tuple[Vocabulary, NDArray[np.uint32]]:
    """Return the vocabulary without rare tokens, and the new id of each old one (`<unk>` for those left out), uint32 [n].

    >>> small, new_ids = restrict(Vocabulary.from_tokens(["a", "b"]), np.array([0, 2, 2, 1, 3]), min_count=2)
    >>> small.tokens[3:], new_ids.tolist()
    (['b'], [0, 1, 2, 0, 3])
    """
    # counts: int64 [len(vocabulary)], occurrences of each token.
    check_whole("min-count", min_count, 1)
    if size is not None:
        check_whole("vocab-size", size, 1)
    common = counts >= min_count
    common[:3] = True
    if size is not None and size < np.count_nonzero(common) - 3:
        words = np.flatnonzero(common)[3:]
        rarest = words[np.argsort(-counts[words], kind="stable")[size:]]
        common[rarest] = False
    new_ids = np.where(common, np.cumsum(common) - 1, UNK).astype(np.uint32)
    lengths = np.diff(vocabulary.offsets)
    used = np.repeat(common, lengths)
    data = np.concatenate((vocabulary.bytes[: len(used)][used], np.zeros(_SPARE_BYTES, np.uint8)))
    offsets = np.concatenate(([0], np.cumsum(lengths[common]))).astype(np.int64)
    return Vocabulary.from_strings(offsets, data, closed=vocabulary.closed), new_ids
