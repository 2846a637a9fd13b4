"""What became of documents that were filtered: of a file, in exact numbers that add up in any order, and of all together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.decoding import Meta, Perplexity, Whole
from lmgauge.base.result_list import Tabled, plain_values
from lmgauge.filtering.documents import MOST_GROUPS, OTHERS, CorpusTotals, DocumentScores, Groups, Sums, added
from lmgauge.filtering.rules import BUCKETS, REASONS, Bucket, Judgement, Reason

K = TypeVar("K", bound=str | None)
STAYS = REASONS[0]
EXAMPLES = 5
"""How many examples there are of what stays, and of what is dropped for each reason."""
_EXAMPLE_CHARACTERS = 400
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_POINTS = 60
"""Bins of a histogram that is drawn, at most."""

_OCTAVES = 64
# 2**(k/8), rounded to the nearest float64: written out, as exponential functions differ from machine to machine.
_EIGHTHS = (
    *(1.0, 1.0905077326652577, 1.189207115002721, 1.2968395546510096),
    *(1.4142135623730951, 1.5422108254079407, 1.681792830507429, 1.8340080864093424),
)
_BINS = _OCTAVES * len(_EIGHTHS)
_EDGES: Floats = np.array([np.ldexp(eighth, octave) for octave in range(2 * _OCTAVES) for eighth in _EIGHTHS])
"""Lower edges of the bins: float64 [2 * bins], as bins that are drawn wider may end behind the last."""


# -- how perplexities are distributed: bins that are the same everywhere, so that histograms of parts add up exactly ------
@dataclass(frozen=True)
class Bins:
    """A histogram to draw."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    infinite: int = 0  # documents with an impossible event, which are in no bin
    unscored: int = 0  # documents without a perplexity, which are in no bin


def bin_counts(groups: Groups, perplexity: Floats) -> Ints:
    """Count documents by group, model and bin: int64 [groups + 1, models, 514], first those of no group."""
    # perplexity: float64 [documents, models]; inf where an event is impossible, NaN where there is nothing to score.
    # -> of 512 bins, of infinite perplexities and of documents without one. Each bin is an eighth of a bit per token wide,
    # which is a factor of 2^(1/8) in perplexity.
    places = np.searchsorted(_EDGES[1:_BINS], perplexity, side="right")
    places[np.isposinf(perplexity)] = _BINS
    places[np.isnan(perplexity)] = _BINS + 1
    shape = len(groups.names) + 1, perplexity.shape[1], _BINS + 2
    cells = ((groups.codes[:, None] + 1) * shape[1] + np.arange(shape[1])) * shape[2] + places
    return np.bincount(cells.ravel(), minlength=math.prod(shape)).reshape(shape)


@dataclass(frozen=True)
class PerplexityHistogram:
    """Counts of documents by group, model and perplexity."""

    models: tuple[str, ...]  # their names, in the order of the columns
    # int64 [models, 514], as `bin_counts` has them; None for documents without a group
    of_groups: Mapping[str | None, Ints] = field(repr=False)

    STATED = ("groups",)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the groups, in order."""
        return tuple(sorted(name for name in self.of_groups if name is not None))

    @property
    def groups(self) -> list[list[Any]]:
        """Return as plain values each group's name and, for each model, pairs of a bin that has documents and how many."""
        names = [name for name in (None, *self.names) if name in self.of_groups]
        return [[name, BinCounts(self.of_groups[name]).pairs()] for name in names]

    def counts(self, model: str, group: str | None = None) -> Ints:
        """Return the counts of a model: int64 [514], as `bin_counts` has them."""
        column = self.models.index(model)
        own = list(self.of_groups.values()) if group is None else [self.of_groups[group]]
        return np.sum([counts[column] for counts in own], axis=0) if own else np.zeros(_BINS + 2, np.int64)

    def bins(self, model: str, group: str | None = None, extent: tuple[int, int] | None = None) -> Bins:
        """Return a histogram of at most 60 bins, whose width is an eighth of a bit per token times a power of two."""
        # extent: first and last bin that others need, from `extent`, so that several histograms have the same bins.
        counts = self.counts(model, group)
        first, last = extent or self.extent(model, group) or (0, 0)
        width = 1
        while last // width - first // width >= MOST_POINTS:
            width *= 2
        first, last = first // width, last // width
        end = min((last + 1) * width, _BINS)
        joined = np.add.reduceat(counts[:end], range(first * width, end, width))
        edges = tuple(_EDGES[first * width : (last + 2) * width : width].tolist())
        return Bins(edges, tuple(joined.tolist()), int(counts[_BINS]), int(counts[_BINS + 1]))

    def extent(self, model: str, group: str | None = None) -> tuple[int, int] | None:
        """Return the first and the last bin that has documents, in eighths of a bit per token; None where none has."""
        places = np.flatnonzero(self.counts(model, group)[:_BINS])
        return (int(places[0]), int(places[-1])) if len(places) else None

    def median(self, model: str, group: str | None = None) -> tuple[float, float] | None:
        """Return the ends of the bin that the median of the documents with a perplexity is in."""
        # Both infinite where most perplexities are, None where there is no such document.
        ranks = np.cumsum(self.counts(model, group)[: _BINS + 1])
        if not ranks[-1]:
            return None
        place = int(np.searchsorted(ranks, (ranks[-1] + 1) // 2))
        if place == _BINS:
            return math.inf, math.inf
        return float(_EDGES[place]), float(_EDGES[place + 1])


# -- what became of documents --------------------------------------------------------------------------------------------
class BinCounts:
    """Counts of documents by model and bin of perplexity."""

    # counts: int64 [models, 514], those of a group of `bin_counts`.

    STORED = list[list[tuple[Annotated[int, Meta(ge=0, lt=_BINS + 2)], Whole]]]

    def __init__(self, counts: Ints) -> None:
        self.counts = counts

    def __add__(self, other: BinCounts) -> BinCounts:
        return BinCounts(self.counts + other.counts)

    def pairs(self) -> list[list[list[int]]]:
        """Return as plain values, for each model, the bins that have documents, each with how many."""
        return [[[k, count] for k, count in enumerate(row) if count] for row in self.counts.tolist()]

    @classmethod
    def of_stored(cls, stored: list[list[tuple[int, int]]]) -> BinCounts:
        """Return the counts whose `pairs` were stored."""
        counts = np.zeros((len(stored), _BINS + 2), np.int64)
        for row, pairs in zip(counts, stored, strict=True):
            for place, count in pairs:
                row[place] = count
        return cls(counts)


@dataclass(frozen=True)
class GroupTally(Sums):
    """Counts the documents of a group, and those of them that stay."""

    name: str  # of the group; empty for documents without one
    documents: Whole
    bytes: Whole
    stay_documents: Whole
    stay_bytes: Whole
    scored: BinCounts = field(compare=False, repr=False)
    stays: BinCounts = field(compare=False, repr=False)


@dataclass(frozen=True)
class Problem(Sums):
    """Records that cannot be used for one reason."""

    records: Whole
    first: str  # what is wrong with the first of them, and where


@dataclass(frozen=True)
class Example:
    """A document to look at."""

    key: Annotated[int, Meta(ge=0)]  # by which it was drawn: examples are those with the lowest keys
    place: str  # file and line, or its id
    text: str
    perplexity: Mapping[str, Perplexity | None]  # by the name of the model; None where there is none


@dataclass(frozen=True)
class Drawn:
    """Examples of one outcome: those with the lowest keys."""

    examples: Annotated[list[Example], Meta(max_length=EXAMPLES)]

    def __add__(self, other: Drawn) -> Drawn:
        both = sorted([*self.examples, *other.examples], key=lambda example: (example.key, example.place))
        return Drawn(both[:EXAMPLES])


@dataclass(frozen=True)
class Tally(Sums):
    """What became of records: of a batch, of a file, of all of them; the sum of two is that of both together."""

    records: Whole
    bytes: Whole
    stand_in: Whole
    reasons: dict[Reason, Whole]
    buckets: dict[Bucket, Whole]
    problems: dict[str, Problem]
    groups: dict[str, GroupTally]
    totals: dict[str, CorpusTotals]
    stay_totals: dict[str, CorpusTotals]
    examples: dict[Reason, Drawn]
    stay_empty: Whole = 0

    @classmethod
    def of_nothing(cls, models: Sequence[str]) -> Tally:
        """Return what counts no document."""
        totals = dict.fromkeys(models, CorpusTotals())
        return cls(0, 0, 0, {}, {}, {}, {}, totals, totals, {})

    @classmethod
    def of(
        cls,
        scores: DocumentScores,
        judgement: Judgement,
        groups: Groups,
        problems: dict[str, Problem],
        examples: dict[Reason, Drawn],
    ) -> Tally:
        """Count the documents of a batch."""
        usable = ~scores.missing()
        reasons, sizes, perplexity = judgement.reasons[usable], scores.bytes[usable], scores.perplexity[usable]
        stay, own = reasons == 0, groups.where(usable).limited()
        cells = own.codes + 1
        weights = (np.ones(len(cells)), sizes, stay, sizes * stay)
        counts = np.stack([np.bincount(cells, weight, len(own.names) + 1) for weight in weights], axis=1).astype(np.int64)
        bins = bin_counts(own, perplexity), bin_counts(own.where(stay), perplexity[stay])
        by_group: dict[str, GroupTally] = {}
        for name, four, *both in zip(("", *own.names), counts.tolist(), *bins, strict=True):
            if four[0]:
                by_group = added(by_group, {name: GroupTally(name, *four, *map(BinCounts, both))})
        whole = len(usable), int(sizes.sum()), int(np.count_nonzero(judgement.stand_in & usable))
        named = _counted(reasons, REASONS), _counted(judgement.buckets[usable][stay], BUCKETS)
        totals = _totals(scores, usable), _totals(scores, usable & (judgement.reasons == 0))
        return cls(*whole, *named, problems, by_group, *totals, examples, int(np.count_nonzero(stay & (sizes == 0))))

    def __add__(self, other: Tally) -> Tally:
        groups = dict(self.groups)
        for name, group in other.groups.items():
            room = len(groups) < MOST_GROUPS + (OTHERS in groups)
            place = name if room or name in groups or not name else OTHERS
            groups[place] = groups[place] + group if place in groups else replace(group, name=place)
        return replace(super().__add__(replace(other, groups={})), groups=groups)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        bins = {name: {"scored": own.scored.pairs(), "stays": own.stays.pairs()} for name, own in self.groups.items()}
        groups = {name: vars(own) | bins[name] for name, own in self.groups.items()}
        return asdict(replace(self, groups={})) | {"groups": groups}


def _totals(scores: DocumentScores, chosen: NDArray[np.bool_]) -> dict[str, CorpusTotals]:
    return {name: CorpusTotals.of(own, scores.bytes, chosen) for name, own in scores.sums.items()}


def _counted(codes: NDArray[np.uint8], names: Sequence[K]) -> dict[K, int]:
    # How many there are of each code, by its name; codes beyond the names are not counted.
    counts = np.bincount(codes[codes < len(names)], minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}


def example_text(text: bytes) -> str:
    """Return the first 400 characters of a text, with `…` at the end where it goes on."""
    begin = text[: 4 * _EXAMPLE_CHARACTERS + 4].decode("utf-8", "ignore")
    return begin if len(begin) <= _EXAMPLE_CHARACTERS else f"{begin[:_EXAMPLE_CHARACTERS]}…"


@dataclass(frozen=True, repr=False)
class PlanSummary:
    """The decisions, as a result states them."""

    models: tuple[str, ...]  # the names of the models, as columns begin
    signatures: Mapping[str, str]
    rules: tuple[str, ...]  # what stays, in words
    group_field: str | None  # the field of the groups; None without groups
    by: str | None  # the field that chooses the model; None where every model scores all documents


@dataclass(frozen=True, repr=False)
class FilteredDocuments(Tabled):
    """What happened to the documents of some files.

    Attributes:
        output: the file or folder that they were written to.
        files: how many were read; `files_before` of them were complete before.
        records: how many there were; those with `problems` could not be used.
        documents, bytes: that were scored, and the bytes of their texts.
        stay_documents, stay_bytes: of them, those that stay; `stay_empty` of them have no text.
        reasons: documents that were dropped, by reason, in the order of the rules.
        problems: records that could not be used, by reason; `first_problems` has the first of each with its place.
        groups: by name.
        buckets: documents that stay, by bucket; empty without buckets.
        stand_in: documents judged by the percentiles of all, as those of their group were not known.
        rules: what stays, in words.
        group_field: the field of the groups; None without groups.
        by: the field that chooses the model; None where every model scores all documents.
        signatures: of the models, by the name of their columns.
        models: the names of the models.
        examples: documents drawn at random, by what became of them ("stays", or the reason).
        scored, stays: how perplexities are distributed, before and after.
        totals, stay_totals: by the name of the model, sums over all documents, and over those that stay: `tokens`, `bits`,
            `bits_per_byte`, `perplexity`, `unseen_share`.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\nx y z\\n")
        ...     lmgauge.filter_documents({"lap2": model}, f"{folder}/in.txt", f"{folder}/out.txt", max_perplexity=3)
        <FilteredDocuments: 1 of 2 documents stay, 3 of 8 bytes>
    """

    output: str
    files: int
    files_before: int
    records: int
    documents: int
    bytes: int
    stay_documents: int
    stay_bytes: int
    reasons: Mapping[str, int]
    problems: Mapping[str, int]
    first_problems: Mapping[str, str]
    buckets: Mapping[str, int]
    stand_in: int
    rules: tuple[str, ...]
    group_field: str | None
    by: str | None
    signatures: Mapping[str, str]
    models: tuple[str, ...]
    groups: tuple[GroupTally, ...]
    examples: Mapping[str, Sequence[Example]]
    scored: PerplexityHistogram
    stays: PerplexityHistogram
    totals: Mapping[str, CorpusTotals]
    stay_totals: Mapping[str, CorpusTotals]
    stay_empty: int

    @classmethod
    def of(cls, summary: PlanSummary, tallies: Sequence[Tally], output: str, *, before: int = 0) -> FilteredDocuments:
        """Return the counts, bytes and perplexities of all files together.

        Args:
            summary: what was decided.
            tallies: what became of the records of each file.
            output: where the documents are.
            before: how many files were complete before.
        """
        total = sum(tallies, Tally.of_nothing(summary.models))
        problems = dict(sorted(total.problems.items(), key=lambda one: -one[1].records))

        def histogram(part: str) -> PerplexityHistogram:
            counts = {name or None: getattr(own, part).counts for name, own in total.groups.items()}
            return PerplexityHistogram(summary.models, counts)

        return cls(
            **vars(summary),
            output=output,
            files=len(tallies),
            files_before=before,
            documents=sum(total.reasons.values()),
            stay_documents=total.reasons.get(STAYS, 0),
            stay_bytes=sum(group.stay_bytes for group in total.groups.values()),
            reasons={reason: total.reasons[reason] for reason in REASONS[1:] if reason in total.reasons},
            problems={name: one.records for name, one in problems.items()},
            first_problems={name: one.first for name, one in total.problems.items()},
            groups=tuple(total.groups[name] for name in sorted(total.groups)),
            buckets={bucket: total.buckets.get(bucket, 0) for bucket in BUCKETS if total.buckets},
            examples={reason: total.examples[reason].examples for reason in REASONS if reason in total.examples},
            scored=histogram("scored"),
            stays=histogram("stays"),
            **{
                name: getattr(total, name)
                for name in ("records", "bytes", "stand_in", "totals", "stay_totals", "stay_empty")
            },
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [plain_values(group) for group in self.groups]

    def _in_brief(self) -> str:
        counts = f"{self.documents:,} documents scored, {self.bytes:,} bytes"
        if self.rules:
            stay = f"{self.stay_documents:,} of {self.documents:,} documents stay"
            counts = f"{stay}, {self.stay_bytes:,} of {self.bytes:,} bytes"
        bad = sum(self.problems.values())
        return counts + (f"; {bad:,} records could not be used" if bad else "")
