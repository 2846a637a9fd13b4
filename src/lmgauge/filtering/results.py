"""What became of documents that were filtered: of a file, in exact numbers that add up in any order, and of all together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Meta, Perplexity, Whole
from lmgauge.filtering.documents import OTHERS, DocumentScores, Groups, room_for
from lmgauge.filtering.rules import BUCKETS, REASONS, Bucket, Judgement, PerplexityLimits, Reason
from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.exact import exact_costs, exact_to_nats
from lmgauge.numerics.units import nats_to_bits
from lmgauge.result_list import Tabled

_LAST = ("rules", "group_field", "by", "signatures", "models", "limits", "groups", "examples")
K = TypeVar("K", bound=str | None)
STAYS = REASONS[0]
EXAMPLES = 5
"""How many examples there are of what stays, and of what is dropped for each reason."""
_EXAMPLE_CHARACTERS = 400
_LARGEST = math.log(np.finfo(np.float64).max)
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


@dataclass
class _Stored:
    models: list[str]
    # of each group: its name, and of each model the bins that have documents, each with how many
    groups: list[tuple[str | None, list[list[tuple[Annotated[int, Meta(ge=0, lt=_BINS + 2)], Whole]]]]]


class PerplexityHistogram:
    """Counts documents by group, model and perplexity: 4 kB for each group and model."""

    # models: names of the models, in the order of the columns.

    STORED = _Stored

    def __init__(self, models: Sequence[str]) -> None:
        self.models = tuple(models)
        self._counts: dict[str | None, Ints] = {}

    def add(self, groups: Groups, perplexity: Floats) -> None:
        """Count the documents of a batch."""
        # perplexity: float64 [documents, models]; inf where an event is impossible, NaN where there is nothing to score.
        width = _BINS + 2
        places = np.searchsorted(_EDGES[1:_BINS], perplexity, side="right")
        places[np.isposinf(perplexity)] = _BINS
        places[np.isnan(perplexity)] = _BINS + 1
        models, rows = len(self.models), len(groups.names) + 1
        cells = ((groups.codes[:, None] + 1) * models + np.arange(models)) * width + places
        counts = np.bincount(cells.ravel(), minlength=rows * models * width).reshape(rows, models, width)
        for name, own in zip((None, *groups.names), counts, strict=True):
            if own.any():
                _add(self._counts, {name: own})

    def merge(self, other: PerplexityHistogram, names: Mapping[str | None, str]) -> None:
        """Add the counts of other documents; names: of groups that get another one."""
        for name, counts in other._counts.items():
            _add(self._counts, {names.get(name, name): counts})

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the groups, in order."""
        return tuple(sorted(name for name in self._counts if name is not None))

    def counts(self, model: str, group: str | None = None) -> Ints:
        """Return the counts of a model: int64 [514], of 512 bins, of infinite perplexities and of documents without one."""
        # Each bin is an eighth of a bit per token wide, which is a factor of 2^(1/8) in perplexity.
        column = self.models.index(model)
        own = list(self._counts.values()) if group is None else [self._counts[group]]
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

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values: only bins that have documents, as pairs of place and count."""
        rows = [
            [name, [[[k, count] for k, count in enumerate(row) if count] for row in self._counts[name].tolist()]]
            for name in (None, *self.groups)
            if name in self._counts
        ]
        return {"models": list(self.models), "groups": rows}

    @classmethod
    def of_stored(cls, stored: _Stored) -> PerplexityHistogram:
        """Return the histogram whose `to_dict` was stored."""
        histogram = cls(stored.models)
        for name, columns in stored.groups:
            counts = np.zeros((len(columns), _BINS + 2), np.int64)
            for row, pairs in zip(counts, columns, strict=True):
                for place, count in pairs:
                    row[place] = count
            _add(histogram._counts, {name: counts})
        return histogram


# -- what became of documents --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CorpusTotals:
    """Sums of a model over documents."""

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

    def __add__(self, other: CorpusTotals) -> CorpusTotals:
        return CorpusTotals(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

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

    def to_dict(self) -> dict[str, Any]:
        """Return sums and figures as plain values."""
        names = ("bits", "bits_per_byte", "perplexity", "unseen_share")
        return dict(vars(self)) | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class GroupCounts:
    """Documents of a group, and those of them that stay."""

    name: str  # of the group; empty for documents without one
    documents: Whole
    bytes: Whole
    stay_documents: Whole
    stay_bytes: Whole

    def __add__(self, other: GroupCounts) -> GroupCounts:
        return replace(self, **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)[1:]})


@dataclass(frozen=True)
class Example:
    """A document to look at."""

    key: Annotated[int, Meta(ge=0)]  # by which it was drawn: examples are those with the lowest keys
    place: str  # file and line, or its id
    text: str
    perplexity: Mapping[str, Perplexity | None]  # by the name of the model; None where there is none


@dataclass
class Tally:
    """Counts documents by what became of them."""

    records: Whole
    bytes: Whole
    stand_in: Whole
    reasons: dict[Reason, Whole]
    problems: dict[str, Whole]
    first_problems: dict[str, str]
    groups: dict[str, GroupCounts]
    buckets: dict[Bucket, Whole]
    scored: PerplexityHistogram
    stays: PerplexityHistogram
    totals: dict[str, CorpusTotals]
    stay_totals: dict[str, CorpusTotals]
    examples: dict[Reason, Annotated[list[Example], Meta(max_length=EXAMPLES)]]

    @classmethod
    def of_nothing(cls, models: Sequence[str]) -> Tally:
        """Return what counts no document yet."""
        histograms = PerplexityHistogram(models), PerplexityHistogram(models)
        totals, stay_totals = (dict.fromkeys(models, CorpusTotals()) for _ in range(2))
        return cls(0, 0, 0, {}, {}, {}, {}, {}, *histograms, totals, stay_totals, {})

    def count_problem(self, reason: str, place: str) -> None:
        """Count a record that cannot be used."""
        self.problems[reason] = self.problems.get(reason, 0) + 1
        self.first_problems.setdefault(reason, place)

    def count(self, scores: DocumentScores, judgement: Judgement, groups: Groups) -> None:
        """Count the documents of a batch."""
        usable = ~scores.missing()
        for sums, chosen in ((self.totals, usable), (self.stay_totals, usable & (judgement.reasons == 0))):
            _add(sums, {name: CorpusTotals.of(own, scores.bytes, chosen) for name, own in scores.sums.items()})
        reasons = judgement.reasons[usable]
        stay = reasons == 0
        sizes, perplexity, own = scores.bytes[usable], scores.perplexity[usable], groups.where(usable).limited(self.groups)
        self.records += len(usable)
        self.bytes += int(sizes.sum())
        self.stand_in += int(np.count_nonzero(judgement.stand_in & usable))
        _add(self.reasons, _counted(reasons, REASONS))
        _add(self.buckets, _counted(judgement.buckets[usable][stay], BUCKETS))
        self.scored.add(own, perplexity)
        self.stays.add(own.where(stay), perplexity[stay])
        cells, names = own.codes + 1, ("", *own.names)
        weights = (np.ones(len(cells)), sizes, stay, sizes * stay)
        for name, *counts in zip(names, *(np.bincount(cells, weight, len(names)) for weight in weights), strict=True):
            if counts[0]:
                _add(self.groups, {name: GroupCounts(name, *map(int, counts))})

    def draw(self, reason: Reason, examples: list[Example]) -> None:
        """Take examples of what becomes of documents; those with the lowest keys stay."""
        all_of_them = sorted([*self.examples.get(reason, []), *examples], key=lambda example: (example.key, example.place))
        self.examples[reason] = all_of_them[:EXAMPLES]

    def merge(self, other: Tally) -> None:
        """Add the counts, bytes, totals and examples of another file."""
        fresh = sorted(other.groups.keys() - self.groups.keys() - {OTHERS})
        names: dict[str | None, str] = dict.fromkeys(fresh[room_for(self.groups) :], OTHERS)
        for name, counts in other.groups.items():
            group = names.get(name, name)
            _add(self.groups, {group: replace(counts, name=group)})
        self.scored.merge(other.scored, names)
        self.stays.merge(other.stays, names)
        _add(vars(self), {name: getattr(other, name) for name in ("records", "bytes", "stand_in")})
        for what in ("reasons", "problems", "buckets", "totals", "stay_totals"):
            _add(getattr(self, what), getattr(other, what))
        for reason, place in other.first_problems.items():
            self.first_problems.setdefault(reason, place)
        for what, examples in other.examples.items():
            self.draw(what, examples)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return asdict(self) | {"scored": self.scored.to_dict(), "stays": self.stays.to_dict()}


def _add(mine: dict[K, Any], theirs: Mapping[K, Any]) -> None:
    for name, number in theirs.items():
        mine[name] = mine[name] + number if name in mine else number


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
    limits: tuple[PerplexityLimits, ...]  # of the perplexities of what stays
    group_field: str | None  # the field of the groups; None without groups
    by: str | None  # the field that chooses the model; None where every model scores all documents


@dataclass(frozen=True, repr=False)
class FilteredDocuments(PlanSummary, Tabled):
    """What became of the documents of some files.

    Attributes:
        output: the file or folder that they were written to.
        files: how many were read; `files_before` of them were complete before.
        records: how many there were; those with `problems` could not be used.
        documents, bytes: that were scored, and the bytes of their texts.
        stay_documents, stay_bytes: of them, those that stay.
        reasons: documents that were dropped, by reason, in the order of the rules.
        problems: records that could not be used, by reason; `first_problems` has the first of each with its place.
        groups: by name.
        buckets: documents that stay, by bucket; empty without buckets.
        stand_in: documents judged by the percentiles of all, as those of their group were not known.
        rules: what stays, in words.
        limits: between which perplexities documents stay, by model and group.
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
    groups: tuple[GroupCounts, ...]
    buckets: Mapping[str, int]
    stand_in: int
    examples: Mapping[str, Sequence[Example]]
    scored: PerplexityHistogram
    stays: PerplexityHistogram
    totals: Mapping[str, CorpusTotals]
    stay_totals: Mapping[str, CorpusTotals]

    @classmethod
    def of(cls, summary: PlanSummary, tallies: Sequence[Tally], output: str, *, before: int = 0) -> FilteredDocuments:
        """Return the counts, bytes and perplexities of all files together.

        Args:
            summary: what was decided.
            tallies: what became of the records of each file.
            output: where the documents are.
            before: how many files were complete before.
        """
        total = Tally.of_nothing(summary.models)
        for tally in tallies:
            total.merge(tally)
        as_counted = ("records", "bytes", "first_problems", "stand_in", "scored", "stays", "totals", "stay_totals")
        groups = tuple(total.groups[name] for name in sorted(total.groups))
        return cls(
            output=output,
            files=len(tallies),
            files_before=before,
            documents=sum(total.reasons.values()),
            stay_documents=total.reasons.get(STAYS, 0),
            stay_bytes=sum(group.stay_bytes for group in groups),
            reasons={reason: total.reasons[reason] for reason in REASONS[1:] if reason in total.reasons},
            problems=dict(sorted(total.problems.items(), key=lambda one: -one[1])),
            groups=groups,
            buckets={bucket: total.buckets.get(bucket, 0) for bucket in BUCKETS if total.buckets},
            examples={reason: total.examples[reason] for reason in REASONS if total.examples.get(reason)},
            **{name: getattr(total, name) for name in as_counted},
            **vars(summary),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values; examples with their texts, histograms as pairs of bin and count."""
        nested: dict[str, Any] = {"scored": self.scored.to_dict(), "stays": self.stays.to_dict()}
        for sums in ("totals", "stay_totals"):
            nested[sums] = {name: one.to_dict() for name, one in getattr(self, sums).items()}
        own = asdict(self) | nested
        return own | {name: own.pop(name) for name in (*_LAST, *nested)}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [asdict(group) for group in self.groups]

    def _in_brief(self) -> str:
        counts = f"{self.documents:,} documents scored, {self.bytes:,} bytes"
        if self.rules:
            stay = f"{self.stay_documents:,} of {self.documents:,} documents stay"
            counts = f"{stay}, {self.stay_bytes:,} of {self.bytes:,} bytes"
        bad = sum(self.problems.values())
        return counts + (f"; {bad:,} records could not be used" if bad else "")
