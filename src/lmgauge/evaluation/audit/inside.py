"""Level 2 inside of events: the letters of an unseen word and the white space before a word are probabilities, too."""

# A model that gives every text a probability has a method `writer`: see `models/spelling/writing.py`. The choices of each
# step sum to one, their product is what the row claims in the columns `spelling` and `separator`; no known word is spelled.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmgauge.evaluation.audit.results import Check, Compared, Fault, counted, in_nine_digits, judge
from lmgauge.evaluation.audit.rows import NO_WRITER, Rows, Subject, unseen_noun
from lmgauge.evaluation.audit.sample import Contexts, drawn, sampled
from lmgauge.progress import say_progress
from lmgauge.scores import SEPARATOR, SPELLED, SPELLING, unescaped

LEVEL = "normalization"
LETTERS, SEPARATORS = "letters", "separators"
MOST_KNOWN_WORDS = 50
_SHOWN_EVERY = 64
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
            return len(words), f"Known words can be spelled, so that one word has two codes: {numbers}."
    return len(words), ""
