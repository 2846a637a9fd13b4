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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.errors import InputError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.options import DEFAULT_CONTEXTS
from lmgauge.evaluation.runs import Run, lockstep, unlike_model
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.intervals import spread, sums_by
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import EOS_KIND, ScoreBatch
from lmgauge.scores.distributions.blocks import by_event, distributions_of, of_events, rows_among
from lmgauge.scores.distributions.reduce import reduced
from lmgauge.scores.distributions.reductions import DECADES, TENTHS, Columns, Forecasts, bins_of

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CONFIDENCE_BINS = 15
# Tables may hold float32; a probability that differs by more is another model's.
_TOLERANCE = 1e-4
_OF_CONTEXTS = ("confidence", "right", "brier", "entropy", "came", "segments", "documents")


@dataclass(frozen=True)
class Bin:
    """Forecasts of about the same probability."""

    STATED: ClassVar = ("mean_forecast", "share_happened")
    low: float  # low, high: probabilities p with low < p <= high
    high: float
    forecasts: int
    expected: float  # sum of them: as many should have happened
    happened: int
    deviation: float  # standard deviation of `happened` if the forecasts are right

    @property
    def mean_forecast(self) -> float:
        """Return the mean probability forecast; 0 without forecasts."""
        return self.expected / self.forecasts if self.forecasts else 0.0

    @property
    def share_happened(self) -> float:
        """Return the share that happened; 0 without forecasts."""
        return self.happened / self.forecasts if self.forecasts else 0.0


@dataclass(frozen=True)
class Confidence:
    """The most probable tokens whose probability is about the same, and how often they were right."""

    low: float  # low, high: probabilities p with low < p <= high
    high: float
    contexts: int
    mean_confidence: float  # mean probability of the most probable token
    accuracy: float  # share of contexts where it came


@dataclass(frozen=True)
class Calibration:
    """How far probabilities may be taken at their word."""

    contexts: int
    events: int  # of the text, from which they were drawn
    vocabulary: int
    decades: tuple[Bin, ...]  # reliability by powers of ten, all forecasts above 0
    tenths: tuple[Bin, ...]
    # impossible_forecasts, impossible_happened: forecasts of exactly 0, and how many happened all the same
    impossible_forecasts: int
    impossible_happened: int
    expected_calibration_error: float  # of the most probable token, 15 equal bins
    confidence: tuple[Confidence, ...]  # the bins behind it that are not empty
    accuracy: float  # share of contexts where the most probable token came
    mean_confidence: float
    brier_score: float  # mean over contexts of the squared differences between forecast and what happened, 0 to 2
    mean_entropy_bits: float  # what the model expects to pay for an event
    mean_surprisal_bits: float  # what it paid, over the same contexts; infinite with an event of probability zero
    # the second minus the first: above 0 the model is surer than it should be; None if infinite
    overconfidence_bits: float | None
    # 95 %, over documents or, where unknown, over the segments of the contexts, as `statistics.spread` does; None for fewer
    # than six
    overconfidence_interval: tuple[float, float] | None
    seed: int | None  # of the draw of contexts; None if all were taken


def calibrate(
    run: Run,
    model: LanguageModel,
    events: int,
    *,
    tables: Iterable[ScoreBatch] | None = None,
    text: Iterable[Segments] | None = None,
    contexts: int | None = DEFAULT_CONTEXTS,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Calibration:
    """Compare a model's distributions with the tokens that came."""
    made_by = run.origin.fingerprints.get("model", "")
    if made_by and made_by != model.fingerprint:
        raise InputError(
            f"{run.path}: was made by the model {made_by[:6]}, not by {model.label}@{model.fingerprint[:6]}; name the model "
            "that made it, or evaluate again with this one"
        )
    chosen = None
    if contexts is not None and contexts < events:
        chosen = np.sort(np.random.default_rng(seed).choice(events, contexts, replace=False, shuffle=False))
    model = of_events(model)
    rows = _ChosenRows(run, model, chosen)
    if tables is None:
        tables = (batch for _, (batch,) in lockstep([run.batches()], None, [run.name]))
    batches = rows.read(tables)
    given_text = run.origin.policy.given is not None  # contexts begin with it, and no row of the run has it
    if given_text and text is None:
        raise InputError(f"{run.path}: text is given before its segments, which no row has: name the text (--text)")
    if text is not None and (given_text or model.computes_many()):
        for _ in batches:  # the model reads the text itself, and what it says is compared with these rows
            pass
        blocks = distributions_of(model, text, events=chosen, spans=False, threads=threads)
    else:
        blocks = by_event(model, batches, chosen)
    collected = _Collector()
    wanted = events if chosen is None else len(chosen)
    for batch in reduced(blocks, [Forecasts()], threads):
        collected.add(batch.extra, *rows.of(batch))
        say_progress(f"calibration: {collected.contexts:,} of {wanted:,} contexts")
    if not collected.contexts:
        raise InputError(f"{run.path}: the score table has no events to look at")
    return collected.finish(events, len(model.vocabulary), None if chosen is None else seed)


class _ChosenRows:
    """The rows of a run at the events drawn: what the distributions must agree with."""

    # chosen: int64, the events drawn, ascending; None for all.

    def __init__(self, run: Run, model: LanguageModel, chosen: Ints | None) -> None:
        self._run, self._model, self._chosen = run, model, chosen
        self._tolerance = max(_TOLERANCE, float(model.tolerance))
        self._parts: list[tuple[NDArray[Any], ...]] = []  # ids, log-probabilities, segments, documents or -1

    def read(self, tables: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        # tables: of the run, in order.
        seen = 0
        for table in tables:
            batch = replace(table, token_ids=model_ids(table, self._model, self._run), strings=self._model.vocabulary)
            rows = rows_among(self._chosen, seen, len(batch))
            documents = batch.extra.get("document")
            of_rows = np.full(len(rows), -1) if documents is None else documents[rows].astype(np.int64)
            self._parts.append((batch.token_ids[rows], batch.event_logprob()[rows], batch.row_segments()[rows], of_rows))
            seen += len(batch)
            yield batch

    def of(self, batch: ScoreBatch) -> tuple[Ints, Ints]:
        # Segment and document, or -1, of the model's next rows, int64 [rows], after comparing them with the run's.
        if len(self._parts) > 1:
            self._parts = [tuple(map(np.concatenate, zip(*self._parts, strict=True)))]
        rows = slice(len(batch))
        ids, logprob, segments, documents = (column[rows] for column in self._parts[0])
        self._parts = [tuple(column[len(batch) :] for column in self._parts[0])]
        if not np.array_equal(ids, batch.token_ids):
            raise InputError(
                f"{self._run.path}: {self._model.label} cuts the text into other tokens than the run has; name the model "
                "that made the run"
            )
        for row, apart in unlike_model(logprob, batch.extra["came"], self._tolerance):
            where = f"{self._run.path}: segment {segments[row] + 1}, {self._model.vocabulary.token(int(ids[row]))!r}"
            raise InputError(f"{where}: {apart}; name the model that made the run")
        return segments, documents


def model_ids(batch: ScoreBatch, model: LanguageModel, run: Run) -> NDArray[np.uint32]:
    """Return the ids that a model has for the tokens of a table."""
    # -> uint32 [n].
    vocabulary = model.vocabulary
    unseen, ends = batch.unseen(), set(batch.token_ids[batch.kind == EOS_KIND].tolist())
    used = np.unique(batch.token_ids[~unseen])
    # strings [cat, the] whose ids are 7 and 3 -> own [7, 3]; token_ids [1, 0, 1] -> [3, 7, 3]
    own = np.zeros(len(batch.strings.tokens), np.uint32)
    for i in used.tolist():
        token = batch.strings.tokens[i]
        if token not in vocabulary and i in ends:  # a turn may end with a token of its own
            token = "</s>"
        if token not in vocabulary:
            raise InputError(f"{run.path}: {model.label} has no token {token!r}; name the model that made the run")
        own[i] = vocabulary.id(token)
    ids = own[batch.token_ids]
    ids[unseen] = vocabulary.id("<unk>")
    return ids


class _Collector:
    """Adds up contexts, in their order."""

    def __init__(self) -> None:
        self.contexts = 0
        # Of each bin: forecasts, sum of p, happened, and the variance of what happens: one of a context's entries comes.
        self._decades, self._tenths = np.zeros((DECADES, 4)), np.zeros((TENTHS, 4))
        self._impossible = [0, 0]
        self._columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _OF_CONTEXTS}

    def add(self, columns: Columns, segments: Ints, documents: Ints) -> None:
        # segments: int64 [n]; documents: int64 [n], -1 where documents are not known.
        came = columns["came"]
        possible = came > -math.inf
        self.contexts += len(came)
        for whole, name, codes in zip((self._decades, self._tenths), ("decades", "tenths"), bins_of(came), strict=True):
            parts = columns[name]
            whole[:, :2] += parts.sum(axis=0)
            whole[:, 2] += np.bincount(codes[possible], minlength=len(whole))
            # At most one entry of a context comes: with the sum s of its forecasts in a bin, one comes there with
            # probability s, and the variance is s (1 - s).
            whole[:, 3] += np.maximum(parts[:, :, 1] * (1 - parts[:, :, 1]), 0).sum(axis=0)
        self._impossible[0] += int(columns["impossible"].sum())
        self._impossible[1] += int(np.count_nonzero(~possible))
        for name, values in {**columns, "segments": segments, "documents": documents}.items():
            if name in self._columns:
                self._columns[name].append(values)

    def finish(self, events: int, vocabulary: int, seed: int | None) -> Calibration:
        columns = [np.concatenate(self._columns[name]) for name in _OF_CONTEXTS]
        confidence, right, brier, entropy, came, segments, documents = columns
        bins, error = confidence_bins(confidence, right)
        over, interval = _overconfidence(nats_to_bits(-came - entropy), segments, documents)
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
            mean_surprisal_bits=nats_to_bits(-float(came.mean())),
            overconfidence_bits=over,
            overconfidence_interval=interval,
            seed=seed,
        )


def _overconfidence(excess: Floats, segments: Ints, documents: Ints) -> tuple[float | None, tuple[float, float] | None]:
    # Mean of float64 [contexts] and its interval over documents or, where unknown, as `spread` does.
    if not np.isfinite(excess).all():
        return None, None
    _, first, segment = np.unique(segments, return_index=True, return_inverse=True)
    known = documents[first] if (documents >= 0).all() else None
    total = exact_sum(excess)
    over = spread(sums_by(segment, excess), sums_by(segment, np.ones(len(excess))), known, total=total)
    interval = None if over is None else over.interval()
    return total / len(excess), None if interval is None else (interval.low, interval.high)


def confidence_bins(confidence: Floats, right: NDArray[np.bool_]) -> tuple[tuple[Confidence, ...], float]:
    """Return equal bins of what a model is most sure of, and its expected calibration error (Guo et al. 2017, eq. 3)."""
    # confidence: float64 [n], probability of the most probable token; right: bool [n], whether it came.
    # confidence_bins([0.5, 0.5, 1.0, 1.0], [True, False, True, False])[1] -> 0.25
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
