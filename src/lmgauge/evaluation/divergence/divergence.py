"""How far two models' predictions are apart, over the contexts of a text: what quantizing, pruning or distilling cost.

Both models predict each event of the text from what really came before it; the two distributions over the whole
vocabulary are then compared. Means are over events, intervals over segments.

Sources: Kullback & Leibler (1951), "On information and sufficiency"; Lin (1991), "Divergence measures based on the Shannon
entropy"; the root mean square change of the true token's probability is what llama.cpp prints as RMS delta-p.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_SEED
from lmgauge.context_policy import policy_of
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.divergence.distances import (
    FIRST_OVERLAP,
    JS,
    KL_AB,
    KL_BA,
    MASS_A,
    MASS_B,
    TV,
    ModelPair,
    WorstContext,
)
from lmgauge.evaluation.divergence.drawn_events import Drawn, draw
from lmgauge.evaluation.tally import Tally
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import Interval, interval_columns, ratio_interval
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats, perplexity_ratio_from_nats
from lmgauge.result_list import data_frame
from lmgauge.scores import TokenStrings
from lmgauge.shown import Shown
from lmgauge.signature import Signature
from lmgauge.threads import thread_count
from lmgauge.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

QUANTILES = (50.0, 90.0, 99.0, 99.9, 100.0)
DEFAULT_TOP_K = (1, 5, 10)
DEFAULT_EVENTS = 10_000
# Distributions that sum to one within it are taken as such; float32 models and ARPA files round.
_MASS_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Figure:
    """A figure of the text, and its 95 % interval; None where there is none (one segment, inf - inf)."""

    value: float | None
    interval: Interval | None

    def mapped(self, function: Callable[[float], float]) -> Figure:
        """Return the figure under an increasing function, such as one from nats to bits.

        Args:
            function: of a value.

        Example:
            >>> Figure(2.0, None).mapped(lambda value: 10 * value).value
            20.0
        """
        return Figure(
            None if self.value is None else function(self.value),
            None if self.interval is None else self.interval.mapped(function),
        )


@dataclass(frozen=True, repr=False)
class Divergence(Shown):
    """How far model B is from model A on the events of a text.

    Attributes:
        a, b: names of the models.
        events, total_events: compared, and in the text; likewise `segments`.
        kl_ab_nats, kl_ba_nats: mean KL(A || B) and KL(B || A), nats; inf if one event's is.
        kl_ab_bits, kl_ba_bits: the same in bits.
        kl_ab_without_infinite_nats: mean KL(A || B) over the events where it is finite.
        infinite_kl_ab, infinite_kl_ba: events at which B (A) rules out what A (B) holds possible.
        kl_ab_quantiles_nats: of KL(A || B) over events, by percent; 100 is the maximum.
        jensen_shannon_bits: mean Jensen-Shannon divergence, from 0 to 1.
        total_variation: mean total variation distance, from 0 to 1.
        top_1_agreement: share of events at which both hold the same token for the most probable (ties: the lower id).
        top_k_overlap: for each k, which share of A's k most probable tokens is among B's.
        log_probability_change_nats: mean of ln p_B - ln p_A of the true token; events impossible to both change by 0.
        probability_change_rms: root mean square of p_B - p_A of the true token.
        perplexity_a, perplexity_b: on these events; equal to those of an evaluation where all events are compared.
        perplexity_ratio: that of B over that of A.
        zero_probability_a, zero_probability_b: events whose true token the model gives probability zero.
        undefined_events: events at which a model gives nothing a probability; left out of all but the perplexities and the
            changes of the true token.
        worst: where KL(A || B) is largest; None if no event could be compared.
        seed: of the sample of segments.
        independence: what the intervals take as independent, in words.
        fingerprints: of both models, the vocabulary and the text.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2))
        >>> result = lmgauge.divergence(large, small, text)
        >>> result.events, round(result.jensen_shannon_bits.value, 3)
        (12, 0.145)
    """

    a: str
    b: str
    events: int
    total_events: int
    segments: int
    total_segments: int
    kl_ab_nats: Figure
    kl_ab_bits: Figure
    kl_ba_nats: Figure
    kl_ba_bits: Figure
    kl_ab_without_infinite_nats: float | None
    infinite_kl_ab: int
    infinite_kl_ba: int
    kl_ab_quantiles_nats: dict[str, float]
    jensen_shannon_bits: Figure
    total_variation: Figure
    top_1_agreement: Figure
    top_k_overlap: dict[int, Figure]
    log_probability_change_nats: Figure
    probability_change_rms: Figure
    perplexity_a: Figure
    perplexity_b: Figure
    perplexity_ratio: Figure
    zero_probability_a: int
    zero_probability_b: int
    undefined_events: int
    worst: WorstContext | None
    seed: int
    independence: str
    fingerprints: dict[str, str]
    signature: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, full precision; infinities stay floats."""
        return asdict(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each figure: its name (that of the attribute), value, and interval.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        figures = {name: value for name, value in own.items() if isinstance(value, Figure)}
        figures |= {f"top_{k}_overlap": figure for k, figure in self.top_k_overlap.items()}
        return data_frame({"figure": name, "value": f.value} | interval_columns(f.interval) for name, f in figures.items())

    def _in_brief(self) -> str:
        def shown(figure: Figure) -> str:
            return "none" if figure.value is None else f"{figure.value:.6g}"

        return (
            f"{self.a} and {self.b}: KL(A || B) {shown(self.kl_ab_nats)} nats, Jensen-Shannon "
            f"{shown(self.jensen_shannon_bits)} bits, top-1 agreement {shown(self.top_1_agreement)}, perplexity ratio "
            f"{shown(self.perplexity_ratio)}"
        )


@dataclass(frozen=True, kw_only=True)
class DivergenceSettings:
    """At how many events two models are compared, and by what.

    Attributes:
        events: about how many events to look at: whole segments are drawn until there are as many; all if None.
        top_k: for which k to compare the k most probable tokens.
        seed: of the sample; the same seed draws the same segments.
        threads: how many; no figure depends on it.

    Raises:
        UsageError: a number is out of range.
    """

    events: int | None = DEFAULT_EVENTS
    top_k: Sequence[int] = DEFAULT_TOP_K
    seed: int = DEFAULT_SEED
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.events is not None and self.events < 1:
            raise UsageError(f"events must be a whole number, 1 or more; got {self.events}")
        if self.seed < 0:
            raise UsageError(f"seed must be 0 or more; got {self.seed}")
        if not self.top_k or min(self.top_k) < 1:
            raise UsageError(f"top-k must be whole numbers from 1; got {', '.join(map(str, self.top_k)) or 'none'}")


def divergence(
    a: LanguageModel,
    b: LanguageModel,
    corpus: Corpus,
    settings: DivergenceSettings | None = None,
    *,
    names: tuple[str, str] | None = None,
    progress: Progress = lambda done, total: None,
) -> Divergence:
    """Compare the predictive distributions of two models over the contexts of a text.

    Args:
        a: the model to be compared with, e.g. before quantizing.
        b: the other one, with the same ids for the same tokens (`models.mixture.vocabulary_alignment.aligned` sees to it).
        corpus: the text.
        settings: how many events to look at and how to compare them; the defaults if None.
        names: what to call the models; their short names if None.
        progress: called with the events compared so far, and how many there will be.

    Raises:
        InputError: the vocabularies differ, the text is empty, or the models cut it into different events.
    """
    settings = settings or DivergenceSettings()
    _check_alike(a, b)
    top_k, seed = settings.top_k, settings.seed
    ranks = sorted({1, *top_k})
    drawn = draw(a, b, corpus, settings.events, seed, settings.threads)
    pair = ModelPair(a, b, drawn.text, ranks)
    rows = pair.compare(drawn.chosen, thread_count(settings.threads), progress)
    summary = _Summary(drawn, a.vocabulary)
    shown = names or (a.label, b.label)
    fingerprints = {
        "a": a.fingerprint, "b": b.fingerprint, "vocabulary": a.vocabulary.fingerprint, "text": corpus.report.sha256
    }  # fmt: skip
    kl_ab, kl_ba = summary.mean(rows[:, KL_AB]), summary.mean(rows[:, KL_BA])
    finite = rows[np.isfinite(rows[:, KL_AB]), KL_AB]
    perplexities = [summary.perplexity(which) for which in (0, 1)]
    change, ratio = summary.change(*perplexities)
    interval = kl_ab.interval or perplexities[0].interval
    return Divergence(
        a=shown[0],
        b=shown[1],
        events=len(rows),
        total_events=drawn.total_events,
        segments=len(drawn.chosen),
        total_segments=drawn.total_segments,
        kl_ab_nats=kl_ab,
        kl_ab_bits=kl_ab.mapped(nats_to_bits),
        kl_ba_nats=kl_ba,
        kl_ba_bits=kl_ba.mapped(nats_to_bits),
        kl_ab_without_infinite_nats=math.fsum(finite.tolist()) / len(finite) if len(finite) else None,
        infinite_kl_ab=int(np.count_nonzero(rows[:, KL_AB] == np.inf)),
        infinite_kl_ba=int(np.count_nonzero(rows[:, KL_BA] == np.inf)),
        kl_ab_quantiles_nats=_quantiles(rows[:, KL_AB]),
        jensen_shannon_bits=summary.mean(rows[:, JS]).mapped(nats_to_bits),
        total_variation=summary.share(rows[:, TV]),
        top_1_agreement=summary.share(rows[:, FIRST_OVERLAP]),
        top_k_overlap={k: summary.share(rows[:, FIRST_OVERLAP + ranks.index(k)]) for k in sorted(set(top_k))},
        log_probability_change_nats=change,
        probability_change_rms=summary.probability_change(),
        perplexity_a=perplexities[0],
        perplexity_b=perplexities[1],
        perplexity_ratio=ratio,
        zero_probability_a=summary.tallies[0].total_zeros,
        zero_probability_b=summary.tallies[1].total_zeros,
        undefined_events=int(np.count_nonzero(np.isnan(rows[:, KL_AB]))),
        worst=pair.worst(drawn.chosen, rows[:, KL_AB]),
        seed=seed,
        independence="" if interval is None else in_words(interval, corpus.report.documents_by),
        fingerprints=fingerprints,
        signature=_signature(a, b, drawn, len(rows), seed, corpus.report.sha256, in_signature(interval)),
        notes=tuple(itertools.chain(_notes(rows, drawn, shown), caveats(interval), corpus.report.notes())),
    )


def _check_alike(a: LanguageModel, b: LanguageModel) -> None:
    if a.vocabulary.fingerprint != b.vocabulary.fingerprint or a.tokenizer.fingerprint != b.tokenizer.fingerprint:
        raise InputError(
            "the models number or divide their tokens differently; where the tokens are the same, aligned(b, to=a) of "
            "lmgauge.models.mixture.vocabulary_alignment makes the ids so"
        )


# --- figures ----------------------------------------------------------------------------------------------


class _Summary:
    """Means over events with intervals over documents or, where unknown, segments."""

    def __init__(self, drawn: Drawn, strings: TokenStrings) -> None:
        self._sizes = np.array([len(segment.ids) for segment in drawn.chosen], np.int64)
        self._owner = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._documents = drawn.documents()
        batches = [drawn.batch(which, strings) for which in (0, 1)]
        self._logprob = [batch.logprob for batch in batches]
        self.tallies = [Tally(), Tally()]
        for tally, batch in zip(self.tallies, batches, strict=True):
            tally.add(batch)

    def mean(self, values: Floats) -> Figure:
        """Return the mean of float64 [events], NaN left out; None where infinities cancel or nothing is left."""
        used = ~np.isnan(values)
        values, owner = values[used], self._owner[used]
        if not len(values) or ((values == np.inf).any() and (values == -np.inf).any()):
            return Figure(None, None)
        sums = np.bincount(owner, values, len(self._sizes))
        counts = np.bincount(owner, minlength=len(self._sizes)).astype(np.float64)
        return Figure(math.fsum(values.tolist()) / len(values), ratio_interval(sums, counts, self._documents))

    def share(self, values: Floats) -> Figure:
        """Return the mean of float64 [events] between 0 and 1, whose interval ends there too."""
        return self.mean(values).mapped(lambda value: min(1.0, value))

    def perplexity(self, which: int) -> Figure:
        """Return the perplexity of a model on the events that were looked at."""
        tally = self.tallies[which]
        sums = tally.per_segment()
        nats = -math.inf if tally.total_zeros else tally.nats()
        interval = ratio_interval(-sums.nats, sums.events.astype(np.float64), self._documents)
        return Figure(-nats / tally.total_events, interval).mapped(perplexity_from_nats)

    def change(self, perplexity_a: Figure, perplexity_b: Figure) -> tuple[Figure, Figure]:
        """Return the mean change of the true token's log-probability, nats, and the ratio of the perplexities."""
        before, after = self._logprob
        impossible = (before == -np.inf) & (after == -np.inf)
        change = np.zeros(len(before))
        np.subtract(after, before, out=change, where=~impossible)
        rise = self.mean(-change).mapped(perplexity_ratio_from_nats)
        if perplexity_a.value == math.inf and perplexity_b.value == math.inf:
            rise = Figure(None, None)
        return self.mean(change), rise

    def probability_change(self) -> Figure:
        """Return the root mean square change of the true token's probability."""
        before, after = (np.exp(logprob) for logprob in self._logprob)
        return self.mean((after - before) ** 2).mapped(math.sqrt)


def _quantiles(values: Floats) -> dict[str, float]:
    """Return quantiles by percent, interpolated linearly (method 7 of Hyndman & Fan 1996); NaN left out."""
    ordered = np.sort(values[~np.isnan(values)])
    quantiles: dict[str, float] = {}
    for percent in QUANTILES if len(ordered) else ():
        place = percent / 100 * (len(ordered) - 1)
        low, share = ordered[int(place)], place % 1
        # Not low + share * (high - low) as it is: between infinities there is no way.
        quantiles[f"{percent:g}"] = float(
            low if not share else low + share * (ordered[int(place) + 1] - low) if low < np.inf else low
        )
    return quantiles


def _notes(rows: Floats, drawn: Drawn, names: tuple[str, str]) -> Iterator[str]:
    if len(drawn.chosen) == 1:
        yield "one segment: no interval, which would need the difference between segments"
    for column, (left, right) in ((KL_AB, ("A", "B")), (KL_BA, ("B", "A"))):
        infinite = int(np.count_nonzero(rows[:, column] == np.inf))
        if infinite:
            yield f"KL({left} || {right}) is infinite at {infinite:,} events: {right} rules out what {left} holds possible"
    undefined = int(np.count_nonzero(np.isnan(rows[:, KL_AB])))
    if undefined:
        yield f"{undefined:,} events left out of the divergences: there a model gives every token probability zero"
    for column, name in ((MASS_A, names[0]), (MASS_B, names[1])):
        off = np.abs(rows[:, column] - 1.0)
        off[rows[:, column] == 0.0] = 0.0
        wrong = int(np.count_nonzero(off > _MASS_TOLERANCE))
        if wrong:
            yield (
                f"{name}: its probabilities do not sum to one at {wrong:,} events (at worst to "
                f"{rows[int(off.argmax()), column]:.6g}) and were divided by their sum; see lmgauge audit"
            )


def _signature(
    a: LanguageModel, b: LanguageModel, drawn: Drawn, events: int, seed: int, text_sha256: str, independent: str
) -> str:
    policies = dict.fromkeys(str(policy_of(model)) for model in (a, b))
    parts = {
        "a": f"{a.label}@{a.fingerprint[:6]}",
        "b": f"{b.label}@{b.fingerprint[:6]}",
        "n": f"{events}/{drawn.total_events}",
        "segments": f"{len(drawn.chosen)}/{drawn.total_segments}",
        "seed": str(seed),
        "unit": a.tokenizer.unit,
        "context": "+".join(policies),
        "independent": independent,
        "text": text_sha256[:6] or "unknown",
        "vocab": a.vocabulary.fingerprint[:6],
        "v": __version__,
    }
    return str(Signature(parts, head="div"))
