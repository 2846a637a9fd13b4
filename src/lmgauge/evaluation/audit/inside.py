"""Level 2 inside of events: the letters of an unseen word and the white space before a word are probabilities, too."""

# A model that gives every text a probability has a method `writer`: see `writers.py`. The choices of each step sum
# to one, their product is what the row claims in the columns `spelling` and `separator`, and no known word is spelled.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.rows import NO_WRITER, Rows, Step, Subject, Writer, unseen_noun
from lmgauge.evaluation.audit.sample import Contexts, sampled
from lmgauge.progress import say_progress
from lmgauge.scores import SEPARATOR, SPELLED, SPELLING, unescaped

LEVEL = "normalization"
LETTERS, SEPARATORS = "letters", "separators"
PARTS = {SPELLING: LETTERS, SEPARATOR: SEPARATORS}
"""The columns that pay for a part of an event, and the checks of them."""
MOST_KNOWN_WORDS = 50
_SHOWN_EVERY = 64


@dataclass
class Walked:
    """What the steps inside an event came to."""

    # of each part, the sum of the log-probabilities of what the text has
    nats: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    steps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    # of each part, the sum of a step's probabilities that is furthest from 1
    worst: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 1.0))
    # of each part, the log-probability of the last choice
    last: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @classmethod
    def of(cls, writer: Writer, token: int, piece: bytes) -> Walked:
        """Walk through an event whose text is known."""
        walked = cls()
        writer.write(token, walked.choose, piece)
        return walked

    def choose(self, step: Step) -> int:
        """Note what a step gives, and choose what the text has.

        >>> from lmgauge.models.spelling.incremental_decoding import Step
        >>> walked = Walked()
        >>> walked.choose(Step("spelling", np.log([0.25, 0.75]), wanted=0))
        0
        >>> walked.nats["spelling"] == float(np.log(0.25))
        True
        """
        # step: with the choice that the text makes, and float64 [choices], nats.
        total = float(np.sum(np.exp(step.logprob)))
        if not abs(total - 1) <= abs(self.worst[step.part] - 1):
            self.worst[step.part] = total
        logprob = float(step.logprob[step.wanted])
        self.nats[step.part] += logprob
        self.steps[step.part] += 1
        self.last[step.part] = logprob
        return step.wanted


def writer_before(subject: Subject, rows: Rows, position: int) -> Writer:
    """Return a writer that has the text of a segment before an event."""
    # -> the writer, whose text is that of the events before.
    assert subject.writer is not None
    ends = [0, *rows.ends[:position].tolist()]
    return subject.writer(rows.text[: ends[-1]], ends[-2] if position else None)


def follows_given(rows: Rows, position: int) -> bool:
    """Return True for a first event after given text: what of its white space is in there, a writer does not see."""
    return not position and bool(len(rows.given) or rows.lead)


class Parts:
    """Rows of which one part is compared with what the writer gives, step by step."""

    def __init__(self, part: str, subject: Subject) -> None:
        self._part, self._subject, self._unsummed, self._where = part, subject, "", ""
        self.events = self.steps = self.off = self.apart = self.known_words = 0
        self.worst_sum, self.largest = 1.0, 0.0
        self.tolerance = max(subject.sum_tolerance, subject.tolerance)

    def add(self, rows: Rows, position: int, walked: Walked) -> None:
        """Compare the part of a row."""
        part = self._part
        self.events += 1
        self.steps += walked.steps[part]
        piece = rows.piece(position).decode(errors="replace")
        where = f"segment {rows.segment + 1}, event {position + 1}, {piece!r}"
        total = walked.worst[part]
        if not abs(total - 1) <= self._subject.sum_tolerance:
            self.off += 1
            self._unsummed = self._unsummed or f"to {total:.9g} in {where}"
        if not abs(total - 1) <= abs(self.worst_sum - 1):
            self.worst_sum = total
        column = rows.part(part)
        claimed, given = float(column[position]) if len(column) else 0.0, walked.nats[part]
        difference = 0.0 if claimed == given else abs(claimed - given)
        if not difference <= self.tolerance * max(1, walked.steps[part]):
            self.apart += 1
            numbers = f"the row says {in_nine_digits(claimed)} nats, step by step it is {in_nine_digits(given)}"
            self._where = self._where or f"{where}: {numbers}"
        self.largest = max(self.largest, math.inf if math.isnan(difference) else difference)

    def check(self, noun: str, whole: str, known: str = "") -> Check:
        """Return the verdict."""
        bad = known
        if self.off:
            bad = f"In {self.off:,} of {counted(self.events, noun)} probabilities do not sum to 1: {self._unsummed}."
        elif self.apart:
            column = f"the column `{self._part}`"
            bad = f"{column} is not what the model gives at {self.apart:,} of {counted(self.events, noun)}, first in "
            bad = bad[0].upper() + bad[1:] + f"{self._where}."
        good = f"{whole}: probabilities of {counted(self.steps, 'step')} sum to 1, the worst is off by "
        good += f"{abs(self.worst_sum - 1):.2g}; their products are what the rows claim, within {self.largest:.2g} nats "
        good += f"(tolerance {self.tolerance:g} a step)."
        good = good if self.events else f"The text has no {noun}."
        if self.known_words:
            good += f" None of {counted(self.known_words, 'known word')} can be spelled."
        return judge(LEVEL, PARTS[self._part], bad=bad, good=good, details=numbers_of(self))


def check_inside(subject: Subject, contexts: Contexts, *, wanted: int | None, seed: int) -> list[Check]:
    """Walk through events of the text step by step, and through known words as if they were not known."""
    spelled = [(i, int(j)) for i, rows in enumerate(contexts.rows) for j in np.flatnonzero(rows.kind == SPELLED)]
    if subject.writer is None:
        bad = f"{len(spelled):,} {NO_WRITER}."
        return [judge(LEVEL, LETTERS, bad=bad, details={"events": len(spelled)})] if spelled else []
    spelled = _without_given(contexts, spelled)
    letters, separators = Parts(SPELLING, subject), Parts(SEPARATOR, subject)
    for index, position in _drawn(spelled, wanted, seed):
        letters.add(contexts.rows[index], position, _walked(subject, contexts.rows[index], position, letters.events))
    letters.known_words, known = _known_words(subject, seed)
    noun = unseen_noun(subject.tokenizer.unit)
    unseen = f"{sampled(letters.events, len(spelled), noun)} spelled again".capitalize()
    checks = [letters.check(noun, unseen, known)]
    if not any(len(rows.part(SEPARATOR)) for rows in contexts.rows):
        return checks
    for index, position in _without_given(contexts, list(contexts.drawn(wanted, seed))):
        rows = contexts.rows[index]
        separators.add(rows, position, _walked(subject, rows, position, separators.events))
    blanks = f"White space at {sampled(separators.events, contexts.whole.events, 'event')}"
    return [*checks, separators.check("event", blanks)]


def _walked(subject: Subject, rows: Rows, position: int, done: int) -> Walked:
    if done % _SHOWN_EVERY == 0:
        say_progress(f"spelling words again, {done:,}")
    return Walked.of(writer_before(subject, rows, position), int(rows.token_ids[position]), rows.piece(position))


def _without_given(contexts: Contexts, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(index, position) for index, position in places if not follows_given(contexts.rows[index], position)]


def _drawn(places: Sequence[tuple[int, int]], wanted: int | None, seed: int) -> list[tuple[int, int]]:
    if wanted is None or wanted >= len(places):
        return list(places)
    return [places[i] for i in sorted(np.random.default_rng(seed).choice(len(places), wanted, replace=False).tolist())]


def _known_words(subject: Subject, seed: int) -> tuple[int, str]:
    # How many known words were tried, and evidence that one of them can be spelled; empty if none can.
    # A model of characters has no word to try: its unseen characters are shared out among those that it does not know.
    if subject.tokenizer.unit != "word":
        return 0, ""
    size = len(subject.vocabulary)
    drawn = np.random.default_rng(seed).choice(size, min(MOST_KNOWN_WORDS, size), replace=False)
    words = [int(token) for token in drawn if token not in (subject.unk, subject.bos, subject.eos)]
    assert subject.writer is not None
    for token in words:
        word = unescaped(subject.vocabulary.token(token))
        ending = math.exp(min(0.0, Walked.of(subject.writer(), subject.unk, word.encode(errors="replace")).last[SPELLING]))
        if not ending <= subject.sum_tolerance:
            numbers = f"{word!r} ends with probability {ending:.3g} where no such word is left"
            return len(words), f"Known words can be spelled, so that one word has two codes: {numbers}."
    return len(words), ""
