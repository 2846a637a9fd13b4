"""Level 2: after any context the probabilities of all tokens sum to one, and `score` agrees with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.inside import check_inside
from lmgauge.evaluation.audit.results import Check, Compared, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.rows import Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled
from lmgauge.progress import say_progress

LEVEL, SUMS, AGREEMENT = "normalization", "sums", "agreement"
_ROUNDED = 1e-5
_SHOWN_EVERY = 256
_FEWEST_TOGETHER = 4


class _Sums:
    """Sums of the distributions after contexts: those that are not 1, and the one furthest from it."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._first = subject, ""
        self.contexts = self.off = self.unreachable = self.no_numbers = 0
        self.worst, self.worst_sum, self.worst_context = 0.0, 1.0, ""
        self.tolerance = subject.sum_tolerance

    def add(self, context: NDArray[np.uint32], logprob: NDArray[np.float64], *, reachable: bool) -> None:
        undefined = np.flatnonzero(np.isnan(logprob) | (logprob == np.inf))
        with np.errstate(over="ignore"):
            total = float(np.sum(np.exp(logprob)))
        if not total and not reachable:
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
        distance = abs(total - 1)
        self.off += distance > self.tolerance
        if distance > self.worst or not self.worst_context:
            self.worst, self.worst_sum, self.worst_context = distance, total, words

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


def check_normalization(subject: Subject, contexts: Contexts, *, wanted: int | None, seed: int) -> list[Check]:
    """Sum the distribution after sampled contexts of the text, and compare the scored event with it."""
    if not len(contexts):
        reason = "the text has no event to take a context from"
        return [judge(LEVEL, name, skipped=reason) for name in (SUMS, AGREEMENT)]
    sums, agreement = _Sums(subject), Compared(subject.agreement_tolerance)
    count = min(len(contexts), len(contexts) if wanted is None else wanted)
    for places in _together(subject, contexts, wanted, seed):
        if agreement.events % _SHOWN_EVERY < len(places):
            say_progress(f"summing distributions, {agreement.events:,} of {count:,}")
        asked = [contexts.of(index, position) for index, position in places]
        # The first of each group is asked about alone: what is audited is `log_distribution`.
        groups = [asked[:1], asked[1:]] if len(asked) > 1 else [asked]
        distributions = (logprob for group in groups for logprob in subject.distributions(group))
        for (index, position), context, logprob in zip(places, asked, distributions, strict=True):
            sums.add(context, logprob, reachable=contexts.reachable(index, position))
            rows = contexts.rows[index]
            token = int(rows.token_ids[position])
            scored, expected = float(rows.event_logprob()[position]), float(logprob[token])
            if agreement.differ(scored, expected):
                where = f"segment {rows.segment + 1}, event {position + 1}, {subject.vocabulary.token(token)!r}"
                numbers = f"score says {in_nine_digits(scored)}, log_distribution {in_nine_digits(expected)} nats"
                agreement.apart.note(f"{where}: {numbers}")
    inside = check_inside(subject, contexts, wanted=wanted, seed=seed)
    return [sums.check(contexts.whole.events), _agreement_check(agreement, contexts.whole.events), *inside]


def _agreement_check(agreement: Compared, events: int) -> Check:
    apart, tolerance = agreement.apart, f"(tolerance {agreement.tolerance:g})"
    bad = f"score differs from log_distribution at {apart.count:,} of {counted(agreement.events, 'event')}, first in "
    bad += f"{apart.first} {tolerance}."
    good = f"score and log_distribution agree on {sampled(agreement.events, events, 'event')}, within "
    good += f"{agreement.largest:.2g} nats {tolerance}."
    return judge(LEVEL, AGREEMENT, bad=bad if apart.count else "", good=good, details=agreement.details())


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
