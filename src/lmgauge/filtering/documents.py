"""The documents of a batch: texts made valid as all text is, what is wrong with the others, and what models make of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lmgauge.base.decoding import Meta, Whole
from lmgauge.base.errors import InputError
from lmgauge.models.segment_scores import SegmentTotals
from lmgauge.numerics.exact import exact_costs, exact_to_nats
from lmgauge.numerics.units import nats_to_bits
from lmgauge.records.parquet import arrow_columns, one_array, values_of
from lmgauge.records.records import NO_TEXT, Records, Strings, find_problem, utf8, what_is_wrong
from lmgauge.text.cleaning import Place, clean_record
from lmgauge.text.segments import Segments, TextReport

INVALID = "invalid text"
_NEWLINE = ord("\n")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_LARGEST = math.log(np.finfo(np.float64).max)
FIGURES = ("bits", "bits_per_byte", "perplexity", "tokens", "unseen")
"""What is said of a document, by the ends of the names of columns."""


@dataclass(frozen=True)
class Documents:
    """Documents of a batch, one after another; those that cannot be used have no segment."""

    count: int  # how many there are, those that cannot be used included
    segments: Segments  # the texts of the others, one segment each
    rows: NDArray[np.int64]  # int64 [segments], the number of each among all, from 0
    problems: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    # by the name of a field of their records that was asked for, the value of each document; None where it has none
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Sequence[str | bytes | None], source: str = "<documents>") -> Self:
        """Return texts as documents."""
        encoded = [utf8(text) if isinstance(text, str) else text for text in texts]
        return cls.of_strings(len(texts), Strings.of(encoded), source)

    @classmethod
    def of_strings(
        cls, count: int, texts: Strings, source: str = "<documents>", problems: Mapping[int, tuple[str, str]] | None = None
    ) -> Self:
        """Return texts of some of `count` records as documents."""
        wrong = dict(problems or {})
        if len(texts) + len(wrong) < count:
            wrong = dict.fromkeys(np.setdiff1d(np.arange(count), texts.rows).tolist(), (NO_TEXT, "null")) | wrong
        if texts.clean_characters() is None:
            texts = _cleaned(texts, source, wrong)
        return cls(count, Segments(np.frombuffer(texts.data, np.uint8), texts.starts, texts.ends, source), texts.rows, wrong)

    @classmethod
    def of_column(cls, column: pa.Array | pa.ChunkedArray, source: str = "<table>") -> Self:
        """Return a column of strings as documents."""
        texts = Strings.of_column(one_array(column))
        if texts is None:
            raise InputError(f"{source}: the column of the text holds {column.type}, not strings: name another field")
        return cls.of_strings(len(column), texts, source)

    @classmethod
    def of_records(cls, records: Records) -> Self:
        """Return the texts of records as documents."""
        documents = cls.of_strings(len(records), records.texts, records.source, records.problems)
        return replace(documents, values=records.values)

    def labels(self, field: str) -> list[str | None]:
        """Return what `label_of` makes of a field of each document."""
        return list(map(label_of, self.values[field]))

    def byte_counts(self) -> NDArray[np.int64]:
        """Return the bytes of each document, int64 [count]; 0 for one that cannot be used."""
        counts = np.zeros(self.count, np.int64)
        counts[self.rows] = self.segments.ends - self.segments.starts
        return counts

    def only(self, chosen: NDArray[np.bool_]) -> Documents:
        """Return some of the usable documents, under their numbers."""
        # chosen: bool [segments].
        segments = replace(self.segments, starts=self.segments.starts[chosen], ends=self.segments.ends[chosen])
        return Documents(self.count, segments, self.rows[chosen], values=self.values)


def split_lines(segments: Segments) -> tuple[Segments, NDArray[np.int64]]:
    r"""Return each line of documents as a segment of its own, and the document that it is of, int64 [lines]."""
    # Lines are cut at newlines alone, and an empty one is a line, too.
    newlines = np.flatnonzero(segments.data == _NEWLINE)
    first, last = np.searchsorted(newlines, segments.starts), np.searchsorted(newlines, segments.ends)
    inside = last - first
    if not inside.any():
        return segments, np.arange(len(segments))
    owner = np.repeat(np.arange(len(segments)), inside + 1)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)  # number of the line
    begins, stops = segments.starts[owner], segments.ends[owner]
    later, earlier = within > 0, within < inside[owner]
    begins[later] = newlines[(first[owner] + within - 1)[later]] + 1
    stops[earlier] = newlines[(first[owner] + within)[earlier]]
    return replace(segments, starts=begins, ends=stops), owner


def _cleaned(texts: Strings, source: str, problems: dict[int, tuple[str, str]]) -> Strings:
    rows, valid = list[int](), list[bytes]()
    for i, row in enumerate(texts.rows.tolist()):
        clean = clean_record(text := texts.text(i), Place(source), "skip", TextReport())
        if clean is None:
            problems[row] = INVALID, what_is_wrong(text, find_problem(text)[0])
        else:
            rows.append(row)
            valid.append(clean.data)
    return Strings.of(valid, rows)


def label_of(value: object) -> str | None:
    """Return the value of a field that names a group or chooses a model: strings and whole numbers do."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    # Bytes that are not text are named by their numbers.
    return _ESCAPED_BYTE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", str(value))


def labels_of(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return what `label_of` makes of each value of a column."""
    return list(map(label_of, values_of(column)))


# -- groups -----------------------------------------------------------------------------------------------------------------
MOST_GROUPS = 1_000
"""Groups that are counted: a field with more values does not name groups of documents."""
OTHERS = "(other values)"
"""The group of documents whose value comes after the most that are told apart."""
LONGEST_NAME = 200
"""Characters of the longest name of a group: a longer value is not a group."""


@dataclass(frozen=True)
class Groups:
    """The group of each document of a batch."""

    names: tuple[str, ...]  # of the groups of this batch, each once
    codes: NDArray[np.int64]  # int64 [documents], the index of a document's group in `names`; -1 for a document without one

    @classmethod
    def none(cls, documents: int) -> Groups:
        """Return what stands for documents that are not grouped: no names, and codes [documents] of -1."""
        return cls((), np.full(documents, -1, np.int64))

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> Groups:
        """Return the groups that the labels of documents name, as `documents.label_of` makes them of a field."""
        # Text of more than 200 characters names no group.
        try:
            names = pa.array(labels, pa.string())
        except UnicodeEncodeError:  # JSON may hold half a character (a lone surrogate)
            names = pa.array([label and label.encode("utf-8", "replace").decode() for label in labels], pa.string())
        encoded = pc.if_else(pc.greater(pc.utf8_length(names), LONGEST_NAME), None, names).dictionary_encode()
        codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return cls(tuple(encoded.dictionary.to_pylist()), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def limited(self) -> Groups:
        """Return the same groups, but for those behind the first `MOST_GROUPS`: they become one."""
        if len(self.names) <= MOST_GROUPS:
            return self
        return Groups((*self.names[:MOST_GROUPS], OTHERS), np.minimum(self.codes, MOST_GROUPS))

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Groups:
        """Return the groups of some of the documents."""
        # chosen: bool [documents], or their numbers.
        return Groups(self.names, self.codes[chosen])


# -- what models make of documents ----------------------------------------------------------------------------------------
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


# -- sums over documents ----------------------------------------------------------------------------------------------------
class Sums:
    """What adds up, field by field, and by name."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(added(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)))  # type: ignore[arg-type]


def added(one: Any, other: Any) -> Any:
    """Return the sum of two numbers, of two mappings name by name, or the first of two texts."""
    if isinstance(one, str):
        return one
    if not isinstance(one, dict):
        return one + other
    return one | {name: one[name] + value if name in one else value for name, value in other.items()}


@dataclass(frozen=True)
class CorpusTotals(Sums):
    """Sums of a model over documents."""

    STATED = ("bits", "bits_per_byte", "perplexity", "unseen_share")
    documents: Whole = 0
    bytes: Whole = 0
    tokens: Whole = 0
    impossible: Whole = 0  # of them, those of probability zero
    unseen: Whole = 0  # of them, unseen words
    ends: Whole = 0
    # of the possible events, the negative of their log-probabilities in multiples of 2^-80 nats
    cost: Annotated[int, Meta(ge=0)] = 0

    @classmethod
    def of(cls, totals: SegmentTotals, sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> CorpusTotals:
        """Return the sums of some of the documents of a batch."""
        # sizes: int64 [documents], bytes of each text; chosen: bool [documents].
        columns = (chosen, sizes, totals.events, totals.zeros, totals.unseen, totals.ends)
        documents, size, tokens, impossible, unseen, ends = (int(column[chosen].sum()) for column in columns)
        return cls(documents, size, tokens, impossible, unseen, ends, exact_costs(-totals.nats[chosen]))

    @property
    def bits(self) -> float:
        """Return the bits of all events; infinite where one is impossible."""
        return math.inf if self.impossible else nats_to_bits(exact_to_nats(self.cost))

    @property
    def bits_per_byte(self) -> float | None:
        """Return bits for each byte of the texts; None where there is none."""
        return self.bits / self.bytes if self.bytes else None

    @property
    def perplexity(self) -> float | None:
        """Return the perplexity of all tokens together; None where there is none, infinite where an event is impossible."""
        if not self.tokens:
            return None
        nats = exact_to_nats(self.cost) / self.tokens
        return math.inf if self.impossible or nats > _LARGEST else math.exp(nats)

    @property
    def unseen_share(self) -> float | None:
        """Return the share of unseen words among the tokens but `</s>`; None where there is none."""
        words = self.tokens - self.ends
        return self.unseen / words if words > 0 else None
