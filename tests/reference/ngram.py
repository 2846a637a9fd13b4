"""Smoothed n-gram models in the slow and obvious way: dictionaries of tuples of strings, float64, a formula a method.

This is the oracle that the fast engine is held against. It shares no code with the package and follows the papers:

* Chen & Goodman 1999, "An empirical study of smoothing techniques for language modeling" (Computer Speech &
  Language 13, 359-394): Witten-Bell, absolute discounting, Kneser-Ney and modified Kneser-Ney;
* Katz 1987, "Estimation of probabilities from sparse data for the language model component of a speech recognizer"
  (IEEE Trans. ASSP 35, 400-401): Good-Turing with back-off, in the details as SRILM's `ngram-count`;
* Heafield et al. 2013, "Scalable modified Kneser-Ney language model estimation" (ACL): cut-offs, unigrams
  interpolated with the uniform distribution, `<unk>` in the vocabulary.

An event is a word or the one `</s>` of its line; a context starts with one `<s>`, which is never predicted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

BOS, EOS, UNK = "<s>", "</s>", "<unk>"
KINDS = (
    "mle",
    "laplace",
    "lidstone",
    "witten-bell",
    "absolute-discounting",
    "kneser-ney",
    "modified-kneser-ney",
    "good-turing",
)
FALLBACK = (0.5, 1.0, 1.5)
"""Modified Kneser-Ney discounts where an order has too few counts to estimate its own (KenLM `--discount_fallback`)."""
NO_MASS = 1e-12
"""Probability mass below this is what rounding leaves of none."""
LOWEST_FACTOR = 3e-6
"""A Good-Turing factor not above this is out of range (SRILM `Prob_Epsilon`)."""
KATZ_LIMIT = 7
"""Good-Turing leaves counts above this alone (SRILM `-gtNmax`); for unigrams the limit is 1."""

Gram = tuple[str, ...]
Number = TypeVar("Number", int, float)


class ReferenceNgram:
    """An n-gram model of `sentences`.

    Parameters
    ----------
    kind : one of KINDS.
    order : length of the longest n-gram, context and predicted word together.
    sentences : the training lines, each a sequence of words, without `<s>` and `</s>`.
    vocabulary : "open" adds `<unk>`, to which every unlisted word is mapped; in a "closed" one an unlisted word
        has probability zero.
    min_count : words seen less often than this become `<unk>` (open vocabulary).
    words : the vocabulary, if given; otherwise it is the words of the text.
    interpolate : False for the back-off version; Good-Turing always backs off; mle, laplace and lidstone do neither.
    discount : absolute discounting: one discount, or one per order (the last repeats); None estimates them.
    k : lidstone: what is added to each count; laplace adds 1.
    cutoffs : n-grams of order i seen at most `cutoffs[i - 1]` times in the text are dropped (the last value
        repeats); unigrams are never dropped.
    context : "sentence": each line has its own `<s>`; "stream": one `<s>` before the first line, and `</s>` is
        context like any word.
    eos : False leaves `</s>` out: it is neither counted nor an event, and not in the vocabulary.
    """

    def __init__(
        self,
        kind: str,
        order: int,
        sentences: Iterable[Sequence[str]],
        *,
        vocabulary: str = "open",
        min_count: int = 1,
        words: Iterable[str] | None = None,
        interpolate: bool = True,
        discount: float | Sequence[float] | None = None,
        k: float | None = None,
        cutoffs: Sequence[int] = (),
        context: str = "sentence",
        eos: bool = True,
    ) -> None:
        if kind not in KINDS or vocabulary not in ("open", "closed") or context not in ("sentence", "stream"):
            raise ValueError(f"no such option: {kind=} {vocabulary=} {context=}")
        self.kind, self.order, self.context_policy = kind, order, context
        self.ends = (EOS,) if eos else ()
        self.k = {"mle": 0.0, "laplace": 1.0}.get(kind, 1.0 if k is None else k)
        self.backs_off = kind == "good-turing" or not interpolate
        lines = [tuple(line) for line in sentences]
        self.vocabulary = self._choose_vocabulary(lines, vocabulary, min_count, words) - ({EOS} - {*self.ends})
        self._cutoffs = [0] + [_repeat_last(cutoffs, n) if cutoffs else 0 for n in range(2, order + 1)]
        self._raw = self._count(lines)
        self._adjusted = self._adjust()
        self._followers = [_by_context(grams) for grams in self._adjusted]
        self.discounts = [self._estimate_discount(n, discount) for n in range(1, order + 1)]
        self._contexts: dict[Gram, tuple[float, float]] = {}
        self._back_offs: dict[Gram, tuple[float, float]] = {}
        self._unigrams: dict[str, float] = {}

    # -- counts -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _choose_vocabulary(
        lines: list[Gram], vocabulary: str, min_count: int, words: Iterable[str] | None
    ) -> frozenset[str]:
        """Every word that can be predicted: the types, `</s>`, and `<unk>` if the vocabulary is open."""
        seen = Counter(word for line in lines for word in line)
        listed = [word for word, count in seen.items() if count >= min_count] if words is None else words
        if vocabulary == "closed" and not seen.keys() <= set(listed):
            raise ValueError("a closed vocabulary lists every word of the training text")
        return frozenset(listed) | ({EOS, UNK} if vocabulary == "open" else {EOS})

    def known(self, word: str) -> str:
        """`word` as the model sees it: itself, or `<unk>` if the vocabulary is open and does not list it."""
        return UNK if word not in self.vocabulary and word != BOS and UNK in self.vocabulary else word

    def _events(self, lines: Iterable[Sequence[str]]) -> Iterable[Gram]:
        """The longest n-gram ending at each event, in reading order; its last word is the event."""
        history: list[str] = [BOS]
        for line in lines:
            if self.context_policy == "sentence":
                history = [BOS]
            for word in (*line, *self.ends):
                history.append(self.known(word))
                yield tuple(history[-self.order :])
                del history[: -self.order]

    def _count(self, lines: list[Gram]) -> list[Counter[Gram]]:
        """How often each n-gram of length 1, 2, ... `order` occurs in the text; a lone `<s>` is no event."""
        raw: list[Counter[Gram]] = [Counter() for _ in range(self.order)]
        for longest in self._events(lines):
            for n in range(1, len(longest) + 1):
                raw[n - 1][longest[-n:]] += 1
        return raw

    def _adjust(self) -> list[Counter[Gram]]:
        """Kneser-Ney: below the highest order, the number of distinct words seen to the left in place of the count.

        N-grams that begin with `<s>` have nothing to their left and keep their count (as in KenLM and SRILM).
        """
        if self.kind not in ("kneser-ney", "modified-kneser-ney"):
            return self._raw
        adjusted = [Counter({g: c for g, c in grams.items() if g[0] == BOS}) for grams in self._raw[:-1]]
        for n in range(2, self.order + 1):
            for gram in self._raw[n - 1]:
                adjusted[n - 2][gram[1:]] += 1
        return [*adjusted, self._raw[-1]]

    def counts(self, order: int) -> dict[Gram, int]:
        """How often each kept n-gram of length `order` occurs in the text (before Kneser-Ney adjusts anything)."""
        cutoff = self._cutoffs[order - 1]
        return {gram: count for gram, count in self._raw[order - 1].items() if count > cutoff}

    def adjusted_counts(self, order: int) -> dict[Gram, int]:
        """The counts that the estimate uses, of the kept n-grams of length `order`."""
        return {gram: self._adjusted[order - 1][gram] for gram in self.counts(order)}

    def _is_kept(self, gram: Gram) -> bool:
        return self._raw[len(gram) - 1][gram] > self._cutoffs[len(gram) - 1]

    # -- discounts ----------------------------------------------------------------------------------------------------

    def _estimate_discount(self, n: int, given: float | Sequence[float] | None) -> tuple[float, ...]:
        """What is taken off the counts of order n, from the counts of all its n-grams, dropped ones included.

        Modified Kneser-Ney: (D1, D2, D3+). Kneser-Ney and absolute discounting: (D,). Good-Turing: the factor of each
        count from 1 up, () for no discounting. Others: ().
        """
        counts = self._adjusted[n - 1].values()
        if self.kind == "modified-kneser-ney":
            return modified_kneser_ney_discounts(counts)
        if self.kind == "absolute-discounting" and given is not None:
            return (given if isinstance(given, (int, float)) else _repeat_last(given, n),)
        if self.kind in ("kneser-ney", "absolute-discounting"):
            return (ney_discount(counts),)
        if self.kind == "good-turing":
            return katz_factors(counts, 1 if n == 1 else KATZ_LIMIT)
        return ()

    def _numerator(self, count: int, n: int) -> float:
        """What is left of an adjusted count of order n when its discount is taken off."""
        discounts = self.discounts[n - 1]
        if self.kind == "good-turing":
            return count * discounts[count - 1] if count <= len(discounts) else float(count)
        if not discounts:
            return float(count)
        return max(0.0, count - discounts[min(count, len(discounts)) - 1])

    # -- probabilities ------------------------------------------------------------------------------------------------

    def probability(self, word: str, context: Sequence[str]) -> float:
        """p(word | the last `order - 1` words of context); context starts with `<s>` where the text does."""
        word, history = self.known(word), tuple(self.known(w) for w in context)
        if word not in self.vocabulary:
            return 0.0
        return self._p(word, history[max(0, len(history) - self.order + 1) :])

    def _p(self, word: str, context: Gram) -> float:
        if self.kind in ("mle", "laplace", "lidstone"):
            return self._additive(word, context)
        return self._backed_off(word, context) if self.backs_off else self._interpolated(word, context)

    def _additive(self, word: str, context: Gram) -> float:
        """(c(h w) + k) / (c(h) + k V) in every context, without back-off.

        k = 0 is maximum likelihood: all zero in a context that was never seen.
        """
        total, _ = self._context(context)
        denominator = total + self.k * len(self.vocabulary)
        gram = (*context, word)
        count = self._raw[len(context)][gram] if self._is_kept(gram) else 0
        return (count + self.k) / denominator if denominator else 0.0

    def _interpolated(self, word: str, context: Gram) -> float:
        """numerator(c(h w)) / Z(h) + gamma(h) p(w | shorter h), below unigrams the uniform distribution."""
        lower = self._interpolated(word, context[1:]) if context else 1.0 / len(self.vocabulary)
        z, gamma = self._context(context)
        if not z:
            return lower
        gram = (*context, word)
        own = self._numerator(self._adjusted[len(context)][gram], len(gram)) if self._is_kept(gram) else 0.0
        return own / z + gamma * lower

    def _context(self, context: Gram) -> tuple[float, float]:
        """Z(h) and gamma(h) of a context; (0, 1) if it was never seen.

        Z is the sum of the counts of all words after h (Witten-Bell: and the number of their types). gamma is what
        the kept words leave of it: their discounts (Witten-Bell: the types), and the whole counts of the dropped.
        """
        if context in self._contexts:
            return self._contexts[context]
        followers = self._followers[len(context)].get(context, {})
        z = float(sum(followers.values()))
        if self.kind == "witten-bell":
            z += len(followers)
        kept = math.fsum(self._kept_numerators(context).values())
        self._contexts[context] = (z, (z - kept) / z if z else 1.0)
        return self._contexts[context]

    def _backed_off(self, word: str, context: Gram) -> float:
        """numerator(c(h w)) / Z(h) if h w is kept and the discount leaves something, else alpha(h) p(w | shorter h)."""
        if not context:
            return self._backed_off_unigram(word)
        z, alpha = self._back_off_weights(context)
        gram = (*context, word)
        own = self._numerator(self._adjusted[len(context)][gram], len(gram)) if self._is_kept(gram) else 0.0
        return own / z if own > 0.0 else alpha * self._backed_off(word, context[1:])

    def _kept_numerators(self, context: Gram) -> dict[str, float]:
        """What the discounts leave of the counts of the kept words after a context, where they leave anything."""
        n = len(context) + 1
        followers = self._followers[n - 1].get(context, {})
        numerators = {w: self._numerator(c, n) for w, c in followers.items() if self._is_kept((*context, w))}
        return {w: numerator for w, numerator in numerators.items() if numerator > 0.0}

    def _denominator(self, context: Gram, kept: dict[str, float]) -> float:
        """Z(h), one more (Doug Paul's remedy, in SRILM) if the kept words leave no mass and some word was not seen."""
        z, _ = self._context(context)
        seen = len(self._followers[len(context)].get(context, {}))
        no_mass = z > 0 and math.fsum(kept.values()) / z > 1.0 - NO_MASS
        return z + 1.0 if no_mass and seen < len(self.vocabulary) else z

    def _back_off_weights(self, context: Gram) -> tuple[float, float]:
        """Z(h) and alpha(h) = (1 - sum of p(w | h)) / (1 - sum of p(w | shorter h)), both over the kept words w."""
        if context in self._back_offs:
            return self._back_offs[context]
        kept = self._kept_numerators(context)
        z, alpha = self._denominator(context, kept), 1.0
        if len(kept) == len(self.vocabulary):
            z, alpha = math.fsum(kept.values()), 0.0  # nothing to back off to: the words share what is left
        elif kept:
            lower = math.fsum(self._backed_off(w, context[1:]) for w in kept)
            alpha = (1.0 - math.fsum(kept.values()) / z) / (1.0 - lower)
        self._back_offs[context] = (z, alpha)
        return self._back_offs[context]

    def _backed_off_unigram(self, word: str) -> float:
        """What the seen words leave goes to the unseen words in equal parts, or to all words if none is unseen."""
        if not self._unigrams:
            kept = self._kept_numerators(())
            z = self._denominator((), kept)
            left = 1.0 - math.fsum(kept.values()) / z
            heirs = self.vocabulary - kept.keys() or self.vocabulary
            for w in self.vocabulary:
                self._unigrams[w] = kept.get(w, 0.0) / z + (left / len(heirs) if w in heirs else 0.0)
        return self._unigrams[word]

    # -- text ---------------------------------------------------------------------------------------------------------

    def distribution(self, context: Sequence[str]) -> dict[str, float]:
        """p(w | context) of every word w of the vocabulary."""
        return {word: self.probability(word, context) for word in sorted(self.vocabulary)}

    def score(self, sentences: Iterable[Sequence[str]]) -> list[float]:
        """Natural log of the probability of every event, in reading order: the words of a line, then its `</s>`."""
        probabilities = (self.probability(gram[-1], gram[:-1]) for gram in self._events(sentences))
        return [math.log(p) if p > 0.0 else -math.inf for p in probabilities]

    def matched_orders(self, sentences: Iterable[Sequence[str]]) -> list[int]:
        """For every event the length of the longest kept n-gram that ends there; 1 also if the word was never seen."""
        longest = []
        for gram in self._events(sentences):
            longest.append(next((n for n in range(len(gram), 1, -1) if self._is_kept(gram[-n:])), 1))
        return longest


def modified_kneser_ney_discounts(counts: Iterable[int]) -> tuple[float, float, float]:
    """D1, D2, D3+ of Chen & Goodman, equation (26), or FALLBACK if n1, n2 or n3 is 0 or a Dj is not within 0 to j."""
    n = Counter(counts)
    if not (n[1] and n[2] and n[3]):
        return FALLBACK
    y = n[1] / (n[1] + 2 * n[2])
    d1, d2, d3 = (j - (j + 1) * y * n[j + 1] / n[j] for j in (1, 2, 3))
    return (d1, d2, d3) if 0 <= d1 <= 1 and 0 <= d2 <= 2 and 0 <= d3 <= 3 else FALLBACK


def ney_discount(counts: Iterable[int]) -> float:
    """D = n1 / (n1 + 2 n2) (Ney, Essen & Kneser 1994), or 0.5 if n1 or n2 is 0."""
    n = Counter(counts)
    return n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else FALLBACK[0]


def katz_factors(counts: Iterable[int], limit: int) -> tuple[float, ...]:
    """Factors of the counts 1, 2, ... in Katz's Good-Turing estimate (SRILM `Discount.cc`); () if there are none.

    With r* = (r + 1) n[r + 1] / n[r] and A = (limit + 1) n[limit + 1] / n[1] the factor of r is
    (r* / r - A) / (1 - A). The limit goes down while n[limit + 1] is 0. A factor that is out of range (not above
    LOWEST_FACTOR, above 1, r* above r, n[r] = 0) becomes 1.
    """
    n = Counter(counts)
    while n[1] and limit and not n[limit + 1]:
        limit -= 1
    if not n[1] or not limit:
        return ()
    common = (limit + 1) * n[limit + 1] / n[1]
    factors = []
    for r in range(1, limit + 1):
        ratio = (r + 1) * n[r + 1] / (r * n[r]) if n[r] else math.inf
        factor = (ratio - common) / (1.0 - common) if common != 1.0 and ratio <= 1.0 else 1.0
        factors.append(factor if LOWEST_FACTOR < factor <= 1.0 else 1.0)
    return tuple(factors)


def _repeat_last(values: Sequence[Number], n: int) -> Number:
    """The n-th value, counted from 1; beyond the end the last one."""
    return values[min(n, len(values)) - 1]


def _by_context(grams: Counter[Gram]) -> dict[Gram, dict[str, int]]:
    """The words after each context, with their counts."""
    followers: dict[Gram, dict[str, int]] = {}
    for gram, count in grams.items():
        followers.setdefault(gram[:-1], {})[gram[-1]] = count
    return followers
