"""Entropy, divergences and mutual information of distributions and counts that you have.

A distribution is a list of probabilities that sums to one. Its entropy is the number of yes-no questions that an outcome
takes on average, and two to that power, its branching factor, is the number of equally likely outcomes as hard to guess:

    >>> from lmgauge.numerics import information
    >>> p, q = [1/2, 1/4, 1/4], [1/4, 1/4, 1/2]
    >>> information.entropy(p)
    1.5
    >>> round(information.branching_factor(p), 3)
    2.828

Whoever predicts with q what happens with p pays the cross-entropy: the entropy, and the divergence on top.

    >>> information.cross_entropy(p, q), information.kl_divergence(p, q)
    (1.75, 0.25)
    >>> information.jensen_shannon_divergence([1, 0], [0, 1])
    1.0

A sample becomes a distribution by its relative frequencies:

    >>> words, more = "the cat saw the dog".split(), "the dog saw the dog".split()
    >>> p, q = information.relative_frequencies(words, more)
    >>> round(information.kl_divergence(q, p), 3)
    0.4

Joint counts tell how much one variable says about another, in all and pair by pair:

    >>> information.mutual_information({("strong", "tea"): 10, ("hot", "day"): 10})
    1.0
    >>> information.pointwise_mutual_information(["strong", "hot"], ["tea", "day"], [10, 10]).tolist()
    [1.0, 1.0]

Results are in bits unless `unit="nats"` is asked for. Estimates from counts are plug-in estimates (relative frequencies in
place of probabilities). Sums are exact (`math.fsum`). What is never negative in theory is never negative here: a result
below zero by rounding alone is zero. May import `numerics` and `errors`.
"""

from lmgauge.numerics.information.distributions import (
    InformationUnit,
    branching_factor,
    cross_entropy,
    entropy,
    jensen_shannon_divergence,
    kl_divergence,
    relative_frequencies,
)
from lmgauge.numerics.information.joint import (
    Correction,
    mutual_information,
    mutual_information_by_distance,
    mutual_information_of_pairs,
    pointwise_mutual_information,
)

__all__ = [
    "Correction",
    "InformationUnit",
    "branching_factor",
    "cross_entropy",
    "entropy",
    "jensen_shannon_divergence",
    "kl_divergence",
    "mutual_information",
    "mutual_information_by_distance",
    "mutual_information_of_pairs",
    "pointwise_mutual_information",
    "relative_frequencies",
]


def __dir__() -> list[str]:
    return sorted(__all__)
