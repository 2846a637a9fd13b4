"""Spelled words as bytes: the white space before a word, its letters, and the end of the segment, byte after byte.

What follows a word or the beginning of a segment is white space and a word, or white space and the end:

    p(white space begins with s) = (1 - e) a(s) + e b(s)        e = p(</s> | h)

where a is how probable white space before a word is to begin so, and b the same at the end of a segment. A word that begins
with v is one of the known ones, or an unseen one:

    p(begins with v) = sum of p(w | h) over known w that begin with v  +  p(<unk> | h) u(v)
    u(v) = (q(begins with v) - sum of q(w) over known w that begin with v) / (1 - q(known words))

Each byte costs what one more byte adds. Whether a word is at its end is told by the byte after it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.combined.spelling.byte_view_characters import (
    AFTER_IMPOSSIBLE,
    END,
    CharacterBytes,
    Floats,
    Ints,
    RangeMasses,
    log_of,
    range_sums,
    runs,
    segments_of,
    split_characters,
)
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.combined.spelling.whitespace_model import EMPTY, FIRST, INNER, LAST, SeparatorModel, Separators
from lmgauge.scores import EOS_KIND, SPELLING, ScoreBatch, escaped
from lmgauge.text.encoding import encode
from lmgauge.text.segments import BETWEEN_WORDS, Segments
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK

_PREFIXES, _DISTRIBUTIONS = 1 << 12, 8
_SMALLEST_SHARE = 1e-9
"""Of q of a prefix that is taken to be left for unseen words, where known ones have all but what rounding leaves."""


@dataclass(frozen=True)
class _Words:
    """Distinct words, prefix by prefix: each begin with `bounds[i]` rows of what follows."""

    bounds: Ints  # int64 [words + 1], where the prefixes of each begin; a word of 3 bytes has 3
    low: Ints  # int64 [prefixes], the first known word that begins so, in order
    high: Ints  # int64 [prefixes], one past the last
    unseen: Floats  # float64 [prefixes], u of the prefix


class WordBytes:
    """What a model of spelled words between white space says of bytes."""

    def __init__(self, model: SpelledModel) -> None:
        assert model.speller is not None
        assert model.separators is not None
        self.model, self._spelling, self._separators = model, model.spelling, _SeparatorBytes(model.separators)
        self._letters = CharacterBytes(model.speller.characters, model.speller.unseen)
        self._sorted, order, logprobs = self._spelling.sorted_words
        self._q = np.exp(logprobs)  # of the known words
        self.ranges = RangeMasses(model.inner, order + len(SPECIAL_TOKENS))

    def logprobs(self, block: Segments, batch: ScoreBatch) -> Floats:
        """Return the log-probability of each byte and each end of a segment, float64 [bytes and ends], nats."""
        separators = Separators.of_rows(block, batch, divided=True)
        is_end = batch.kind == EOS_KIND
        begins = separators.begins + separators.lengths
        ends = np.repeat(block.starts[batch.segments - block.first], batch.segment_events) + batch.ends
        lengths = np.where(is_end, 0, ends - begins)
        # A word has its bytes; the end of a segment one place of its own.
        sizes = separators.lengths + np.maximum(lengths, 1)
        firsts, last = np.cumsum(sizes) - sizes, np.cumsum(sizes) - 1
        begun = np.zeros(int(sizes.sum()))  # the log of the mass of what begins so, behind the end of the word before
        rows = np.repeat(np.arange(len(batch)), lengths)
        of_words, end_of_segment = self._begun(block, batch, (begins, lengths, rows))
        exact = self._separators.fill(block, separators, end_of_segment, begun, firsts)
        begun[runs(firsts + separators.lengths, lengths)] = of_words + exact[rows]
        costs = batch.logprob + self.model.spelled(block, batch).extra[SPELLING] + exact
        begun[last[is_end]] = costs[is_end]
        return _steps(begun, costs, firsts, last, is_end)

    def _begun(self, block: Segments, batch: ScoreBatch, where: tuple[Ints, Ints, Ints]) -> tuple[Floats, Floats]:
        # Logs of the masses of all beginnings of words, float64 [bytes], and p(</s> | h), float64 [rows].
        # where: of each row, where its word begins and its bytes, int64 [rows] each, and the row of each byte.
        begins, lengths, rows = where
        words, which = self._distinct(block, begins, lengths)
        prefixes = runs(words.bounds[which], lengths)
        every = np.arange(len(batch))
        places = [np.full(len(batch), self.ranges.places[i]) for i in (UNK, EOS)]
        events = np.concatenate((rows, every, every))
        low = np.concatenate((words.low[prefixes], *places))
        high = np.concatenate((words.high[prefixes], *(place + 1 for place in places)))
        masses = self.ranges.of_block(block, batch)(events, low, high)
        known, unknown, end = np.split(masses, [len(rows), len(rows) + len(batch)])
        # p(begins with v) = known words in the range of v, and p(<unk>) u(v): the formula at the top.
        return log_of(known + unknown[rows] * words.unseen[prefixes]), end

    def _distinct(self, block: Segments, begins: Ints, lengths: Ints) -> tuple[_Words, Ints]:
        # Distinct words of some rows, and which of them each is, int64 [rows].
        text = block.data.tobytes()
        numbers: dict[bytes, int] = {}
        spans = zip(begins.tolist(), (begins + lengths).tolist(), strict=True)
        which = np.array([numbers.setdefault(text[begin:end], len(numbers)) for begin, end in spans], np.int64)
        return self._prefixes(list(numbers)), which

    def _prefixes(self, words: list[bytes]) -> _Words:
        sizes = np.array([len(word) for word in words], np.int64)
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        low, high = np.empty(bounds[-1], np.int64), np.empty(bounds[-1], np.int64)
        for word, place in zip(words, bounds.tolist(), strict=False):
            first, last = 0, len(self._sorted)
            for size in range(1, len(word) + 1):
                first, last = self._known(word[:size], first, last)
                low[place + size - 1], high[place + size - 1] = first, last
                if first == last:  # nor does any begin with more: a long word is not read anew for each of its bytes
                    low[place + size : place + len(word)] = high[place + size : place + len(word)] = first
                    break
        spelled = segments_of(words)
        scored = self._letters_of(spelled)
        # words of 2 and 1 bytes: scored [t, h, end, a, end] -> places 2 and 4 go; the end of a word is not a byte of it.
        letters = np.delete(scored, np.cumsum(sizes + 1) - 1)
        for begin, end in pairwise(bounds.tolist()):  # word by word, so that no digit depends on the words before
            np.cumsum(letters[begin:end], out=letters[begin:end])
        return _Words(bounds, low, high, self._unseen(np.exp(letters), low, high))

    def _letters_of(self, words: Segments) -> Floats:
        # Log-probabilities of the bytes of words and of their ends, float64, nats.
        characters = self._spelling.speller.characters
        return self._letters.logprobs(words, characters.score_block(words))

    def _known(self, prefix: bytes, low: int = 0, high: int | None = None) -> tuple[int, int]:
        first = bisect_left(self._sorted, prefix, low, high)
        return first, bisect_left(self._sorted, prefix + b"\xff", first, high)  # no UTF-8 has this byte

    def _unseen(self, q: Floats, low: Ints, high: Ints) -> Floats:
        # u of prefixes, from q of what begins with them and from the known words that do.
        # The difference of two nearly equal sums may come out below 0; a share of q keeps every word possible.
        left = np.maximum(q - range_sums(self._q, low, high), _SMALLEST_SHARE * q)
        return left / (1.0 - self._spelling.known_mass)

    def next_bytes(self, text: bytes) -> Floats:
        """Return the probabilities of what follows a text, float64 [257]: the bytes, and the end of the segment.

        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["a b", "ab c"])
        >>> model = lmgauge.train("witten-bell", text, order=1, vocabulary="spelled")
        >>> round(float(WordBytes(model).next_bytes(b"a").sum()), 6)
        1.0
        """
        separators = [gap.decode() for gap in _WORD.split(text)]
        words = text.split()
        before = separators[-2] if len(separators) > 1 else None
        if separators[-1] or not words:
            return self._between(words, before, separators[-1])
        following, ended = self._within(self._ids(words[:-1]), words[-1])
        if ended > 0:
            following += ended * self._between(words, before, "")
        return following

    def _ids(self, words: list[bytes]) -> NDArray[np.uint32]:
        block, model = segments_of([b" ".join(words)]), self.model
        return encode(block, model.tokenizer, model.vocabulary, bos=True, eos=False, reserved="escape").ids

    def _within(self, ids: NDArray[np.uint32], begun: bytes) -> tuple[Floats, float]:
        # Probabilities of further bytes of a word that begins so, float64 [257], and that of its end.
        p = self._after(ids)
        masses = self._with_one_more(p, begun)
        total = float(self._with_one_more(p, begun[:-1])[begun[-1]])
        if not total > 0:
            return np.zeros(END + 1), 0.0
        characters = split_characters(begun)
        ended = 0.0
        if characters is not None and not characters[1]:
            known = self.model.vocabulary.id(escaped(characters[0]))
            ended = float(p[known])
            if known == UNK:
                ended *= float(np.exp(self._spelling.logprobs(segments_of([begun]))[0]))
        return masses / total, ended / total

    def _after(self, ids: NDArray[np.uint32]) -> Floats:
        # Distribution after some words, float64 [vocabulary]; each byte of a word asks for the same one.
        return self._distributions(ids.tobytes())

    @cached_property
    def _distributions(self) -> Callable[[bytes], Floats]:
        def after(ids: bytes) -> Floats:
            return np.exp(self.model.inner.log_distribution(np.frombuffer(ids, np.uint32)))

        return lru_cache(maxsize=_DISTRIBUTIONS)(after)

    def _with_one_more(self, p: Floats, begun: bytes) -> Floats:
        # Probabilities that a word begins with some bytes and each byte, float64 [257]; of no end.
        low, high, unseen = self._next(begun)
        masses: Floats = self.ranges.of_distribution(p, low, high) + p[UNK] * unseen
        return masses

    @cached_property
    def _next(self) -> Callable[[bytes], tuple[Ints, Ints, Floats]]:
        # What gives the ranges of known words that begin with some bytes and each byte, and u of these.
        return lru_cache(maxsize=_PREFIXES)(self._compute_next)

    def _compute_next(self, begun: bytes) -> tuple[Ints, Ints, Floats]:
        split = split_characters(begun)
        if split is None:
            return np.zeros(END + 1, np.int64), np.zeros(END + 1, np.int64), np.zeros(END + 1)
        characters = self._spelling.speller.characters
        ids = np.concatenate(([BOS], characters.vocabulary.ids(split[0]))).astype(np.uint32)
        q = self._letters.one_more(np.exp(characters.log_distribution(ids)), split[1])
        q[END] = 0.0
        q *= np.exp(self._letters_of(segments_of([split[0].encode()]))[:-1].sum())
        first, last = self._known(begun)
        bounds = [self._known(begun + bytes([byte]), first, last) for byte in range(END)]
        low, high = np.array([*bounds, (0, 0)], np.int64).T
        return low, high, self._unseen(q, low, high)

    def _between(self, words: list[bytes], before: str | None, gap: str) -> Floats:
        # Probabilities of what follows some white space, float64 [257].
        p, word = self._after(self._ids(words)), b"".join(words[-1:])
        e = float(p[EOS])

        def begun(text: str) -> tuple[float, float, float]:
            a, b = self._separators.masses(word[-1:], before, text)
            return (1.0 - e) * a[-2] + e * b[-2], a[-1], b[-1]

        total, of_word, of_end = begun(gap)
        following = np.zeros(END + 1)
        if total > 0:
            following += self._with_one_more(p, b"") * of_word
            following[END] = e * of_end
            for character in BETWEEN_WORDS:
                following[ord(character)] = begun(gap + character)[0]
            following /= total
        return following


_WORD = re.compile(rb"[^ \t\n\v\f\r]+")


class _SeparatorBytes:
    """How probable white space is to begin with some characters, before a word and at the end of a segment."""

    def __init__(self, model: SeparatorModel) -> None:
        self._model = model
        self.masses = lru_cache(maxsize=1 << 12)(self._compute)
        self._next_character = lru_cache(maxsize=1 << 12)(model.next_character)
        self._longest = max(map(len, model.known), default=0)

    def _compute(self, left: bytes, before: str | None, text: str) -> tuple[Floats, Floats]:
        # How probable separators are that begin with no, one, ... characters of a text, and it alone at the end.
        # -> float64 [characters + 2] where a word follows, and where the segment ends.
        places = (INNER, LAST) if left else (FIRST, EMPTY)
        a, b = (self._at(place, self._model.context_of(place, left, b"", before, quoted=False), text) for place in places)
        return a, b

    def _at(self, place: int, context: int, text: str) -> Floats:
        model = self._model
        p = model.probabilities(context)
        spelled, known = [float(p[-1])], [0.0] * (len(text) + 1)
        for i in range(len(text) + 1):
            begun = text[:i] if i <= self._longest else text[i - 1] * (self._longest + 1)  # of more, the last one counts
            following = self._next_character(begun, place)
            spelled.append(spelled[-1] * following[model.alphabet.index(text[i]) if i < len(text) else -1])
            if i <= self._longest:
                known[i] = math.fsum(p[j] for j, one in enumerate(model.known) if one.startswith(text[:i]))
        exact = float(p[model.known.index(text)]) if text in model.known else spelled[-1]
        return np.array([*(one + other for one, other in zip(known, spelled[:-1], strict=True)), exact])

    def fill(self, block: Segments, separators: Separators, e: Floats, begun: Floats, firsts: Ints) -> Floats:
        # Write the logs of the masses of white space as far as it has come, and return those of the whole separators.
        # e: float64 [rows], p(</s> | h); begun: float64 [bytes and ends], to write to; firsts: int64 [rows], the first
        # place in it of each row.
        # -> float64 [rows], nats; which of the two hypotheses holds is known then.
        behind = (separators.place == INNER) | (separators.place == LAST)
        texts, numbers = _numbered(block, separators)
        before = np.full(len(numbers), -1)
        before[1:] = numbers[:-1]
        before[~separators.follows] = -1
        left = np.full(len(numbers), -1)
        if len(block.data):
            left[behind] = block.data[separators.begins[behind] - 1]
        is_end = (separators.place == LAST) | (separators.place == EMPTY)
        keys, which = np.unique(np.stack((left, before, numbers), axis=1), axis=0, return_inverse=True)
        rows, exact = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1]), np.zeros(len(which))
        for (byte, last, number), some in zip(keys.tolist(), rows, strict=True):
            a, b = self.masses(b"" if byte < 0 else bytes([byte]), None if last < 0 else texts[last], texts[number])
            chances = e[some, None]
            begun[firsts[some, None] + np.arange(len(a) - 2)] = log_of((1.0 - chances) * a[1:-1] + chances * b[1:-1])
            exact[some] = np.where(is_end[some], b[-1], a[-1])
        return log_of(exact)


def _numbered(block: Segments, separators: Separators) -> tuple[list[str], Ints]:
    # Different separators, and which of them each row has, int64 [rows].
    of_text = {"": 0, " ": 1}
    numbers = np.zeros(len(separators.begins), np.int64)
    some = np.flatnonzero(separators.lengths)
    numbers[some] = (separators.lengths[some] == 1) & (block.data[separators.begins[some]] == ord(" "))
    for row in some[numbers[some] == 0].tolist():
        numbers[row] = of_text.setdefault(separators.text(block, row), len(of_text))
    return list(of_text), numbers


def _steps(begun: Floats, costs: Floats, firsts: Ints, last: Ints, is_end: NDArray[np.bool_]) -> Floats:
    # What each byte adds, float64 [bytes and ends], nats.
    # begun: float64 [bytes and ends], logs of the masses of what has begun so, row by row; costs: float64 [rows], of the
    # row as a whole. That a word ends is told by the byte after it; firsts: int64 [rows], where each begins; last: int64
    # [rows], its last place; is_end: bool [rows], of ends of segments.
    before = np.zeros_like(begun)
    before[1:] = begun[:-1]
    before[firsts] = 0.0
    words = np.flatnonzero(~is_end)
    before[firsts[words + 1]] = begun[last[words]]
    with np.errstate(invalid="ignore"):
        begun = begun.copy()
        begun[firsts[words + 1]] += costs[words]
        # What one more byte adds: ln p(begins with `th`) - ln p(begins with `t`).
        steps = np.minimum(begun - before, 0.0)
    return np.where(before > -np.inf, steps, AFTER_IMPOSSIBLE)
