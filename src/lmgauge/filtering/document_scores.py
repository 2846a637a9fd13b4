"""What models make of documents: sums over each, and the columns that tables and records get of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.units import nats_to_bits
from lmgauge.records.parquet import arrow_columns

if TYPE_CHECKING:
    import pyarrow as pa

FIGURES = ("bits", "bits_per_byte", "perplexity", "tokens", "unseen")
"""What is said of a document, by the ends of the names of columns."""
NO_MODEL = "no model"
REFUSED = "refused by the model"


class DocumentSums(SegmentTotals):
    """What a model makes of documents: the totals of their segments, added up."""

    @classmethod
    def nothing(cls, count: int) -> DocumentSums:
        """Return the sums of documents that were not scored: 0 nats, no events."""
        return cls(np.zeros(count), *(np.zeros(count, np.int64) for _ in range(4)))

    def add(self, rows: NDArray[np.int64], totals: SegmentTotals) -> None:
        """Add the totals of segments, in their order, to those of the documents that they are of."""
        # rows: int64 [segments], the document of each.
        for figure in fields(SegmentTotals):
            np.add.at(getattr(self, figure.name), rows, getattr(totals, figure.name))

    @cached_property
    def perplexity(self) -> NDArray[np.float64]:
        """The perplexity of each document; inf where an event has probability zero, NaN where there is no event."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            perplexity: NDArray[np.float64] = np.exp(-self.nats / self.events)
        perplexity[self.zeros > 0] = np.inf
        return perplexity

    def bits(self) -> NDArray[np.float64]:
        """Return the bits of the possible events of each document."""
        return np.asarray(nats_to_bits(-self.nats))

    def unseen_share(self) -> NDArray[np.float64]:
        """Return the share of unseen words, 0 to 1; 0 for documents without words."""
        return np.asarray(self.unseen / np.maximum(self.events - self.ends, 1))


@dataclass(frozen=True)
class DocumentScores:
    """What models make of the documents of a batch.

    Attributes:
        bytes: int64 [documents], bytes of each text.
        sums: by the name of the model.
        problems: what is wrong with those that were not scored, by number: a short reason, and what it is in particular.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> scores = lmgauge.Scorer({"lap2": model}).score_texts(["a b", None])
        >>> scores.columns()["lap2_perplexity"].round(4).tolist(), sorted(scores.problems)
        ([2.4662, nan], [1])
    """

    bytes: NDArray[np.int64]
    sums: Mapping[str, DocumentSums]
    problems: Mapping[int, tuple[str, str]]

    def __len__(self) -> int:
        return len(self.bytes)

    def columns(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Return figures by the names of their columns, each [documents]; NaN where there is none.

        Returns:
            For a model called NAME: `NAME_bits` (of the possible events), `NAME_bits_per_byte`, `NAME_perplexity`,
            `NAME_tokens` (all events, int64) and `NAME_unseen` (share of words, 0 to 1).
        """
        columns: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {}
        for name, sums in self.sums.items():
            bits = sums.bits()
            with np.errstate(invalid="ignore", divide="ignore"):
                per_byte = np.where(self.bytes > 0, bits / self.bytes, np.nan)
            figures = (bits, per_byte, sums.perplexity, sums.events, sums.unseen_share())
            columns |= {f"{name}_{figure}": values for figure, values in zip(FIGURES, figures, strict=True)}
        return columns

    @cached_property
    def perplexity(self) -> NDArray[np.float64]:
        """The perplexity of each document under each model, float64 [documents, models]; NaN where there is none."""
        return np.stack([sums.perplexity for sums in self.sums.values()], axis=1)

    def missing(self) -> NDArray[np.bool_]:
        """Return which documents were not scored, bool [documents]."""
        missing = np.zeros(len(self), bool)
        missing[list(self.problems)] = True
        return missing

    def arrow_columns(self) -> dict[str, pa.Array]:
        """Return the columns for Arrow, null where there is no figure or the document was not scored."""
        return arrow_columns(self.columns(), self.missing())

    def problem_texts(self) -> list[str | None]:
        """Return why each document has no figures; None for one that has."""
        texts: list[str | None] = [None] * len(self)
        for row, problem in self.problems.items():
            texts[row] = ": ".join(problem)
        return texts
