"""White space as events: a small model of what stands before each word, and behind the last one of a segment.

A separator is the white space before a token, which may be none, or that before the end of a segment. It is predicted
after the token it stands before, from where it is (first in its segment, between tokens, at the end of one, in an empty
one), from the characters on both sides, and from the separator before it. Counts of the finest context fall back on
coarser ones, each with one observation's weight: p(g | c) = (n(c, g) + p(g | coarser c)) / (n(c) + 1). The coarsest
context falls back on a spelling of the separator, character by character, over all white space of Unicode, so that none is
impossible; between tokens that only white space divides it is not empty.
Source: MacKay & Peto (1995), "A hierarchical Dirichlet language model".
"""

# Quotes and dashes that are not ASCII are classes of their own, and whether a straight quote is open is looked at, as this
# lowered what white space costs. The lengths of the words beside it, and the separator two before, did not.

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.decoding import Meta, Whole
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import BETWEEN_WORDS, WHITE_SPACE, Segments

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer

FIRST, INNER, LAST, EMPTY = range(4)
"""Where a separator stands: before the first token, between tokens, behind the last one, in a segment without tokens."""
PLACES, SIDES = 4, 64
AROUND = SIDES * SIDES * 2
"""How many contexts a place has: classes of the characters on both sides, within straight quotes and outside."""
_NO_SIDE, _LETTER, _DIGIT, _OTHER, _CLITIC, _UNSPACED, _OPENING, _CLOSING, _DASH, _MARK, _SYMBOL = range(11)
_NAMED = "".join(chr(byte) for byte in range(33, 127) if not chr(byte).isalnum()) + "«»‹›“”„‘’‚–—…¿¡"
"""Marks that are classes of their own."""
_BY_CATEGORY = {"Ps": _OPENING, "Pi": _OPENING, "Pe": _CLOSING, "Pf": _CLOSING, "Pd": _DASH, "Nd": _DIGIT}
_BY_MAJOR_CATEGORY = {"L": _LETTER, "M": _LETTER, "N": _DIGIT, "P": _MARK, "S": _SYMBOL}
_BEYOND = 1 << 16
_LONGEST = 4  # bytes of a character in UTF-8
_UNSPACED_SCRIPTS = ((0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x2E80, 0xAC00), (0xF900, 0xFB00))
"""Code points of scripts that do without spaces: Thai, Lao; Burmese; Khmer; kana, Han."""


@cache
def character_classes() -> NDArray[np.int64]:
    """Return the class of each character, int64 [65537] by code point; the last is that of all beyond."""
    classes = np.full(_BEYOND + 1, _OTHER, np.int64)
    for code_point in range(_BEYOND):
        category = unicodedata.category(chr(code_point))
        classes[code_point] = _BY_CATEGORY.get(category) or _BY_MAJOR_CATEGORY.get(category[0], _OTHER)
    for begin, end in _UNSPACED_SCRIPTS:
        some = classes[begin:end]
        some[some == _LETTER] = _UNSPACED
    for i, character in enumerate(_NAMED):
        classes[ord(character)] = _SYMBOL + 1 + i
    assert classes.max() < SIDES
    return classes


def _class_of(character: str, *, divided: bool) -> int:
    # Class of a character; all that are not ASCII are of one where white space divides tokens.
    if not character or (divided and not character.isascii()):
        return _OTHER
    return int(character_classes()[min(ord(character), _BEYOND)])


def around(left: bytes, right: bytes, *, quoted: bool, divided: bool) -> int:
    """Return what is around a separator, in one number."""
    side = _class_of(left[-_LONGEST:].decode(errors="ignore")[-1:], divided=divided) if left else _NO_SIDE
    if divided:
        return side * SIDES * 2
    ahead = _class_of(right[:_LONGEST].decode(errors="ignore")[:1], divided=False) if right else _NO_SIDE
    if right.startswith(b"n'") and len(right) == len("n't"):
        ahead = _CLITIC
    return (side * SIDES + ahead) * 2 + quoted


_BEFORE = 8
_MOST_KNOWN = 64
_DENSE = 1 << 21  # keys that are counted in an array of all of them


def _firsts(batch: ScoreBatch) -> NDArray[np.int64]:
    # First row of each segment that has any, int64 [segments].
    events = batch.segment_events
    # events [2, 0, 3] -> firsts [0, 2]
    return (np.cumsum(events) - events)[events > 0]


@dataclass(frozen=True)
class SeparatorScores:
    """What separators cost, and the words behind them that are to be spelled."""

    logprobs: NDArray[np.float64]  # float64 [rows], nats
    unseen: NDArray[np.int64]  # int64 [n], the rows of kind `oov`
    words: Segments  # their tokens, without the white space before them, each as a segment


_Rows = tuple[
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint8],
]
_Rules = tuple[bool, NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


def _rows_of(block: Segments, batch: ScoreBatch) -> _Rows:
    which = batch.segments - block.first
    before_them, crossing = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    if block.given_starts is not None:
        before_them = block.given_lengths()[which]
        if batch.before is not None:
            crossing = batch.before.crossing.astype(np.uint8)
    text = (block.data, block.starts[which], before_them, crossing)
    return *text, batch.segment_events, np.ascontiguousarray(batch.ends), np.ascontiguousarray(batch.kind)


def _rules(known: Sequence[str], *, divided: bool) -> _Rules:
    texts = [text.encode() for text in known]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return divided, np.frombuffer(b"".join(texts), np.uint8), offsets, character_classes()


def _rank_of(which: NDArray[np.int64]) -> NDArray[np.int64]:
    # What a separator counts as where it is looked back at: the commonest have numbers of their own.
    # the commonest six have numbers 1 to 6, all others 7; 0 is for none before it
    return np.where(which < 0, _BEFORE - 1, np.minimum(which + 1, _BEFORE - 1))


def divided_by_white_space(tokenizer: Tokenizer) -> bool:
    """Return True if ASCII white space, and nothing else, divides the tokens; see `SeparatorModel`.

    >>> from lmgauge.text.tokenizers import make_tokenizer
    >>> divided_by_white_space(make_tokenizer("whitespace"))
    True
    """
    return tokenizer.name == "whitespace"


_Count = Annotated[int, Meta(ge=1, lt=1 << 53)]
_Context = Annotated[int, Meta(ge=0, lt=PLACES * AROUND * _BEFORE)]


@dataclass
class StoredSeparators:
    """A model of separators as it is stored."""

    divided: bool
    known: Annotated[list[str], Meta(max_length=_MOST_KNOWN)]
    counts: list[tuple[_Context, Whole, _Count]]
    spelling: list[tuple[str, str, _Count]]

    def __post_init__(self) -> None:
        alphabet = {"", *(BETWEEN_WORDS if self.divided else WHITE_SPACE)}
        if len({*self.known}) < len(self.known) or not {*"".join(self.known)} <= alphabet:
            raise ValueError("`known` has what is not white space, or has it twice")
        if any(which >= len(self.known) for _, which, _ in self.counts):
            raise ValueError("`counts` are of a separator that is not known")


class SeparatorModel:
    """Predicts separators; see the head of the file."""

    # divided: True if ASCII white space, and nothing else, divides tokens: then separators between them are never empty,
    # and what follows need not be known to predict them.

    def __init__(self, stored: StoredSeparators) -> None:
        self._stored, self.divided, self.known = stored, stored.divided, tuple(stored.known)
        self.counts = {(context, which): n for context, which, n in stored.counts}
        self.spelling = {(before, following): n for before, following, n in stored.spelling}
        self.alphabet = BETWEEN_WORDS if stored.divided else WHITE_SPACE
        self._numbers = {text: i for i, text in enumerate(self.known)}

    def to_dict(self) -> dict[str, Any]:
        """Return what is stored, as JSON values."""
        return dict(vars(self._stored))

    def summary(self) -> dict[str, float]:
        """Return what was learned, as plain values."""
        # -> how many were seen, of how many kinds; which share is a single space; and the mean bits that one of them costs.
        rows, table = self._tables
        seen = max(1, sum(self.counts.values()))
        space = self._numbers.get(" ", -1)
        nats = math.fsum(-n * float(table[rows[context], which]) for (context, which), n in self.counts.items())
        return {
            "seen": sum(self.counts.values()),
            "kinds": len(self.known),
            "single_space": sum(n for (_, which), n in self.counts.items() if which == space) / seen,
            "bits": nats / math.log(2) / seen,
        }

    def score(self, block: Segments, batch: ScoreBatch) -> SeparatorScores:
        """Return the log-probability of the separator of each row, float64 [rows], nats, and the words to be spelled."""
        logprobs = np.empty(len(batch))
        row_of_context, table = self._tables
        rows = _rows_of(block, batch)
        unknown, unseen = _native.score_separators(rows, self._rules, row_of_context, table.ravel(), logprobs)
        for row, begin, length, context in unknown.reshape(-1, 4).tolist():  # the last column: all that are not known
            text = block.data[begin : begin + length].tobytes().decode()
            # The last column of the table is a factor: p(separator) = factor(context) p(its characters), see `_base`.
            logprobs[row] += self._spelled(text, context // AROUND)
        number, begins, lengths = unseen.reshape(-1, 3).T
        return SeparatorScores(logprobs, number, Segments(block.data, begins.copy(), begins + lengths, block.source))

    def probabilities(self, context: int) -> NDArray[np.float64]:
        """Return the probabilities of separators in a context, float64 [known + 1]; the last is that of all unknown ones."""
        row_of_context, table = self._tables
        p: NDArray[np.float64] = np.exp(table[row_of_context[context]])
        p[-1] *= self._unknown[context // (AROUND * _BEFORE)]
        return p

    def context_of(self, place: int, left: bytes, right: bytes, before: str | None, *, quoted: bool = False) -> int:
        """Return the context of a separator."""
        which = np.array([0 if before is None else self._numbers.get(before, -1)])
        rank = 0 if before is None else int(_rank_of(which)[0])
        sides = around(left, right, quoted=quoted, divided=self.divided)
        return (place * AROUND + sides) * _BEFORE + rank

    def next_character(self, prefix: str, place: int) -> NDArray[np.float64]:
        """Return the probabilities of what comes next in an unknown separator that begins so."""
        # -> float64 [alphabet + 1], by index into `alphabet`, and last of its end. No known separator can come of it.
        steps = np.array([self._steps[prefix[-1:], following] for following in (*self.alphabet, "")])
        mass = math.exp(self._chain(prefix))
        for text in self.known:
            if text.startswith(prefix):
                following = text[len(prefix) : len(prefix) + 1]
                at = self.alphabet.index(following) if following else len(self.alphabet)
                steps[at] -= math.exp(self._whole(text)) / mass
        if place == INNER and self.divided and not prefix:
            steps[-1] = 0.0
        steps = np.maximum(steps, 0.0)
        probabilities: NDArray[np.float64] = steps / steps.sum()
        return probabilities

    @cached_property
    def _steps(self) -> dict[tuple[str, str], float]:
        totals = Counter[str]()
        for (before, _), n in self.spelling.items():
            totals[before] += n
        # One observation's weight is spread evenly over all characters and the end, so that none is impossible.
        ends, unseen = (*self.alphabet, ""), 1 / (len(self.alphabet) + 1)
        return {(a, b): (self.spelling.get((a, b), 0) + unseen) / (totals[a] + 1) for a in ends for b in ends}

    @cached_property
    def _log_steps(self) -> dict[tuple[str, str], float]:
        return {pair: math.log(p) for pair, p in self._steps.items()}

    def _chain(self, text: str) -> float:
        # Log of the probability that a separator begins so.
        return math.fsum(map(self._log_steps.__getitem__, zip(["", *text], text, strict=False)))

    def _whole(self, text: str) -> float:
        # Log of the probability that a separator begins so and ends there.
        return self._chain(text) + self._log_steps[text[-1:], ""]

    def _spelled(self, text: str, place: int) -> float:
        # Log-probability of a separator, character by character.
        logprob = self._whole(text)
        if place == INNER and self.divided:
            return logprob - math.log1p(-self._steps["", ""]) if text else -math.inf
        return logprob

    def _base(self, place: int) -> NDArray[np.float64]:
        # Spelled probabilities of the known separators, and one for all others: float64 [known + 1].
        # The last entry is a factor, not a probability: unknown separators multiply it with their own spelling.
        return np.array([*(math.exp(self._spelled(text, place)) for text in self.known), 1.0])

    @cached_property
    def _unknown(self) -> list[float]:
        return [1.0 - math.fsum(self._base(place)[:-1]) for place in range(PLACES)]

    @cached_property
    def _rules(self) -> _Rules:
        return _rules(self.known, divided=self.divided)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        # Row of each context, and the log-probabilities of each row: float64 [rows, known + 1].
        finest: dict[int, Counter[int]] = {}
        middle: dict[int, Counter[int]] = {}
        coarsest: dict[int, Counter[int]] = {place: Counter() for place in range(PLACES)}
        for (context, which), n in self.counts.items():
            finest.setdefault(context, Counter())[which] += n
            middle.setdefault(context // _BEFORE, Counter())[which] += n
            coarsest[context // (_BEFORE * AROUND)][which] += n
        # From coarse to fine, so that each row finds the one that it falls back on.
        rows = [self._mixed(coarsest[place], self._base(place)) for place in range(PLACES)]
        row_of = np.repeat(np.arange(PLACES, dtype=np.int32), AROUND * _BEFORE)
        for context, counts in sorted(middle.items()):
            rows.append(self._mixed(counts, rows[context // AROUND]))
            row_of[context * _BEFORE : (context + 1) * _BEFORE] = len(rows) - 1
        for context, counts in sorted(finest.items()):
            rows.append(self._mixed(counts, rows[row_of[context]]))
            row_of[context] = len(rows) - 1
        with np.errstate(divide="ignore"):
            return row_of, np.log(np.array(rows))

    def _mixed(self, counts: Counter[int], coarser: NDArray[np.float64]) -> NDArray[np.float64]:
        p = coarser.copy()
        for which, n in counts.items():
            p[which] += n
        # counts [3, 1], coarser [0.5, 0.25, 0.25] -> [3.5, 1.25, 0.25] / 5 = [0.7, 0.25, 0.05]
        mixed: NDArray[np.float64] = p / (counts.total() + 1)
        return mixed


def _counted(keys: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Different keys, below a bound, and how often each occurs.
    if bound > _DENSE:
        return np.unique(keys, return_counts=True)
    times = np.bincount(keys)
    different = np.flatnonzero(times)
    return different, times[different]


class SeparatorCounts:
    """Counts the separators of a text as it goes by."""

    def __init__(self, *, divided: bool) -> None:
        self._divided = divided
        self._numbers = {" ": 0, "": 1}
        self._times = Counter[int]()
        self._counts = Counter[tuple[int, int, int]]()

    def add(self, block: Segments, batch: ScoreBatch) -> None:
        """Count the separators of a block."""
        context, which = np.empty(len(batch), np.int32), np.empty(len(batch), np.int32)
        rules = _rules(list(self._numbers)[:_MOST_KNOWN], divided=self._divided)
        unknown, _ = _native.find_separators(_rows_of(block, batch), rules, context, which)
        for row, begin, length, _ in unknown.reshape(-1, 4).tolist():
            text = block.data[begin : begin + length].tobytes().decode()
            which[row] = self._numbers.setdefault(text, len(self._numbers))
        before = np.zeros(len(which), np.int64)
        before[1:] = which[:-1] + 1
        before[_firsts(batch)] = 0
        size = len(self._numbers) + 1
        # context 2, before 1, which 3 of size 5 -> (2 * 5 + 1) * 5 + 3 = 58; divmod by 5 gives them back.
        keys, n = _counted((context * np.int64(size) + before) * size + which, PLACES * AROUND * size * size)
        for key, count in zip(keys.tolist(), n.tolist(), strict=True):
            rest, one = divmod(key, size)
            self._counts[(*divmod(rest, size), one)] += count
            self._times[one] += count

    def finish(self) -> SeparatorModel:
        """Return the model of what was counted."""
        texts = list(self._numbers)
        order = sorted(self._times, key=lambda i: (-self._times[i], texts[i]))[:_MOST_KNOWN]
        rank = np.full(len(texts) + 1, -1, np.int64)
        rank[np.array(order, np.int64)] = np.arange(len(order))
        looked_back_at = [0, *_rank_of(rank[:-1]).tolist()]  # nothing before it; each separator
        counts = Counter[tuple[int, int]]()
        spelling = Counter[tuple[str, str]]()
        for (context, before, which), n in sorted(self._counts.items()):
            if rank[which] >= 0:
                counts[context * _BEFORE + looked_back_at[before], int(rank[which])] += n
        for text in texts:  # each once: what new ones are like
            spelling.update(zip(["", *text], [*text, ""], strict=True))
        listed = [(context, which, n) for (context, which), n in sorted(counts.items())]
        steps = [(before, following, n) for (before, following), n in sorted(spelling.items())]
        return SeparatorModel(StoredSeparators(self._divided, [texts[i] for i in order], listed, steps))
