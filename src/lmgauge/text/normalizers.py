"""What is done to a text before it is cut into tokens, and where each byte of the result is from.

ccnet: what CCNet (Wenzek et al. 2020, arXiv:1911.00359) does to a text before its language models see it. White space at
both ends is dropped; letters become lower-case; accents and other non-spacing marks are dropped (canonical decomposition,
category Mn); each decimal digit of any script becomes 0; some punctuation marks become ASCII; control characters, the
newline among them, are dropped. So the lines of a document become one line, with nothing between them.

    >>> from lmgauge.text.documents import Corpus
    >>> for segments in Corpus.from_strings(["«Été» 1984…"]):
    ...     normalize(segments).segments.text(0)
    b'"ete" 0000...'

Each rule is about single characters, but for two: a capital sigma at the end of a word becomes another letter than one
within it, and the decomposition may put marks into another order. Both are rare, and done segment by segment.
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import NORMALIZERS, NormalizerName
from lmgauge.base.errors import UsageError
from lmgauge.base.threads import OfProcess
from lmgauge.text.segments import UTF8_LENGTHS, Segments
from lmgauge.text.tokens import Tokenizer, TokenizerBase, Tokens, TokenUnit, token_bytes

_PUNCTUATION = {
    ",": "，、", ".": "。", '"': "„”“«»」「《》", "'": "´’", ":": "∶：", "?": "？", "!": "！", ";": "；",
    "(": "（", ")": "）", "<": "〈", ">": "〉", "[": "【", "]": "】", "-": "–━►", " - ": "—",
    ". ": "．", "...": "…", "~": "～", "%": "％",
}  # fmt: skip
_ASCII_OF = {mark: ascii_form for ascii_form, marks in _PUNCTUATION.items() for mark in marks}
_CONTROLS = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
_DIGITS_AND_CAPITALS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789", b"abcdefghijklmnopqrstuvwxyz000000000")
_ODD = bytes(value < 0x20 or value >= 0x7F for value in range(256))
_CAPITAL, _DOTTED = "\u03a3", "\u0130"
_SIGMA = _CAPITAL.encode()
_NEWLINE, _WITHIN, _LEAD = 10, 0x80, 0xC0  # of the bytes of a character, those within it, and the first
_LEAD_BITS = np.array([0, 0x7F, 0x1F, 0x0F, 0x07], np.int64)  # of the first byte, by length
_PAGE = 256
_PAGES = 0x110000 // _PAGE
_LONGEST = (
    12  # bytes of what a character becomes: three letters of a Korean syllable have nine, and no version of Unicode more
)


def _of_character(character: str) -> str:
    decomposed = unicodedata.normalize("NFD", character.lower())
    letters = [letter for letter in decomposed if unicodedata.category(letter) != "Mn"]
    zeros = ["0" if unicodedata.category(letter) == "Nd" else letter for letter in letters]
    return "".join(_ASCII_OF.get(letter, letter) for letter in zeros if letter not in _CONTROLS)


def _is_rare(character: str) -> bool:
    decomposed = unicodedata.normalize("NFD", character.lower())
    return any(unicodedata.combining(letter) and unicodedata.category(letter) != "Mn" for letter in decomposed)


class _Characters:
    """What becomes of each character, page after page as texts need them."""

    def __init__(self) -> None:
        self.sizes = np.zeros(_PAGES * _PAGE, np.uint8)
        self.changes = np.zeros(_PAGES * _PAGE, np.bool_)
        self.rare = np.zeros(_PAGES * _PAGE, np.bool_)
        self.strings = np.zeros((_PAGES * _PAGE, _LONGEST), np.uint8)  # the system gives memory to pages in use only
        self._ready = np.zeros(_PAGES, np.bool_)
        self._lock = OfProcess(Lock)

    def prepare(self, points: NDArray[np.int64]) -> None:
        # Look up the pages of characters, code points int64 [n].
        pages = np.bincount(points >> 8, minlength=_PAGES) > 0
        missing = np.flatnonzero(pages & ~self._ready)
        if not len(missing):
            return
        with self._lock.value:
            for page in missing.tolist():
                for point in range(page * _PAGE, (page + 1) * _PAGE):
                    if not 0xD800 <= point < 0xE000:
                        self._add(point)
                self._ready[page] = True

    def _add(self, point: int) -> None:
        character = chr(point)
        becomes = _of_character(character).encode()
        self.strings[point, : len(becomes)] = np.frombuffer(becomes, np.uint8)
        self.sizes[point], self.rare[point] = len(becomes), _is_rare(character)
        self.changes[point] = becomes != character.encode()


_CHARACTERS = _Characters()


@dataclass(frozen=True)
class NormalizedSegments:
    """Segments after a normalizer."""

    segments: Segments  # as they are now; nothing is given before them
    source: Segments  # as they were
    changed: NDArray[np.bool_]  # bool [segments], True for those that the normalizer changed
    # int64 [bytes of segments.data], the byte of the source's data that each is from or stands in the place of
    origins: NDArray[np.int64] | None
    # int64 [n], where the characters of the source that became something else begin, ascending
    characters: NDArray[np.int64]
    ends: NDArray[np.int64]  # int64 [n], where they end

    def source_ends(self, span_ends: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where spans end in the source."""
        # What was dropped belongs to the span behind it, a character that became several belongs to the first span that has
        # a part of it.
        # span_ends: int64 [tokens], where they end in the normalized segments, in bytes; counts: int64 [segments], how many
        # each segment has.
        # -> int64 [tokens], bytes in the segments of the source.
        at = np.repeat(self.segments.starts, counts) + span_ends
        last = self._source_byte(np.maximum(at - 1, 0))
        ends = last + 1
        if len(self.characters):
            nearest = np.maximum(np.searchsorted(self.characters, last, side="right") - 1, 0)
            within = (last >= self.characters[nearest]) & (last < self.ends[nearest])
            # `é` of bytes 2-4 became `e`, from byte 2: a span that ends behind it ends at 4, not at 3.
            ends = np.where(within, self.ends[nearest], ends)
        return np.where(span_ends > 0, ends - np.repeat(self.source.starts, counts), 0)

    def _source_byte(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.origins is None:
            return at
        return self.origins[np.minimum(at, len(self.origins) - 1)] if len(self.origins) else at


def normalize(segments: Segments) -> NormalizedSegments:
    """Return segments as CCNet makes them; a segment is normalized as a whole, whatever lines it has."""
    source = _contiguous(segments)
    starts, ends = _stripped(source)
    trimmed = (starts > source.starts) | (ends < source.ends)
    raw = source.data.tobytes()
    text = np.frombuffer(raw.translate(_DIGITS_AND_CAPITALS), np.uint8)
    odd = np.frombuffer(raw.translate(_ODD), np.bool_)
    between = len(raw) - int((source.ends - source.starts).sum())  # newlines, which are odd
    if np.count_nonzero(odd) == between:
        changed = trimmed | _any_within(text != source.data, starts, ends)
        none = np.zeros(0, np.int64)
        return NormalizedSegments(replace(source, data=text, starts=starts, ends=ends), source, changed, None, none, none)
    if _SIGMA in raw:
        text = _with_small_sigmas(source, text)
    return _replace_characters(source, (starts, ends), trimmed, text, odd)


def _contiguous(segments: Segments) -> Segments:
    if not len(segments):
        return replace(segments, data=segments.data[:0], given_starts=None)
    low, high = int(segments.starts[0]), int(segments.ends[-1])
    gaps = segments.starts[1:] - segments.ends[:-1]
    between = segments.ends[:-1][gaps > 0]
    if ((gaps == 0) | (gaps == 1)).all() and (segments.data[between] == _NEWLINE).all():
        moved = replace(segments, data=segments.data[low:high], given_starts=None)
        return replace(moved, starts=segments.starts - low, ends=segments.ends - low)
    ends = np.cumsum(segments.ends - segments.starts)
    data = np.frombuffer(b"".join(segments.text(i) for i in range(len(segments))), np.uint8)
    return replace(segments, data=data, starts=ends - (segments.ends - segments.starts), ends=ends, given_starts=None)


_WHITE = np.isin(np.arange(256), [*range(9, 14), *range(0x1C, 0x21)])
_FIRST = _WHITE | np.isin(np.arange(256), [0xC2, 0xE1, 0xE2, 0xE3])  # of the bytes of any white space
_LAST = _WHITE | np.isin(np.arange(256), [*range(0x80, 0x8B), 0x9F, 0xA0, 0xA8, 0xA9, 0xAF])


def _stripped(source: Segments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Where segments begin and end without the white space at their ends, as Unicode has it; int64 [segments].
    starts, ends = source.starts.copy(), source.ends.copy()
    some = np.flatnonzero(ends > starts)
    # Only bytes that white space may begin or end with: what Unicode says is asked of few segments.
    likely = _FIRST[source.data[starts[some]]] | _LAST[source.data[ends[some] - 1]]
    for i in some[likely].tolist():
        text = source.text(i).decode()
        left = text.lstrip()
        starts[i] += len(text[: len(text) - len(left)].encode())
        ends[i] = starts[i] + len(left.rstrip().encode())
    return starts, ends


def _any_within(flags: NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    # In which ranges a flag is set, bool [ranges].
    at = np.flatnonzero(flags)
    # flags at [1, 4], ranges 0-3 and 5-7 -> [1 > 0, 2 > 2] = [T, F]
    return np.searchsorted(at, ends) > np.searchsorted(at, starts)


def _with_small_sigmas(source: Segments, text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    # Bytes with each capital sigma as the small one that it becomes in its word.
    data = text.copy()
    for i in range(len(source)):
        segment = source.text(i)
        if _SIGMA not in segment:
            continue
        capitals = segment.decode().replace(_DOTTED, "i")  # the only letter that becomes two: places stay the same
        small = [letter.encode() for letter, capital in zip(capitals.lower(), capitals, strict=True) if capital == _CAPITAL]
        begin, end = int(source.starts[i]), int(source.ends[i])
        parts = data[begin:end].tobytes().split(_SIGMA)
        whole = b"".join(map(operator.add, parts, [*small, b""]))
        data[begin:end] = np.frombuffer(whole, np.uint8)
    return data


def _replace_characters(
    source: Segments,
    bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
    trimmed: NDArray[np.bool_],
    text: NDArray[np.uint8],
    odd: NDArray[np.bool_],
) -> NormalizedSegments:
    # Segments without control characters, and with what becomes of those that are not ASCII.
    # bounds: where they begin and end without white space, int64 [segments] each; trimmed: bool [segments], which had white
    # space there; text: uint8 [bytes], the source with small letters and zeros where it is ASCII; odd: bool [bytes], what
    # is a control character or not ASCII.
    leads = np.flatnonzero(text >= _LEAD)
    lengths = UTF8_LENGTHS[text[leads]]
    points = _code_points(text, leads, lengths)
    _CHARACTERS.prepare(points)
    rare = leads[_CHARACTERS.rare[points]]
    changing = _CHARACTERS.changes[points]
    leads, lengths, points = leads[changing], lengths[changing], points[changing]
    sizes, strings = _CHARACTERS.sizes[points].astype(np.int64), _CHARACTERS.strings[points]
    controls = odd & (text < _WITHIN)
    changed = (text != source.data) | controls
    changed[leads] = True
    changed_segments = trimmed | _any_within(changed, *bounds)
    longer = np.maximum(sizes - lengths, 0)
    # longer [0, 2, 1] -> before [0, 0, 2]: where a character has moved to, once those before it have more bytes.
    before = np.cumsum(longer) - longer  # bytes that were made room for before each character
    at, keep, origins = leads, ~controls, None
    if longer.any():
        room = np.ones(len(text), np.int64)
        room[leads] += longer
        # room [1, 3, 1] -> origins [0, 1, 1, 1, 2]: the bytes that were made room for are of the byte in whose place they
        # stand.
        origins = np.repeat(np.arange(len(text)), room)
        at, text, keep = leads + before, text[origins], keep[origins]
    else:
        text = text.copy()
    for k in range(int(np.maximum(sizes, lengths).max(initial=0))):
        chosen = np.flatnonzero(np.maximum(sizes, lengths) > k)
        text[at[chosen] + k] = strings[chosen, min(k, _LONGEST - 1)]
        # é (2 bytes) becomes e (1): the second byte is not kept. A mark that is dropped keeps none.
        keep[at[chosen] + k] = sizes[chosen] > k
    left = np.flatnonzero(keep)
    through = [_moved(bound, leads, before, longer) for bound in bounds]
    starts, ends = (np.searchsorted(left, bound) for bound in through)
    segments = replace(source, data=text[left], starts=starts, ends=ends)
    origins = left if origins is None else origins[left]
    normalized = NormalizedSegments(segments, source, changed_segments, origins, leads, leads + lengths)
    return _with_clusters(normalized, bounds, rare) if len(rare) else normalized


def _code_points(text: NDArray[np.uint8], leads: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    # Code points of characters of two bytes or more, int64 [n].
    points = text[leads].astype(np.int64) & _LEAD_BITS[lengths]
    for k in range(1, 4):
        longer = np.flatnonzero(lengths > k)
        # é is C3 A9: 0x03 << 6 | 0x29 = 0xE9
        points[longer] = (points[longer] << 6) | (text[leads[longer] + k] & 0x3F)
    return points


def _moved(
    bounds: NDArray[np.int64], leads: NDArray[np.int64], before: NDArray[np.int64], longer: NDArray[np.int64]
) -> NDArray[np.int64]:
    # Where positions of the source are, once room was made at characters before them.
    if not len(leads):
        return bounds
    nearest = np.searchsorted(leads, bounds) - 1
    return bounds + np.where(nearest >= 0, (before + longer)[nearest], 0)


def _with_clusters(
    normalized: NormalizedSegments, bounds: tuple[NDArray[np.int64], NDArray[np.int64]], rare: NDArray[np.int64]
) -> NormalizedSegments:
    # Segments with those done anew in which marks that are not dropped may change places.
    # rare: int64 [n], where such marks are in the source.
    owners = set((np.searchsorted(bounds[0], rare, side="right") - 1).tolist())
    whole, source = normalized.segments, normalized.source
    assert normalized.origins is not None
    parts: list[NDArray[np.uint8]] = []
    origins: list[NDArray[np.int64]] = []
    for i in range(len(whole)):
        begin, end = int(bounds[0][i]), int(bounds[1][i])
        if i in owners and begin < end:
            text, ends = _by_clusters(source.data[begin:end].tobytes().decode())
            parts.append(np.frombuffer(text, np.uint8))
            origins.append(begin + ends - 1)
        else:
            rows = slice(int(whole.starts[i]), int(whole.ends[i]))
            parts.append(whole.data[rows])
            origins.append(normalized.origins[rows])
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - np.array([len(part) for part in parts])
    segments = replace(whole, data=np.concatenate(parts), starts=starts, ends=ends)
    return replace(normalized, segments=segments, origins=np.concatenate(origins))


def _by_clusters(text: str) -> tuple[bytes, NDArray[np.int64]]:
    # Text normalized letter by letter with its marks, and for each byte where its letter ends in the source.
    parts: list[bytes] = []
    ends: list[int] = []
    at, begin = 0, 0
    letters = text.replace(_DOTTED, "i").lower()
    for i in range(1, len(text) + 1):
        starts_anew = i == len(text) or not unicodedata.combining(unicodedata.normalize("NFD", text[i].lower())[0])
        if not starts_anew:
            continue
        parts.append(_of_character(letters[begin:i]).encode())
        at += len(text[begin:i].encode())
        ends += [at] * len(parts[-1])
        begin = i
    return b"".join(parts), np.array(ends, np.int64)


# -- A tokenizer whose text goes through a normalizer first; its spans are those of the text as it was ----------------


def check_normalizer(name: str) -> None:
    """Refuse what is not the name of a normalizer."""
    if name not in NORMALIZERS:
        raise UsageError(f"normalizer {name!r}: choose {', '.join(NORMALIZERS)}")


class NormalizingTokenizer(TokenizerBase):
    """Any tokenizer, over text that a normalizer has changed."""

    # A span of the source is what became a token's span of the normalized text; see `NormalizedSegments.source_ends`. A
    # segment that the normalizer changes is not restored.

    kernel: int | None = None  # the compiled encoders see bytes of the source

    def __init__(self, inner: Tokenizer, normalizer: NormalizerName) -> None:
        check_normalizer(normalizer)
        self.inner: Tokenizer = inner.inner if isinstance(inner, NormalizingTokenizer) else inner
        self.normalizer = normalizer
        self.name = f"{normalizer}+{self.inner.name}"
        self.unit: TokenUnit = self.inner.unit

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of `segments`, with byte spans of the text as it was."""
        normalized = normalize(segments)
        tokens = self.inner.tokenize(normalized.segments)
        span_ends = normalized.source_ends(tokens.span_ends, tokens.counts)
        return replace(tokens, span_ends=span_ends, lossy=tokens.lossy | normalized.changed)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the normalized text that tokens stand for."""
        return self.inner.detokenize(tokens)

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        return token_bytes(self.inner, tokens)

    def settings(self) -> dict[str, object]:
        return {"name": self.name, "normalizer": self.normalizer, "tokenizer": self.inner.settings()}

    def files(self) -> dict[str, bytes]:
        return self.inner.files()
