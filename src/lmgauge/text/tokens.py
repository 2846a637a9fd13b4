"""What a tokenizer is to the rest of the program, and what it makes of text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import digest
from lmgauge.text.segments import Segments

TokenUnit = Literal["word", "character", "byte", "subword"]
TOKENIZER_FILE = "tokenizer.json"
SENTENCEPIECE_FILE = "tokenizer.model"
TOKENIZER_FILES = (TOKENIZER_FILE, SENTENCEPIECE_FILE)
"""What the folder of a model may hold of its tokenizer."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of some segments."""

    data: NDArray[np.uint8]  # uint8 [bytes], where the token strings are; may be the array of the segments itself
    starts: NDArray[np.int64]  # int64 [tokens]; the vocabulary string of token j is `data[starts[j]:ends[j]]`
    ends: NDArray[np.int64]  # int64 [tokens]
    counts: NDArray[np.int64]  # int64 [segments], tokens of each segment
    # int64 [tokens]; in its segment's text, token j accounts for the bytes from the span end of the token before it (0 for
    # the first) to `span_ends[j]`. What follows the last token belongs to `</s>`.
    span_ends: NDArray[np.int64]
    lossy: NDArray[np.bool_]  # bool [segments], whether the tokens do not give the segment back exactly

    def __len__(self) -> int:
        return len(self.starts)

    def strings(self) -> list[bytes]:
        """Return the vocabulary string of every token, as UTF-8."""
        whole = self.data.tobytes()
        return [whole[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


class Cut(NamedTuple):
    """Segments as the ids of a library's tokenizer."""

    ids: NDArray[np.int64]  # int64 [tokens]
    counts: NDArray[np.int64]  # int64 [segments], tokens of each
    span_ends: NDArray[np.int64]  # int64 [tokens], as those of `Tokens`
    lossy: NDArray[np.bool_]  # bool [segments], as those of `Tokens`


@runtime_checkable
class Tokenizer(Protocol):
    """What the rest of the program asks of a tokenizer."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> TokenUnit: ...
    @property
    def kernel(self) -> int | None: ...
    @property
    def fingerprint(self) -> str: ...

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of `segments`, with byte spans."""
        ...

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that tokens stand for, exact where the tokenizer loses nothing."""
        ...

    def settings(self) -> dict[str, object]:
        """Return what `load_tokenizer` needs to make the tokenizer again, as JSON values."""
        ...

    def files(self) -> dict[str, bytes]:
        """Return the files to keep beside the settings, by name."""
        ...


class TokenizerBase:
    """What tokenizers have in common that need no files: they are what their settings say."""

    name: str

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """Return the bytes that each token stands for: its string, in UTF-8."""
        return [token.encode() for token in tokens]

    def settings(self) -> dict[str, object]:
        """Return the name: there are no other settings."""
        return {"name": self.name}

    def files(self) -> dict[str, bytes]:
        """Return no files."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Return the first six hexadecimal digits of the SHA-256 of the settings."""
        return digest(self.settings())[:6]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class FileTokenizer(TokenizerBase):
    """A tokenizer that is a file of a library."""

    # It is known by the SHA-256 of the file, and kept with a model as it was read.
    # A subclass reads the content in `__init__`, which takes what this one takes.

    PREFIX: ClassVar[str]
    FILE: ClassVar[str]  # what the file is called beside a model

    def __init__(self, content: bytes, source: str) -> None:
        self._source, self._content = source, content
        self._sha256 = digest(content)
        self.name = self.PREFIX + self._sha256[:6]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Return the tokenizer of a file."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise InputError(f"{os.fspath(path)}: {(error.strerror or str(error)).lower()}") from error
        return cls(content, os.fspath(path))

    def settings(self) -> dict[str, object]:
        return {"name": self.name, "file": self.FILE, "sha256": self._sha256}

    def files(self) -> dict[str, bytes]:
        return {self.FILE: self._content}

    @property
    def fingerprint(self) -> str:
        return self._sha256[:6]


def runs(flags: NDArray[np.bool_], borders: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first position and one past the last of each run of set flags, cut at the positions `borders`."""
    # flags: bool [n]; borders: int64 [borders], each from 0 to n.
    begins = np.ones(len(flags) + 1, dtype=np.bool_)
    begins[1:-1] = ~flags[:-1]  # the flag before is not set
    begins[borders] = True
    finishes = np.ones(len(flags) + 1, dtype=np.bool_)  # at i: a run may finish before i
    finishes[1:-1] = ~flags[1:]
    finishes[borders] = True
    return np.flatnonzero(begins[:-1] & flags), np.flatnonzero(finishes[1:] & flags) + 1


BYTES_BY_NAME = {f"<0x{value:02X}>": value for value in range(256)}
"""Tokens that name a byte, and the byte."""
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_NUMBERED = sorted({*range(256)} - {*_PRINTABLE})
# Printable bytes stand for themselves, the others are numbered from U+0100 (Radford et al. 2019, `bytes_to_unicode`).
_BYTE_LEVEL = dict(zip(map(chr, [*_PRINTABLE, *range(256, 256 + len(_NUMBERED))]), _PRINTABLE + _NUMBERED, strict=True))


def byte_named(token: str) -> int | None:
    """Return the byte that a token such as `<0x0A>` names, in digits of either case; None if it names none."""
    return BYTES_BY_NAME.get(f"{token[:3]}{token[3:].upper()}")


@lru_cache(maxsize=1 << 16)
def byte_level(piece: str) -> bytes | None:
    """Return the bytes that a piece of a byte-level vocabulary stands for; None if it is not one."""
    # byte_level("Ġcaf"), byte_level("a b") -> (b' caf', None)
    return bytes(_BYTE_LEVEL[character] for character in piece) if _BYTE_LEVEL.keys() >= set(piece) else None


def token_bytes(tokenizer: Tokenizer, tokens: Sequence[str]) -> list[bytes]:
    """Return the bytes that tokens stand for, white space before or behind a word among them."""
    # A tokenizer of your own may have a method `token_bytes`; of one without, `detokenize` says what a token adds to a
    # text.
    own = getattr(tokenizer, "token_bytes", None)
    if own is not None:
        spelled: list[bytes] = own(tokens)
        return spelled
    if tokenizer.unit in ("word", "character"):
        return [token.encode() for token in tokens]
    before = tokenizer.detokenize(tokens[:1])
    return [tokenizer.detokenize([tokens[0], token]).removeprefix(before).encode() for token in tokens]
