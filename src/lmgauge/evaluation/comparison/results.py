"""The result of a comparison of runs: objects that print, and turn into dicts and data frames."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from lmgauge.base.errors import CheckFailedError, InputError, UsageError
from lmgauge.base.result_list import Result, ResultList, flat_row, plain_values
from lmgauge.evaluation.comparison.comparability import Agreement, Verdict
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.units import bits_to_nats, nats_to_bits, perplexity_ratio_from_nats

SIGNIFICANT = 0.05
ROUNDING = 1e-6
"""Nats an event that float32 models, and programs that print six digits, do not carry."""


@dataclass(frozen=True)
class Difference:
    """A figure of two models and how far it is apart."""

    metric: str  # `perplexity`, or `bits_per_` what it is per
    # first, second: the figure of each; infinite where an event has probability zero, a `LowerBound` where it is only one
    first: float
    second: float
    difference: float  # second minus first, in bits per unit (for perplexity: the ratio of the two)
    interval: Interval | None  # 95 %, of the difference (of the ratio); None for fewer than six documents or segments

    def marked(self, bounds: tuple[bool, bool]) -> Difference:
        """Return the same, the figures of each model marked where they are lower bounds."""
        if self.metric == "perplexity":
            return self
        return replace(self, first=marked(self.first, bound=bounds[0]), second=marked(self.second, bound=bounds[1]))

    def nats_of(self, change: float) -> float:
        """Return the difference in nats per unit that changes the figure of the first model by a share of it."""
        return math.log1p(change) if self.metric == "perplexity" else bits_to_nats(change * float(self.first))

    def change_of(self, nats: float) -> float:
        """Return the share of the figure of the first model that a difference in nats per unit is."""
        if self.metric == "perplexity":
            return perplexity_ratio_from_nats(nats) - 1
        return nats_to_bits(nats) / float(self.first) if self.first else math.inf


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """One model beside the one it is compared with.

    Attributes:
        first, second: names of the runs.
        verdicts: for each metric whether it may be compared.
        part: what of the text is compared below: `whole`, `exact part` (bytes that neither loses nor makes `<unk>`),
            `shared events` (of two texts) or `nothing`.
        bytes, bytes_in_all: in that part, and in the text; None if not known.
        events: of the second in that part.
        lower_bounds: of the two, whether its bits per byte, character and word are lower bounds only.
        differences: of the figures that part allows, the leading one first.
        without_zeros: the same figures over the segments where neither has an event of probability zero,
            if there are such events.
        p_value: two-sided, by Student's t of the same error as the leading interval; None for fewer than six documents or
            segments, or where a figure is infinite.
        p_value_holm: adjusted for the number of models.
        segments: paired.
        segments_with_zeros: those where an event has probability zero.
        unit, units: what the p-value and the intervals take as independent ("documents", "segments", or "unknown"; empty
            where there are none), and how many there are (segments, where unknown).
        units_needed: such units to find this difference with 80 % power; None if it is significant already.
        detectable: the change of the leading figure, as a share of it, that a text like this shows with 80 % power.
        plan, units_planned: a change that was asked about, and the units to find it with 80 % power.
        independence: the same in words.
        doubts: why the log-probabilities of a run cannot be natural logs, or may not be: there is no verdict then.
        within_rounding: they are less than `ROUNDING` apart, which scores do not carry: there is no verdict then.
        slices: by group, class, training frequency and position, as far as the text is at hand.
        segments_lost, segments_won: where the second is worst and best beside the first.
        tokens_lost, tokens_won: the same for aligned spans.
        notes: what a reader should know.

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     models = {f"wb{n}": lmgauge.train("witten-bell", text, order=n) for n in (1, 2)}
        ...     _ = lmgauge.evaluate(models, text, output=folder)
        ...     comparison = lmgauge.compare([f"{folder}/wb1", f"{folder}/wb2"], text=text)[0]
        >>> comparison.verdict("perplexity").comparable, comparison.significant
        (True, True)
        >>> [(one.metric, round(one.difference, 3)) for one in comparison.differences]
        [('perplexity', 0.287), ('bits_per_byte', -0.698), ('bits_per_character', -0.698), ('bits_per_word', -2.404)]
    """

    STATED: ClassVar = ("significant",)
    first: str
    second: str
    verdicts: tuple[Verdict, ...]
    part: str
    bytes: int | None
    bytes_in_all: int | None
    events: int
    lower_bounds: tuple[bool, bool]
    differences: tuple[Difference, ...]
    without_zeros: tuple[Difference, ...]
    p_value: float | None
    p_value_holm: float | None
    segments: int
    segments_with_zeros: int
    unit: str
    units: int
    units_needed: int | None
    detectable: float | None
    plan: float | None
    units_planned: int | None
    independence: str
    doubts: tuple[str, ...]
    within_rounding: bool
    slices: tuple[Slices, ...]
    segments_lost: tuple[Example, ...]
    segments_won: tuple[Example, ...]
    tokens_lost: tuple[Example, ...]
    tokens_won: tuple[Example, ...]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("differences", "without_zeros"):
            object.__setattr__(self, name, tuple(one.marked(self.lower_bounds) for one in getattr(self, name)))

    @property
    def significant(self) -> bool | None:
        """Whether the difference is significant, at 5 %, adjusted; None where it was not tested, or is in doubt."""
        if self.p_value_holm is None or self.doubts or self.within_rounding:
            return None
        return self.p_value_holm < SIGNIFICANT

    def verdict(self, metric: str) -> Verdict:
        """Return the verdict on one metric.

        Args:
            metric: perplexity, or bits per byte, character or word (`bits_per_byte`, ...).

        Raises:
            UsageError: the metric is not known.
        """
        for verdict in self.verdicts:
            if verdict.metric == metric:
                return verdict
        raise UsageError(f"metric {metric!r} is not known; choose from {', '.join(v.metric for v in self.verdicts)}")

    def _in_brief(self) -> str:
        if not self.differences:
            return f"{self.second} / {self.first}: not comparable ({'; '.join(self.verdicts[0].reasons)})"
        lead = self.differences[0]
        p = "not tested" if self.p_value_holm is None else f"p = {self.p_value_holm:.4g}"
        return f"{self.second} / {self.first}: {lead.metric} {lead.second:.4f} / {lead.first:.4f}, {p} ({self.part})"


@dataclass(frozen=True, repr=False)
class Comparisons(ResultList[Comparison]):
    """Each run beside the first; prints as lines, turns into dicts and data frames.

    Attributes:
        items: the comparisons, in the order of the runs.
        runs: names of the runs.
        agreements: what must match, and whether it does.

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     models = {f"wb{n}": lmgauge.train("witten-bell", text, order=n) for n in (1, 2, 3)}
        ...     _ = lmgauge.evaluate(models, text, output=folder)
        ...     result = lmgauge.compare([f"{folder}/{name}" for name in models], text=text)
        >>> result.runs, len(result)
        (('wb1', 'wb2', 'wb3'), 2)
    """

    runs: tuple[str, ...]
    agreements: tuple[Agreement, ...]

    def with_examples(self, count: int) -> Comparisons:
        """Return the same with fewer examples.

        Args:
            count: how many of each kind of each comparison, the first ones.
        """
        kinds = ("segments_lost", "segments_won", "tokens_lost", "tokens_won")
        items = (replace(item, **{kind: getattr(item, kind)[:count] for kind in kinds}) for item in self.items)
        return replace(self, items=tuple(items))

    @property
    def text_unknown(self) -> bool:
        """Whether a run does not tell which text it is about."""
        return any(agreement.what == "text" and "unknown" in agreement.values for agreement in self.agreements)

    def require(self, metric: str | None = None) -> Comparisons:
        """Return the comparisons themselves, if all of them may be made.

        Args:
            metric: the one that has to be comparable; None is satisfied by any figure of any part of the text.

        Raises:
            CheckFailedError: the metric of two runs may not be compared; the message has the first reason.
            InputError: nothing of two runs can be compared; the message says what to do.
            UsageError: the metric is not known.
        """
        for item in self.items:
            if metric is not None and not item.verdict(metric).comparable:
                reasons = "; ".join(item.verdict(metric).reasons)
                raise CheckFailedError(f"{metric} of {item.second} and {item.first} may not be compared: {reasons}")
            if metric is None and not item.differences:
                reasons = "; ".join(item.verdict("bits_per_byte").reasons)  # what the least demanding figure needs
                of_text = self.agreements[0].agrees
                remedy = "no part of the text is exact in both" if of_text else "evaluate both on one text"
                remedy = "name the text with --text" if self.text_unknown and not of_text else remedy
                raise InputError(f"nothing of {item.second} and {item.first} can be compared ({reasons}); {remedy}")
        return self

    def to_dict(self) -> dict[str, Any]:
        return {"runs": self.runs, "agreements": plain_values(self.agreements), "comparisons": super().to_dict()}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each comparison and figure."""
        own, values = (
            ("first", "second", "part", "p_value", "p_value_holm"),
            {"first": "first_value", "second": "second_value"},
        )
        return [
            {name: getattr(item, name) for name in own}
            | {values.get(name, name): value for name, value in flat_row(difference).items()}
            for item in self.items
            for difference in item.differences
        ]
