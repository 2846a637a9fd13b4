"""Do a model's probabilities mean what they say? Of all events given p = 0.1, one in ten should happen.

Forecasts are all entries of the distribution at the contexts looked at, not only those of the tokens that came: only
over whole distributions does "happened" say anything about a small probability.

Sources: Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks" (expected calibration error of the
most probable token, equations 2 and 3); Brier (1950), "Verification of forecasts expressed in terms of probability";
Braverman, Chen, Kakade, Narasimhan, Zhang & Zhang (2020), "Calibration, entropy rates, and memory in language models"
(entropy against cross-entropy).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_SEED
from lmgauge.context_policy import policy_of
from lmgauge.contexts import EventContexts
from lmgauge.errors import InputError
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.numerics.intervals import spread, sums_by
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import EOS_KIND, OOV, TOKEN, ScoreBatch
from lmgauge.threads import map_in_order, thread_count

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DEFAULT_CONTEXTS = 2000
CONFIDENCE_BINS = 15
TENTHS = 10
DECADES = 9  # the lowest: above 0, up to 1e-8
_LN_10 = math.log(10.0)
# Entries looked at together: 8,192 of them stay in the cache of a core.
_AT_A_TIME = 1 << 13
_LOWEST = -1e300
# A context of more tokens is not kept: no model of today looks back as far.
_LONGEST_CONTEXT = 1 << 20
# Tables may hold float32; a probability that differs by more is another model's.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Bin:
    """Forecasts of about the same probability.

    Attributes:
        low, high: probabilities p with low < p <= high.
        forecasts: how many.
        expected: sum of them: as many should have happened.
        happened: how many did.
        deviation: standard deviation of `happened` if the forecasts are right.
    """

    low: float
    high: float
    forecasts: int
    expected: float
    happened: int
    deviation: float

    @property
    def mean_forecast(self) -> float:
        """Mean probability forecast; 0 without forecasts."""
        return self.expected / self.forecasts if self.forecasts else 0.0

    @property
    def share_happened(self) -> float:
        """Share that happened; 0 without forecasts."""
        return self.happened / self.forecasts if self.forecasts else 0.0


@dataclass(frozen=True)
class Confidence:
    """The most probable tokens whose probability is about the same, and how often they were right.

    Attributes:
        low, high: probabilities p with low < p <= high.
        contexts: how many.
        mean_confidence: mean probability of the most probable token.
        accuracy: share of contexts where it came.
    """

    low: float
    high: float
    contexts: int
    mean_confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """How far probabilities may be taken at their word.

    Attributes:
        contexts: looked at.
        events: of the text, from which they were drawn.
        vocabulary: entries of each distribution.
        decades: reliability by powers of ten, all forecasts above 0.
        tenths: reliability by ten equal bins.
        impossible_forecasts, impossible_happened: forecasts of exactly 0, and how many happened all the same.
        expected_calibration_error: of the most probable token, 15 equal bins.
        confidence: the bins behind it that are not empty.
        accuracy: share of contexts where the most probable token came.
        mean_confidence: its mean probability.
        brier_score: mean over contexts of the squared differences between forecast and what happened, 0 to 2.
        mean_entropy_bits: what the model expects to pay for an event.
        mean_surprisal_bits: what it paid, over the same contexts; infinite with an event of probability zero.
        overconfidence_bits: the second minus the first: above 0 the model is surer than it should be; None if infinite.
        overconfidence_interval: 95 %, over documents or, where unknown, over the segments of the contexts, as
            `statistics.spread` does; None for fewer than two.
        seed: of the draw of contexts; None if all were taken.
    """

    contexts: int
    events: int
    vocabulary: int
    decades: tuple[Bin, ...]
    tenths: tuple[Bin, ...]
    impossible_forecasts: int
    impossible_happened: int
    expected_calibration_error: float
    confidence: tuple[Confidence, ...]
    accuracy: float
    mean_confidence: float
    brier_score: float
    mean_entropy_bits: float
    mean_surprisal_bits: float
    overconfidence_bits: float | None
    overconfidence_interval: tuple[float, float] | None
    seed: int | None


def calibrate(
    run: Run,
    model: LanguageModel,
    events: int,
    *,
    tables: Iterable[ScoreBatch] | None = None,
    contexts: int | None = DEFAULT_CONTEXTS,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """Compare a model's distributions with the tokens that came.

    Args:
        run: the scores that the model gave a text.
        model: the model.
        events: rows of the run's table.
        tables: the rows, whole segments at a time; read from the run if None.
        contexts: how many to draw, without replacement; all if None.
        seed: of the draw.
        threads: distributions computed at a time, where the model is made for that; no number depends on it.
        progress: called with the number of contexts that are done.

    Raises:
        InputError: the run is not of this model, or has no events.
    """
    made_by = run.origin.fingerprints.get("model", "")
    if made_by and made_by != model.fingerprint:
        raise InputError(
            f"{run.path}: was made by the model {made_by[:6]}, not by {model.label}@{model.fingerprint[:6]}; name the model "
            "that made it, or evaluate again with this one"
        )
    chosen = None
    if contexts is not None and contexts < events:
        chosen = np.sort(np.random.default_rng(seed).choice(events, contexts, replace=False, shuffle=False))
    collected = _Collector()

    def work(event: _Event) -> tuple[_Event, ForecastSums]:
        return event, _look(model, event, run)

    # Only models that may score blocks at a time are asked from several threads.
    at_a_time = thread_count(threads) if model.blocks_are_independent else 1
    for event, sums in map_in_order(work, _events(run, model, tables, chosen), at_a_time):
        collected.add(sums, event.segment, event.document)
        progress(collected.contexts)
    if not collected.contexts:
        raise InputError(f"{run.path}: the score table has no events to look at")
    return collected.finish(events, len(model.vocabulary), None if chosen is None else seed)


@dataclass(frozen=True, slots=True)
class _Event:
    context: NDArray[np.uint32]
    token: int
    logprob: float
    segment: int
    document: int | None


def _events(run: Run, model: LanguageModel, tables: Iterable[ScoreBatch] | None, chosen: Ints | None) -> Iterator[_Event]:
    """Return the events drawn, each with the ids before it."""
    bos, runs_on = model.vocabulary.id("<s>"), policy_of(model).runs_on
    before = np.array([bos], np.uint32)
    seen = 0
    if tables is None:
        tables = (batch for _, (batch,) in lockstep([run.batches()], None, [run.name]))
    for batch in tables:
        ids = model_ids(batch, model, run)
        rows = np.arange(len(batch)) if chosen is None else chosen[(chosen >= seen) & (chosen < seen + len(batch))] - seen
        segment_of = batch.row_segments()
        contexts = EventContexts(ids, batch.segment_events, bos=bos, runs_on=runs_on, before=before)
        documents = batch.extra.get("document")
        for row in rows.tolist():
            document = None if documents is None else int(documents[row])
            yield _Event(contexts[row], int(ids[row]), float(batch.logprob[row]), int(segment_of[row]), document)
        seen += len(batch)
        before = contexts.ids[-_LONGEST_CONTEXT:]


def model_ids(batch: ScoreBatch, model: LanguageModel, run: Run) -> NDArray[np.uint32]:
    """Return the ids that a model has for the tokens of a table.

    Args:
        batch: rows of the table.
        model: the model.
        run: the run that the table is of, for messages.

    Returns:
        uint32 [n].

    Raises:
        InputError: the model does not know a token.
    """
    vocabulary = model.vocabulary
    special = {OOV: vocabulary.id("<unk>"), EOS_KIND: vocabulary.id("</s>")}
    used = np.unique(batch.token_ids[batch.kind == TOKEN])
    own = np.zeros(len(batch.strings.tokens), np.uint32)
    for i in used.tolist():
        token = batch.strings.tokens[i]
        if token not in vocabulary:
            raise InputError(f"{run.path}: {model.label} has no token {token!r}; name the model that made the run")
        own[i] = vocabulary.id(token)
    ids = own[batch.token_ids]
    for kind, number in special.items():
        ids[batch.kind == kind] = number
    return ids


@dataclass(frozen=True, slots=True)
class ForecastSums:
    """What one context adds to a `Calibration`; entropy and surprisal in nats.

    Attributes:
        decades, tenths: float64 [bins, 3]: forecasts, sum of p, happened; the first of the decades is the highest.
        impossible: forecasts of 0, and how many happened.
    """

    decades: Floats
    tenths: Floats
    impossible: tuple[int, int]
    confidence: float
    right: bool
    brier: float
    entropy: float
    surprisal: float


def _look(model: LanguageModel, event: _Event, run: Run) -> ForecastSums:
    logprob = np.asarray(model.log_distribution(event.context), np.float64)
    came = float(logprob[event.token])
    if came != event.logprob and not abs(came - event.logprob) <= _TOLERANCE:
        raise InputError(
            f"{run.path}: in segment {event.segment} the model gives {model.vocabulary.token(event.token)!r} "
            f"ln p = {came:.6f}, but the run says {event.logprob:.6f}; name the model that made the run"
        )
    return forecast_sums(logprob, event.token)


def forecast_sums(logprob: Floats, token: int) -> ForecastSums:
    """Compare a distribution with the token that came.

    Args:
        logprob: float64 [vocabulary], nats.
        token: id of the token.

    Example:
        >>> sums = forecast_sums(np.log([0.75, 0.25]), 0)
        >>> sums.right, round(sums.brier, 6)
        (True, 0.125)
    """
    decades, tenths = np.zeros((DECADES, 3)), np.zeros((TENTHS, 3))
    impossible, entropy, squares = 0, 0.0, 0.0
    for begin in range(0, len(logprob), _AT_A_TIME):
        part = logprob[begin : begin + _AT_A_TIME]
        p = np.exp(part)
        powers = _powers(part)
        codes = np.minimum(powers, DECADES - 1).astype(np.int64)
        decades[:, 0] += np.bincount(codes, minlength=DECADES)
        decades[:, 1] += np.bincount(codes, p, DECADES)
        impossible += int(np.count_nonzero(powers == np.inf))
        entropy -= float(np.dot(p, np.maximum(part, _LOWEST)))
        squares += float(np.dot(p, p))
    decades[DECADES - 1, 0] -= impossible
    # All but a few forecasts are in the lowest tenth: only the few are looked at one by one.
    high = np.exp(logprob[logprob > -_LN_10])
    codes = tenth_of(high)
    tenths[:, 0], tenths[:, 1] = np.bincount(codes, minlength=TENTHS), np.bincount(codes, high, TENTHS)
    tenths[0, :2] += decades[:, :2].sum(axis=0) - (len(high), high.sum())
    came = float(logprob[token])
    if came > -math.inf:
        decades[min(int(_powers(logprob[token : token + 1])[0]), DECADES - 1), 2] = 1
        tenths[tenth_of(np.exp(logprob[token : token + 1]))[0], 2] = 1
    best = int(np.argmax(logprob))
    return ForecastSums(
        decades=decades,
        tenths=tenths,
        impossible=(impossible, int(came == -math.inf)),
        confidence=math.exp(logprob[best]),
        right=best == token and came > -math.inf,
        brier=squares - 2 * math.exp(came) + 1,
        entropy=entropy,
        surprisal=-came,
    )


# The logarithm of 0.1 and back is not 0.1 to the last digit, but 0.1 belongs to the bins that end there.
_ROUNDING = 1e-9


def _powers(logprob: Floats) -> Floats:
    """Return float64 [n], minus the decimal logarithm of each probability."""
    return logprob * (-1 / _LN_10) + _ROUNDING / _LN_10


def tenth_of(p: Floats) -> Ints:
    """Return which of ten equal bins, closed above, each probability is in.

    Args:
        p: float64 [n], 0 to 1.

    Returns:
        int64 [n], 0 to 9.

    Example:
        >>> tenth_of(np.array([0.1, 0.11, 1.0])).tolist()
        [0, 1, 9]
    """
    tenths: Ints = (np.ceil(p * (TENTHS * (1 - _ROUNDING))).astype(np.int64) - 1).clip(0, TENTHS - 1)
    return tenths


class _Collector:
    """Adds up contexts, in their order."""

    def __init__(self) -> None:
        self.contexts = 0
        # Of each bin: forecasts, sum of p, happened, and the variance of what happens: one of a context's entries comes.
        self._decades, self._tenths = np.zeros((DECADES, 4)), np.zeros((TENTHS, 4))
        self._impossible = [0, 0]
        self._columns: list[tuple[float, bool, float, float, float]] = []
        self._segments: list[int] = []
        self._documents: list[int] = []

    def add(self, sums: ForecastSums, segment: int, document: int | None) -> None:
        """Add one context."""
        self.contexts += 1
        for whole, part in ((self._decades, sums.decades), (self._tenths, sums.tenths)):
            whole[:, :3] += part
            whole[:, 3] += np.maximum(part[:, 1] * (1 - part[:, 1]), 0)
        self._impossible[0] += sums.impossible[0]
        self._impossible[1] += sums.impossible[1]
        self._segments.append(segment)
        if document is not None:
            self._documents.append(document)
        self._columns.append((sums.confidence, sums.right, sums.brier, sums.entropy, sums.surprisal))

    def finish(self, events: int, vocabulary: int, seed: int | None) -> Calibration:
        """Return the calibration of all contexts that were added."""
        columns = (np.array(column, np.float64) for column in zip(*self._columns, strict=True))
        confidence, right, brier, entropy, surprisal = columns
        bins, error = confidence_bins(confidence, right > 0)
        over, interval = self._overconfidence(nats_to_bits(surprisal - entropy))
        decade_edges = [(0.0 if k == DECADES - 1 else 10.0 ** -(k + 1), 10.0**-k) for k in range(DECADES)]
        tenth_edges = [(k / TENTHS, (k + 1) / TENTHS) for k in range(TENTHS)]
        return Calibration(
            contexts=self.contexts,
            events=events,
            vocabulary=vocabulary,
            decades=_bins(self._decades[::-1], decade_edges[::-1]),
            tenths=_bins(self._tenths, tenth_edges),
            impossible_forecasts=self._impossible[0],
            impossible_happened=self._impossible[1],
            expected_calibration_error=error,
            confidence=bins,
            accuracy=float(right.mean()),
            mean_confidence=float(confidence.mean()),
            brier_score=float(brier.mean()),
            mean_entropy_bits=nats_to_bits(float(entropy.mean())),
            mean_surprisal_bits=nats_to_bits(float(surprisal.mean())),
            overconfidence_bits=over,
            overconfidence_interval=interval,
            seed=seed,
        )

    def _overconfidence(self, excess: Floats) -> tuple[float | None, tuple[float, float] | None]:
        """Return the mean of float64 [contexts] and its interval over documents or, where unknown, as `spread` does."""
        if not np.isfinite(excess).all():
            return None, None
        _, first, segment = np.unique(np.array(self._segments), return_index=True, return_inverse=True)
        documents = np.array(self._documents)[first] if self._documents else None
        over = spread(sums_by(segment, excess), sums_by(segment, np.ones(len(excess))), documents)
        interval = None if over is None else over.interval()
        return float(excess.mean()), None if interval is None else (interval.low, interval.high)


def confidence_bins(confidence: Floats, right: NDArray[np.bool_]) -> tuple[tuple[Confidence, ...], float]:
    """Return equal bins of what a model is most sure of, and its expected calibration error (Guo et al. 2017, eq. 3).

    Args:
        confidence: float64 [n], probability of the most probable token.
        right: bool [n], whether it came.

    >>> confidence_bins(np.array([0.5, 0.5, 1.0, 1.0]), np.array([True, False, True, False]))[1]
    0.25
    """
    codes = np.maximum(np.ceil(confidence * CONFIDENCE_BINS).astype(np.int64) - 1, 0).clip(max=CONFIDENCE_BINS - 1)
    bins, error = [], 0.0
    for k in np.unique(codes).tolist():
        inside = codes == k
        mean, accuracy, count = float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum())
        bins.append(Confidence(k / CONFIDENCE_BINS, (k + 1) / CONFIDENCE_BINS, count, mean, accuracy))
        error += count / len(codes) * abs(mean - accuracy)
    return tuple(bins), error


def _bins(table: Floats, edges: list[tuple[float, float]]) -> tuple[Bin, ...]:
    return tuple(
        Bin(low, high, int(forecasts), expected, int(happened), math.sqrt(variance))
        for (low, high), (forecasts, expected, happened, variance) in zip(edges, table.tolist(), strict=True)
    )
