"""What two models gave each segment, and how sure their difference is over what is independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.intervals import Spread, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Paired:
    """Columns with one row per segment; those of two models can be tested."""

    nats: tuple[Floats, ...]  # of each model, finite log-probabilities only
    zeros: Ints  # events of probability zero, of all models
    sizes: Floats  # float64 [segments, k], such as events, bytes, characters, words
    documents: Ints | None  # the document of each segment; None where documents are not known

    @classmethod
    def joined(cls, parts: Sequence[Paired]) -> Paired:
        """Return all blocks of a text as one; there is one at least."""
        nats, zeros, sizes, documents = zip(*((one.nats, one.zeros, one.sizes, one.documents) for one in parts), strict=True)
        known = [part for part in documents if part is not None]
        return Paired(
            tuple(map(np.concatenate, zip(*nats, strict=True))),
            np.concatenate(zeros),
            np.concatenate(sizes),
            np.concatenate(known) if known else None,
        )

    @property
    def used(self) -> NDArray[np.bool_]:
        """Return bool [segments], where both models are finite and there is something to compare."""
        used: NDArray[np.bool_] = (self.zeros == 0) & (self.sizes[:, 0] > 0)
        return used

    def spreads(self, total: float | None = None) -> list[Spread | None]:
        """Return nats of the first model minus the second per event, byte, character and word of the used segments."""
        # total: the exact difference in nats; None where a segment is not used.
        used = self.used
        difference = self.nats[0][used] - self.nats[1][used]
        documents = None if self.documents is None else self.documents[used]
        return [spread(difference, sizes, documents, total=total) for sizes in self.sizes[used].T]
