"""Level 2: after any context the probabilities of all tokens sum to one, and `score` agrees with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.progress import say_progress
from lmgauge.evaluation.audit.checks import Check, Compared, Fault, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.subject import NO_WRITER, Contexts, Rows, Subject, drawn, sampled, unseen_noun
from lmgauge.scores import SEPARATOR, SPELLED, SPELLING, unescaped

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


# A model that gives every text a probability has a method `writer`: see `models/spelling/incremental_decoding.py`. The
# choices of each step sum to one, their product is what the row claims in the columns `spelling` and `separator`; no known
# word is spelled.


LETTERS, SEPARATORS = "letters", "separators"
MOST_KNOWN_WORDS = 50
Places = Sequence[tuple[int, int]]
"""Events: of each the segment (index into rows), and its number there."""


class Walk:
    """The steps inside an event whose text is known: of each the sum of the probabilities, and what the text has of them."""

    def __init__(self, writer: Any, token: int, piece: bytes) -> None:
        self.totals: dict[str, list[float]] = {SPELLING: [], SEPARATOR: []}  # by the column that pays for the step
        self.logprobs: dict[str, list[float]] = {SPELLING: [], SEPARATOR: []}  # nats
        writer.write(token, self._choose, piece)

    @classmethod
    def at(cls, subject: Subject, rows: Rows, position: int) -> Walk:
        """Walk through an event of a text, behind those before it."""
        assert subject.writer is not None
        ends = [0, *rows.ends[:position].tolist()]
        writer = subject.writer(rows.text[: ends[-1]], ends[-2] if position else None)
        return cls(writer, int(rows.token_ids[position]), rows.piece(position))

    def _choose(self, step: Any) -> int:
        self.totals[step.part].append(float(np.sum(np.exp(step.logprob))))
        self.logprobs[step.part].append(float(step.logprob[step.wanted]))
        return int(step.wanted)


def follows_given(rows: Rows, position: int) -> bool:
    """Return True for a first event after given text: what of its white space is in there, a writer does not see."""
    return not position and bool(len(rows.given) or rows.lead)


def check_inside(subject: Subject, contexts: Contexts, *, wanted: int | None, seed: int) -> list[Check]:
    """Walk through events of the text step by step, and through known words as if they were not known."""
    spelled = [(i, int(j)) for i, rows in enumerate(contexts.rows) for j in np.flatnonzero(rows.kind == SPELLED)]
    if subject.writer is None:
        bad = f"{len(spelled):,} {NO_WRITER}."
        return [judge(LEVEL, LETTERS, bad=bad, details={"events": len(spelled)})] if spelled else []
    spelled = _without_given(contexts, spelled)
    places, noun = drawn(spelled, wanted, seed), unseen_noun(subject.tokenizer.unit)
    unseen = f"{sampled(len(places), len(spelled), noun)} spelled again".capitalize()
    checks = [_check_part(SPELLING, subject, contexts, places, noun, unseen, *_known_words(subject, seed))]
    if any(len(rows.part(SEPARATOR)) for rows in contexts.rows):
        places = _without_given(contexts, [*contexts.drawn(wanted, seed)])
        blanks = f"White space at {sampled(len(places), contexts.whole.events, 'event')}"
        checks.append(_check_part(SEPARATOR, subject, contexts, places, "event", blanks))
    return checks


def _without_given(contexts: Contexts, places: Places) -> list[tuple[int, int]]:
    return [(index, position) for index, position in places if not follows_given(contexts.rows[index], position)]


def _check_part(
    part: str,
    subject: Subject,
    contexts: Contexts,
    places: Places,
    noun: str,
    looked_at: str,
    known_words: int = 0,
    bad: str = "",
) -> Check:
    # Compare a part of rows with what the writer gives, step by step; `bad` is what is wrong with known words.
    off, compared = Fault(), Compared(max(subject.sum_tolerance, subject.tolerance))
    steps, worst = 0, 1.0
    for index, position in places:
        if compared.events % _SHOWN_EVERY == 0:
            say_progress(f"spelling words again, {compared.events:,}")
        rows = contexts.rows[index]
        walk, column = Walk.at(subject, rows, position), rows.part(part)
        where = f"segment {rows.segment + 1}, event {position + 1}, {rows.piece(position).decode(errors='replace')!r}"
        total = max([1.0, *walk.totals[part]], key=_distance_from_one)
        worst = max(worst, total, key=_distance_from_one)
        if not _distance_from_one(total) <= subject.sum_tolerance:
            off.note(f"to {total:.9g} in {where}")
        claimed, step_by_step = float(column[position]) if len(column) else 0.0, sum(walk.logprobs[part])
        steps += len(walk.logprobs[part])
        if compared.differ(claimed, step_by_step, max(1, len(walk.logprobs[part]))):
            numbers = f"the row says {in_nine_digits(claimed)} nats, step by step it is {in_nine_digits(step_by_step)}"
            compared.apart.note(f"{where}: {numbers}")
    events = counted(compared.events, noun)
    if off.count:
        bad = f"In {off.count:,} of {events} probabilities do not sum to 1: {off.first}."
    elif compared.apart.count:
        bad = f"The column `{part}` is not what the model gives at {compared.apart.count:,} of {events}, first in "
        bad += f"{compared.apart.first}."
    good = f"{looked_at}: probabilities of {counted(steps, 'step')} sum to 1, the worst is off by {abs(worst - 1):.2g}; "
    good += f"their products are what the rows claim, within {compared.largest:.2g} nats "
    good += f"(tolerance {compared.tolerance:g} a step)."
    good = good if places else f"The text has no {noun}."
    good += f" None of {counted(known_words, 'known word')} can be spelled." if known_words else ""
    details = {"steps": steps, "off": off.count, "known_words": known_words, "worst_sum": worst, **compared.details()}
    return judge(LEVEL, LETTERS if part == SPELLING else SEPARATORS, bad=bad, good=good, details=details)


def _distance_from_one(total: float) -> float:
    return math.inf if math.isnan(total) else abs(total - 1)


def _known_words(subject: Subject, seed: int) -> tuple[int, str]:
    # How many known words were tried, and evidence that one of them can be spelled; empty if none can.
    # A model of characters has no word to try: its unseen characters are shared out among those that it does not know.
    if subject.tokenizer.unit != "word":
        return 0, ""
    assert subject.writer is not None
    chosen = drawn(range(len(subject.vocabulary)), MOST_KNOWN_WORDS, seed)
    words = [token for token in chosen if token not in (subject.unk, subject.bos, subject.eos)]
    for token in words:
        word = unescaped(subject.vocabulary.token(token))
        walk = Walk(subject.writer(), subject.unk, word.encode(errors="replace"))
        ending = math.exp(min(0.0, walk.logprobs[SPELLING][-1]))
        if not ending <= subject.sum_tolerance:
            numbers = f"{word!r} ends with probability {ending:.3g} where no such word is left"
            return len(words), f"Known words can be spelled, so one word has two codes: {numbers}."
    return len(words), ""
