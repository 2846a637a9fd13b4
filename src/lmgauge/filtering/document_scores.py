"""What models make of documents: sums over each, and the columns that tables and records get of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.units import nats_to_bits

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

    def perplexity(self) -> NDArray[np.float64]:
        """Return the perplexity of each document; inf where an event has probability zero, NaN where there is no event."""
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


class DocumentColumns(ABC):
    """Figures of the documents of a batch, as the columns that tables and records get."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Return figures by the names of their columns, each [documents]; NaN where there is none."""

    @abstractmethod
    def missing(self) -> NDArray[np.bool_]:
        """Return which documents were not scored, bool [documents]."""

    def arrow_columns(self) -> dict[str, pa.Array]:
        """Return the columns for Arrow, null where there is no figure or the document was not scored."""
        import pyarrow as pa

        missing = self.missing()
        arrays = {}
        for name, values in self.columns().items():
            null = missing | np.isnan(values) if values.dtype.kind == "f" else missing
            arrays[name] = pa.array(values, mask=null)
        return arrays

    def json_columns(self, rows: NDArray[np.intp]) -> Iterator[str]:
        """Yield the figures of documents as members of a JSON object, in full precision; "inf" is a string.

        Args:
            rows: intp [rows], the documents, from 0.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("mle", lmgauge.Corpus.from_strings(["a"]), order=1)  # a and </s> 1/2
            >>> print(*lmgauge.Scorer({"m": model}).score_texts(["a"]).json_columns(np.array([0])))
            "m_bits": 2.0, "m_bits_per_byte": 2.0, "m_perplexity": 2.0, "m_tokens": 2, "m_unseen": 0.0
        """
        columns = self.columns()
        texts = [_as_json(values[rows]) for values in columns.values()]
        form = ", ".join(f'"{_escaped(name)}": {{}}' for name in columns)
        return (form.format(*row) for row in zip(*texts, strict=True))

    def cells(self, rows: NDArray[np.intp]) -> Iterator[Sequence[str]]:
        """Yield the figures of documents as `json_columns` writes them, and "" where there is none."""
        texts = ([text.strip('"').replace("null", "") for text in _as_json(own[rows])] for own in self.columns().values())
        return zip(*texts, strict=True)


@dataclass(frozen=True)
class DocumentScores(DocumentColumns):
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
            figures = (bits, per_byte, sums.perplexity(), sums.events, sums.unseen_share())
            columns |= {f"{name}_{figure}": values for figure, values in zip(FIGURES, figures, strict=True)}
        return columns

    def missing(self) -> NDArray[np.bool_]:
        """Return which documents were not scored, bool [documents]."""
        missing = np.zeros(len(self), bool)
        missing[list(self.problems)] = True
        return missing

    def problem_texts(self) -> list[str | None]:
        """Return why each document has no figures; None for one that has."""
        texts: list[str | None] = [None] * len(self)
        for row, problem in self.problems.items():
            texts[row] = ": ".join(problem)
        return texts


def _as_json(values: NDArray[np.float64] | NDArray[np.int64]) -> list[str]:
    if values.dtype.kind != "f":
        return list(map(str, values.tolist()))
    texts = list(map(repr, values.tolist()))
    if not np.isfinite(values).all():
        special = {"inf": '"inf"', "-inf": '"-inf"', "nan": "null"}
        texts = [special.get(text, text) for text in texts]
    return texts


def _escaped(name: str) -> str:
    import json

    return json.dumps(name)[1:-1].replace("{", "{{").replace("}", "}}")
