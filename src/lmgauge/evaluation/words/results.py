"""Words and regions with what a model makes of them: a row each, and what a reader must know of the rows."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import InputError
from lmgauge.evaluation.row_files import TableWriter, with_kept
from lmgauge.evaluation.words.frequency import WordFrequencies, strings_of
from lmgauge.evaluation.words.merging import ENTROPY, Merged, merge
from lmgauge.evaluation.words.regions import Regions
from lmgauge.evaluation.words.units import Units, WordTokenizer, words_of
from lmgauge.numerics.units import nats_to_bits
from lmgauge.result_list import pandas_module
from lmgauge.scores import ScoreBatch
from lmgauge.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lmgauge.text.segments import Segments

MARKINGS = {
    "before": "its tokens bring the space before a word along: surprisal_corrected is minus log2 of a probability of words, "
    "surprisal is not",
    "after": "its tokens bring the space behind a word along: surprisal and surprisal_corrected are both minus log2 of a "
    "probability, and differ only where the space behind a word is missing",
    "apart": "white space is a token of its own, which the surprisal of the word behind it includes: surprisal_corrected is "
    "minus log2 of a probability of words, surprisal is not",
    "whole": "its tokens are words, so surprisal is minus log2 of a probability of words, and surprisal_corrected is equal",
    "stored": "surprisal_corrected is minus log2 of a probability of words; surprisal is one where they are equal",
    "none": "no token of it has white space, so it does not predict where words end, and both figures are equal",
}
"""What is a probability, by what a tokenizer does with white space (see `lmgauge.distributions.word_boundaries`)."""


@dataclass(frozen=True)
class WordSettings:
    """What is measured, for all models of an evaluation.

    Attributes:
        tokenizer: cuts the text into words.
        regions: measured in place of words; None for words.
        frequencies: of words in a training text; None without one.
        carried: names of the fields of the text that are carried along.
    """

    tokenizer: WordTokenizer
    regions: Regions | None = None
    frequencies: WordFrequencies | None = None
    carried: tuple[str, ...] = ()

    def units(self, block: Segments) -> Units:
        """Return the units of a block."""
        return words_of(block, self.tokenizer) if self.regions is None else self.regions.lay(block)

    @property
    def unit(self) -> str:
        """Return what a row is: "words (whitespace)", "words (icu)", "regions"."""
        return f"words ({self.tokenizer.name})" if self.regions is None else "regions"

    @property
    def signature(self) -> str:
        """Return what a row is, as signatures show it; regions with their fingerprint."""
        return self.tokenizer.name if self.regions is None else f"regions@{self.regions.fingerprint}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of the rows."""
        own = ("word_number", "word") if self.regions is None else ("region_number", "region", "text")
        of_words = () if self.frequencies is None or self.regions is not None else ("log_frequency", "unseen")
        measured = ("start", "end", "pieces", "surprisal", "surprisal_corrected", "entropy_before", "length")
        return with_kept(("model", "text_id", *own, *measured, *of_words, "oov", "shared", "segment"), self.carried)


@dataclass
class WordCounts:
    """What is counted while rows are made."""

    units: int = 0  # words or regions
    texts: int = 0
    bits: float = 0.0  # the surprisal of all units, as far as it is known
    rest_bits: float = 0.0  # of events in no unit: line ends, `</s>`, text outside regions
    shared: int = 0  # units that share a token with what is next to them
    unscored: int = 0  # units without a surprisal, as first tokens are left unscored
    without_end: int = 0  # units without an event behind them
    # impossible_before, impossible_after: units before or behind which the model lets no word begin or end
    impossible_before: int = 0
    impossible_after: int = 0
    lossy: int = 0  # segments that tokens do not spell exactly

    def add(self, block: Segments, batch: ScoreBatch, merged: Merged) -> None:
        """Add the units of a block."""
        self.units += len(merged.pieces)
        self.texts += len(block)
        self.bits += nats_to_bits(float(np.nansum(merged.nats)))
        self.rest_bits += nats_to_bits(merged.rest)
        self.lossy += batch.lossy_segments
        self.shared += int(merged.owners.shared.sum())
        self.unscored += int(merged.owners.unscored.sum())
        for name in ("without_end", "impossible_before", "impossible_after"):
            setattr(self, name, getattr(self, name) + int(getattr(merged, name).sum()))

    def notes(self, unit: str) -> Iterator[str]:
        """Yield a sentence for each thing that a reader must know."""
        missing = "surprisal_corrected is missing for"
        if self.shared:
            which = "which share a token with what is next to them (it counts whole for the first of them)"
            yield f"{missing} {_counted(self.shared, unit)}, {which}"
        if self.unscored:
            words = _counted(self.unscored, unit)
            yield f"surprisal is missing for {words}: first tokens are unscored (--first-token; in Python first_token)"
        if self.without_end:
            words = _counted(self.without_end, unit)
            yield f'{missing} {words} without an event behind: --end eos gives one; in Python end="eos"'
        if self.impossible_after:
            count = _counted(self.impossible_after, unit)
            yield f"surprisal_corrected is infinite for {count}: the model lets no word end there"
        if self.impossible_before:
            yield f"{missing} {_counted(self.impossible_before, unit)}: the model lets no word begin there"
        if self.lossy and not self.unscored:
            yield f"{_counted(self.lossy, 'text')} not spelled by the tokens exactly, so the tokens of a word may be off"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


class WordRows:
    """Makes the rows of one model, block by block."""

    def __init__(
        self, settings: WordSettings, model: str, policy: ContextPolicy, marking: str | None, why: str = ""
    ) -> None:
        self.settings, self.model, self.marking = settings, model, marking
        self._policy, self._why = policy, why
        self.counts = WordCounts()
        self._has_entropy = False

    def table(self, block: Segments, batch: ScoreBatch, units: Units | None = None) -> pa.Table:
        """Return the rows of a block."""
        units = self.settings.units(block) if units is None else units
        merged = merge(block, batch, units, self._policy)
        if self.settings.regions is not None and len(merged.owners.crossing):
            raise _cut(self.settings.regions, block, batch, units, merged)
        self.counts.add(block, batch, merged)
        self._has_entropy = ENTROPY in batch.extra
        return self._table(block, units, merged)

    def _table(self, block: Segments, units: Units, merged: Merged) -> pa.Table:
        import pyarrow as pa

        strings, ids, base = strings_of(block, units), block.identifiers(), block.starts[units.owners]
        columns: dict[str, Any] = {
            "model": pa.array([self.model] * len(units), pa.string()),
            "text_id": pa.array([ids[i] for i in units.owners.tolist()], pa.string()),
            "segment": units.owners + block.first,
            "word_number": units.numbers(),
            "region_number": units.numbers(),
            "word": pa.array(strings, pa.string()),
            "text": pa.array(strings, pa.string()),
            "region": pa.array(units.names or [""] * len(units), pa.string()),
            "start": units.starts - base,
            "end": units.ends - base,
            "pieces": merged.pieces,
            "surprisal": _bits(merged.nats),
            "surprisal_corrected": _bits(merged.corrected),
            "entropy_before": _bits(merged.entropy),
            "length": np.array([len(string) for string in strings], np.int64),
            "oov": merged.oov.astype(np.int8),
            "shared": merged.owners.shared.astype(np.int8),
            **block.kept(units.owners),
        }
        if "unseen" in self.settings.columns and self.settings.frequencies is not None:
            columns["log_frequency"], counts = self.settings.frequencies.of(strings)
            columns["unseen"] = (counts == 0).astype(np.int8)
        return pa.table({name: columns[name] for name in self.settings.columns})

    def notes(self) -> list[str]:
        """Return a sentence for each thing that a reader must know of the rows."""
        regions = self.settings.regions
        if regions is not None:
            regions.check_all_laid()
        unit = "word" if regions is None else "region"
        notes = [f"words: {MARKINGS[self.marking]}"] if self.marking is not None else []
        if self.marking is None:
            missing = "surprisal_corrected is" if self._has_entropy else "surprisal_corrected and entropy_before are"
            notes.append(f"{missing} missing: {self._why}")
        notes += self.counts.notes(unit)
        if regions is not None and regions.texts_without:
            notes.append(f"{_counted(regions.texts_without, 'text')} without regions")
        return notes


def _bits(nats: Any) -> pa.Array:
    # float64 [n], nats, as an Arrow array in bits; NaN, where a figure is missing, becomes null.
    import pyarrow as pa

    return pa.array(nats_to_bits(nats), from_pandas=True)


def _cut(regions: Regions, block: Segments, batch: ScoreBatch, units: Units, merged: Merged) -> InputError:
    row = int(merged.owners.crossing[0])
    place = int(batch.row_segments()[row] - block.first)
    unit = int(merged.owners.of_row[row])
    start, end = int(batch.starts()[row]), int(batch.ends[row])
    piece = block.text(place)[start:end].decode(errors="replace")
    name = (units.names or [])[unit]
    line = int((units.lines if units.lines is not None else [0])[unit])
    return InputError(
        f"{regions.where(line)}: region {name!r} cuts the token {piece!r} (bytes {start} to {end} of text "
        f"{block.identifiers()[place]!r}), which has one probability; let regions begin and end where tokens do"
    )


@dataclass(frozen=True, repr=False)
class WordSurprisals(Shown):
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
        """Return everything as plain values, full precision; infinities stay floats."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "rows"} | {"rows": self.to_rows()}

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame; NaN where a figure is missing.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pandas_module()
        frame: pd.DataFrame = self.rows.to_pandas()
        return frame

    def write_rows(self, path: str | os.PathLike[str]) -> None:
        """Write the rows, as `lmgauge eval --per-word` does.

        Args:
            path: a file ending in .parquet, .csv, .tsv or .jsonl; "-" is standard output, as TSV.

        Raises:
            OutputError: it cannot be written; nothing is left behind.
            UsageError: another ending.
        """
        with TableWriter(os.fspath(path), self.rows.column_names) as writer:
            writer.write(self.rows)

    def _in_brief(self) -> str:
        what = self.unit.partition(" ")[0]
        per = self.bits / self.units if self.units else math.nan
        return f"{self.model}: {self.units:,} {what}, {per:.4f} bits each"
