"""Level 2: after any context the probabilities of all tokens sum to one, and `score` agrees with them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.inside import check_inside
from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.rows import Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled
from lmgauge.progress import say_progress

LEVEL, SUMS, AGREEMENT = "normalization", "sums", "agreement"
_ROUNDED = 1e-5
_LARGEST_EXPONENT = 700  # of e, well inside float64
_SHOWN_EVERY = 256
_FEWEST_TOGETHER = 4


def log_sum_exp(logprob: NDArray[np.float64]) -> float:
    """Return ln of the sum of exp of the values; -inf if all are, NaN if one is."""
    # logprob: float64 [n], nats.
    # round(log_sum_exp(np.log([0.25, 0.25, 0.5])), 12) -> 0.0
    top = float(np.max(logprob))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.sum(np.exp(logprob - top))))


class _Sums:
    """Sums of the distributions after contexts: those that are not 1, and the one furthest from it."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._first = subject, ""
        self.contexts = self.off = self.unreachable = self.no_numbers = 0
        self.worst, self.worst_sum, self.worst_context = 0.0, 1.0, ""
        self.tolerance = subject.sum_tolerance

    def add(self, context: NDArray[np.uint32], logprob: NDArray[np.float64], *, reachable: bool) -> None:
        undefined = np.flatnonzero(np.isnan(logprob) | (logprob == np.inf))
        total = log_sum_exp(logprob)
        if total == -math.inf and not reachable:
            self.unreachable += 1
            return
        self.contexts += 1
        words = self._subject.words(context)
        if len(undefined):
            self.no_numbers += 1
            value = "NaN" if np.isnan(logprob[undefined[0]]) else "+inf"
            token = self._subject.vocabulary.token(int(undefined[0]))
            others = f" and {counted(len(undefined) - 1, 'other token')}" if len(undefined) > 1 else ""
            self._first = self._first or f"log_distribution gives {value} after “{words}” to {token!r}{others}"
            return
        distance = abs(math.expm1(total)) if total < _LARGEST_EXPONENT else math.inf
        self.off += not distance <= self.tolerance
        if not distance <= self.worst or not self.worst_context:
            self.worst, self.worst_context = math.inf if math.isnan(distance) else distance, words
            self.worst_sum = math.exp(total) if total < _LARGEST_EXPONENT else math.inf

    def check(self, events: int) -> Check:
        contexts = counted(self.contexts, "context")
        impossible = counted(self.unreachable, "context")
        after = f" Left out: {impossible} that the model makes impossible." if self.unreachable else ""
        worst, tolerance = f"after “{self.worst_context}”", f"(tolerance {self.tolerance:g})"
        bad = ""
        if self.no_numbers:
            bad = f"{self._first}: no probabilities, at {self.no_numbers:,} of {contexts}."
        elif self.off:
            bad = f"After {self.off:,} of {contexts} probabilities do not sum to 1: to {self.worst_sum:.9g} {worst} "
            bad += f"{tolerance}.{after}"
            if self.worst < _ROUNDED:
                bad += " Rounded probabilities, as in some ARPA files, sum like that: --sum-tolerance 1e-5 allows it."
        good = f"Probabilities sum to 1 after {sampled(self.contexts, events, 'context')}; the worst is off by "
        good += f"{self.worst:.2g}, {worst} {tolerance}.{after}"
        skipped = "" if self.contexts else f"No context is left.{after}"
        return judge(LEVEL, SUMS, bad=bad, skipped=skipped, good=good, details=numbers_of(self))


class _Agreement:
    """Events for which `score` and `log_distribution` differ, and where they differ most."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._where = subject, ""
        self.events = self.apart = 0
        self.largest, self.tolerance = 0.0, subject.agreement_tolerance

    def add(self, contexts: Contexts, index: int, position: int, logprob: NDArray[np.float64]) -> None:
        rows = contexts.rows[index]
        token = int(rows.token_ids[position])
        scored, expected = float(rows.event_logprob()[position]), float(logprob[token])
        difference = 0.0 if scored == expected else abs(scored - expected)
        self.events += 1
        self.apart += not difference <= self.tolerance
        if not difference <= self.largest:
            self.largest = math.inf if math.isnan(difference) else difference
            where = f"segment {rows.segment + 1}, event {position + 1}, {self._subject.vocabulary.token(token)!r}"
            numbers = f"score says {in_nine_digits(scored)}, log_distribution {in_nine_digits(expected)} nats"
            self._where = f"{where}: {numbers}"

    def check(self, events: int) -> Check:
        apart, tolerance = f"{self.apart:,} of {counted(self.events, 'event')}", f"(tolerance {self.tolerance:g})"
        bad = f"score differs from log_distribution at {apart}, most in {self._where} {tolerance}." if self.apart else ""
        good = f"score and log_distribution agree on {sampled(self.events, events, 'event')}, within {self.largest:.2g} nats"
        return judge(LEVEL, AGREEMENT, bad=bad, good=f"{good} {tolerance}.", details=numbers_of(self))


def check_normalization(subject: Subject, contexts: Contexts, *, wanted: int | None, seed: int) -> list[Check]:
    """Sum the distribution after sampled contexts of the text, and compare the scored event with it."""
    if not len(contexts):
        reason = "the text has no event to take a context from"
        return [judge(LEVEL, name, skipped=reason) for name in (SUMS, AGREEMENT)]
    sums, agreement = _Sums(subject), _Agreement(subject)
    impossible = [np.flatnonzero(rows.logprob == -np.inf)[:1] for rows in contexts.rows]
    count = min(len(contexts), len(contexts) if wanted is None else wanted)
    done = 0
    for places in _together(subject, contexts, wanted, seed):
        if done % _SHOWN_EVERY < len(places):
            say_progress(f"summing distributions, {done:,} of {count:,}")
        done += len(places)
        asked = [contexts.of(index, position) for index, position in places]
        # The first of each group is asked about alone: what is audited is `log_distribution`.
        groups = [asked[:1], asked[1:]] if len(asked) > 1 else [asked]
        rows = (logprob for group in groups for logprob in subject.distributions(group))
        for (index, position), context, logprob in zip(places, asked, rows, strict=True):
            if subject.running:  # behind an event of probability zero the model never comes
                reachable = contexts.impossible is None or contexts.impossible >= contexts.rows[index].offset + position
            else:
                reachable = not (impossible[index] < position).any()
            sums.add(context, logprob, reachable=reachable)
            agreement.add(contexts, index, position, logprob)
    inside = check_inside(subject, contexts, wanted=wanted, seed=seed)
    return [sums.check(contexts.whole.events), agreement.check(contexts.whole.events), *inside]


def _together(subject: Subject, contexts: Contexts, wanted: int | None, seed: int) -> Iterator[list[tuple[int, int]]]:
    # Contexts of one length are of different segments: none holds what comes after another, so that the model cannot know
    # what it is to predict. Where few have the same length, as in long documents, they are asked about one by one, in their
    # order: then each costs only what is new in it.
    drawn = contexts.drawn(wanted, seed)
    at_a_time = subject.contexts_at_a_time
    if at_a_time == 1:
        yield from ([place] for place in drawn)
        return
    by_length: dict[int, list[tuple[int, int]]] = {}
    for place in drawn:
        by_length.setdefault(place[1] + len(contexts.rows[place[0]].given), []).append(place)
    alone = []
    for _, places in sorted(by_length.items()):
        if len(places) < _FEWEST_TOGETHER:
            alone += places
            continue
        yield from (places[begin : begin + at_a_time] for begin in range(0, len(places), at_a_time))
    yield from ([place] for place in sorted(alone))
