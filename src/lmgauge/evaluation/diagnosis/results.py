"""What a diagnosis of one run says: an object that prints, and turns into dicts and data frames."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lmgauge.base.result_list import Tabled
from lmgauge.evaluation.diagnosis.calibration import Calibration
from lmgauge.evaluation.diagnosis.compressors import Baseline
from lmgauge.evaluation.diagnosis.costs import SpellingCosts, TokenCost, UnseenWord
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice, Slices
from lmgauge.numerics.units import nats_to_bits, perplexity_from_bits


@dataclass(frozen=True, repr=False)
class Diagnosis(Tabled):
    """Where a model fails on a text.

    Attributes:
        evaluation: the figures of the whole text.
        interval: 95 %, low and high, of its bits per byte (or event, where the text or byte spans are missing); None without
            the text, and with an event of probability zero.
        baselines: the same bytes without a model, the cheapest first; empty without the text.
        slices: ways to cut the text; `ranges` of a slice are its events.
        costly_tokens: the tokens that cost most bits in all.
        worst_tokens: single events with the least probability above zero.
        impossible_tokens: the first events of probability zero.
        worst_segments: those that cost most beyond what as many bytes cost on average.
        unseen_words: the most frequent ones.
        unseen_types: how many different ones there are; an upper bound where there are too many to keep, as one that was
            forgotten and is met again counts twice.
        calibration: of the model's distributions; None without the model.
        notes: what a reader should know.
        spelling: what unseen words and white space cost, of a model that spells and predicts them; None of any other.

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = lmgauge.evaluate(lmgauge.train("witten-bell", text), text, output=f"{folder}/run")
        ...     result = lmgauge.diagnose(f"{folder}/run", text=text, only=["slices"])
        >>> [slices.name for slices in result.slices][:4]
        ['group', 'class', 'kind of event', 'matched order (context used)']
    """

    evaluation: Evaluation
    interval: tuple[float, float] | None
    baselines: tuple[Baseline, ...]
    slices: tuple[Slices, ...]
    costly_tokens: tuple[TokenCost, ...]
    worst_tokens: tuple[Example, ...]
    impossible_tokens: tuple[Example, ...]
    worst_segments: tuple[Example, ...]
    unseen_words: tuple[UnseenWord, ...]
    unseen_types: int
    calibration: Calibration | None
    notes: tuple[str, ...]
    spelling: SpellingCosts | None = None

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = super().to_dict()
        plain["slices"] = [{"name": slices.name, "unit": slices.unit, "rows": slice_rows(slices)} for slices in self.slices]
        for name in ("worst_tokens", "impossible_tokens", "worst_segments"):
            for example in plain[name]:
                (example["bits"],) = example["bits"]
        return plain

    def to_rows(self) -> list[dict[str, Any]]:
        """Return all slices in long form: a row a slice, with the name of the way to cut the text."""
        return [{"by": slices.name, **row} for slices in self.slices for row in slice_rows(slices)]

    def _in_brief(self) -> str:
        return self.evaluation._in_brief()


def finite_bits(evaluation: Evaluation) -> float:
    """Return the bits of all events but those of probability zero; 0 where there are no others."""
    if evaluation.perplexity_without_zeros is None:
        return 0.0
    nats = math.log(evaluation.perplexity_without_zeros)
    return nats_to_bits(nats * (evaluation.events - evaluation.zero_probability_events))


def share_of_bits(slices: Slices) -> list[float | None]:
    """Return the share of all bits that each slice has; None where bits are infinite."""
    # -> [slices], 0 to 1.
    total = math.fsum(row.bits[0] for row in slices.rows)
    if not total or math.isinf(total):
        return [None] * len(slices.rows)
    return [row.bits[0] / total for row in slices.rows]


def slice_rows(slices: Slices) -> list[dict[str, Any]]:
    """Return the slices of one model as plain rows, bits and perplexity included.

    >>> row = Slice("word", 1, 2, 4, bits=(4.0,), bits_per_unit=(1.0,), zeros=(0,), finite_bits=(4.0,))
    >>> slice_rows(Slices("class", "byte", (row,)))[0]["bits_per_byte"]
    1.0
    """
    return [_plain(row, share, slices.unit) for row, share in zip(slices.rows, share_of_bits(slices), strict=True)]


def _plain(row: Slice, share: float | None, unit: str) -> dict[str, Any]:
    return {
        "slice": row.label,
        "segments": row.segments,
        "events": row.ranges,
        "bytes": row.size if unit == "byte" else None,
        "bits": row.bits[0],
        "share_of_bits": share,
        "bits_per_byte": None if unit != "byte" or (bits := row.bits_per_unit[0]) is None else float(bits),
        "bits_per_event": row.bits[0] / row.ranges,
        "perplexity": slice_perplexity(row),
        "zero_probability_events": row.zeros[0],
        "perplexity_without_zeros": finite_perplexity(row),
    }


def slice_perplexity(row: Slice) -> float:
    """Return the perplexity of a model on a slice whose ranges are events.

    >>> row = Slice("word", 1, 2, 4, bits=(4.0,), bits_per_unit=(1.0,), zeros=(0,), finite_bits=(4.0,))
    >>> slice_perplexity(row)
    4.0
    """
    # row: the slice, with its bits.
    return perplexity_from_bits(row.bits[0] / row.ranges)


def finite_perplexity(row: Slice) -> float | None:
    """Return the perplexity without the events of probability zero; None where there are no others.

    >>> row = Slice("word", 1, 2, 4, bits=(4.0,), bits_per_unit=(1.0,), zeros=(0,), finite_bits=(4.0,))
    >>> finite_perplexity(row)
    4.0
    """
    # row: the slice, with its bits.
    events = row.ranges - row.zeros[0]
    return perplexity_from_bits(row.finite_bits[0] / events) if events else None
