"""Tokenizers from optional libraries: ICU's words for languages written without spaces, and any tokenizer.json."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError, needing
from lmgauge.base.json_text import from_json
from lmgauge.text.segments import Segments, is_character_start
from lmgauge.text.tokens import (
    BYTES_BY_NAME,
    TOKENIZER_FILE,
    Cut,
    FileTokenizer,
    TokenizerBase,
    Tokens,
    TokenUnit,
    byte_level,
)

if TYPE_CHECKING:
    import tokenizers

_MOST_GAPS = 1 << 20  # ids without a token


_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en "
    "eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv "
    "ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne "
    "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss "
    "st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
"""The languages with two letters (ISO 639-1): ICU takes any word for a language, and then the rules of none."""


def checked_locale(locale: str) -> str:
    """Return the name of a locale, such as "ja", "zh-Hant" or "yue"."""
    language = re.split("[-_@]", locale)[0].lower()
    if locale != "root" and language not in _LANGUAGES.split() and not re.fullmatch("[a-z]{3}", language):
        raise UsageError(f"tokenizer icu:{locale}: there is no language {language!r}; icu alone goes by the script")
    return locale


class IcuWordTokenizer(TokenizerBase):
    """Words by the boundaries of ICU (Unicode Standard Annex 29, with dictionaries for zh, ja, th, km, lo, my)."""

    # White space at the ends of ICU's pieces is not part of a token; it belongs to the span of the token after it. A
    # segment is restored exactly if it has no such white space. Tokens depend on ICU's version, which is part of the
    # fingerprint.

    unit: TokenUnit = "word"
    kernel: int | None = None

    def __init__(self, locale: str = "root") -> None:
        with needing("icu4py", extra="icu"):
            import icu4py
            from icu4py.breakers import WordBreaker
        self.locale = locale
        self.name = "icu" if locale == "root" else f"icu:{locale}"
        self._breaker = WordBreaker
        self._icu_version = str(icu4py.icu_version)

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the words of `segments`."""
        spans: list[tuple[int, int]] = []  # in segments.data
        counts = np.zeros(len(segments), dtype=np.int64)
        lossy = np.zeros(len(segments), bool)
        for i in np.flatnonzero(segments.ends > segments.starts).tolist():
            words, whole = self._words(segments.text(i).decode(), int(segments.starts[i]))
            spans += words
            counts[i] = len(words)
            lossy[i] = not whole
        bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
        starts, ends = bounds[:, 0].copy(), bounds[:, 1].copy()
        return Tokens(segments.data, starts, ends, counts, ends - np.repeat(segments.starts, counts), lossy)

    def _words(self, text: str, position: int) -> tuple[list[tuple[int, int]], bool]:
        words = []
        whole = True
        # The pieces as strings: the library's segments() counts UTF-16 units, which are neither bytes nor characters.
        for piece in self._breaker(text, self.locale):
            end = position + len(piece.encode())
            # A combining mark holds on to the space before it, and U+202F to the letters beside it.
            word = piece.strip()
            if word == piece:
                words.append((position, end))
            else:
                whole = False
                if word:
                    start = position + len(piece[: piece.index(word)].encode())
                    words.append((start, start + len(word.encode())))
            position = end
        return words, whole

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the words in a row, as the scripts that need this tokenizer write them."""
        return "".join(tokens)

    def settings(self) -> dict[str, object]:
        return {"name": self.name, "locale": self.locale, "icu": self._icu_version}


class HuggingFaceTokenizer(FileTokenizer):
    """Subwords of a tokenizer.json, named by the strings of its own vocabulary."""

    # The text is taken as text: no special token is added, one that is spelled out in the text is not made special, nothing
    # is truncated or padded. Where the strings of the tokens spell the text byte by byte, spans are those bytes; elsewhere
    # they are the library's offsets, and a character that several pieces share belongs to the first of them. A segment is
    # restored exactly if the tokenizer's own decoder does so.

    PREFIX = "hf@"
    FILE = TOKENIZER_FILE
    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, content: bytes, source: str = TOKENIZER_FILE) -> None:
        with needing("tokenizers", extra="tokenizers"):
            import tokenizers  # noqa: F401
        super().__init__(content, source)
        with self._library_errors():
            value = from_json(content)
            _check_maps(value)
            self._tokenizer = self._of_library()
            marks = _marks(value)
        self._tokenizer.encode_special_tokens = True
        with self._library_errors():
            self.strings = _vocabulary_strings(self._tokenizer)
        """The strings of its tokens, by id; "" where an id has none."""
        encoded = [string.encode() for string in self.strings]
        self._bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        self._strings = np.frombuffer(b"".join(encoded), np.uint8)
        self._pieces = _spelled(self.strings, marks, of_bytes=b'"ByteLevel"' in content)
        self._lengths = np.array([*map(len, self._pieces)], np.int64)

    @contextmanager
    def _library_errors(self) -> Iterator[None]:
        # It raises nothing more special than Exception and, where its Rust code panics, a BaseException of its own.
        try:
            yield
        except BaseException as error:
            panicked = type(error).__name__ == "PanicException"
            if not panicked and (isinstance(error, MemoryError) or not isinstance(error, Exception)):
                raise
            reason = str(error).partition("\n")[0]
            raise InputError(f"{self._source}: not a usable tokenizer.json: {reason}") from error

    def _of_library(self) -> tokenizers.Tokenizer:
        import tokenizers

        made = tokenizers.Tokenizer.from_str(self._content.decode())
        made.no_truncation()
        made.no_padding()
        return made

    @cached_property
    def _with_special(self) -> tokenizers.Tokenizer:
        return self._of_library()

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the subwords of `segments`, with byte spans."""
        ids, counts, span_ends, lossy = self.cut(segments)
        return Tokens(self._strings, self._bounds[ids], self._bounds[ids + 1], counts, span_ends, lossy)

    def cut(self, segments: Segments, *, special: bool = False) -> Cut:
        """Return the ids of `segments`, with byte spans; `special`: what is spelled like a special token is that token."""
        texts = [segments.text(i).decode() for i in range(len(segments))]
        with self._library_errors():
            encodings = (self._with_special if special else self._tokenizer).encode_batch(texts, add_special_tokens=False)
            sequences = [encoding.ids for encoding in encodings]
            decoded = self._tokenizer.decode_batch(sequences, skip_special_tokens=False)
        lossy = np.array([text != back for text, back in zip(texts, decoded, strict=True)], bool)
        counts = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int64, count=int(counts.sum()))
        return Cut(ids, counts, self._span_ends(encodings, sequences, ids, counts, segments), lossy)

    def _span_ends(
        self,
        encodings: Sequence[tokenizers.Encoding],
        sequences: Sequence[list[int]],
        ids: NDArray[np.int64],
        counts: NDArray[np.int64],
        segments: Segments,
    ) -> NDArray[np.int64]:
        # Ends of tokens in bytes of their segment: by the bytes that they spell, exact within a character, too, where those
        # one after another are the segment; else by the library's code points.
        lengths = self._lengths[ids]
        spelled: list[int] = []  # the bytes before the text in each segment that is spelled: 0, or 1, the space that
        # some tokenizers put there; -1 where it is not
        walked: dict[int, list[int]] = {}  # of a segment with such spaces inside, too, where its tokens end
        for i, own in enumerate(sequences):
            whole, text = b"".join(map(self._pieces.__getitem__, own)), segments.text(i)
            spelled.append(0 if whole == text else 1 if whole == b" " + text else -1)
            if spelled[-1] < 0 and (own_ends := _walk(map(self._pieces.__getitem__, own), text)) is not None:
                walked[i] = own_ends
        surplus = np.array(spelled, np.int64)
        begins = np.cumsum(counts) - counts
        ends: NDArray[np.int64] = np.cumsum(lengths)
        before = np.concatenate(([0], ends))[begins]
        ends = np.maximum(ends - np.repeat(before + surplus, counts), 0)
        if (surplus < 0).any():
            other = np.repeat(surplus < 0, counts)
            last = (
                (end for _, end in encoding.offsets) for encoding, size in zip(encodings, spelled, strict=True) if size < 0
            )
            character_ends = np.zeros(len(ids), np.int64)
            character_ends[other] = np.fromiter(chain.from_iterable(last), np.int64, int(other.sum()))
            ends[other] = _tiling_byte_ends(character_ends, counts, segments)[other]
        for i, own_ends in walked.items():
            ends[begins[i] : begins[i] + counts[i]] = own_ends
        return ends

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that the tokenizer's decoder makes of tokens; strings not in its vocabulary stand as they are."""
        pieces: list[str] = []
        known: list[int] = []
        with self._library_errors():
            for token in tokens:
                number = self._tokenizer.token_to_id(token)
                if number is not None:
                    known.append(number)
                    continue
                pieces += [self._tokenizer.decode(known, skip_special_tokens=False), token]
                known = []
            return "".join([*pieces, self._tokenizer.decode(known, skip_special_tokens=False)])

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        numbers = [self._tokenizer.token_to_id(token) for token in tokens]
        pairs = zip(tokens, numbers, strict=True)
        return [token.encode() if number is None else self._pieces[number] for token, number in pairs]


def check_largest_id(vocabulary: Mapping[str, int]) -> None:
    """Refuse ids far beyond the number of tokens.

    >>> check_largest_id({"a": 0, "b": 2**31})
    Traceback (most recent call last):
        ...
    lmgauge.base.errors.InputError: its 2 tokens have ids up to 2,147,483,648, and there is a place for each id
    """
    # The library, where it writes a tokenizer, makes a place for each id, and so do we.
    largest = max(vocabulary.values(), default=0)
    if largest >= _MOST_GAPS + 2 * len(vocabulary):
        raise InputError(f"its {len(vocabulary):,} tokens have ids up to {largest:,}, and there is a place for each id")


def _vocabulary_strings(tokenizer: tokenizers.Tokenizer) -> list[str]:
    own = tokenizer.get_vocab(with_added_tokens=False)
    # Where an added token has the id of another, it takes its place, as in the library.
    vocabulary = own | {token.content: number for number, token in tokenizer.get_added_tokens_decoder().items()}
    check_largest_id(vocabulary)
    size = max(vocabulary.values(), default=-1) + 1
    if len(set(own.values())) < len(own):
        number, times = Counter(own.values()).most_common(1)[0]
        raise ValueError(f"{times} tokens of its vocabulary have the id {number}, and which one counts is chance")
    strings = [""] * size
    for token, number in vocabulary.items():
        strings[number] = token
    return strings


def _check_maps(value: Any) -> None:
    # Refuse a normalizer's map that says it is longer than it is: the library would end the program for want of memory.
    if isinstance(value, dict):
        stored = value.get("precompiled_charsmap")
        content = base64.b64decode(stored) if isinstance(stored, str) else b""
        if content and int.from_bytes(content[:4], "little") > len(content):
            raise ValueError("the precompiled_charsmap of its normalizer is damaged")
        for part in (value.get("normalizer"), value.get("normalizers")):
            _check_maps(part)
    elif isinstance(value, list):
        for part in value:
            _check_maps(part)


def _marks(value: dict[str, Any]) -> tuple[str, str]:
    # What a tokenizer.json sets before a piece within a word ("##"), and behind the last one ("</w>"); often "".
    model = value.get("model") or {}
    within, last = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    if not (isinstance(within, str) and isinstance(last, str)):  # some models have neither, and the library does not look
        raise ValueError("continuing_subword_prefix and end_of_word_suffix must be strings")
    return within, last


def _spelled(tokens: list[str], marks: tuple[str, str], *, of_bytes: bool) -> list[bytes]:
    # Bytes that each token stands for, by the rules of byte-level pieces, U+2581 and byte fallback, or marks.
    if of_bytes:
        return [token.encode() if (piece := byte_level(token)) is None else piece for token in tokens]
    within, last = marks
    if within:
        pieces = (token.removeprefix(within) if token.startswith(within) else f" {token}" for token in tokens)
        return [piece.encode() for piece in pieces]
    if last:
        return [f"{token.removesuffix(last)} ".encode() if token.endswith(last) else token.encode() for token in tokens]
    named = {token: bytes([byte]) for token, byte in BYTES_BY_NAME.items()}
    return [named.get(token, token.replace("\u2581", " ").encode()) for token in tokens]


def _walk(pieces: Iterable[bytes], text: bytes) -> list[int] | None:
    # Where pieces end that are the text but for spaces set before some of them, such as behind a special token.
    # _walk([b"<s>", b" [INST", b"]"], b"<s>[INST]") -> [3, 8, 9]
    at, ends = 0, []
    for piece in pieces:
        own = piece if text.startswith(piece, at) else piece.removeprefix(b" ")
        if not text.startswith(own, at):
            return None
        at += len(own)
        ends.append(at)
    return ends if at == len(text) else None


def _tiling_byte_ends(character_ends: NDArray[np.int64], counts: NDArray[np.int64], segments: Segments) -> NDArray[np.int64]:
    # Turn the ends of tokens in code points of their segment into ends in bytes that never go back.
    # character_ends: int64 [tokens], one past the last code point of each token, within its segment; counts: int64
    # [segments], tokens of each segment.
    # -> int64 [tokens], the span ends: the highest end so far in the segment.
    character_starts = np.append(np.flatnonzero(is_character_start(segments.data)), len(segments.data))
    first_character = np.searchsorted(character_starts, segments.starts)
    owner = np.repeat(np.arange(len(segments)), counts)
    index = np.minimum(first_character[owner] + character_ends, len(character_starts) - 1)
    byte_ends = np.minimum(character_starts[index], segments.ends[owner])
    # Positions in `data` only grow from segment to segment, so one running maximum serves all of them, as long as
    # none lies before its own segment.
    highest = np.maximum.accumulate(np.maximum(byte_ends, segments.starts[owner]))
    return highest - segments.starts[owner]
