"""The result of comparing two engines on the same tokens: objects that print, and turn into dicts and data frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmgauge.base.errors import CheckFailedError
from lmgauge.base.result_list import ResultList, Tabled, column, columns_of, interval_columns
from lmgauge.evaluation.divergence.divergence_result import Figure


@dataclass(frozen=True)
class PairSlice:
    """What two tables of log-probabilities have in one slice of their events."""

    label: str = field(metadata=column(""))
    events: int = field(metadata=column("events", form="count", drop=1))
    mean_size: float | None = field(metadata=column("mean |Δ|, nats", 2, "figures"))  # over events that are finite in both
    share_outside: float = field(metadata=column("outside the band", 2, "percent"))
    largest: float = field(metadata=column("largest |Δ|", 2, "figures"))


@dataclass(frozen=True)
class PairSlices:
    """A way to cut the events, and what is in each slice; slices that no event falls into are left out."""

    name: str
    rows: tuple[PairSlice, ...]


@dataclass(frozen=True)
class PairFigures:
    """The figures of two tables of log-probabilities of the same tokens.

    Δ is the second log-probability minus the first, nats; r = exp Δ is the ratio of the probabilities. An event that either
    table gives probability zero is outside the band and in no mean.
    """

    events: int
    mean_difference: Figure = field(metadata=column("mean Δ, nats", 2, "figures"))
    mean_size: Figure = field(metadata=column("mean |Δ|, nats", 2, "figures"))
    rms: Figure = field(metadata=column("RMS of Δ, nats", 2, "figures"))
    share_outside: Figure = field(metadata=column("tokens outside {band}, %", 2, "figures", scale=100))
    # k1 = mean of -Δ and k3 = mean of r - 1 - Δ (Schulman 2020): estimates of KL(first || second), nats, where the tokens
    # were drawn from the first
    k1: Figure = field(metadata=column("KL estimate k1, nats", 2, "figures"))
    k3: Figure = field(metadata=column("KL estimate k3, nats", 2, "figures"))
    # nats that Δ rises by for a nat of the first log-probability: a temperature of 1.01 in the second shows as about -0.01
    slope: Figure = field(metadata=column("slope of Δ over log p", 2, "figures"))
    perplexity_ratio: Figure = field(metadata=column("perplexity ratio", 5))
    # of whole segments, whose ratio is the product of those of their tokens: the share outside the band, and the effective
    # number (sum w)^2 / sum w^2 of the ratios w as weights (Kish 1965), as a share of the segments
    sequences_outside: Figure = field(metadata=column("sequences outside {band}, %", 2, "figures", scale=100))
    effective_sample_size: Figure = field(metadata=column("effective sample size, %", 2, scale=100))
    largest: Figure = field(metadata=column("largest |Δ|, nats", 2, "figures"))
    quantiles: dict[str, float]  # of Δ by percent, nats; each is right within `QUANTILE_WIDTH` of itself
    zeros: tuple[int, int]  # events that only the first, and only the second, gives probability zero
    histogram: tuple[tuple[float, int], ...]  # lower end of each bin of |Δ|, nats, a power of two (0 for what is 0); events
    slices: tuple[PairSlices, ...]


@dataclass(frozen=True)
class WorstEvent:
    """A token on which the two are far apart, in its text or, where that is not at hand, among its tokens."""

    segment: int  # from 0
    position: int  # in its segment, from 0
    first: float  # first, second: its log-probability in each, nats
    second: float
    difference: float = field(metadata=column("Δ, nats", 3, "signed"))
    before: str
    token: str
    after: str


@dataclass(frozen=True, repr=False)
class EngineAgreement(Tabled):
    """Two engines on the same tokens, beside the noise of the first.

    Attributes:
        first, second: names; the first is the reference.
        band: what a ratio r of probabilities is inside of.
        segments: compared.
        figures: of the two.
        floor: the same of the first against itself: in other batches, or another run; None where there is none.
        floor_from: where the floor is from, in words; empty without one.
        p_values: of figures against those of the floor, by swaps of the two in whole documents (or, where these are
            not known, in blocks of neighboring segments), adjusted for all of them;
            empty without a floor that varies, and for fewer than six documents or segments.
        beyond: whether the second is further from the first than the first from itself; None where that is not known.
        missing: of the first, the second and the floor how many tokens at the ends of segments each lacks, and how many
            whole segments.
        worst_tokens: those whose Δ is largest in size.
        independence: what intervals and tests take as independent, in words.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        label: what the pair is called in a series.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 3)
        >>> first, second = (lmgauge.train("witten-bell", text, order=order) for order in (2, 3))
        >>> result = lmgauge.agree(first, second, text=text)
        >>> result.figures.events, round(result.figures.mean_size.value, 3), result.beyond
        (36, 0.209, True)
    """

    first: str
    second: str
    band: tuple[float, float]
    segments: int
    figures: PairFigures
    floor: PairFigures | None
    floor_from: str
    p_values: dict[str, float]
    beyond: bool | None
    missing: tuple[tuple[int, int], ...]
    worst_tokens: tuple[WorstEvent, ...]
    independence: str
    signature: str
    notes: tuple[str, ...]
    label: str = ""

    def require(self) -> EngineAgreement:
        """Return the result itself, if the two agree within the noise floor.

        Raises:
            CheckFailedError: they do not, or nothing tells.
        """
        if self.beyond is False:
            return self
        unknown = "not known to agree, as there is no noise floor, or too little text to test against it"
        why = "further apart than the noise floor" if self.beyond else unknown
        raise CheckFailedError(f"{self.second} and {self.first}: {why}")

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure."""
        pair = {"label": self.label, "first": self.first, "second": self.second}
        return [
            {**pair, "figure": name, "value": getattr(self.figures, name).value}
            | interval_columns(getattr(self.figures, name).interval)
            | {"floor": self.floor and getattr(self.floor, name).value, "p_value": self.p_values.get(name)}
            for name in columns_of(PairFigures)
        ]

    def _in_brief(self) -> str:
        floor = "" if self.floor is None else f", floor {self.floor.mean_size.value or 0.0:.3g}"
        return f"{self.second} / {self.first}: mean |Δ| {self.figures.mean_size.value or 0.0:.3g} nats{floor}"


ROUNDING = 1e-5
"""Nats that a token's log-probability may be off by in float32, or where a program prints five digits."""
QUANTILE_WIDTH = 2.0**-7


@dataclass(frozen=True, repr=False)
class AgreementSeries(ResultList[EngineAgreement]):
    """Pairs in order, such as the checkpoints of a training: prints as a table and a curve.

    Attributes:
        items: the pairs.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 3)
        >>> one, two, three = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2, 3))
        >>> series = lmgauge.agree_series({"1": (one, two), "2": (two, three)}, text=text)
        >>> [round(pair.figures.mean_size.value, 3) for pair in series]
        [1.313, 0.209]
    """

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair and figure."""
        return [row for pair in self.items for row in pair.to_rows()]
