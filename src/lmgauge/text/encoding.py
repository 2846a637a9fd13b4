"""Segments to token ids, through the kernels for the tokenizers they know and through `Tokens` for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.choices import RESERVED_POLICIES as RESERVED_POLICIES
from lmgauge.base.choices import ReservedPolicy as ReservedPolicy
from lmgauge.base.errors import InputError
from lmgauge.text.normalizers import NormalizingTokenizer, normalize
from lmgauge.text.segments import Segments, is_unicode_white_space, is_white_space
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, Vocabulary, VocabularyBuilder

_DONE, _GROW, _RESERVED, _ROOM = range(4)
_ALREADY_CUT = 3
_SEGMENT, _WRITTEN, _SIZE = 0, 3, 4  # of the kernel's EncodeState
_NO_TOKENS = (np.zeros(0, np.uint8),) + (np.zeros(0, np.int64),) * 4


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of consecutive segments, each closed by `</s>` unless that was left out."""

    # uint32 [n], with `<s>` before each segment where sentences are contexts of their own, and before the tokens of a
    # segment those of the text that is given before it
    ids: NDArray[np.uint32]
    # int64 [n] or empty: where each token's span ends in its segment's UTF-8 text, in bytes; 0 for given ones
    span_ends: NDArray[np.int64]
    lossy: NDArray[np.bool_]  # bool [segments], True where the tokens do not give the segment back exactly
    # bool [n], which ids are of given text; empty where no text is given
    is_given: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    # bool [segments], True where the first token of the segment begins in the given text; empty likewise
    crossing: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    def only(self, chosen: slice | NDArray[np.bool_], *, spans: bool) -> Encoded:
        """Return some of the ids."""
        # chosen: a slice, or bool [n].
        ends = self.span_ends[chosen] if spans else self.span_ends[:0]
        is_given = self.is_given[chosen] if len(self.is_given) else self.is_given
        return replace(self, ids=self.ids[chosen], span_ends=ends, is_given=is_given)


def encode(
    segments: Segments,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary | VocabularyBuilder,
    *,
    bos: bool,
    eos: bool = True,
    reserved: ReservedPolicy | Literal["marks"] = "refuse",
    spans: bool = False,
) -> Encoded:
    """Turn segments into ids; a `VocabularyBuilder` learns new tokens, a `Vocabulary` makes them `<unk>`."""
    # reserved: what `<s>` and its like are in a text; or "marks", where they are what they say, as among counts.
    cut_up = partial(encode, vocabulary=vocabulary, bos=bos, reserved=reserved)
    if segments.given_starts is not None:
        as_asked = _encode_apart if segments.boundary == "apart" else _encode_jointly
        encoded = as_asked(segments, partial(cut_up, tokenizer=tokenizer, spans=True), tokenizer)
        return encoded.only(encoded.ids != EOS if not eos else slice(None), spans=spans)
    if isinstance(tokenizer, NormalizingTokenizer):
        normalized = normalize(segments)
        encoded = cut_up(normalized.segments, tokenizer=tokenizer.inner, spans=spans)
        last, ends = np.flatnonzero(encoded.ids == EOS), encoded.span_ends
        if spans:
            ends = normalized.source_ends(ends, np.diff(last, prepend=-1))
            ends[last] = segments.ends - segments.starts
        encoded = replace(encoded, span_ends=ends, lossy=encoded.lossy | normalized.changed)
        return encoded.only(encoded.ids != EOS if not eos else slice(None), spans=spans)
    if tokenizer.kernel is None:
        tokens = tokenizer.tokenize(segments)
        mode, lossy = _ALREADY_CUT, tokens.lossy
        cut = (tokens.data, tokens.starts, tokens.ends, tokens.counts, tokens.span_ends)
        capacity = len(tokens.starts)
    else:
        mode, lossy, cut = tokenizer.kernel, np.zeros(len(segments), bool), _NO_TOKENS
        length = int(np.sum(segments.ends - segments.starts))
        capacity = length // 2 + len(segments) if tokenizer.unit == "word" else length
    ids = np.empty(capacity + 2 * len(segments) + 1, np.uint32)
    span_ends = np.empty(len(ids) if spans else 0, np.int64)
    builder = vocabulary if isinstance(vocabulary, VocabularyBuilder) else None
    state = np.array([0, -1, 0, 0, 0 if builder is None else builder.size, -1, 0], np.int64)
    if tokenizer.unit == "subword" and reserved == "refuse":
        reserved = "unk"  # a tokenizer's own unknown token is not a word of the text
    options = (mode, (*RESERVED_POLICIES, "marks").index(reserved), bos, eos)
    irregular = np.zeros(len(segments) if mode == 0 else 0, np.uint8)
    kernel = _native.encode_segments if builder is None else _native.intern_segments
    text = (segments.data, segments.starts, segments.ends)
    while True:
        status = kernel(text, cut, vocabulary.arrays, options, state, ids, span_ends, irregular)
        if builder is not None:
            builder.size = int(state[_SIZE])
        if status == _GROW and builder is not None:
            builder.grow()
        elif status == _RESERVED:
            raise _reserved_error(segments, int(state[_SEGMENT]), cast("ReservedPolicy", reserved))
        elif status == _DONE:
            break
        else:
            raise RuntimeError("the encoder ran out of room that should have sufficed")
    written = int(state[_WRITTEN])
    if len(irregular):
        lossy = irregular.astype(bool)
    return Encoded(ids[:written], span_ends[:written] if spans else span_ends, lossy)


def _encode_jointly(segments: Segments, cut_up: Callable[[Segments], Encoded], tokenizer: Tokenizer) -> Encoded:
    # Encode given text and segment as one text: what ends behind the boundary is the segment's.
    # The cat| sat, cut into (The)( cat)( sat): all of `sat` is scored. The ca|t sat: ( cat) crosses, is scored whole, and
    # its span in the segment is `t`.
    assert segments.given_starts is not None
    encoded = cut_up(replace(segments, starts=segments.given_starts, given_starts=None))
    ids, ends = encoded.ids, encoded.span_ends
    last, inner = ids == EOS, (ids != EOS) & (ids != BOS)
    owner, lengths = np.cumsum(last) - last, segments.given_lengths()
    boundary = lengths[owner]
    is_given = (ends <= boundary) & (boundary > 0) & inner
    begins = np.zeros(len(segments), np.int64)  # where the first token of each segment begins, in given text and segment
    np.maximum.at(begins, owner[is_given], ends[is_given])
    is_divider = is_white_space if tokenizer.kernel is not None else is_unicode_white_space
    across = inner & ~is_given & (begins[owner] < boundary)
    crossing = np.zeros(len(segments), bool)
    for i in np.unique(owner[across]).tolist():
        at = int(segments.given_starts[i])
        # The span of a word includes the white space before it, which is not part of the word.
        before = segments.data[at + begins[i] : at + lengths[i]]
        crossing[i] = tokenizer.unit != "word" or not is_divider(before).all()
    lossy = encoded.lossy
    if tokenizer.unit == "word" and lossy.any():
        lossy = lossy & _lossy_behind(segments, begins, cut_up)
    return replace(encoded, span_ends=np.maximum(ends - boundary, 0), is_given=is_given, crossing=crossing, lossy=lossy)


def _lossy_behind(segments: Segments, begins: NDArray[np.int64], cut_up: Callable[[Segments], Encoded]) -> NDArray[np.bool_]:
    # Which segments words do not give back, whatever white space the given text has: bool [segments].
    # begins: int64 [segments], where the first word that is not given begins, with the white space before it, in bytes from
    # the beginning of the given text.
    assert segments.given_starts is not None
    starts = segments.given_starts + begins
    follows = begins > 0  # a space stands before the word then, which its being a word of its own stands for
    spaced = (segments.data[np.minimum(starts, len(segments.data) - 1)] == ord(" ")) & (starts < segments.ends)
    rest = replace(segments, starts=starts + (follows & spaced), given_starts=None)
    lossy: NDArray[np.bool_] = cut_up(rest).lossy | (follows & ~spaced)
    return lossy


def _encode_apart(segments: Segments, cut_up: Callable[[Segments], Encoded], tokenizer: Tokenizer) -> Encoded:
    # Encode given text and segment each on its own, [given, segment, given, ...], and join their ids.
    assert segments.given_starts is not None
    parts = replace(
        segments,
        starts=np.stack((segments.given_starts, segments.starts), axis=1).ravel(),
        ends=np.stack((segments.starts, segments.ends), axis=1).ravel(),
        line_numbers=np.repeat(segments.lines(), 2),
        given_starts=None,
    )
    encoded = cut_up(parts)
    last, first = encoded.ids == EOS, encoded.ids == BOS
    of_given = (np.cumsum(last) - last) % 2 == 0
    inner = np.where(of_given, last, first)  # the end of the given text and the beginning of the segment are no events
    ends = np.where(of_given, 0, encoded.span_ends)
    joined = replace(encoded, span_ends=ends, is_given=of_given & ~first, lossy=encoded.lossy[1::2])
    return replace(joined, crossing=np.zeros(len(segments), bool)).only(~inner, spans=True)


def _reserved_error(segments: Segments, first: int, policy: ReservedPolicy) -> InputError:
    # The kernel stops at a tile of tokens; the line itself is found here, once.
    remedy = "--reserved escape reads it as an ordinary word"
    for index in range(first, len(segments)):
        words = segments.text(index).split()
        for word in SPECIAL_TOKENS:
            if word.encode() in words and not (policy == "unk" and word == "<unk>"):
                remedy += ", --reserved unk as the unknown word" if word == "<unk>" else ""
                place = f"{segments.source}, line {segments.line(index)}"
                return InputError(f"{place}: the text contains the reserved token {word}; {remedy}")
    return InputError(f"{segments.source}: the text contains a reserved token; {remedy}")
