"""Level 2: after any context the probabilities of all tokens sum to one, and `score` gives what they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted, told
from lmgauge.evaluation.audit.rows import Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled, sampled_events

LEVEL = "normalization"
_ROUNDED = 1e-5


@dataclass
class _Seen:
    """What the contexts looked at so far showed."""

    contexts: int = 0
    off: int = 0
    worst: float = 0.0
    worst_sum: float = 1.0
    worst_context: str = ""
    unreachable: int = 0
    compared: int = 0
    apart: int = 0
    largest: float = 0.0
    largest_event: str = ""
    no_numbers: int = 0
    no_number: str = ""


def log_sum_exp(logprob: NDArray[np.float64]) -> float:
    """ln of the sum of exp of the values; -inf if all are, NaN if one is."""
    top = float(np.max(logprob))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.sum(np.exp(logprob - top))))


def check_normalization(
    subject: Subject,
    contexts: Contexts,
    *,
    wanted: int | None,
    seed: int,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Check]:
    """Sums the distribution after sampled contexts of the text, and holds the scored event against it.

    Args:
        subject: the model.
        contexts: the events to draw from, as `score` scored them.
        wanted: how many to draw; None takes all.
        seed: of the draw.
        progress: told in words what is being done.
    """
    numbers = sampled_events(len(contexts), wanted, seed)
    if not numbers:
        reason = "the text has no event to take a context from"
        return [Check(LEVEL, name, NOT_CHECKED, reason) for name in ("sums", "agreement")]
    seen = _Seen()
    possible: dict[int, int] = {}
    for done, number in enumerate(numbers):
        if done % 256 == 0:
            progress(f"summing distributions, {done:,} of {len(numbers):,}")
        index, position = contexts.event(number)
        context = contexts.of(index, position)
        logprob = subject.distribution(context)
        total = log_sum_exp(logprob)
        seen.contexts += 1
        if np.isnan(logprob).any() or (logprob == np.inf).any():
            _note_no_number(seen, subject, context, logprob)
        elif total == -math.inf and _impossible_before(contexts, index, position, subject.running, possible):
            seen.unreachable += 1
        else:
            _note_sum(seen, subject, context, total)
        _note_event(seen, subject, contexts, index, position, float(logprob[contexts.rows[index].ids[position]]))
    events = contexts.whole.events
    return [_sums(seen, events, subject.sum_tolerance), _agreement(seen, events, subject.agreement_tolerance)]


def _impossible_before(contexts: Contexts, index: int, position: int, running: bool, first: dict[int, int]) -> bool:
    """Whether an event of the context has probability zero, so that the model never comes there."""
    if running:
        return contexts.impossible is not None and contexts.impossible < contexts.rows[index].offset + position
    if index not in first:
        impossible = np.flatnonzero(contexts.rows[index].logprob == -np.inf)
        first[index] = int(impossible[0]) if len(impossible) else len(contexts.rows[index])
    return first[index] < position


def _note_no_number(seen: _Seen, subject: Subject, context: NDArray[np.uint32], logprob: NDArray[np.float64]) -> None:
    bad = np.flatnonzero(np.isnan(logprob) | (logprob == np.inf))
    seen.no_numbers += 1
    if not seen.no_number:
        what = "NaN" if np.isnan(logprob[bad[0]]) else "+inf"
        token = subject.vocabulary.token(int(bad[0]))
        others = f" and {counted(len(bad) - 1, 'other token')}" if len(bad) > 1 else ""
        seen.no_number = f"log_distribution gives {what} after “{subject.words(context)}” to {token!r}{others}"


def _note_sum(seen: _Seen, subject: Subject, context: NDArray[np.uint32], total: float) -> None:
    off = abs(math.expm1(total)) if total < 700 else math.inf
    seen.off += not off <= subject.sum_tolerance
    if not off <= seen.worst or not seen.worst_context:
        seen.worst = math.inf if math.isnan(off) else off
        seen.worst_sum = math.exp(total) if total < 700 else math.inf
        seen.worst_context = subject.words(context)


def _note_event(seen: _Seen, subject: Subject, contexts: Contexts, index: int, position: int, expected: float) -> None:
    rows = contexts.rows[index]
    scored = float(rows.logprob[position])
    seen.compared += 1
    difference = 0.0 if scored == expected else abs(scored - expected)
    if not difference <= subject.agreement_tolerance:
        seen.apart += 1
    if not difference <= seen.largest:
        seen.largest = math.inf if math.isnan(difference) else difference
        token = subject.vocabulary.token(int(rows.ids[position]))
        where = f"segment {rows.segment + 1}, event {position + 1}, {token!r}"
        seen.largest_event = f"{where}: score says {told(scored)}, log_distribution {told(expected)} nats"


def _sums(seen: _Seen, events: int, tolerance: float) -> Check:
    checked = seen.contexts - seen.unreachable
    details = {
        "contexts": checked,
        "off": seen.off,
        "worst": seen.worst,
        "worst_sum": seen.worst_sum,
        "worst_context": seen.worst_context,
        "unreachable": seen.unreachable,
        "no_numbers": seen.no_numbers,
        "tolerance": tolerance,
    }
    if seen.no_numbers:
        text = f"{seen.no_number}: no probabilities, at {seen.no_numbers:,} of {counted(seen.contexts, 'context')}."
        return Check(LEVEL, "sums", FAIL, text, details)
    after = f" Left out: {counted(seen.unreachable, 'context')} that the model makes impossible." if seen.unreachable else ""
    if not checked:
        return Check(LEVEL, "sums", NOT_CHECKED, f"No context is left.{after}", details)
    worst = f"the worst is off by {seen.worst:.2g}, after “{seen.worst_context}”"
    if not seen.off:
        text = (
            f"Probabilities sum to 1 after {sampled(checked, events, 'context')}; {worst} (tolerance {tolerance:g}).{after}"
        )
        return Check(LEVEL, "sums", PASS, text, details)
    text = (
        f"After {seen.off:,} of {counted(checked, 'context')} probabilities do not sum to 1: to {seen.worst_sum:.9g} "
        f"after “{seen.worst_context}” (tolerance {tolerance:g}).{after}"
    )
    if seen.worst < _ROUNDED:
        text += (
            " Probabilities that were rounded, as some ARPA files have them, sum like that: --sum-tolerance 1e-5 allows it."
        )
    return Check(LEVEL, "sums", FAIL, text, details)


def _agreement(seen: _Seen, events: int, tolerance: float) -> Check:
    details = {"events": seen.compared, "apart": seen.apart, "largest": seen.largest, "tolerance": tolerance}
    if not seen.apart:
        text = (
            f"score and log_distribution agree on {sampled(seen.compared, events, 'event')}, within {seen.largest:.2g} nats"
        )
        return Check(LEVEL, "agreement", PASS, f"{text} (tolerance {tolerance:g}).", details)
    text = f"score differs from log_distribution at {seen.apart:,} of {counted(seen.compared, 'event')}, most in"
    return Check(LEVEL, "agreement", FAIL, f"{text} {seen.largest_event} (tolerance {tolerance:g}).", details)
