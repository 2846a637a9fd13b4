"""Characters as bytes: the bytes of the UTF-8 of the next character, one after another, and the sums that this takes.

Bytes are predicted by how probable it is that the next word, or character, lies in a range of those, in the order of their
UTF-8. All words that begin with the same bytes are neighbors in that order. Any model can add up its distribution. A
back-off model needs only the words seen after a context h, C(h), as the other ones are as probable as after the shorter
context h' times the back-off weight g: with M(h) the mass of a range after h,

    M(h) = g M(h') + sum over C(h) in the range of (p(w|h) - g p(w|h'))

    range: the, there, they    p(.|h'): 0.2 0.1 0.1    C(h): they, p(they|h) = 0.4, g = 0.5
    M(h) = 0.5 (0.2 + 0.1 + 0.1) + (0.4 - 0.5 0.1) = 0.55 = 0.1 + 0.05 + 0.4
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.combined.spelling.speller import UnseenCharacters
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.ngram_arrays import Level, levels_of, make_keys
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.models.protocol import LanguageModel
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.scores.distributions.blocks import BlockDistributions, distributions_of
from lmgauge.scores.distributions.tile import as_numpy
from lmgauge.text.segments import UTF8_LENGTHS, Segments
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masses = Callable[[Ints, Ints, Ints], Floats]
"""From events of a block, first places and places behind the last (int64 [n] each) to masses, float64 [n]."""
AFTER_IMPOSSIBLE = -float(np.log(256))
"""Nats of each byte but NUL, and of the end, behind bytes that a model holds impossible: no better than chance."""
_NONE = -1


def range_sums(values: Floats, low: Ints, high: Ints) -> Floats:
    """Return sums of values over ranges, float64 [n]; each is added up on its own, so that small ones keep their digits."""
    # range_sums([0.5, 0.25, 0.125], [0, 1, 2], [3, 2, 2]) -> [0.875, 0.25, 0.0]
    # values: float64; low: int64 [n], first places; high: int64 [n], places behind the last; a range may be empty.
    sums = np.zeros(len(low))
    some = np.flatnonzero(high > low)
    if not len(some):
        return sums
    first, last = int(low[some].min()), int(high[some].max())
    keys, which = np.unique(make_keys(low[some] - first, high[some] - first), return_inverse=True)
    # From the last range to the first: reduceat adds up what lies between two of them as well, and then nothing does.
    # ranges (0, 3), (1, 2) -> bounds [1, 2, 0, 3] -> reduceat [v1, v2, v0 + v1 + v2, 0]; every second is a range. A place
    # that is not below the next gives the value at it, which is not looked at.
    bounds = np.stack((keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)), axis=1)[::-1].astype(np.int64)
    each = np.add.reduceat(np.concatenate((values[first:last], [0.0])), bounds.reshape(-1))[::2]
    sums[some] = each[::-1][which]
    return sums


class RangeMasses:
    """Answers, for the events of blocks, how probable ranges of tokens are."""

    # order: int64 [n], ids of the tokens that ranges are made of, in their order.

    def __init__(self, model: LanguageModel, order: Ints, *, listed: bool = True) -> None:
        size = len(model.vocabulary)
        others = np.ones(size, bool)
        others[order] = False
        self.order = np.concatenate((order, np.flatnonzero(others)))
        self.places = np.empty(size, np.int64)
        # order [4, 3, 0, 1, 2] -> places [2, 3, 4, 1, 0]
        self.places[self.order] = np.arange(size)
        self._model = model
        self._backing_off = _BackingOff(model, self.places) if listed and backs_off(model) else None

    def of_block(self, block: Segments, batch: ScoreBatch) -> Masses:
        """Return what answers for one block.

        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["a b", "ab c"])
        >>> model = lmgauge.train("witten-bell", text, order=2)
        >>> block = next(iter(text))
        >>> masses = RangeMasses(model, np.array([3, 4])).of_block(block, model.score_block(block))
        >>> masses(np.array([0, 1]), np.zeros(2, np.int64), np.full(2, len(model.vocabulary))).round(6).tolist()
        [1.0, 1.0]
        """
        # -> from numbers of events, first places and places behind the last, int64 [n] each, to probabilities, float64 [n].
        if self._backing_off is not None:
            return self._backing_off.of_rows(batch)

        def masses(events: Ints, low: Ints, high: Ints) -> Floats:
            asked, which = np.unique(events, return_inverse=True)
            if not len(asked):
                return np.zeros(0)
            (whole,) = distributions_of(self._model, iter([block]), events=asked)
            return self._summed(whole, which, low, high)

        return masses

    def of_distribution(self, p: Floats, low: Ints, high: Ints) -> Floats:
        """Return masses of ranges in one distribution, float64 [n].

        >>> import lmgauge
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]))
        >>> p = np.array([0.125, 0.0, 0.125, 0.25, 0.5])
        >>> RangeMasses(model, np.array([3, 4])).of_distribution(p, np.array([0, 1]), np.array([2, 2])).tolist()
        [0.75, 0.5]
        """
        # p: float64 [vocabulary], probabilities; low: int64 [n], first places; high: int64 [n], places behind the last.
        first, last = int(low.min(initial=len(p))), int(high.max(initial=0))
        return range_sums(p[self.order[first:last]], low - first, high - first)

    def _summed(self, whole: BlockDistributions, rows: Ints, low: Ints, high: Ints) -> Floats:
        # Masses of ranges, each in a row of distributions that come in tiles.
        sums, done = np.zeros(len(rows)), 0
        by_row = np.argsort(rows, kind="stable")
        sorted_rows = rows[by_row]
        for tile in whole.tiles():
            here = by_row[np.searchsorted(sorted_rows, done) : np.searchsorted(sorted_rows, done + len(tile))]
            p = np.exp(as_numpy(tile.logprob).astype(np.float64))[:, self.order]
            first = (rows[here] - done) * p.shape[1]
            sums[here] = range_sums(p.reshape(-1), first + low[here], first + high[here])
            done += len(tile)
        return sums


def backs_off(model: LanguageModel) -> TypeGuard[NgramModel]:
    """Return True for an n-gram model whose ranges follow from the words seen after each context."""
    if not isinstance(model, NgramModel) or not isinstance(model.tables, NgramTables):
        return False
    return not model.tables.full_context and model.blocks_are_independent and model.settings.eos


class _BackingOff:
    """The n-grams of a model, the words after each context in the order that ranges are of."""

    # places: int64 [vocabulary], of each word in that order.

    def __init__(self, model: NgramModel, places: Ints) -> None:
        self._places = places
        unigrams = model.tables.unigrams.astype(np.float64)
        unigrams[BOS, 0] = 0.0
        self._weights = [unigrams[:, 1]]  # of contexts of 1, 2, ... words
        self._keys: list[NDArray[np.uint64]] = []  # context and place of the last word, of each n-gram
        self._differences: list[Floats] = []  # p(w|h) - g p(w|h')
        p, number_of = unigrams[:, 0], np.arange(len(unigrams))
        shorter = p
        self._first = np.empty(len(unigrams))
        self._first[places] = p
        for level in levels_of(model.tables):
            p, number_of, shorter = self._add(level, number_of, shorter)

    def _add(self, level: Level, number_of: Ints, shorter: Floats) -> tuple[Floats, Ints, Floats]:
        # Take a level; return probabilities by row as the tables have it, and the number here of each of its rows.
        # number_of: int64 [rows of the order below], their numbers here; shorter: float64 [rows of the order below], their
        # probabilities.
        weight = self._weights[-1][number_of[level.parents]]
        backed_off = weight * shorter[level.suffixes]
        p = np.where(level.listed, level.probabilities, backed_off)
        keys = make_keys(number_of[level.parents], self._places[level.words])
        order = np.argsort(keys)
        self._keys.append(keys[order])
        self._differences.append((p - backed_off)[order])
        self._weights.append(level.weights[order])
        numbers = np.empty(len(level), np.int64)
        numbers[order] = np.arange(len(level))
        return p, numbers, p

    def of_rows(self, batch: ScoreBatch) -> Masses:
        # What answers for the events of a batch whose segments are contexts of their own.
        contexts = self._contexts(batch)

        def masses(events: Ints, low: Ints, high: Ints) -> Floats:
            sums = range_sums(self._first, low, high)
            for keys, differences, weights, of_event in zip(
                self._keys, self._differences, self._weights, contexts, strict=False
            ):
                context = of_event[events]
                seen = np.flatnonzero(context != _NONE)
                bounds = (np.searchsorted(keys, make_keys(context[seen], bound[seen])) for bound in (low, high))
                # Horner's scheme over M(h) = g M(h') + sum of (p - g q): from single words to the longest context.
                sums[seen] = weights[context[seen]] * sums[seen] + range_sums(differences, *bounds)
            return np.maximum(sums, 0.0)

        return masses

    def _contexts(self, batch: ScoreBatch) -> list[Ints]:
        # Number of the context of 1, 2, ... words of each event, int64 [events]; -1 for one without n-grams.
        counts = batch.segment_events[batch.segment_events > 0]
        firsts = np.cumsum(counts) - counts
        before = np.empty(len(batch), np.int64)  # the last word of each context
        before[1:] = batch.token_ids[:-1]
        # ids [a, b, </s>, c, </s>] of segments of 3 and 2 -> before [<s>, a, b, <s>, c]
        before[firsts] = BOS
        contexts = [before]
        for keys in self._keys[:-1]:
            shorter = np.empty_like(before)
            shorter[1:] = contexts[-1][:-1]
            shorter[firsts] = _NONE
            longer = np.full(len(before), _NONE)
            seen = np.flatnonzero(shorter != _NONE)
            wanted = make_keys(shorter[seen], self._places[before[seen]])
            at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            longer[seen] = np.where(keys[at] == wanted, at, _NONE) if len(keys) else _NONE
            contexts.append(longer)
        return contexts if self._keys else []


def log_of(masses: Floats) -> Floats:
    """Return natural logs, -inf of 0.

    >>> log_of(np.array([1.0, 0.0])).tolist()
    [0.0, -inf]
    """
    # masses: float64 [n], probabilities.
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(masses)
    return logs


def runs(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers from each start on, one run after another."""
    # starts: int64 [n]; counts: int64 [n], how many of each.
    # runs([5, 0], [2, 3]) -> [5, 6, 0, 1, 2]
    # starts [5, 0], counts [2, 3]: offsets 5 - 2 + 2 = 5 and 0 - 5 + 3 = -2 on [0, 1 | 2, 3, 4]
    numbers: Ints = np.arange(int(counts.sum())) + np.repeat(starts - np.cumsum(counts) + counts, counts)
    return numbers


def segments_of(texts: Sequence[bytes]) -> Segments:
    """Return texts as the segments of a block."""
    # segments_of([b"a", b"bc"]).text(1) -> b'bc'
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(texts)]
    return Segments(np.frombuffer(b"".join(texts), np.uint8), starts, ends, "texts")


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
