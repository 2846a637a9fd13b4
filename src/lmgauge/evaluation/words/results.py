"""Words and regions with what a model makes of them, a row each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmgauge.result_columns import plain_values
from lmgauge.result_list import Tabled, pandas_module

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class WordSurprisals(Tabled):
    """The surprisal of each word or region of texts; prints as a table, and becomes a data frame.

    Attributes:
        model: its name.
        unit: what a row is: "words (whitespace)", "words (icu)" or "regions".
        marking: where the tokenizer puts the white space that words are known by: "before" a word, "after" it, "apart",
            "whole" (tokens are words) or "none"; "stored" where a run has the column `word_boundary`; None for a model that
            gives no whole distributions.
        texts: how many there are.
        units: words or regions: rows.
        bits: the surprisal of all rows.
        rest_bits: of events in no row: line ends, `</s>`, text outside regions.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know: which column is a probability, what is missing, and why.
        rows: a row a unit, an Arrow table.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> words = lmgauge.word_surprisal(lmgauge.train("witten-bell", text, order=2), texts="the cat ran")
        >>> words.rows.column("word").to_pylist(), words.marking
        (['the', 'cat', 'ran'], 'whole')
    """

    model: str
    unit: str
    marking: str | None
    texts: int
    units: int
    bits: float
    rest_bits: float
    signature: str
    notes: tuple[str, ...]
    rows: pa.Table = field(repr=False)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict a unit; None where a figure is missing."""
        rows: list[dict[str, Any]] = self.rows.to_pylist()
        return rows

    def to_dict(self) -> dict[str, Any]:
        return {**plain_values(self), "rows": self.to_rows()}

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame; NaN where a figure is missing.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pandas_module()
        frame: pd.DataFrame = self.rows.to_pandas()
        return frame

    def _columns(self) -> pa.Table:
        return self.rows

    def _in_brief(self) -> str:
        what = self.unit.partition(" ")[0]
        per = self.bits / self.units if self.units else math.nan
        return f"{self.model}: {self.units:,} {what}, {per:.4f} bits each"
