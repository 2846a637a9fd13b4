"""Totals of all documents from a sample of them: what a cheap model says of every document helps with an expensive one.

Documents are drawn at random, each with the same chance (`draw`). Of all documents their sizes z and the helpers x are
known, such as the nats that a proxy gives them; of the sampled ones the values y. The estimate is a regression estimator
(Cochran 1977, "Sampling techniques", chapters 6 and 7; Särndal, Swensson & Wretman 1992, "Model assisted survey sampling",
6.4):

    Y = Z (r + s b (X / Z - q)),    r = sum y / sum z,    q = sum x / sum z (over the sample),

the plain figure r of the sample, put right by what is known of the sample: its helpers q are not those of all, X / Z. The
slope b is that of least squares of y - r z on x - q z, weighted by 1 / z. It counts as far as it is surer than chance:
s = max(0, 1 - 4 / F) with F of the regression, so that a useless proxy costs next to nothing (as James & Stein 1961 shrink).
Where one document alone fixes a slope, so that nothing is left of it whatever its value, s is 0 and the figure is plain.

Three documents of four, z = 1 each, y = 2, 4, 6, the proxy says x = 1, 2, 3 of them and 4 of the fourth: r = 4, q = 2, and
y - 4 is twice x - 2 without a rest, so b = 2, s = 1: Y = 4 (4 + 2 (10 / 4 - 2)) = 20, as if the fourth had y = 8.

The error is that of the jackknife: d is what the estimate falls by without one document of the sample, which for a
regression is g e / (1 - h) of the residual e = (y - r z) - s b (x - q z), the leverage h (the document's share of sum z, and
what it weighs in the slope) and the weight g = 1 + s (X / Z - q) db / dy sum z:

    error^2 = (Z / sum z)^2 (1 - n / N) (n - 1) / n sum d^2,

with Student's t of as many degrees of freedom as the documents are worth by their sizes, less those of the slopes
(`effective_freedom`). It is the error of drawing: it says how far the figure of all documents may be, and is 0 where all
were drawn. For a test on texts like this one (`like_texts`), what varies between all documents is added and nothing is taken
off for the share drawn.
`benchmarks/sampled_documents.py` tells how often these intervals miss on real text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.intervals import DOCUMENTS, Spread, effective_freedom

REGRESSION = "regression on a sample"
_SURE = 4.0
"""F of a regression below which the helpers count for nothing."""
_LEAST_REST = 0.05
"""1 - h at least: a document that is nearly all of the sample says nothing of how sure the rest is."""
_FIXED = 1e-6
"""1 - h of a document that alone fixes a slope."""


def draw(documents: int, count: int, seed: int) -> Ints:
    """Return the numbers of documents drawn at random, ascending; a larger sample of the same seed holds a smaller one."""
    order: Ints = np.random.default_rng(seed).permutation(documents)
    return np.sort(order[:count])


@dataclass(frozen=True)
class Total:
    """A total over all documents, estimated from a sample."""

    value: float
    falls: Floats  # float64 [sampled], what it falls by without each document, over all / sampled sizes
    fitted: Floats  # float64 [documents], what they tell of each
    helpers: int  # how many slopes were estimated; 0 where they are no surer than chance
    correlation: float  # of values and helpers, sizes taken out, 0 to 1; 0 without helpers


def known(values: Floats, sampled: Ints) -> Total:
    """Return the total of values that are known of all documents."""
    return Total(float(values.sum()), np.zeros(len(sampled)), values, 0, 0.0)


def estimated(values: Floats, sizes: Floats, helpers: Floats, sampled: Ints) -> Total:
    """Return the estimated total of values over all documents."""
    # values: float64 [sampled]; sizes: float64 [documents], above 0; helpers: float64 [documents, k], k < sampled - 2;
    # sampled: int64 [sampled], numbers of documents, ascending.
    # estimated([2, 4, 6], [1, 1, 1, 1], [[1], [2], [3], [4]], [0, 1, 2]).value -> 20.0
    own, beside = sizes[sampled], helpers[sampled]
    rate, rates = values.sum() / own.sum(), beside.sum(axis=0) / own.sum()
    rest = (values - rate * own) / np.sqrt(own)
    moves = (beside - np.outer(own, rates)) / np.sqrt(own)[:, None]
    inverse = np.linalg.pinv(moves, rcond=1e-9)
    slopes = (inverse * rest).sum(axis=1)
    explained, count, fixed = (moves * slopes).sum(axis=1), len(slopes), (moves * inverse.T).sum(axis=1)
    gain, left, whole = (float((part**2).sum()) for part in (explained, rest - explained, rest))
    sure = gain > 0.0 and (own / own.sum() + fixed).max() < 1.0 - _FIXED
    share = max(0.0, 1.0 - _SURE * count * left / (gain * (len(values) - 1 - count))) if sure else 0.0
    fitted = rate * sizes + ((helpers - np.outer(sizes, rates)) * share * slopes).sum(axis=1)
    gap = helpers.sum(axis=0) / sizes.sum() - rates
    weight = 1.0 + share * own.sum() * (gap[:, None] * inverse).sum(axis=0) / np.sqrt(own)
    leverage = own / own.sum() + fixed * (share > 0.0)
    falls = weight * (values - fitted[sampled]) / np.maximum(1.0 - leverage, _LEAST_REST)
    correlation = math.sqrt(min(1.0, gain / whole)) if whole > 0.0 else 0.0
    return Total(float(fitted.sum()), falls, fitted, count if share else 0, correlation)


def ratio_of(upper: Total, lower: Total, sizes: Floats, sampled: Ints, *, like_texts: bool = False) -> Spread:
    """Return the ratio of two totals with its error: of drawing, or of a test on texts like this one."""
    # sizes: float64 [documents], those that the totals were estimated with.
    ratio, helpers = upper.value / lower.value, max(upper.helpers, lower.helpers)
    falls, fitted = upper.falls - ratio * lower.falls, upper.fitted - ratio * lower.fitted
    drawn, documents, own = len(sampled), len(sizes), sizes[sampled]
    variance = float((sizes.sum() / own.sum()) ** 2 * (drawn - 1) / drawn * (falls**2).sum())
    if like_texts:
        variance += documents / (documents - 1) * float(((fitted - fitted.mean()) ** 2).sum())
    else:
        variance *= 1.0 - drawn / documents
    freedom = max(1, effective_freedom(own) - helpers)
    return Spread(ratio, math.sqrt(variance) / abs(lower.value), freedom, REGRESSION, DOCUMENTS, drawn)


def documents_for(times: float, drawn: int, documents: int) -> float:
    """Return how large a sample is whose error is `times` that of another, for values that vary alike."""
    # The error is S sqrt(1 / n - 1 / N). Half of that of 100 of 1,000 documents: documents_for(0.5, 100, 1000) -> 307.7
    return 1 / (1 / documents + (1 / drawn - 1 / documents) * times**2)
