"""The speller: how probable a word is as a string of characters, and what is left where known words are taken out.

Characters that it has not met are told apart by the bytes of their UTF-8, and none is impossible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import ModelFileError
from lmgauge.text.encoding import encode
from lmgauge.text.segments import BETWEEN_WORDS, Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, Vocabulary, VocabularyBuilder

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel

_FIRST_WORD = len(SPECIAL_TOKENS)
_PREFIXES = 1 << 14
_MOST_BRACKETS = 16
_MANY = 64  # words among which the same ones are looked for, to spell each once

_CODE_POINTS = 0x110000
_SURROGATES = slice(0xD800, 0xE000)
# What the bytes of UTF-8 fix one after another: blocks of 4,096 and 64 code points, and the code point.
_BLOCKS = (1 << 12, 1 << 6, 1)


class UnseenCharacters:
    """A distribution over the characters outside an alphabet."""

    # Level by level (blocks of 4,096 code points, of 64, single ones), a part that holds k of the n characters that the
    # alphabet has in the block has the probability (k + s) / (n + 1), where s is the part's share of that block's code
    # points: scripts that the alphabet has are likelier than others. The alphabet itself is then left out.
    # alphabet: the characters that are not unseen, each once.

    def __init__(self, alphabet: Sequence[str], impossible: Sequence[str] = "") -> None:
        self._alphabet = np.array([ord(character) for character in alphabet], np.int64)
        self._impossible = np.array([ord(character) for character in impossible], np.int64)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Return probabilities by code point, float64 [1,114,112]."""
        # They sum to one, 0 for what is not an unseen character.
        size, seen = np.ones(_CODE_POINTS), np.zeros(_CODE_POINTS)
        size[_SURROGATES] = 0.0
        seen[self._alphabet] = 1.0
        p = np.ones(1)
        above, above_seen = size.sum(keepdims=True), seen.sum(keepdims=True)
        for width in _BLOCKS:
            here, here_seen = size.reshape(-1, width).sum(axis=1), seen.reshape(-1, width).sum(axis=1)
            times = len(here) // len(p)
            share = here / np.repeat(np.maximum(above, 1.0), times)
            # An alphabet of a, b, c: the block of 64 that has them holds 3 of 3, and gets (3 + 1/64) / 4 of its block of
            # 4,096; each of the other 63 blocks (0 + 1/64) / 4.
            p = np.repeat(p, times) * (here_seen + share) / np.repeat(above_seen + 1.0, times)
            above, above_seen = here, here_seen
        p[self._alphabet] = 0.0
        p[self._impossible] = 0.0
        p[_SURROGATES] = 0.0
        probabilities: NDArray[np.float64] = p / p.sum()
        return probabilities

    @cached_property
    def log_probabilities(self) -> NDArray[np.float64]:
        """Natural logs of `probabilities`, float64 [1,114,112]."""
        with np.errstate(divide="ignore"):
            logprob: NDArray[np.float64] = np.log(self.probabilities)
        logprob.setflags(write=False)
        return logprob

    def logprob(self, character: str) -> float:
        """Return the natural log of the probability of a character; -inf for one of the alphabet."""
        return float(self.log_probabilities[ord(character)])

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        # Logs by code point, 0 for what is not an unseen character: float64 [1,114,112], nats.
        logs: NDArray[np.float64] = np.where(self.probabilities > 0, self.log_probabilities, 0.0)
        return logs

    def logprobs(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the sums of the logs of the unseen characters of texts, float64 [texts], nats."""
        # UnseenCharacters("abc", " ").logprobs(["abc", "ad"]).tolist()[0] -> 0.0
        lengths = np.array([len(text) for text in texts], np.int64)
        points = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4")
        sums = np.zeros(len(texts))
        if len(points):
            some = lengths > 0
            # texts ["ab", "", "c"] -> lengths [2, 0, 1], starts [0, 2, 2]; reduceat gives an empty text the next character,
            # so that it is left out.
            sums[some] = np.add.reduceat(self._logs[points], (np.cumsum(lengths) - lengths)[some])
        return sums


class Speller:
    """A model of characters that gives every word without white space a probability q(w), end of word included."""

    def __init__(self, characters: NgramModel) -> None:
        self.characters = characters
        self.unseen = UnseenCharacters(characters.vocabulary.tokens[_FIRST_WORD:], BETWEEN_WORDS + "\0")

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 of the model of characters: it determines all probabilities."""
        return self.characters.fingerprint

    def logprobs(self, words: Segments) -> NDArray[np.float64]:
        """Return ln q of words, float64 [words], nats."""
        if len(words) < _MANY:
            return self._logprobs(words)
        different = VocabularyBuilder()
        ids = encode(words, make_tokenizer("whitespace"), different, bos=False, eos=False, reserved="escape").ids
        if len(ids) != len(words):  # white space within words, or nothing but it
            return self._logprobs(words)
        # words [the, cat, the] -> different [the, cat], ids [3, 4, 3] -> rows [0, 1, 0]: each is spelled once.
        return self._logprobs(words_of(different.finish()))[ids - _FIRST_WORD]

    def _logprobs(self, words: Segments) -> NDArray[np.float64]:
        totals = self.characters.sum_block(words)
        logprobs: NDArray[np.float64] = np.where(totals.zeros > 0, -np.inf, totals.nats)
        foreign = np.flatnonzero(totals.unseen)
        if len(foreign):
            logprobs[foreign] += self.unseen.logprobs([words.text(i).decode() for i in foreign.tolist()])
        return logprobs


class Spelling:
    """A speller beside a vocabulary, whose words are not spelled."""

    def __init__(self, speller: Speller, known: Vocabulary, known_mass: float | None = None) -> None:
        self.speller, self.known = speller, known
        self.known_mass = self._sum_known() if known_mass is None else known_mass
        if not self.known_mass < 1:
            raise ModelFileError(f"known words have all of the probability that the speller has to give: {self.known_mass}")

    def summary(self) -> dict[str, float]:
        """Return what was learned, as plain values."""
        # -> how many words it learned from, the order of their n-grams, the size of the alphabet, and the probability that
        # it gives to known words, which are never spelled.
        characters = self.speller.characters
        return {
            "words": characters.record.training.get("segments", 0),
            "order": characters.order,
            "alphabet": len(characters.vocabulary) - _FIRST_WORD,
            "known_mass": self.known_mass,
        }

    def _sum_known(self) -> float:
        # The empty word counts as known: what is spelled has at least one character.
        return math.fsum([*np.exp(self._known_logprobs).tolist(), self._empty])

    @property
    def _empty(self) -> float:
        first = self.speller.characters.log_distribution(np.array([BOS], np.uint32))
        return float(np.exp(first[EOS]))

    @cached_property
    def _known_logprobs(self) -> NDArray[np.float64]:
        # The logarithm of q of each known word, float64 [vocabulary - 3].
        return self.speller.logprobs(words_of(self.known))

    def logprobs(self, words: Segments) -> NDArray[np.float64]:
        """Return the natural logs of the probabilities of unseen words, float64 [words]: of which word it is."""
        # p(word | it is unseen) = q(word) / (1 - q(known words)): no known word is spelled, so their mass is not lost.
        return self.speller.logprobs(words) - math.log1p(-self.known_mass)

    def next_character(self, prefix: str) -> NDArray[np.float64]:
        """Return the probabilities of what comes next in an unseen word that begins so."""
        # -> float64 [alphabet], by ids of `speller.characters.vocabulary`: `</s>` ends the word, `<unk>` is a character
        # outside the alphabet (`speller.unseen` says which). No known word can come of it: products are `logprobs`.
        return self._next_character(prefix).copy()

    @cached_property
    def _next_character(self) -> Callable[[str], NDArray[np.float64]]:
        return lru_cache(maxsize=_PREFIXES)(self._compute_next_character)

    def _compute_next_character(self, prefix: str) -> NDArray[np.float64]:
        vocabulary = self.speller.characters.vocabulary
        ids = np.concatenate(([BOS], vocabulary.ids(prefix))).astype(np.uint32)
        p = np.exp(self.speller.characters.log_distribution(ids))
        # All words that begin so, less the known ones among them; what is left is divided by its sum.
        p -= self._known_next(prefix.encode(), self._prefix_logprob(ids, prefix))
        if not prefix:
            p[EOS] = 0.0
        p = np.maximum(p, 0.0)
        probabilities: NDArray[np.float64] = p / p.sum()
        return probabilities

    def _prefix_logprob(self, ids: NDArray[np.uint32], prefix: str) -> float:
        # Log of the probability that a word begins so, nats.
        steps = (
            float(self.speller.characters.log_distribution(ids[: i + 1])[following]) for i, following in enumerate(ids[1:])
        )
        return math.fsum([*steps, float(self.speller.unseen.logprobs([prefix])[0])])

    def _known_next(self, prefix: bytes, logprob: float) -> NDArray[np.float64]:
        # How much of what comes next leads to known words, by character: float64 [alphabet], of the prefix' mass.
        from bisect import bisect_left

        words, logprobs = self._sorted_words
        vocabulary = self.speller.characters.vocabulary
        low = bisect_left(words, prefix)
        # words [a, the, they, to], prefix `the` -> 1 to 3: all that begin so are neighbors.
        high = bisect_left(words, prefix + b"\xff", lo=low)  # no UTF-8 has this byte
        following = np.empty(high - low, np.int64)
        of_character: dict[bytes, int] = {b"": EOS}
        for i, word in enumerate(words[low:high]):
            rest = word[len(prefix) : len(prefix) + 4]
            character = rest[: _length(rest)]
            if character not in of_character:
                of_character[character] = vocabulary.id(character.decode())
            following[i] = of_character[character]
        return np.bincount(following, np.exp(logprobs[low:high] - logprob), len(vocabulary)).astype(np.float64)

    @cached_property
    def _sorted_words(self) -> tuple[list[bytes], NDArray[np.float64]]:
        # Known words in the order of their bytes, and ln q of each.
        words = words_of(self.known)
        texts = [words.text(i) for i in range(len(words))]
        order = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
        return [texts[i] for i in order.tolist()], self._known_logprobs[order]


def _length(rest: bytes) -> int:
    first = rest[0] if rest else 0
    # The first byte says how long a character is: 0xxxxxxx 1, 110xxxxx 2, 1110xxxx 3, 11110xxx 4.
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0) if rest else 0


def words_of(vocabulary: Vocabulary) -> Segments:
    """Return the words of a vocabulary as texts have them, without `<unk>`, `<s>` and `</s>`, each as a segment."""
    # A word that looks reserved has more brackets in the vocabulary (`<<unk>>`) than in the text: one less on each side.
    bounds = vocabulary.offsets
    starts, ends = bounds[_FIRST_WORD:-1].copy(), bounds[_FIRST_WORD + 1 :].copy()
    for special in SPECIAL_TOKENS:
        for more in range(1, _MOST_BRACKETS):
            place = vocabulary.id("<" * more + special + ">" * more) - _FIRST_WORD
            if place >= 0:
                starts[place] += 1
                ends[place] -= 1
    return Segments(vocabulary.bytes, starts, ends, "the vocabulary")
