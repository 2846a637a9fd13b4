"""How many different n-grams a text has, about, while it is read: what sizes of tables and partitions follow from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native

_SKETCH_BITS = 14


class TypesSketch:
    """Estimate how many different n-grams a text has while it goes by, within about 1 %.

    >>> sketch = TypesSketch(2)
    >>> sketch.add(np.array([1, 3, 4, 3, 4], np.uint32))  # <s> a b a b: three bigrams
    >>> sketch.estimates()[0] < 70
    True
    """

    # Source: HyperLogLog, Flajolet et al. 2007.

    def __init__(self, order: int) -> None:
        self.order, self.tokens = order, 0
        self._registers = np.zeros((order - 1, 1 << _SKETCH_BITS), np.uint8)

    def add(self, ids: NDArray[np.uint32]) -> None:
        """Add tokens, uint32 [n], with `<s>` where a context begins; n-grams that end in others before are left out."""
        self.tokens += len(ids)
        if self.order > 1:
            _native.sketch_distinct(ids, 0, len(ids), self.order, self._registers.reshape(-1), _SKETCH_BITS)

    def estimates(self) -> list[int]:
        """Return the estimates for order 2, 3, ..., a little too large rather than too small."""
        size = self._registers.shape[1]
        estimates = []
        for row in self._registers:
            # Flajolet et al. (2007), figure 3: alpha m^2 / sum of 2^-register, with alpha = 0.7213 / (1 + 1.079 / m).
            estimate = (0.7213 / (1 + 1.079 / size)) * size * size / float(np.sum(np.exp2(-row.astype(np.float64))))
            empty = int(np.count_nonzero(row == 0))
            if estimate <= 2.5 * size and empty:
                # Few n-grams leave registers empty, whose share then tells more ("linear counting", same figure).
                estimate = size * float(np.log(size / empty))
            estimates.append(min(int(estimate * 1.03) + 64, self.tokens))
        return estimates
