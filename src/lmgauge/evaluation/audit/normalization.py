"""Level 2: after any context the probabilities of all tokens sum to one, and `score` agrees with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge
from lmgauge.evaluation.audit.rows import Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled, sampled_events
from lmgauge.progress import say_progress

LEVEL = "normalization"
_ROUNDED = 1e-5
_LARGEST_EXPONENT = 700  # of e, well inside float64
_SHOWN_EVERY = 256


def log_sum_exp(logprob: NDArray[np.float64]) -> float:
    """Return ln of the sum of exp of the values; -inf if all are, NaN if one is.

    Args:
        logprob: float64 [n], nats.

    Example:
        >>> round(log_sum_exp(np.log([0.25, 0.25, 0.5])), 12)
        0.0
    """
    top = float(np.max(logprob))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.sum(np.exp(logprob - top))))


@dataclass
class _Sums:
    """Sums of the distributions after contexts: those that are not 1, and the one furthest from it."""

    subject: Subject
    contexts: int = 0
    off: int = 0
    worst: float = 0.0
    worst_sum: float = 1.0
    worst_context: str = ""
    unreachable: int = 0
    undefined: int = 0
    first_undefined: str = ""

    def add(self, context: NDArray[np.uint32], logprob: NDArray[np.float64], *, reachable: bool) -> None:
        self.contexts += 1
        undefined = np.flatnonzero(np.isnan(logprob) | (logprob == np.inf))
        total = log_sum_exp(logprob)
        if len(undefined):
            self.undefined += 1
            value = "NaN" if np.isnan(logprob[undefined[0]]) else "+inf"
            token = self.subject.vocabulary.token(int(undefined[0]))
            others = f" and {counted(len(undefined) - 1, 'other token')}" if len(undefined) > 1 else ""
            where = f"after “{self.subject.words(context)}” to {token!r}{others}"
            self.first_undefined = self.first_undefined or f"log_distribution gives {value} {where}"
        elif total == -math.inf and not reachable:
            self.unreachable += 1
        else:
            distance = abs(math.expm1(total)) if total < _LARGEST_EXPONENT else math.inf
            self.off += not distance <= self.subject.sum_tolerance
            if not distance <= self.worst or not self.worst_context:
                self.worst = math.inf if math.isnan(distance) else distance
                self.worst_sum = math.exp(total) if total < _LARGEST_EXPONENT else math.inf
                self.worst_context = self.subject.words(context)

    def check(self, events: int) -> Check:
        checked, tolerance = self.contexts - self.unreachable, self.subject.sum_tolerance
        impossible = counted(self.unreachable, "context")
        after = f" Left out: {impossible} that the model makes impossible." if self.unreachable else ""
        bad = skipped = ""
        if self.undefined:
            bad = f"{self.first_undefined}: no probabilities, at {self.undefined:,} of {counted(self.contexts, 'context')}."
        elif not checked:
            skipped = f"No context is left.{after}"
        elif self.off:
            bad = (
                f"After {self.off:,} of {counted(checked, 'context')} probabilities do not sum to 1: to "
                f"{self.worst_sum:.9g} after “{self.worst_context}” (tolerance {tolerance:g}).{after}"
            )
            if self.worst < _ROUNDED:
                bad += " Rounded probabilities, as in some ARPA files, sum like that: --sum-tolerance 1e-5 allows it."
        return judge(
            LEVEL,
            "sums",
            bad=bad,
            skipped=skipped,
            good=f"Probabilities sum to 1 after {sampled(checked, events, 'context')}; the worst is off by "
            f"{self.worst:.2g}, after “{self.worst_context}” (tolerance {tolerance:g}).{after}",
            details={
                "contexts": checked,
                "off": self.off,
                "worst": self.worst,
                "worst_sum": self.worst_sum,
                "worst_context": self.worst_context,
                "unreachable": self.unreachable,
                "undefined": self.undefined,
                "tolerance": tolerance,
            },
        )


@dataclass
class _Agreement:
    """Events for which `score` and `log_distribution` differ, and where they differ most."""

    subject: Subject
    events: int = 0
    apart: int = 0
    largest: float = 0.0
    largest_event: str = ""

    def add(self, contexts: Contexts, index: int, position: int, logprob: NDArray[np.float64]) -> None:
        rows = contexts.rows[index]
        token = int(rows.token_ids[position])
        scored, expected = float(rows.logprob[position]), float(logprob[token])
        difference = 0.0 if scored == expected else abs(scored - expected)
        self.events += 1
        self.apart += not difference <= self.subject.agreement_tolerance
        if not difference <= self.largest:
            self.largest = math.inf if math.isnan(difference) else difference
            where = f"segment {rows.segment + 1}, event {position + 1}, {self.subject.vocabulary.token(token)!r}"
            numbers = f"score says {in_nine_digits(scored)}, log_distribution {in_nine_digits(expected)} nats"
            self.largest_event = f"{where}: {numbers}"

    def check(self, events: int) -> Check:
        tolerance = self.subject.agreement_tolerance
        within = f"within {self.largest:.2g} nats (tolerance {tolerance:g})"
        apart = f"{self.apart:,} of {counted(self.events, 'event')}"
        worst = f"most in {self.largest_event} (tolerance {tolerance:g})"
        return judge(
            LEVEL,
            "agreement",
            bad=f"score differs from log_distribution at {apart}, {worst}." if self.apart else "",
            good=f"score and log_distribution agree on {sampled(self.events, events, 'event')}, {within}.",
            details={"events": self.events, "apart": self.apart, "largest": self.largest, "tolerance": tolerance},
        )


def check_normalization(subject: Subject, contexts: Contexts, *, wanted: int | None, seed: int) -> list[Check]:
    """Sum the distribution after sampled contexts of the text, and compare the scored event with it.

    Args:
        subject: the model.
        contexts: the events to draw from, as `score` scored them.
        wanted: how many events to draw; None takes all.
        seed: of the draw.
    """
    numbers = sampled_events(len(contexts), wanted, seed)
    if not numbers:
        reason = "the text has no event to take a context from"
        return [judge(LEVEL, name, skipped=reason) for name in ("sums", "agreement")]
    sums, agreement = _Sums(subject), _Agreement(subject)
    impossible = [np.flatnonzero(rows.logprob == -np.inf)[:1] for rows in contexts.rows]
    for done, number in enumerate(numbers):
        if done % _SHOWN_EVERY == 0:
            say_progress(f"summing distributions, {done:,} of {len(numbers):,}")
        index, position = contexts.event(number)
        context = contexts.of(index, position)
        logprob = subject.distribution(context)
        if subject.running:  # behind an event of probability zero the model never comes
            reachable = contexts.impossible is None or contexts.impossible >= contexts.rows[index].offset + position
        else:
            reachable = not (impossible[index] < position).any()
        sums.add(context, logprob, reachable=reachable)
        agreement.add(contexts, index, position, logprob)
    return [sums.check(contexts.whole.events), agreement.check(contexts.whole.events)]
