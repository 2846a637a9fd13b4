"""What two models gave each segment, and how sure their difference is over what is independent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.intervals import UNKNOWN, Spread, spread, sums_by
from lmgauge.numerics.significance import sign_flip_p_value

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class PairedSegments:
    """Columns with one row per segment, collected block by block.

    Attributes:
        nats: of each model, finite log-probabilities only.
        zeros: events of probability zero, of both models.
        sizes: float64 [segments, 4] a block: events, bytes, characters, words.
        documents: the document of each segment; empty where documents are not known.
    """

    nats: tuple[list[Floats], list[Floats]] = field(default_factory=lambda: ([], []))
    zeros: list[Ints] = field(default_factory=list)
    sizes: list[Floats] = field(default_factory=list)
    documents: list[Ints] = field(default_factory=list)

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
        """bool [segments], where both models are finite and there is something to compare."""
        used: NDArray[np.bool_] = (self.zeros == 0) & (self.sizes[:, 0] > 0)
        return used

    def spreads(self) -> list[Spread | None]:
        """Return nats of the first model minus the second per event, byte, character and word of the used segments."""
        used = self.used
        difference = self.nats[0][used] - self.nats[1][used]
        documents = None if self.documents is None else self.documents[used]
        return [spread(difference, sizes, documents) for sizes in self.sizes[used].T]

    def p_value(self, leading: Spread, resamples: int, seed: int, threads: int | None) -> float | None:
        """Return the two-sided p-value of no difference: Student's t of the spread and, of known units, sign flips.

        The larger of the two counts: flips know nothing of a document that outweighs all others, and t nothing of skewness.

        Args:
            leading: of `spreads`, the one whose interval is shown first.
            resamples: draws of the signs.
            seed: of the signs.
            threads: how many; the value does not depend on it.

        Returns:
            0 to 1; of documents [units] where they are known, else of segments.
        """
        if leading.unit == UNKNOWN or self.documents is None:
            return leading.p_value
        used = self.used
        _, inverse = np.unique(self.documents[used], return_inverse=True)
        differences = sums_by(inverse, self.nats[0][used] - self.nats[1][used])
        flipped = sign_flip_p_value(differences, resamples=resamples, seed=seed, threads=threads)
        return leading.p_value if flipped is None else max(flipped, leading.p_value)
