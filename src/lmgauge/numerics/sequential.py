"""When is it decided? Intervals that hold at every look, so that one may stop as soon as they say enough.

An interval of 95 % and its test hold for one look. Who looks twenty times, and stops when p is below 0.05, errs in a quarter
of comparisons where no model is better. A confidence sequence holds the true value at *all* looks together, with 95 %.

Of documents in random order x is the difference of nats and l the size (events, bytes) of each, and r the ratio of the sums
that is asked for. If r were r0, y = x - r0 l would have the mean 0. The evidence against that is a ratio of two likelihoods
of Student's t: of mean 0, and of a mean, in standard deviations, that is drawn from a normal curve around 0 of variance 1
(Lai 1976, "On confidence sequences"; Wang & Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian means
with unknown variance"):

    E_n = (1 + n)^(-1/2) (1 - R n / (1 + n))^(-n / 2),    R = (sum y)^2 / (n sum y^2).

If r0 is true, E is a martingale that begins with 1, so it ever reaches 1 / a with a probability of at most a (Ville 1939).
The sequence is all r0 with E below that: R < B = (1 - (a^2 / (1 + n))^(1 / n)) (1 + n) / n, a quadratic inequality in r0.

Three documents of size 1, x = 3, 4, 5, a = 1/2: B = (1 - (1/16)^(1/3)) 4/3 = 0.8042. With r0 = 4 - d the sum of y is 3 d,
that of y^2 is 2 + 3 d^2, R = 9 d^2 / (6 + 9 d^2), and R < B if d^2 < (2/3) B / (1 - B), |d| < 1.655: r is in 2.345 .. 5.655.

Normal differences are assumed, as by any t-test; sizes that differ much make R smaller, and the test more cautious. Before
the seventh document nothing is said: all six signs alike are chance in 2 of 2^6 texts. `benchmarks/simulate_stopping.py`
tells how often it errs.
"""

from __future__ import annotations

import numpy as np

from lmgauge.numerics.exact import Floats

FEWEST = 7
"""Documents before which nothing is decided."""
SEQUENCE = "confidence sequence"


def confidence_sequence(
    numerators: Floats, denominators: Floats, error: float, fewest: int = FEWEST
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of sum(numerators) / sum(denominators) after each document."""
    # numerators, denominators: float64 [documents], in random order, sizes 0 or more; error: share of sequences that leave
    # out the true ratio at any look.
    # -> float64 [documents] twice, infinite where nothing can be said.
    counts = np.arange(1, len(numerators) + 1)
    times = (1 - (error**2 / (1 + counts)) ** (1 / counts)) * (1 + counts)  # n B
    upper, lower = np.cumsum(numerators), np.cumsum(denominators)
    squares = [np.cumsum(part) for part in (numerators**2, numerators * denominators, denominators**2)]
    c, b, a = (whole - times * part for whole, part in zip((upper**2, upper * lower, lower**2), squares, strict=True))
    # (upper - r0 lower)^2 < n B sum y^2 is a r0^2 - 2 b r0 + c < 0: between the roots if a is above 0, else almost anywhere.
    known = (counts >= fewest) & (a > 0)
    a = np.where(known, a, 1.0)
    reach = np.where(known, np.sqrt(np.maximum(b * b - a * c, 0.0)) / a, np.inf)
    return b / a - reach, b / a + reach
