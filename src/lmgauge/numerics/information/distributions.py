"""Entropies and divergences of given distributions.

Sources: Shannon (1948), "A Mathematical Theory of Communication"; Cover & Thomas (2006), "Elements of Information Theory",
2nd ed., chapter 2; Lin, J. (1991), "Divergence measures based on the Shannon entropy"; Jurafsky & Martin, "Speech and
Language Processing", chapter 3 (weighted branching factor).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.checks import as_distribution, as_real_array, as_vector, refuse
from lmgauge.numerics.exact import Floats, exact_sum
from lmgauge.numerics.units import LN_2, nats_to_bits, perplexity_from_nats

InformationUnit = Literal["bits", "nats"]


def entropy(p: ArrayLike, *, unit: InformationUnit = "bits") -> float:
    """Return the entropy of a distribution: H(p) = -sum p ln p, with 0 ln 0 = 0 (Shannon 1948, section 6).

    Args:
        p: shape [n], probabilities that sum to one.
        unit: of the result, "bits" or "nats".

    Returns:
        Between 0 (a certain outcome) and log n (n equally likely outcomes).

    Raises:
        InputError: `p` is not a distribution.
        UsageError: the unit is unknown.

    Example:
        >>> entropy([0.5, 0.25, 0.25])
        1.5
    """
    return in_unit(_entropy_nats(as_distribution(p, "p")), unit)


def cross_entropy(p: ArrayLike, q: ArrayLike, *, unit: InformationUnit = "bits") -> float:
    """Return the cross-entropy of q under p: H(p, q) = -sum p ln q = H(p) + KL(p || q) (Cover & Thomas 2006, section 2.3).

    Args:
        p: shape [n], the true distribution, sums to one.
        q: shape [n], the model's distribution, sums to one.
        unit: of the result, "bits" or "nats".

    Returns:
        At least H(p); `inf` if q is zero where p is not.

    Raises:
        InputError: either is not a distribution, or the lengths differ.
        UsageError: the unit is unknown.

    Example:
        >>> cross_entropy([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
        1.75
    """
    true, model = _as_distributions(p, q)
    occurs = true > 0.0
    return in_unit(0.0 - exact_sum(true[occurs] * _log(model[occurs])), unit)


def kl_divergence(p: ArrayLike, q: ArrayLike, *, unit: InformationUnit = "bits") -> float:
    """Return the Kullback-Leibler divergence: KL(p || q) = sum p ln(p / q) (Cover & Thomas 2006, equation 2.26).

    Args:
        p: shape [n], the true distribution, sums to one.
        q: shape [n], the model's distribution, sums to one.
        unit: of the result, "bits" or "nats".

    Returns:
        0 or more (Gibbs' inequality); `inf` if q is zero where p is not.

    Raises:
        InputError: either is not a distribution, or the lengths differ.
        UsageError: the unit is unknown.

    Example:
        >>> kl_divergence([1.0, 0.0], [0.5, 0.5])
        1.0
    """
    true, model = _as_distributions(p, q)
    occurs = true > 0.0
    true, model = true[occurs], model[occurs]
    # A difference of logs and not the log of a quotient, which could leave float64.
    return in_unit(max(0.0, exact_sum(true * (np.log(true) - _log(model)))), unit)


def jensen_shannon_divergence(p: ArrayLike, q: ArrayLike, *, unit: InformationUnit = "bits") -> float:
    """Return the Jensen-Shannon divergence: half of KL(p || m) + KL(q || m), with m = (p + q) / 2 (Lin 1991, equation 4.1).

    Args:
        p: shape [n], sums to one.
        q: shape [n], sums to one.
        unit: of the result, "bits" or "nats".

    Returns:
        Between 0 and 1 bit (ln 2 nats), the same for (q, p); always finite.

    Raises:
        InputError: either is not a distribution, or the lengths differ.
        UsageError: the unit is unknown.

    Example:
        >>> jensen_shannon_divergence([1.0, 0.0], [0.0, 1.0])
        1.0
    """
    left, right = _as_distributions(p, q)
    # With p + q in place of m, halves of tiny numbers do not vanish; ln 2 makes up for it.
    both = np.concatenate([left[left > 0.0], right[right > 0.0]])
    sums = left + right
    log_sums = np.log(np.concatenate([sums[left > 0.0], sums[right > 0.0]]))
    nats = 0.5 * exact_sum(both * (np.log(both) - log_sums)) + LN_2
    return in_unit(min(max(0.0, nats), LN_2), unit)


def branching_factor(probabilities: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the perplexity of a distribution: how many equally likely outcomes would be as hard to guess, 2^H.

    For several contexts, each with its own distribution, H is the mean of their entropies weighted by how often each
    context occurs: the perplexity of a model that knows these distributions (Jurafsky & Martin, chapter 3).

    Args:
        probabilities: shape [outcomes], or [contexts, outcomes]; each row sums to one.
        weights: shape [contexts], counts or probabilities of the contexts; only with several contexts.

    Returns:
        Between 1 and the number of outcomes.

    Raises:
        InputError: a row is not a distribution, or the weights do not fit.
        UsageError: weights are missing, or given with a single distribution.

    Example:
        >>> branching_factor([0.25, 0.25, 0.25, 0.25])
        4.0
        >>> branching_factor([[0.25, 0.25, 0.25, 0.25], [1, 0, 0, 0]], weights=[1, 1])
        2.0
    """
    array = as_real_array(probabilities, "branch value")
    several = array.ndim == 2
    if several and weights is None:
        raise UsageError("several contexts need weights: how often each of them occurs")
    if not several and weights is not None:
        raise UsageError("weights belong to several contexts: give probabilities as [contexts, branches]")
    if weights is None:
        return perplexity_from_nats(_entropy_nats(as_distribution(array, "branch distribution")))
    entropies = [_entropy_nats(as_distribution(row, f"context {i}")) for i, row in enumerate(array, start=1)]
    shares = as_vector(weights, "context weight")
    if shares.size != len(entropies):
        raise InputError(f"{shares.size} weights for {len(entropies)} contexts: give one for each")
    refuse((shares < 0.0) | np.isinf(shares), shares, "context weight", "not a finite number of 0 or more")
    if not shares.any():
        raise InputError("all context weights are 0: at least one context must occur")
    # By the largest first: sums of huge or tiny weights stay within float64.
    shares = shares / shares.max()
    return perplexity_from_nats(exact_sum(shares * np.array(entropies)) / exact_sum(shares))


def relative_frequencies(*samples: Iterable[Hashable]) -> list[Floats]:
    """Return the distribution of each sample over the outcomes of all of them, in the order they first appear.

    These are the plug-in estimates that the measures of this room take: entropies of small samples come out too low.

    Args:
        samples: outcomes, e.g. the words of a text (or the characters of a string), each a number, string or the like.

    Returns:
        Of each sample float64 [outcomes], summing to one.

    Raises:
        InputError: a sample is empty, or an outcome cannot be counted.

    Example:
        >>> p, q = relative_frequencies("aabb", "abbb")
        >>> p.tolist(), q.tolist()
        ([0.5, 0.5], [0.25, 0.75])
    """
    try:
        counts = [Counter(sample) for sample in samples]
    except TypeError:
        raise InputError("samples must be lists of outcomes that can be counted: numbers, strings or tuples") from None
    empty = [i for i, count in enumerate(counts, start=1) if not count]
    if empty:
        raise InputError(f"sample {empty[0]} of {len(counts)} has no outcomes: at least one is needed")
    outcomes = dict.fromkeys(outcome for count in counts for outcome in count)
    return [np.array([count[outcome] for outcome in outcomes]) / count.total() for count in counts]


def _entropy_nats(distribution: Floats) -> float:
    positive = distribution[distribution > 0.0]
    # 0.0 - x and not -x: a certain outcome has entropy 0.0, not -0.0.
    return 0.0 - exact_sum(positive * np.log(positive))


def _as_distributions(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    left, right = as_distribution(p, "p"), as_distribution(q, "q")
    if left.size != right.size:
        raise InputError(f"p has {left.size} outcomes, q has {right.size}: both must be over the same ones")
    return left, right


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


def check_unit(unit: str) -> None:
    """Refuse an unknown unit of information."""
    if unit not in get_args(InformationUnit):
        raise UsageError(f"unit {unit!r} is unknown: it is bits or nats")


def in_unit(nats: float, unit: InformationUnit) -> float:
    """Return nats in a unit of information."""
    check_unit(unit)
    return nats_to_bits(nats) if unit == "bits" else nats
