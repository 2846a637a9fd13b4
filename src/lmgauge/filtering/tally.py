"""What became of the documents of a file, in exact numbers that add up in any order, and a few examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Meta, Perplexity, Whole
from lmgauge.filtering.document_scores import DocumentScores
from lmgauge.filtering.groups import MOST_GROUPS, OTHERS, Groups
from lmgauge.filtering.histogram import PerplexityHistogram
from lmgauge.filtering.rules import BUCKETS, REASONS, Bucket, DocumentFigures, Judgement, Reason
from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.exact import exact_costs, exact_to_nats
from lmgauge.numerics.units import nats_to_bits

K = TypeVar("K", bound=str)
STAYS = REASONS[0]
EXAMPLES = 5
"""How many examples there are of what stays, and of what is dropped for each reason."""
_EXAMPLE_CHARACTERS = 400
_LARGEST = math.log(np.finfo(np.float64).max)


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
        return cls(
            documents=int(np.count_nonzero(chosen)),
            bytes=int(sizes[chosen].sum()),
            tokens=int(totals.events[chosen].sum()),
            impossible=int(totals.zeros[chosen].sum()),
            unseen=int(totals.unseen[chosen].sum()),
            ends=int(totals.ends[chosen].sum()),
            cost=exact_costs(-totals.nats[chosen]),
        )

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
    written_bytes: Whole
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

    def __post_init__(self) -> None:
        models = {*self.scored.models}
        if not (self.scored.models == self.stays.models and models == self.totals.keys() == self.stay_totals.keys()):
            raise ValueError("its figures are not of the same models")

    @classmethod
    def of_nothing(cls, models: Sequence[str]) -> Tally:
        """Return what counts no document yet."""
        histograms = PerplexityHistogram(models), PerplexityHistogram(models)
        totals, stay_totals = (dict.fromkeys(models, CorpusTotals()) for _ in range(2))
        return cls(0, 0, 0, 0, {}, {}, {}, {}, {}, *histograms, totals, stay_totals, {})

    def count_problem(self, reason: str, place: str) -> None:
        """Count a record that cannot be used."""
        _add(self.problems, {reason: 1})
        self.first_problems.setdefault(reason, place)

    def count(self, figures: DocumentFigures, judgement: Judgement, groups: Groups, usable: NDArray[np.bool_]) -> None:
        """Count the documents of a batch."""
        # usable: bool [records], those that could be scored.
        reasons = judgement.reasons[usable]
        stay = reasons == 0
        sizes, perplexity, own = figures.bytes[usable], figures.perplexity[usable], groups.where(usable).limited(self.groups)
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

    def add_totals(self, scores: DocumentScores, usable: NDArray[np.bool_], stay: NDArray[np.bool_]) -> None:
        """Add the bytes, events and nats of the documents of a batch."""
        # usable: bool [records], those that could be scored; stay: bool [records], of them those that stay.
        for sums, chosen in ((self.totals, usable), (self.stay_totals, stay)):
            _add(sums, {name: CorpusTotals.of(own, scores.bytes, chosen) for name, own in scores.sums.items()})

    def draw(self, reason: Reason, examples: list[Example]) -> None:
        """Take examples of what becomes of documents; those with the lowest keys stay."""
        all_of_them = sorted([*self.examples.get(reason, []), *examples], key=lambda example: (example.key, example.place))
        self.examples[reason] = all_of_them[:EXAMPLES]

    def merge(self, other: Tally) -> None:
        """Add the counts, bytes, totals and examples of another file."""
        fresh = sorted(other.groups.keys() - self.groups.keys() - {OTHERS})
        names = dict.fromkeys(fresh[MOST_GROUPS - len(self.groups) + (OTHERS in self.groups) :], OTHERS)
        for name, counts in other.groups.items():
            group = names.get(name, name)
            _add(self.groups, {group: replace(counts, name=group)})
        self.scored.merge(other.scored, names)
        self.stays.merge(other.stays, names)
        _add(vars(self), {name: getattr(other, name) for name in ("records", "bytes", "written_bytes", "stand_in")})
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
