"""What became of the documents of a file, in exact numbers that add up in any order, and a few examples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Meta, Perplexity, Whole
from lmgauge.filtering.document_scores import DocumentScores
from lmgauge.filtering.groups import MOST_GROUPS, OTHERS, Groups
from lmgauge.filtering.histogram import PerplexityHistogram, StoredHistogram
from lmgauge.filtering.rules import BUCKETS, NO_BUCKET, REASONS, DocumentFigures, Judgement
from lmgauge.models.segment_totals import SegmentTotals
from lmgauge.numerics.exact import exact_costs, exact_to_nats
from lmgauge.numerics.units import nats_to_bits

STAYS = REASONS[0]
EXAMPLES = 5
"""How many examples there are of what stays, and of what is dropped for each reason."""
_EXAMPLE_CHARACTERS = 400
_LARGEST = math.log(np.finfo(np.float64).max)
_COUNTS = ("documents", "bytes", "stay_documents", "stay_bytes")
_TOTALS = ("totals", "stay_totals")


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
class Example:
    """A document to look at."""

    key: Annotated[int, Meta(ge=0)]  # by which it was drawn: examples are those with the lowest keys
    place: str  # file and line, or its id
    text: str
    perplexity: Mapping[str, Perplexity | None]  # by the name of the model; None where there is none


class Tally:
    """Counts documents by what became of them."""

    def __init__(self, models: list[str]) -> None:
        self.records = self.bytes = self.written_bytes = self.stand_in = 0
        self.reasons: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.first_problems: dict[str, str] = {}
        self.groups: dict[str, dict[str, int]] = {}
        self.buckets: Counter[str] = Counter()
        self.scored, self.stays = PerplexityHistogram(models), PerplexityHistogram(models)
        self.totals, self.stay_totals = ({name: CorpusTotals() for name in models} for _ in range(2))
        self.examples: dict[str, list[Example]] = {}

    def count_problem(self, reason: str, place: str) -> None:
        """Count a record that cannot be used."""
        self.problems[reason] += 1
        self.first_problems.setdefault(reason, place)

    def count(self, figures: DocumentFigures, judgement: Judgement, groups: Groups, usable: NDArray[np.bool_]) -> None:
        """Count the documents of a batch."""
        # usable: bool [records], those that could be scored.
        reasons = judgement.reasons[usable]
        stay = reasons == 0
        sizes, perplexity, own = figures.bytes[usable], figures.perplexity[usable], groups.where(usable).limited(self.groups)
        self.records += len(usable)
        self.bytes += int(sizes.sum())
        self.reasons.update({REASONS[code]: n for code, n in enumerate(np.bincount(reasons).tolist()) if n})
        self.stand_in += int(np.count_nonzero(judgement.stand_in & usable))
        codes = judgement.buckets[usable][stay]
        counts = np.bincount(codes[codes != NO_BUCKET], minlength=len(BUCKETS)).tolist()
        self.buckets.update({BUCKETS[code]: n for code, n in enumerate(counts) if n})
        self.scored.add(own, perplexity)
        self.stays.add(own.where(stay), perplexity[stay])
        cells, width = own.codes + 1, len(own.names) + 1
        documents, of_stay = np.bincount(cells, minlength=width), np.bincount(cells[stay], minlength=width)
        all_bytes, stay_bytes = np.bincount(cells, sizes, width), np.bincount(cells[stay], sizes[stay], width)
        for name, *sums in zip(("", *own.names), documents, all_bytes, of_stay, stay_bytes, strict=True):
            if sums[0]:
                self._add_group(name, dict(zip(_COUNTS, map(int, sums), strict=True)))

    def add_totals(self, scores: DocumentScores, usable: NDArray[np.bool_], stay: NDArray[np.bool_]) -> None:
        """Add the bytes, events and nats of the documents of a batch."""
        # usable: bool [records], those that could be scored; stay: bool [records], of them those that stay.
        for sums, chosen in ((self.totals, usable), (self.stay_totals, stay)):
            for name in sums:
                sums[name] += CorpusTotals.of(scores.sums[name].totals, scores.bytes, chosen)

    def draw(self, reason: str, examples: list[Example]) -> None:
        """Take examples of what becomes of documents; those with the lowest keys stay."""
        all_of_them = sorted([*self.examples.get(reason, []), *examples], key=lambda example: (example.key, example.place))
        self.examples[reason] = all_of_them[:EXAMPLES]

    def _add_group(self, name: str, counts: Mapping[str, int]) -> None:
        own = self.groups.setdefault(name, dict.fromkeys(_COUNTS, 0))
        for what, number in counts.items():
            own[what] += number

    def merge(self, other: Tally) -> None:
        """Add the counts, bytes, totals and examples of another file."""
        self.records += other.records
        self.bytes += other.bytes
        self.written_bytes += other.written_bytes
        self.stand_in += other.stand_in
        for mine, theirs in ((self.reasons, other.reasons), (self.problems, other.problems), (self.buckets, other.buckets)):
            mine.update(theirs)
        for reason, place in other.first_problems.items():
            self.first_problems.setdefault(reason, place)
        fresh = sorted(other.groups.keys() - self.groups.keys() - {OTHERS})
        names = dict.fromkeys(fresh[MOST_GROUPS - len(self.groups) + (OTHERS in self.groups) :], OTHERS)
        for name, counts in other.groups.items():
            self._add_group(names.get(name, name), counts)
        self.scored.merge(other.scored, names)
        self.stays.merge(other.stays, names)
        for name in self.totals:
            self.totals[name] += other.totals[name]
            self.stay_totals[name] += other.stay_totals[name]
        for reason, examples in other.examples.items():
            self.draw(reason, examples)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            **{name: getattr(self, name) for name in ("records", "bytes", "written_bytes", "stand_in")},
            **{name: dict(getattr(self, name)) for name in ("reasons", "problems", "first_problems", "groups", "buckets")},
            "scored": self.scored.to_dict(),
            "stays": self.stays.to_dict(),
            **{what: {name: dict(vars(own)) for name, own in getattr(self, what).items()} for what in _TOTALS},
            "examples": {reason: [asdict(example) for example in examples] for reason, examples in self.examples.items()},
        }

    @classmethod
    def of_stored(cls, stored: StoredTally) -> Tally:
        """Return the tally whose `to_dict` was stored."""
        tally = cls(stored.scored.models)
        vars(tally).update(vars(stored))
        tally.reasons, tally.problems, tally.buckets = map(Counter, (stored.reasons, stored.problems, stored.buckets))
        tally.groups = {name: dict(vars(counts)) for name, counts in stored.groups.items()}
        tally.scored, tally.stays = map(PerplexityHistogram.of_stored, (stored.scored, stored.stays))
        return tally


@dataclass
class _GroupCounts:
    documents: Whole
    bytes: Whole
    stay_documents: Whole
    stay_bytes: Whole


@dataclass
class StoredTally:
    """A tally as it is stored."""

    records: Whole
    bytes: Whole
    written_bytes: Whole
    stand_in: Whole
    reasons: dict[str, Whole]
    problems: dict[str, Whole]
    first_problems: dict[str, str]
    groups: dict[str, _GroupCounts]
    buckets: dict[str, Whole]
    scored: StoredHistogram
    stays: StoredHistogram
    totals: dict[str, CorpusTotals]
    stay_totals: dict[str, CorpusTotals]
    examples: dict[str, Annotated[list[Example], Meta(max_length=EXAMPLES)]]

    def __post_init__(self) -> None:
        if not ({*self.reasons, *self.examples} <= {*REASONS} and {*self.buckets} <= {*BUCKETS}):
            raise ValueError("what became of documents is unknown")
        models = {*self.scored.models}
        if not (self.scored.models == self.stays.models and models == self.totals.keys() == self.stay_totals.keys()):
            raise ValueError("its figures are not of the same models")


def example_text(text: bytes) -> str:
    """Return the first 400 characters of a text, with `…` at the end where it goes on."""
    begin = text[: 4 * _EXAMPLE_CHARACTERS + 4].decode("utf-8", "ignore")
    return begin if len(begin) <= _EXAMPLE_CHARACTERS else f"{begin[:_EXAMPLE_CHARACTERS]}…"
