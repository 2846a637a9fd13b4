"""Makes the rows of words and regions, and says what a reader must know of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import counted
from lmgauge.base.result_list import Tabled, pandas_module, plain_values
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.options import with_kept
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.words.merging import (
    BOUNDARY,
    ENTROPY,
    Merged,
    Regions,
    Units,
    WordFrequencies,
    merge,
    strings_of,
    words_of,
)
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import why_not_whole
from lmgauge.scores.distributions.reduce import WithColumns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments
    from lmgauge.text.tokens import Tokenizer

MARKINGS = {
    "before": "its tokens include the space before a word: surprisal_corrected is minus log2 of a word probability, "
    "surprisal is not",
    "after": "its tokens include the space after a word: surprisal and surprisal_corrected are both minus log2 of a "
    "probability, and differ only where the space after a word is missing",
    "apart": "white space is a token of its own, included in the surprisal of the next word: surprisal_corrected is "
    "minus log2 of a word probability, surprisal is not",
    "whole": "its tokens are words, so surprisal is minus log2 of a word probability, and surprisal_corrected is equal",
    "stored": "surprisal_corrected is minus log2 of a word probability; surprisal is too where they are equal",
    "none": "no token of it has white space, so it does not predict where words end, and both figures are equal",
}
"""What is a probability, by what a tokenizer does with white space (see `lmgauge.scores.distributions.reduce`)."""

_NOTES = {
    "shared": "surprisal_corrected is missing for {}, which share a token with what is next to them (it counts whole for "
    "the first of them)",
    "unscored": "surprisal is missing for {}: first tokens are unscored (--first-token; in Python first_token)",
    "without_end": 'surprisal_corrected is missing for {} with no event after: --end eos gives one; in Python end="eos"',
    "impossible_after": "surprisal_corrected is infinite for {}: the model lets no word end there",
    "impossible_before": "surprisal_corrected is missing for {}: the model lets no word begin there",
}
"""What a reader must know of the units that have a flag of `Merged`."""


@dataclass(frozen=True)
class WordSettings:
    """What is measured, for all models of an evaluation.

    Attributes:
        tokenizer: cuts the text into words.
        regions: measured in place of words; None for words.
        frequencies: of words in a training text; None without one.
        carried: names of the fields of the text that are carried along.
    """

    tokenizer: Tokenizer
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


class WordRows:
    """Makes the rows of one model, block by block."""

    # marking: how its tokens have white space; why: it gives no whole distributions.

    def __init__(self, settings: WordSettings, origin: Origin, marking: str | None, why: str) -> None:
        self.settings, self.origin, self.marking, self._why = settings, origin, marking, why
        self._policy = origin.policy
        self._units = self._texts = self._lossy = 0
        self._bits = self._rest_bits = 0.0
        self._flagged: Counter[str] = Counter()
        self._has_entropy = False

    @classmethod
    def of_model(
        cls, model: LanguageModel, settings: WordSettings, origin: Origin, columns: Sequence[str] = ()
    ) -> tuple[LanguageModel, WordRows]:
        """Return a model that fills the columns which words need, as far as it can, and what makes the rows of it."""
        # columns: names of further columns.
        policy = model.context_policy
        if policy.leaves_out:
            raise UsageError(
                f"{model.label}: protocol {policy.protocol} leaves tokens unscored, so words have no surprisal; leave "
                "--protocol out"
            )
        why = "" if model.computes_many() else why_not_whole(model)
        if why:
            return WithColumns(model, columns) if columns else model, cls(settings, origin, None, why)
        filling = WithColumns(model, columns, word_boundaries=True)
        return filling, cls(settings, origin, filling.word_marking, "")

    def table(self, block: Segments, batch: ScoreBatch, units: Units | None = None) -> pa.Table:
        """Return the rows of a block."""
        units = self.settings.units(block) if units is None else units
        merged = merge(block, batch, units, self._policy)
        if self.settings.regions is not None and len(merged.crossing):
            raise _cut(block, batch, units, merged)
        self._units += len(units)
        self._texts += len(block)
        self._lossy += batch.lossy_segments
        self._bits += nats_to_bits(float(np.nansum(merged.nats)))
        self._rest_bits += nats_to_bits(merged.rest)
        self._flagged.update({flag: int(getattr(merged, flag).sum()) for flag in _NOTES})
        self._has_entropy = ENTROPY in batch.extra
        return self._table(block, units, merged)

    def _table(self, block: Segments, units: Units, merged: Merged) -> pa.Table:
        import pyarrow as pa

        strings, ids, base = strings_of(block, units), block.identifiers(), block.starts[units.owners]
        columns: dict[str, Any] = {
            "model": pa.array([self.origin.model] * len(units), pa.string()),
            "text_id": pa.array([ids[i] for i in units.owners.tolist()], pa.string()),
            "segment": units.owners + block.first,
            "word_number": units.numbers(),
            "region_number": units.numbers(),
            "word": pa.array(strings, pa.string()),
            "text": pa.array(strings, pa.string()),
            "region": pa.array([region.name for region in units.regions or ()], pa.string()),
            "start": units.starts - base,
            "end": units.ends - base,
            "pieces": merged.pieces,
            "surprisal": _bits(merged.nats),
            "surprisal_corrected": _bits(merged.corrected),
            "entropy_before": _bits(merged.entropy),
            "length": np.array([len(string) for string in strings], np.int64),
            "oov": merged.oov.astype(np.int8),
            "shared": merged.shared.astype(np.int8),
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
        notes += [words.format(counted(self._flagged[flag], unit)) for flag, words in _NOTES.items() if self._flagged[flag]]
        if self._lossy and not self._flagged["unscored"]:
            texts = counted(self._lossy, "text")
            notes.append(f"{texts} not spelled by the tokens exactly, so the tokens of a word may be off")
        if regions is not None and regions.texts_without:
            notes.append(f"{counted(regions.texts_without, 'text')} without regions")
        return notes

    def result(
        self, parts: Iterable[tuple[Segments, ScoreBatch]], corpus: Corpus, model: LanguageModel | None = None
    ) -> WordSurprisals:
        """Return the words of a whole text."""
        # parts: blocks of the text, with their rows; model: whose notes count, where there is one.
        import pyarrow as pa

        tables = [self.table(block, batch) for block, batch in parts]
        notes = [*corpus.report.notes(), *(() if model is None else model.notes), *self.notes()]
        signature = {
            "words": self.settings.signature,
            "n": str(self._units),
            "marking": self.marking or "unknown",
            **self.origin.text_parts,
            "context": self.origin.context,
            "text": corpus.report.sha256[:6],
            "vocab": self.origin.fingerprints.get("vocabulary", "unknown")[:6],
            "model": self.origin.fingerprints.get("label", self.origin.model),
            "v": NUMBERS_VERSION,
        }
        return WordSurprisals(
            model=self.origin.model,
            unit=self.settings.unit,
            marking=self.marking,
            texts=self._texts,
            units=self._units,
            bits=self._bits,
            rest_bits=self._rest_bits,
            signature=str(Signature(signature, head="words")),
            notes=tuple(dict.fromkeys(notes)),
            rows=pa.concat_tables(tables) if tables else pa.table({name: [] for name in self.settings.columns}),
        )


def words_of_table(
    parts: Iterable[tuple[Segments, ScoreBatch]], settings: WordSettings, origin: Origin, corpus: Corpus
) -> WordSurprisals:
    """Return the words of a stored score table."""
    # parts: blocks of the text, with their rows.
    whole = origin.unit == "word"
    why = f"{origin.model} has no column {BOUNDARY}; lmgauge eval --per-word -o writes one"
    rows = WordRows(settings, origin, "whole" if whole else None, why)

    def prepared() -> Iterator[tuple[Segments, ScoreBatch]]:
        for block, batch in parts:
            if len(batch.ends) < len(batch):
                raise InputError(f"{origin.model}: the score table has no byte spans, so it does not say where words are")
            if whole:
                batch = replace(batch, extra={**batch.extra, BOUNDARY: np.ones(len(batch))})
            if BOUNDARY in batch.extra and rows.marking is None:
                rows.marking = "stored"
            yield block, batch

    return rows.result(prepared(), corpus)


def _bits(nats: Any) -> pa.Array:
    # float64 [n], nats, as an Arrow array in bits; NaN, where a figure is missing, becomes null.
    import pyarrow as pa

    return pa.array(nats_to_bits(nats), from_pandas=True)


def _cut(block: Segments, batch: ScoreBatch, units: Units, merged: Merged) -> InputError:
    row = int(merged.crossing[0])
    place = int(batch.row_segments()[row] - block.first)
    start, end = int(batch.starts()[row]), int(batch.ends[row])
    piece = block.text(place)[start:end].decode(errors="replace")
    region = (units.regions or [])[int(merged.of_row[row])]
    return InputError(
        f"{region.where}: region {region.name!r} cuts the token {piece!r} (bytes {start} to {end} of text "
        f"{block.identifiers()[place]!r}), which has one probability; let regions begin and end where tokens do"
    )


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
