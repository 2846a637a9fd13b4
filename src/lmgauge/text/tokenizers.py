"""Text to tokens with byte spans: words between white space, characters, bytes; ICU words and subwords by name.

A tokenizer decides what a model predicts, so it says three things about its tokens: the strings that stand in the
vocabulary, the span of the source text that each one accounts for, and from which segments' tokens the text cannot be
restored. The spans of a segment tile it: no byte is scored twice, and none is left out.

    >>> tokenizer = make_tokenizer("whitespace")
    >>> from lmgauge.text.documents import Corpus
    >>> [tokenizer.tokenize(segments).strings() for segments in Corpus.from_strings(["ein  Satz"])]
    [[b'ein', b'Satz']]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import NORMALIZERS, NormalizerName
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.text.normalizers import NormalizingTokenizer, check_normalizer
from lmgauge.text.segments import UTF8_LENGTHS, Segments, is_character_start, is_white_space
from lmgauge.text.tokens import (
    BYTES_BY_NAME,
    SENTENCEPIECE_FILE,
    TOKENIZER_FILE,
    TOKENIZER_FILES,
    Tokenizer,
    TokenizerBase,
    Tokens,
    TokenUnit,
    runs,
)

CHOICES = (
    "whitespace, treebank, character, byte, icu, icu:<locale> (such as icu:ja), "
    "or the path of a tokenizer.json or .model file"
)


class WhitespaceTokenizer(TokenizerBase):
    """Words: maximal runs of bytes that are not ASCII white space (space, \\t, \\n, \\v, \\f, \\r)."""

    # A segment is restored exactly if single spaces separate its words and none is at its ends. The span of a word includes
    # the white space before it.

    name = "whitespace"
    unit: TokenUnit = "word"
    kernel: int | None = 0

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the words of `segments`."""
        data = segments.data
        white = is_white_space(data)
        starts, ends = runs(~white, np.concatenate((segments.starts, segments.ends)))
        owner = _owners(starts, segments)
        starts, ends, owner = starts[owner >= 0], ends[owner >= 0], owner[owner >= 0]
        counts = _per_segment(owner, segments)
        lossy = self._lossy(segments, white, ends - starts, counts)
        return Tokens(data, starts, ends, counts, ends - segments.starts[owner], lossy)

    @staticmethod
    def _lossy(
        segments: Segments, white: NDArray[np.bool_], lengths: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        # Which segments differ from their words joined by single spaces, bool [segments].
        # white: bool [bytes of segments.data], which are white space; lengths: int64 [words], bytes of each word; counts:
        # int64 [segments], words of each segment.
        up_to = np.concatenate(([0], np.cumsum(lengths)))[np.concatenate(([0], np.cumsum(counts)))]
        # At least one byte of white space lies between words: equal lengths mean one each, and none elsewhere.
        different = np.diff(up_to) + np.maximum(counts - 1, 0) != segments.ends - segments.starts
        owner = _owners(np.flatnonzero(white & (segments.data != ord(" "))), segments)
        different[owner[owner >= 0]] = True
        lossy: NDArray[np.bool_] = different
        return lossy

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the words joined by single spaces."""
        # WhitespaceTokenizer().detokenize(["ein", "Satz"]) -> 'ein Satz'
        return " ".join(tokens)


def _nothing_lost(segments: Segments) -> NDArray[np.bool_]:
    return np.zeros(len(segments), bool)


class CharacterTokenizer(TokenizerBase):
    """Unicode code points; the text can always be restored."""

    name = "character"
    unit: TokenUnit = "character"
    kernel: int | None = 1

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the code points of `segments`."""
        starts = np.flatnonzero(is_character_start(segments.data))
        owner = _owners(starts, segments)
        starts, owner = starts[owner >= 0], owner[owner >= 0]
        ends, counts = starts + UTF8_LENGTHS[segments.data[starts]], _per_segment(owner, segments)
        return Tokens(segments.data, starts, ends, counts, ends - segments.starts[owner], _nothing_lost(segments))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the characters in a row."""
        # CharacterTokenizer().detokenize(["f", "ü", "r"]) -> 'für'
        return "".join(tokens)


class ByteTokenizer(TokenizerBase):
    """Bytes of the UTF-8 text, written "<0x41>" in vocabularies; the text can always be restored."""

    name = "byte"
    unit: TokenUnit = "byte"
    kernel: int | None = 2

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the bytes of `segments`."""
        counts = segments.ends - segments.starts
        total = int(counts.sum())
        before = np.cumsum(counts) - counts  # tokens before each segment
        span_ends = np.arange(1, total + 1, dtype=np.int64) - np.repeat(before, counts)
        values = segments.data[span_ends - 1 + np.repeat(segments.starts, counts)]
        starts = values.astype(np.int64) * _BYTE_NAME_LENGTH
        return Tokens(_BYTE_NAMES, starts, starts + _BYTE_NAME_LENGTH, counts, span_ends, _nothing_lost(segments))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the bytes as text, U+FFFD for what is not valid UTF-8."""
        # A token that does not name a byte is kept as it is.
        # ByteTokenizer().detokenize(["<0x41>", "<0xC3>", "<0xBC>", "</s>"]) -> 'Aü</s>'
        return b"".join(self.token_bytes(tokens)).decode("utf-8", "replace")

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        return [bytes([BYTES_BY_NAME[token]]) if token in BYTES_BY_NAME else token.encode() for token in tokens]


_BYTE_NAME_LENGTH = len("<0x41>")
_BYTE_NAMES = np.frombuffer("".join(BYTES_BY_NAME).encode(), dtype=np.uint8)


def _owners(positions: NDArray[np.int64], segments: Segments) -> NDArray[np.int64]:
    # Segment that each position lies in; -1 for a terminator or a gap between segments.
    # The last segment that begins at or before the position: empty ones before it begin and end there.
    owner = np.searchsorted(segments.starts, positions, side="right") - 1
    if len(segments):
        owner[positions >= segments.ends[owner]] = -1
    return owner


def _per_segment(owner: NDArray[np.int64], segments: Segments) -> NDArray[np.int64]:
    return np.bincount(owner, minlength=len(segments)).astype(np.int64, copy=False)


def make_tokenizer(spec: str | os.PathLike[str] | Tokenizer, normalizer: NormalizerName | None = None) -> Tokenizer:
    """Return the tokenizer of that name."""
    if isinstance(spec, (str, os.PathLike)):
        name = os.fspath(spec)
        before, plus, behind = name.partition("+")
        if plus and before in NORMALIZERS:
            normalizer, name = normalizer or before, behind
        spec = _make_plain(name)
    elif not isinstance(spec, Tokenizer):
        raise UsageError(f"{spec!r} is not a tokenizer: choose {CHOICES}")
    return spec if normalizer is None else NormalizingTokenizer(spec, normalizer)


def with_normalizer(spec: str | os.PathLike[str] | Tokenizer, normalizer: NormalizerName) -> str | Tokenizer:
    """Return what `make_tokenizer` makes the same tokenizer of, with a normalizer before it."""
    check_normalizer(normalizer)
    return f"{normalizer}+{os.fspath(spec)}" if isinstance(spec, (str, os.PathLike)) else make_tokenizer(spec, normalizer)


def _make_plain(name: str) -> Tokenizer:
    for built_in in (WhitespaceTokenizer, CharacterTokenizer, ByteTokenizer):
        if name == built_in.name:
            return built_in()
    from lmgauge.text.library_tokenizers import HuggingFaceTokenizer, IcuWordTokenizer, checked_locale
    from lmgauge.text.sentencepiece_tokenizer import SentencePieceTokenizer

    if name == "treebank":
        from lmgauge.text.treebank_tokenizer import TreebankTokenizer

        return TreebankTokenizer()
    if name == "icu" or name.startswith("icu:"):
        return IcuWordTokenizer(checked_locale(name.partition(":")[2] or "root"))
    path = name
    if os.path.isdir(name):
        names = [file for file in TOKENIZER_FILES if os.path.exists(os.path.join(name, file))]
        path = os.path.join(name, *names[:1] or [TOKENIZER_FILE])
    if path.endswith(".model"):
        return SentencePieceTokenizer.from_file(path)
    if path.endswith(".json") or os.path.exists(path):
        return HuggingFaceTokenizer.from_file(path)
    raise UsageError(f"unknown tokenizer {name!r}: choose {CHOICES}")


def load_tokenizer(settings: Mapping[str, object], directory: str | os.PathLike[str]) -> Tokenizer:
    """Return the tokenizer of a saved model."""
    name = settings.get("name")
    if not isinstance(name, str):
        raise ModelFileError(f"{os.fspath(directory)}: the tokenizer's settings have no name")
    if "normalizer" in settings:
        return _load_normalizing(settings, directory)
    from lmgauge.text.library_tokenizers import HuggingFaceTokenizer, IcuWordTokenizer
    from lmgauge.text.sentencepiece_tokenizer import SentencePieceTokenizer

    tokenizer: HuggingFaceTokenizer | SentencePieceTokenizer
    try:
        if name.startswith(HuggingFaceTokenizer.PREFIX):
            tokenizer = HuggingFaceTokenizer.from_file(os.path.join(directory, TOKENIZER_FILE))
        elif name.startswith(SentencePieceTokenizer.PREFIX):
            tokenizer = SentencePieceTokenizer.from_file(os.path.join(directory, SENTENCEPIECE_FILE))
        # A name in a model's file is never used as a path.
        elif name.startswith("icu:"):
            return IcuWordTokenizer(name[4:])
        elif name in ("whitespace", "treebank", "character", "byte", "icu"):
            return make_tokenizer(name)
        else:
            raise ModelFileError(f"{os.fspath(directory)}: unknown tokenizer {name!r}: was a newer lmgauge used?")
    except InputError as error:
        raise ModelFileError(str(error)) from error
    made_with = tokenizer.settings()
    if made_with["sha256"] != settings.get("sha256"):
        raise ModelFileError(f"{os.fspath(directory)}: {made_with['file']} is not the file this model was made with")
    return tokenizer


def _load_normalizing(settings: Mapping[str, object], directory: str | os.PathLike[str]) -> Tokenizer:
    inner, normalizer = settings.get("tokenizer"), settings["normalizer"]
    if normalizer not in NORMALIZERS:
        raise ModelFileError(f"{os.fspath(directory)}: unknown normalizer {normalizer!r}: was a newer lmgauge used?")
    if not isinstance(inner, Mapping) or "normalizer" in inner:
        raise ModelFileError(f"{os.fspath(directory)}: the tokenizer's settings do not say what is behind {normalizer}")
    return make_tokenizer(load_tokenizer(inner, directory), normalizer)
