"""What two models gave each segment, and how sure their difference is over what is independent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.intervals import Spread, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class PairedSegments:
    """Columns with one row per segment, collected block by block."""

    # of each model, finite log-probabilities only
    nats: tuple[list[Floats], list[Floats]] = field(default_factory=lambda: ([], []))
    zeros: list[Ints] = field(default_factory=list)  # events of probability zero, of both models
    sizes: list[Floats] = field(default_factory=list)  # float64 [segments, 4] a block: events, bytes, characters, words
    documents: list[Ints] = field(default_factory=list)  # the document of each segment; empty where documents are not known

    def joined(self) -> Paired:
        """Return all blocks as one."""
        first, second = (np.concatenate(part) if part else np.zeros(0) for part in self.nats)
        return Paired(
            (first, second),
            np.concatenate(self.zeros) if self.zeros else np.zeros(0, np.int64),
            np.concatenate(self.sizes) if self.sizes else np.zeros((0, 4)),
            np.concatenate(self.documents) if self.documents else None,
        )


@dataclass(frozen=True)
class Paired:
    """The columns of `PairedSegments` over the whole text."""

    nats: tuple[Floats, Floats]
    zeros: Ints
    sizes: Floats
    documents: Ints | None

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
