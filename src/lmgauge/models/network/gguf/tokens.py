"""The tokens of a GGUF file: its own tokenizer, in llama.cpp, with spans that are checked against the text."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.base.files import digest
from lmgauge.models.network.gguf.network import GgufNetwork
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.scores.spans import approximate, place
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Cut, TokenizerBase, Tokens, TokenUnit
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_HEAD = struct.Struct("<4sIQQ")
_LENGTH = struct.Struct("<Q")
_KIND = struct.Struct("<I")
_STRING, _LIST = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a number of each kind
_MOST_SETTINGS = 1 << 16


class GgufTokenizer(TokenizerBase):
    """The tokenizer of a GGUF file; no special token is added to a text, and none is read into one."""

    # Spans are the bytes that a token stands for. A segment is given back exactly if what its tokens stand for is its text,
    # but for the space that some tokenizers set before the first word. It has no files: it is a part of the model's own.

    PREFIX = "gguf@"
    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, network: GgufNetwork, names: Sequence[str], sha256: str) -> None:
        self._network, self._sha256 = network, sha256
        self.name = self.PREFIX + sha256[:6]
        encoded = [name.encode() for name in names]
        self._bounds = np.concatenate(([0], np.cumsum([len(name) for name in encoded]))).astype(np.int64)
        self._strings = np.frombuffer(b"".join(encoded), np.uint8)
        self._ids = {name: token for token, name in enumerate(names)}
        self._pieces: dict[int, bytes] = {}
        self._adds_space = self._spelled(network.tokenize(b"a")) == b" a"

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of `segments`."""
        ids, counts, span_ends, lossy = self.cut(segments)
        return Tokens(self._strings, self._bounds[ids], self._bounds[ids + 1], counts, span_ends, lossy)

    def cut(self, segments: Segments, *, special: bool = False) -> Cut:
        """Return the ids of `segments`, with byte spans; `special`: what is spelled like a special token is that token."""
        by_segment: list[list[int]] = []
        spans: list[int] = []
        lossy = np.zeros(len(segments), bool)
        for i in range(len(segments)):
            text = segments.text(i)
            tokens = self._network.tokenize(text, special=special) if text else []
            pieces = list(map(self._piece, tokens))
            if special:  # the space before the first word is set behind special tokens, too
                opens = [self._adds_space, *(self._adds_space and not piece for piece in pieces)]
                whole = [
                    piece or self._network.piece(token, special=True) for piece, token in zip(pieces, tokens, strict=True)
                ]
                pieces = [piece.removeprefix(b" ") if first else piece for first, piece in zip(opens, whole, strict=False)]
            ends = place(pieces, text)
            lossy[i] = ends is None
            spans += approximate(pieces, text) if ends is None else ends
            by_segment.append(tokens)
        ids = np.array([token for tokens in by_segment for token in tokens], np.int64)
        counts = np.array([len(tokens) for tokens in by_segment], np.int64)
        return Cut(ids, counts, np.array(spans, np.int64), lossy)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that tokens stand for, without the space set before it; unknown strings stand as they are."""
        whole = b"".join(self.token_bytes(tokens))
        return (whole.removeprefix(b" ") if self._adds_space else whole).decode("utf-8", "replace")

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """Return the bytes that each token stands for; a string that is not in the vocabulary stands for itself."""
        known = [self._ids.get(token, NO_ID) for token in tokens]
        return [token.encode() if i == NO_ID else self._piece(i) for token, i in zip(tokens, known, strict=True)]

    def settings(self) -> dict[str, object]:
        """Return the name, and the SHA-256 of what the file says of it."""
        return {"name": self.name, "sha256": self._sha256}

    @property
    def fingerprint(self) -> str:
        """Return six hexadecimal digits of the SHA-256."""
        return self._sha256[:6]

    def _spelled(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._piece, tokens))

    def _piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._network.piece(token)
        return piece


def gguf_tokens(network: GgufNetwork) -> TokenMap:
    """Return tokens and ids of a GGUF file."""
    strings = network.strings()
    ids = [network.unknown_id(), network.token_id("bos"), network.token_id("eos")]
    if ids[UNK] in (ids[BOS], ids[EOS]):
        ids[UNK] = NO_ID
    names = distinct_names(strings)
    for token, name in zip(ids, SPECIAL_TOKENS, strict=True):
        if token != NO_ID:
            names[token] = name
    others = [token for token in range(network.size) if token not in ids]
    try:
        tokenizer = GgufTokenizer(network, names, tokenizer_digest(network.path))
        vocabulary = Vocabulary.from_tokens([names[token] for token in others], closed=ids[UNK] == NO_ID)
    except InputError as error:
        raise ModelFileError(f"{network.path}: its vocabulary cannot be used: {error}") from error
    before = (ids[BOS],) if network.adds_bos else ()
    of_templates = zip(("unk_token", "bos_token", "eos_token"), ids, strict=True)
    return TokenMap(
        *(tokenizer, vocabulary, np.array([*ids, *others], np.int64)),
        around=(before, ()),
        template=chat_template(network.path),
        named={name: strings[token] for name, token in of_templates if token != NO_ID},
        # Added tokens that are not names, such as two line ends, end no turn.
        specials=frozenset(s for token, s in enumerate(strings) if s.strip("▁ \t\n") and network.is_special(token)),
    )


def distinct_names(strings: Sequence[str]) -> list[str]:
    """Return a name for each token."""
    # Its string, unless that is empty, taken, or one of ours for `<unk>`, `<s>` and `</s>`.
    # distinct_names(["a", "a", "", "<s>"]) -> ['a', 'a (id 1)', '<row 2>', '<s> (text)']
    taken = set(SPECIAL_TOKENS)
    names = []
    for token, string in enumerate(strings):
        name = string or f"<row {token}>"
        if name in SPECIAL_TOKENS:
            name = f"{name} (text)"
        if name in taken:
            name = f"{name} (id {token})"
        taken.add(name)
        names.append(name)
    return names


def chat_template(path: Path) -> str | None:
    """Return the chat template in a GGUF file's header, the default one if it has several; None if it has none."""
    value = dict(_settings(path)).get(b"tokenizer.chat_template", b"")
    return (
        value[_KIND.size + _LENGTH.size :].decode("utf-8", "replace") if value[: _KIND.size] == _KIND.pack(_STRING) else None
    )


def tokenizer_digest(path: Path) -> str:
    """Return SHA-256 over all settings of a GGUF file's header that its tokenizer depends on, as hexadecimal digits."""
    # path: the file, of which only the bytes of the header are read.
    own = [setting for setting in sorted(_settings(path)) if setting[0].startswith(b"tokenizer.ggml.")]
    return digest(*(part for setting in own for text in setting for part in (_LENGTH.pack(len(text)), text)))


def _settings(path: Path) -> Iterator[tuple[bytes, bytes]]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            magic, version, _, count = _HEAD.unpack_from(data, 0)
            if magic != MAGIC or version not in _VERSIONS or count > _MOST_SETTINGS:
                raise ValueError("not a GGUF file of version 2 or 3, or damaged")
            at = _HEAD.size
            for _ in range(count):
                end = _after_string(data, at)
                name = data[at + _LENGTH.size : end]
                at = _after_value(data, end)
                yield name, data[end:at]
    except (OSError, ValueError, struct.error, KeyError) as error:
        raise ModelFileError(f"{path}: its header is damaged: {error}") from error


def _after_string(data: mmap.mmap, at: int) -> int:
    (length,) = _LENGTH.unpack_from(data, at)
    end: int = at + _LENGTH.size + length
    if end > len(data):
        raise ValueError("a string reaches beyond its end")
    return end


def _after_value(data: mmap.mmap, at: int) -> int:
    (kind,) = _KIND.unpack_from(data, at)
    at += _KIND.size
    if kind == _STRING:
        return _after_string(data, at)
    if kind != _LIST:
        return at + _SIZES[kind]
    (kind,) = _KIND.unpack_from(data, at)
    (count,) = _LENGTH.unpack_from(data, at + _KIND.size)
    at += _KIND.size + _LENGTH.size
    if kind == _STRING:
        for _ in range(count):
            at = _after_string(data, at)
        return at
    end: int = at + count * _SIZES[kind]
    if end > len(data):
        raise ValueError("a list reaches beyond its end")
    return end
