"""Totals of all documents from a sample of them: what a cheap model says of every document helps with an expensive one.

Documents are drawn at random, each with the same chance, and evenly over what the cheap model says of them (`draw`). Of all
documents their sizes z and helpers x are known, such as the nats that a proxy gives them; of the sampled ones the values y.
The estimate is a regression estimator (Cochran 1977, "Sampling techniques", chapters 6 and 7; Särndal, Swensson & Wretman
1992, "Model assisted survey sampling", 6.4):

    Y = Z (r + sum s b (X / Z - q)),    r = sum y / sum z,    q = sum x / sum z (over the sample),

the plain figure r of the sample, put right by what is known of the sample: its helpers q are not those of all, X / Z. The
slopes b are those of least squares of y - r z on x - q z, weighted by 1 / z, of each helper after what those before it say.
One counts as far as it is surer than chance: s = max(0, 1 - 4 / F) with F of this slope, so that a useless proxy costs next
to nothing (as James & Stein 1961 shrink). Where one document alone fixes a slope, so that nothing is left of it whatever its
value, all s are 0 and the figure is plain.

Three documents of four, z = 1 each, y = 2, 4, 6, the proxy says x = 1, 2, 3 of them and 4 of the fourth: r = 4, q = 2, and
y - 4 is twice x - 2 without a rest, so b = 2, s = 1: Y = 4 (4 + 2 (10 / 4 - 2)) = 20, as if the fourth had y = 8.

The error is that of the jackknife: d is what the estimate falls by without one document of the sample, which for a
regression is g e / (1 - h) of the residual e = (y - r z) - sum s b (x - q z), the leverage h (the document's share of sum z,
and s times what it weighs in each slope) and the weight g = 1 + sum s (X / Z - q) db / dy sum z:

    error^2 = (Z / sum z)^2 (1 - n / N) (n - 1) / n sum d^2,

with Student's t of as many degrees of freedom as the documents are worth by their sizes, less those of the slopes
(`effective_freedom`). It is the error of drawing: it says how far the figure of all documents may be, and is 0 where all
were drawn. For a test on texts like this one (`like_texts`), what varies between all documents is added and nothing is taken
off for the share drawn. It is the error of documents drawn without regard to what they are like; that they are drawn evenly
makes it a little too large.

A part of the documents, such as a domain, has the slopes of all and the rest of its own: r is what its documents cost beyond
what the slopes say of them (a domain's regression estimator: Särndal et al., chapter 10). Documents outside it count for the
error as far as they move the slopes.
`benchmarks/sampled_documents.py` tells how often these intervals miss on real text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.intervals import DOCUMENTS, LEVEL, Spread, effective_freedom, student_t_quantile

REGRESSION = "regression on a sample"
_SURE = 4.0
"""F of a slope below which a helper counts for nothing."""
_ONE_OF_FIVE = -0.8416
"""Quantile of the normal curve at 20 %."""
_LEAST_REST = 0.05
"""1 - h at least: a document that is nearly all of the sample says nothing of how sure the rest is."""
_FIXED = 1e-6
"""1 - h of a document that alone fixes a slope; and what is left, as a share, of a helper that others say already."""


def draw(values: Floats, count: int, seed: int) -> Ints:
    """Return the numbers of documents drawn at random, ascending; a larger sample of the same seed holds a smaller one."""
    # values: float64 [documents], over which the sample is spread evenly. All documents have turns, and a sample is those
    # with the first. The turns of documents in the order of their values go to two halves in fair shares, with a random
    # start; those of a half to its halves, and so on: of values [3, 1, 4, 2], 1 or 2 has one of the first two turns, 3 or 4
    # the other. Each document has each turn with the same chance.
    generator, documents = np.random.default_rng(seed), len(values)
    ranked = np.lexsort((generator.permutation(documents), values))  # equal values in random order
    turns, half = np.arange(documents), np.zeros(documents, np.int64)
    for _ in range(documents.bit_length()):
        sizes = np.bincount(half)
        place = np.arange(documents) - (np.cumsum(sizes) - sizes)[half]
        share, start = (sizes // 2 / np.maximum(sizes, 1))[half], generator.uniform(size=len(sizes))[half]
        half = 2 * half + (np.floor((place + 1) * share + start) > np.floor(place * share + start))
        order = np.argsort(half, kind="stable")
        turns, half = turns[order], half[order]
    return np.sort(ranked[turns < count])


@dataclass(frozen=True)
class Total:
    """A total over documents: known, or estimated from a sample."""

    value: float
    falls: Floats  # float64 [sampled], what it falls by without each document, over all / sampled sizes
    fitted: Floats  # float64 [documents], what the helpers tell of each
    helpers: int = 0  # how many slopes were estimated that are surer than chance
    correlation: float = 0.0  # of values and helpers, sizes taken out, as far as it is surer than chance, 0 to 1


@dataclass(frozen=True)
class Survey:
    """Documents of which something is known, those that were drawn, and those that totals and figures are about."""

    sizes: Floats  # float64 [documents], above 0
    helpers: Floats  # float64 [documents, k], k < drawn - 2, those first that say most
    drawn: Ints  # int64 [drawn], numbers of documents, ascending
    part: NDArray[np.bool_]  # bool [documents], what totals are about

    @cached_property
    def _directions(self) -> Floats:
        # float64 [helpers that say something, documents]: x - q z, of each what those before it do not say, over its length.
        own, across = self.sizes[self.drawn], np.zeros((0, len(self.sizes)))
        rates = self.helpers[self.drawn].sum(axis=0) / own.sum()
        for column in (self.helpers - np.outer(self.sizes, rates)).T:
            length = math.sqrt((column[self.drawn] ** 2 / own).sum())
            for earlier in across:
                column = column - (earlier[self.drawn] * column[self.drawn] / own).sum() * earlier
            left = math.sqrt((column[self.drawn] ** 2 / own).sum())
            if left > _FIXED * length:
                across = np.vstack((across, column / left))
        return across

    def known(self, values: Floats) -> Total:
        """Return the total of values that are known of all documents."""
        return Total(float(values[self.part].sum()), np.zeros(len(self.drawn)), values)

    def total(self, values: Floats) -> Total:
        """Return the estimated total of values of the drawn documents."""
        # values: float64 [drawn].
        # Survey([1, 1, 1, 1], [[1], [2], [3], [4]], [0, 1, 2], [True] * 4).total([2, 4, 6]).value -> 20.0
        own, across, inside = self.sizes[self.drawn], self._directions, self.part[self.drawn]
        mine, rate, domain = across[:, self.drawn], values.sum() / own.sum(), (own * inside).sum()
        rest = values - rate * own
        slopes = (mine * rest / own).sum(axis=1)
        noise = ((rest - (slopes[:, None] * mine).sum(axis=0)) ** 2 / own).sum() / (len(own) - 1 - len(mine))
        chance = np.divide(_SURE * noise, slopes**2, out=np.ones(len(slopes)), where=slopes != 0.0)
        shares = np.maximum(0.0, 1.0 - chance)
        fixed = (shares[:, None] * mine**2 / own).sum(axis=0)
        if (own / own.sum() + (mine[shares > 0.0] ** 2 / own).sum(axis=0)).max() > 1.0 - _FIXED:
            shares, fixed = 0.0 * shares, 0.0 * fixed
        fitted = rate * self.sizes + ((shares * slopes)[:, None] * across).sum(axis=0)
        left = values - fitted[self.drawn]
        beyond = left[inside].sum() / domain
        gaps = across[:, self.part].sum(axis=1) / self.sizes[self.part].sum() - mine[:, inside].sum(axis=1) / domain
        pull = domain * ((shares * gaps)[:, None] * mine).sum(axis=0) / own
        falls = inside * (left - beyond * own) + pull * left
        falls /= np.maximum(1.0 - inside * own / domain - fixed, _LEAST_REST)
        fitted = fitted + beyond * self.sizes
        whole = (rest**2 / own).sum()
        correlation = math.sqrt((shares * slopes**2).sum() / whole) if whole > 0.0 else 0.0
        return Total(float(fitted[self.part].sum()), falls, fitted, int(np.count_nonzero(shares)), min(1.0, correlation))

    def ratio(self, values: Floats, below: Total, *, plain: float = 0.0, like_texts: bool = False) -> Spread:
        """Return a total over another with its error: of drawing, or of a test on texts like this one."""
        # values: float64 [drawn], less `plain` times those of the total below: a plain ratio is put right by the helpers, as
        # what two totals have in common they need not find twice.
        above = self.total(values)
        change = above.value / below.value
        falls, fitted = above.falls - change * below.falls, (above.fitted - change * below.fitted)[self.part]
        sizes, own = self.sizes[self.part], self.sizes[self.drawn][self.part[self.drawn]]
        drawn, documents = len(own), len(sizes)
        variance = float((sizes.sum() / own.sum()) ** 2 * (drawn - 1) / drawn * (falls**2).sum())
        if like_texts:
            variance += documents / (documents - 1) * float(((fitted - fitted.mean()) ** 2).sum())
        else:
            variance *= 1.0 - drawn / documents
        freedom = max(1, effective_freedom(own) - above.helpers * drawn // len(self.drawn))
        return Spread(plain + change, math.sqrt(variance) / abs(below.value), freedom, REGRESSION, DOCUMENTS, drawn)


def documents_for(times: float, drawn: int, documents: int) -> float:
    """Return how large a sample is whose error is `times` that of another, for values that vary alike."""
    # The error is S sqrt(1 / n - 1 / N). Half of that of 100 of 1,000 documents: documents_for(0.5, 100, 1000) -> 307.7
    return 1 / (1 / documents + (1 / drawn - 1 / documents) * times**2)


def documents_until(share: float, pilot: Spread, documents: int) -> float:
    """Return how large a sample is whose interval reaches a share of the figure to each side, by that of a first sample."""
    # Few documents may vary less than all do. So the error is the one that the first sample would show less of in one of
    # five draws (Kupper & Hafner 1989, "How appropriate are popular sample size formulas?"): its square over the quantile of
    # chi-square at 20 % (Wilson & Hilferty 1931).
    part = 2 / (9 * pilot.freedom)
    error = pilot.error * (1 - part + _ONE_OF_FIVE * math.sqrt(part)) ** -1.5
    reach = share * pilot.ratio / student_t_quantile(LEVEL, pilot.freedom)
    return documents_for(reach / error, pilot.units, documents) if error else pilot.units
